#include "github_service.h"

#include <fmt/format.h>
#include <kj/debug.h>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"

namespace oc {

namespace {

const config::Connection* find(const config::Config& config, const std::string& id) {
  for (auto& one : config.connections) {
    if (one.id == id && one.type == "github") return &one;
  }
  return nullptr;
}

// A title is one line of at most a KiB, whatever an issue has.
std::string oneLine(std::string title) {
  for (char& c : title) {
    if (c == '\n' || c == '\t' || c == '\r') c = ' ';
  }
  return shortened(printable(title), 1000);
}

// The intake's texts begin with who wrote them: "@alice commented …".
std::string writerOf(const std::string& text) {
  auto end = text.find(' ');
  return end == std::string::npos ? "somebody on GitHub" : text.substr(0, end);
}

}  // namespace

GitHubService::GitHubService(supervisor::Supervisor& supervisor, const config::Config& configParam,
                             work::Environment ownParam)
    : supervisor(supervisor),
      config(configParam),
      own(std::move(ownParam)),
      owner([this](const std::string& work, const std::string&) { return scopeOf(work); }),
      tasks(*this) {
  addConnections();
}

hub::ReadSecret GitHubService::readSecret() {
  return [this](std::string name, std::string reference) {
    return work::readSecret(supervisor, own, std::move(name), std::move(reference));
  };
}

void GitHubService::addConnections() {
  for (auto& one : config.connections) {
    if (one.type != "github" || parts.count(one.id) != 0) continue;
    auto& part = parts[one.id];
    part.connection = kj::heap<hub::Connection>(supervisor, hub::specOf(one), readSecret());
    owner.add(*part.connection);
  }
}

void GitHubService::attach(work::Scheduler& given) {
  scheduler = &given;
  hub::addOperations(scheduler->catalogue());
  scheduler->owners().add("github.", owner);
  auto& hooks = scheduler->hooks();
  hooks.git = [this](auto& work, auto& binding, auto& helper) { return gitOf(work, binding, helper); };
  hooks.onState = [this](auto& work, auto& run) { note(work, run); };
  hooks.onReload = [this](auto& changed) { reload(changed); };
  hooks.doctor = [this]() { return examine(); };
}

void GitHubService::start() {
  makeIntakes();
  for (auto& [id, part] : parts) noteLatest(id);
}

// What an earlier daemon, or an earlier connection, did not get to say on issues.
void GitHubService::noteLatest(const std::string& connection) {
  for (auto& work : scheduler->store().allWork()) {
    auto origin = scheduler->store().gitHub().origin(work.id);
    if (!origin || origin->connection != connection) continue;
    auto runs = scheduler->store().runsOf(work.id);
    if (!runs.empty()) note(work, runs.back());
  }
}

void GitHubService::makeIntakes() {
  auto& store = scheduler->store().gitHub();
  hub::WorkSink& sink = *this;
  for (auto& [id, part] : parts) {
    if (part.status.get() == nullptr) part.status = kj::heap<hub::Status>(*part.connection, store);
    part.webhooks = nullptr;
    part.intake = nullptr;
    auto sources = hub::sourcesOf(config, id);
    if (sources.empty()) continue;
    part.intake = kj::heap<hub::Intake>(*part.connection, store, sink, std::move(sources));
    part.intake->start();
    if (auto* connection = find(config, id)) makeWebhooks(*connection, part);
  }
}

void GitHubService::makeWebhooks(const config::Connection& connection, Part& part) {
  auto secret = connection.secretRefs.find("webhook_secret");
  if (connection.webhookPort == 0 || secret == connection.secretRefs.end()) return;
  auto failed = kj::runCatchingExceptions([&]() {
    part.webhooks = kj::heap<hub::Webhooks>(supervisor, connection.webhookPort, secret->second, readSecret(),
                                            std::vector<hub::Intake*>{part.intake.get()});
  });
  KJ_IF_MAYBE (exception, failed) {
    logError("webhooks of {} cannot be taken, and issues are asked for: {}", connection.id, oc::describe(*exception));
  }
}

// What it minted stays good until its runs have ended, and it stays to revoke that.
void GitHubService::retire(Part& part) {
  part.webhooks = nullptr;
  part.intake = nullptr;
  part.status = nullptr;
  owner.remove(part.connection->spec().id);
  former.push_back(kj::mv(part.connection));
}

// A connection that is not as the config has it goes, and one that is takes its place.
void GitHubService::replaceChanged() {
  for (auto at = parts.begin(); at != parts.end();) {
    auto* now = find(config, at->first);
    bool same = now != nullptr && hub::specOf(*now) == at->second.connection->spec();
    if (same) {
      at->second.connection->retry();
      ++at;
      continue;
    }
    logInfo("the connection {} {}", at->first, now == nullptr ? "was removed" : "was changed, and is made anew");
    retire(at->second);
    at = parts.erase(at);
  }
}

void GitHubService::reload(const config::Config& changed) {
  config = changed;
  std::set<std::string> before;
  replaceChanged();
  for (auto& [id, part] : parts) before.insert(id);
  addConnections();
  makeIntakes();
  for (auto& [id, part] : parts) {
    if (before.count(id) == 0) noteLatest(id);
    lookForOtherSecrets(id);
  }
}

// The config can be the same, and the key that it refers to another one.
void GitHubService::lookForOtherSecrets(const std::string& id) {
  auto* asked = parts.at(id).connection.get();
  tasks.add(asked->hasOtherSecrets().then([this, id, asked](bool other) {
    auto part = parts.find(id);
    if (!other || part == parts.end() || part->second.connection.get() != asked) return;
    logInfo("a secret of the connection {} was changed, and it is made anew", id);
    retire(part->second);
    parts.erase(part);
    addConnections();
    makeIntakes();
    noteLatest(id);
  }));
}

void GitHubService::note(const state::WorkRow& work, const state::RunRow& run) {
  auto origin = scheduler->store().gitHub().origin(work.id);
  if (!origin) return;
  auto part = parts.find(origin->connection);
  if (part != parts.end() && part->second.status.get() != nullptr) part->second.status->note(work, run);
}

// ---- what a run's operations are for

OrRefusal<hub::RunScope> GitHubService::scopeOf(const std::string& id) const {
  auto work = scheduler->store().work(id);
  if (!work) return Refusal{"not_found", "there is no Work " + printable(id), ""};
  if (auto origin = scheduler->store().gitHub().origin(id)) {
    return hub::RunScope{origin->connection, origin->repo, origin->issue, work->branch, ""};
  }
  // The operator's own Work: the repository is its scope's, and there is no issue.
  auto* binding = config.findBinding(work->scope + "/" + work->binding);
  auto* scope = config.findScope(work->scope);
  if (binding != nullptr && scope != nullptr) {
    for (auto& extension : scope->extensions) {
      if (extension.type == "github" && extension.connection == binding->connection) {
        return hub::RunScope{binding->connection, extension.repo, 0, work->branch, ""};
      }
    }
  }
  return Refusal{"credential_refused", "this Work has no repository on GitHub",
                 "give its scope an extension of type github, and its binding that extension's connection"};
}

// Without "git": "bot", only a container's git signs in by us: elsewhere the operator's own credentials count, as far
// as the policy grants them. A bot's App of its own counts as if it were set.
kj::Promise<OrRefusal<work::Environment>> GitHubService::gitOf(const state::WorkRow& work,
                                                               const config::Binding& binding,
                                                               const std::string& helper) {
  using Result = OrRefusal<work::Environment>;
  if (binding.connection.empty()) return Result(work::Environment());
  auto scope = scopeOf(work.id);
  auto part = scope.ok() ? parts.find(scope.value().connection) : parts.end();
  if (part == parts.end()) return Result(work::Environment());
  auto& connection = *part->second.connection;
  auto& spec = connection.spec();
  bool asBot = spec.gitAsBot || !spec.botAppId.empty();
  bool signsIn = spec.byApp && (asBot || binding.container);
  auto ours = signsIn ? helper : std::string();
  if (!asBot) return Result(hub::gitEnvironment(nullptr, connection.gitHost(), ours));
  auto& repo = scope.value().repo;
  return connection.facts(repo).then([&connection, ours](OrRefusal<hub::RepositoryFacts> facts) -> Result {
    if (!facts.ok()) return facts.refusal();
    return hub::gitEnvironment(&facts.value().git, connection.gitHost(), ours);
  });
}

// ---- doctor

std::set<std::string> GitHubService::reposOf(const std::string& connection) const {
  std::set<std::string> repos;
  for (auto& scope : config.scopes) {
    for (auto& extension : scope.extensions) {
      if (extension.type == "github" && extension.connection == connection) repos.insert(extension.repo);
    }
  }
  return repos;
}

// Polling goes on without them, so nothing else would tell that they don't come. Nothing where no daemon took them yet.
std::optional<control::DoctorLine> GitHubService::examineWebhooks(const std::string& id, Part& part) const {
  auto* connection = find(config, id);
  if (connection == nullptr || connection->webhookPort == 0 || part.intake.get() == nullptr) return std::nullopt;
  control::DoctorLine line{"github", "fail", "", ""};
  if (part.webhooks.get() == nullptr) {
    line.what = fmt::format("{}: webhooks cannot be taken at port {}", id, connection->webhookPort);
    line.fix = "end what listens there, or give another webhook_port; then open-conduit reload";
    return line;
  }
  auto& trouble = part.webhooks->instance().trouble();
  if (trouble.empty()) return std::nullopt;
  line.what = fmt::format("{}: webhooks are not taken: {}", id, trouble);
  line.fix = "mend that, then open-conduit reload";
  return line;
}

kj::Promise<std::vector<control::DoctorLine>> GitHubService::examine() {
  kj::Promise<std::vector<control::DoctorLine>> all = std::vector<control::DoctorLine>();
  for (auto& [id, part] : parts) {
    auto repos = reposOf(id);
    auto& connection = *part.connection;
    all = all.then([line = examineWebhooks(id, part)](std::vector<control::DoctorLine> lines) mutable {
      if (line) lines.push_back(std::move(*line));
      return lines;
    });
    all = all.then([this, &connection, id = id, repos](std::vector<control::DoctorLine> lines) {
      return connection.examine({repos.begin(), repos.end()}, hub::permissionsNeeded(config, id))
          .then([lines = kj::mv(lines), id](std::vector<hub::Connection::CheckLine> more) mutable {
            for (auto& line : more) {
              lines.push_back({"github", line.level, fmt::format("{}: {}", id, line.what), line.fix});
            }
            return kj::mv(lines);
          });
    });
  }
  return all;
}

// ---- Work, for the intake

OrRefusal<hub::NewWork> GitHubService::describe(const hub::Route& route, uint64_t issue, const std::string& title,
                                                const std::string& body) {
  control::WorkRequest request{route.scope, route.binding, oneLine(title), body};
  auto described = scheduler->describeWork(request, std::to_string(issue));
  if (!described.ok()) return described.refusal();
  return hub::NewWork{described.value().work, described.value().run};
}

void GitHubService::added(const std::string& work) {
  scheduler->workAdded();
  auto row = scheduler->store().work(work);
  auto runs = scheduler->store().runsOf(work);
  if (row && !runs.empty()) note(*row, runs.front());
}

void GitHubService::dropped(const hub::NewWork& work) { scheduler->workDropped({work.work, work.run}); }

kj::Promise<void> GitHubService::deliver(const std::string& work, const std::string& key, const std::string& text,
                                         const std::string& policy) {
  using Policy = work::Scheduler::ActivePolicy;
  auto how = policy == "inject" ? Policy::Inject : policy == "ignore" ? Policy::Ignore : Policy::Queue;
  return scheduler->deliver(work, {key, writerOf(text), text}, how).then([work](OrRefusal<control::Said> said) {
    if (said.ok()) return;
    auto& refusal = said.refusal();
    bool later = refusal.reason == "draining" || refusal.reason == "work_busy";
    if (later) fail(refusal.what);
    logInfo("a comment for Work {} came too late: {}", work, refusal.what);
  });
}

void GitHubService::end(const std::string& work) { scheduler->finishWhenQuiet(work); }

void GitHubService::taskFailed(kj::Exception&& exception) { logError("{}", oc::describe(exception)); }

bool GitHubService::isOpen(const std::string& work) {
  auto row = scheduler->store().work(work);
  return row && row->state == state::WorkState::Open;
}

}  // namespace oc
