#include "connection.h"

#include <fmt/format.h>
#include <kj/debug.h>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/config/git_host.h"
#include "lost_instance.h"
#include "proto/convert.h"

namespace oc::hub {

namespace {

constexpr auto waitLimit = 20 * kj::SECONDS;
constexpr auto callLimit = 150 * kj::SECONDS;
constexpr auto signOutLimit = 10 * kj::SECONDS;

Identity read(proto::GitHubIdentity::Reader from) {
  auto text = [](capnp::Text::Reader reader) { return shortened(printable(toString(reader)), 256); };
  return {from.getId(), text(from.getLogin()), text(from.getName()), text(from.getEmail())};
}

}  // namespace

Connection::Connection(supervisor::Supervisor& supervisor, ConnectionSpec spec, ReadSecret readSecret,
                       supervisor::RestartPolicy policy)
    : supervisor(supervisor),
      theSpec(std::move(spec)),
      readSecret(std::move(readSecret)),
      fingerprintKey(randomBytes(32)),
      resident(kj::heap<supervisor::Resident>(
          supervisor, launchSpec(), policy,
          supervisor::Resident::Prepare([this](supervisor::Instance& instance) { return signIn(instance); }))) {}

supervisor::LaunchSpec Connection::launchSpec() const {
  supervisor::LaunchSpec launch;
  launch.provider = "github";
  launch.label = theSpec.id;
  launch.job = {"connection", "--api", theSpec.api};
  if (!theSpec.caFile.empty()) launch.job.insert(launch.job.end(), {"--ca", theSpec.caFile});
  launch.carriesCalls = true;
  return launch;
}

std::string Connection::gitHost() const { return config::gitHostOf(theSpec.api); }

// ---- signing in

kj::Promise<kj::Own<Connection::Secrets>> Connection::readAll() {
  struct Wanted {
    const char* name;
    std::string reference;
    SecretBytes* to;
  };
  auto secrets = kj::heap<Secrets>();
  std::vector<Wanted> wanted = {{"app_private_key", theSpec.key, &secrets->key},
                                {"token", theSpec.token, &secrets->token},
                                {"bot_private_key", theSpec.botKey, &secrets->botKey}};
  kj::Promise<void> all = kj::READY_NOW;
  for (auto& one : wanted) {
    if (one.reference.empty()) continue;
    all = all.then([this, one]() {
      return readSecret(one.name, one.reference).then([to = one.to](OrRefusal<SecretBytes> value) {
        if (!value.ok()) fail(value.refusal().what);
        *to = std::move(value.value());
      });
    });
  }
  return all.then([secrets = kj::mv(secrets)]() mutable { return kj::mv(secrets); });
}

// Of use to this object alone, and of none to who reads it.
std::string Connection::fingerprint(const Secrets& secrets) const {
  std::string all;
  for (auto* one : {&secrets.key, &secrets.token, &secrets.botKey}) {
    auto hash = hmacSha256(fingerprintKey, one->view());
    all.append(hash.begin(), hash.end());
  }
  return all;
}

kj::Promise<void> Connection::signIn(supervisor::Instance& instance) {
  return readAll()
      .then([this, &instance](kj::Own<Secrets> secrets) {
        auto request = instance.as<proto::GitHub>().signInRequest();
        auto credentials = request.initCredentials();
        if (theSpec.byApp) {
          auto app = credentials.initApp();
          app.setId(toText(theSpec.appId));
          app.setPrivateKey(toData(secrets->key.view()));
        } else {
          credentials.setToken(toData(secrets->token.view()));
        }
        credentials.setBotAppId(toText(theSpec.botAppId));
        credentials.setBotPrivateKey(toData(secrets->botKey.view()));
        signedInBy = fingerprint(*secrets);
        return request.send().then([](auto&& answer) { return oc::read(answer.getRefusal()); });
      })
      .then([this](Refusal refusal) {
        if (!refusal.reason.empty()) fail(refusal.what + "; " + refusal.fix);
        problem.clear();
        for (auto& tell : listeners) tell();
      })
      .catch_([this](kj::Exception&& exception) {
        problem = describe(exception);
        kj::throwFatalException(kj::mv(exception));
      });
}

kj::Promise<bool> Connection::hasOtherSecrets() {
  if (signedInBy.empty()) return false;
  return readAll().then([this](kj::Own<Secrets> secrets) { return fingerprint(*secrets) != signedInBy; },
                        [](kj::Exception&&) { return false; });
}

void Connection::retry() {
  if (resident.get() != nullptr) resident->retry();
}

kj::Promise<void> Connection::stop() {
  kj::Promise<void> signedOut = kj::READY_NOW;
  KJ_IF_MAYBE (running, instance()) {
    auto asked = running->as<proto::GitHub>().signOutRequest().send().ignoreResult();
    signedOut = withDeadline(timer(), signOutLimit, "open-conduit-github", kj::mv(asked));
  }
  return signedOut
      .catch_([](kj::Exception&& exception) {
        logWarning("an instance of open-conduit-github could not revoke its own tokens: {}", describe(exception));
      })
      .then([this]() { resident = nullptr; });
}

kj::Maybe<supervisor::Instance&> Connection::instance() {
  if (resident.get() == nullptr) return nullptr;
  return resident->current();
}

bool Connection::isLost() const {
  return resident.get() == nullptr || resident->state() == supervisor::Resident::State::GivenUp;
}

std::string Connection::trouble() const {
  if (resident.get() == nullptr) return "it has been changed in the config";
  if (resident->state() == supervisor::Resident::State::Running) return "";
  return problem.empty() ? resident->trouble() : problem;
}

pid_t Connection::pid() {
  KJ_IF_MAYBE (running, instance()) {
    return running->pid();
  }
  return 0;
}

Refusal Connection::down() const {
  auto why = trouble();
  return {"github_unavailable",
          fmt::format("the connection {} is not up{}{}", theSpec.id, why.empty() ? "" : ": ", why),
          isLost() ? "open-conduit doctor says what is wrong; then reload the config" : "try again"};
}

kj::Promise<OrRefusal<proto::GitHub::Client>> Connection::client() { return clientUntil(timer().now() + waitLimit); }

kj::Promise<OrRefusal<proto::GitHub::Client>> Connection::clientUntil(kj::TimePoint until) {
  using Client = OrRefusal<proto::GitHub::Client>;
  KJ_IF_MAYBE (running, instance()) {
    return Client(running->as<proto::GitHub>());
  }
  if (isLost()) return Client(down());
  if (timer().now() >= until) return Client(down());
  return timer().afterDelay(25 * kj::MILLISECONDS).then([this, until]() { return clientUntil(until); });
}

// ---- what is known

kj::Promise<OrRefusal<RepositoryFacts>> Connection::facts(std::string repo) {
  using Facts = OrRefusal<RepositoryFacts>;
  auto found = known.find(repo);
  if (found != known.end()) return Facts(found->second);
  auto asked = pastLostInstances<Facts>(timer(), [this, repo](bool) { return askFacts(repo); });
  return withDeadline(timer(), callLimit, "open-conduit-github", kj::mv(asked))
      .catch_([](kj::Exception&& exception) -> Facts {
        return Refusal{"github_unavailable", describe(exception), "try again"};
      });
}

kj::Promise<OrRefusal<RepositoryFacts>> Connection::askFacts(std::string repo) {
  using Facts = OrRefusal<RepositoryFacts>;
  return client().then([this, repo](OrRefusal<proto::GitHub::Client> client) -> kj::Promise<Facts> {
    if (!client.ok()) return Facts(client.refusal());
    auto github = client.value();
    auto request = github.repositoryRequest();
    request.setRepo(toText(repo));
    return request.send().then([this, github, repo](auto&& answer) mutable -> kj::Promise<Facts> {
      auto refusal = oc::read(answer.getRefusal());
      if (!refusal.reason.empty()) return Facts(refusal);
      RepositoryFacts facts;
      facts.id = answer.getRepository().getId();
      facts.defaultBranch = shortened(printable(toString(answer.getRepository().getDefaultBranch())), 256);
      auto who = github.identityRequest();
      who.setRepo(toText(repo));
      return who.send().then([this, repo, facts](auto&& answer) mutable -> Facts {
        auto refusal = oc::read(answer.getRefusal());
        if (!refusal.reason.empty()) return refusal;
        facts.git = read(answer.getGit());
        facts.speaker = read(answer.getSpeaker());
        known[repo] = facts;
        return facts;
      });
    });
  });
}

kj::Promise<std::vector<Connection::CheckLine>> Connection::examine(std::vector<std::string> repos,
                                                                    std::vector<std::string> needs) {
  using Lines = std::vector<CheckLine>;
  auto failed = [this](const std::string& what, const std::string& fix) -> Lines {
    return {{"FAIL", fmt::format("{}: {}", theSpec.id, what), fix}};
  };
  return client()
      .then([this, failed, repos, needs](OrRefusal<proto::GitHub::Client> client) -> kj::Promise<Lines> {
        if (!client.ok()) return failed(client.refusal().what, client.refusal().fix);
        auto request = client.value().examineRequest();
        auto repoList = request.initRepos(repos.size());
        for (size_t i = 0; i < repos.size(); ++i) repoList.set(i, toText(repos[i]));
        auto needList = request.initNeeds(needs.size());
        for (size_t i = 0; i < needs.size(); ++i) needList.set(i, toText(needs[i]));
        auto asked = request.send().then([this, failed](auto&& answer) -> Lines {
          Lines lines;
          for (auto check : answer.getChecks()) {
            if (lines.size() == 64) break;
            auto level = check.getOk() ? "ok" : check.getWanted() ? "warn" : "FAIL";
            lines.push_back({level,
                             fmt::format("{}: {}", theSpec.id, shortened(printable(toString(check.getWhat())), 2048)),
                             shortened(printable(toString(check.getFix())), 2048)});
          }
          return lines.empty() ? failed("the check reported nothing", "see the daemon's log") : lines;
        });
        return withDeadline(timer(), callLimit, "open-conduit-github", kj::mv(asked));
      })
      .catch_([failed](kj::Exception&& exception) { return failed(describe(exception), "see the daemon's log"); });
}

}  // namespace oc::hub
