#include "owner.h"

#include <fmt/format.h>

#include "base/log.h"
#include "base/text.h"
#include "lost_instance.h"
#include "proto/convert.h"
#include "proto/github_operations.h"

namespace oc::hub {

namespace {

constexpr size_t mostResult = 256u << 10;
constexpr auto quietLook = 2 * kj::SECONDS;
constexpr unsigned mostLookUps = 8;  // of a run

}  // namespace

void addOperations(toolbelt::Catalogue& catalogue) {
  for (auto& one : gitHubOperations())
    catalogue.add({one.name, one.description, one.schema, {one.toolset}, one.hidden});
}

void Owner::add(Connection& connection) {
  remove(connection.spec().id);
  parts[connection.spec().id] = {&connection, kj::heap<Credentials>(connection)};
}

void Owner::remove(const std::string& id, kj::Duration callsTake) {
  auto found = parts.find(id);
  if (found == parts.end()) return;
  removed.push_back(kj::mv(found->second));
  parts.erase(found);
  auto& connection = *removed.back().connection;
  auto& credentials = *removed.back().credentials;
  tasks.add(connection.timer().afterDelay(callsTake).then(
      [this, &connection, &credentials]() { return stopWhenQuiet(connection, credentials); }));
}

kj::Promise<void> Owner::stopWhenQuiet(Connection& connection, Credentials& credentials) {
  if (credentials.live() == 0) return connection.stop();
  return connection.timer().afterDelay(quietLook).then(
      [this, &connection, &credentials]() { return stopWhenQuiet(connection, credentials); });
}

kj::Vector<Credentials*> Owner::allCredentials() {
  kj::Vector<Credentials*> all;
  for (auto& [id, part] : parts) all.add(part.credentials.get());
  for (auto& part : removed) all.add(part.credentials.get());
  return all;
}

OrRefusal<Owner::Part*> Owner::partOf(const RunScope& scope) {
  auto found = parts.find(scope.connection);
  if (found == parts.end()) {
    return Refusal{"github_unavailable", fmt::format("the config has no connection {} any more", scope.connection),
                   "put it back"};
  }
  return &found->second;
}

kj::Promise<OrRefusal<toolbelt::OperationResult>> Owner::call(const std::string& work, const std::string& run,
                                                              const std::string& operation,
                                                              const std::string& arguments,
                                                              const toolbelt::CallId& id) {
  using Result = OrRefusal<toolbelt::OperationResult>;
  auto scope = findScope(work, run);
  if (!scope.ok()) return Result(scope.refusal());
  auto part = partOf(scope.value());
  if (!part.ok()) return Result(part.refusal());
  auto& connection = *part.value()->connection;
  Call call{scope.value(), work, run, operation, arguments, id.id.empty() ? newId("") : id.id};
  auto asked = pastLostInstances<Result>(
      connection.timer(), [this, &connection, call](bool again) { return ask(connection, call, again); }, id.again);
  return withDeadline(connection.timer(), longestCall, "open-conduit-github", kj::mv(asked))
      .catch_([](kj::Exception&& exception) -> Result {
        return Refusal{"github_unavailable", describe(exception), "look whether it was done, and try again"};
      });
}

kj::Promise<OrRefusal<toolbelt::OperationResult>> Owner::ask(Connection& connection, const Call& call, bool again) {
  using Result = OrRefusal<toolbelt::OperationResult>;
  return connection.facts(call.bound.repo).then([&connection, call, again](OrRefusal<RepositoryFacts> facts) {
    if (!facts.ok()) return kj::Promise<Result>(facts.refusal());
    return connection.client().then(
        [call, again, id = facts.value().id](OrRefusal<proto::GitHub::Client> client) -> kj::Promise<Result> {
          if (!client.ok()) return Result(client.refusal());
          auto request = client.value().callRequest();
          auto to = request.initBound();
          to.setRepo(toText(call.bound.repo));
          to.setRepositoryId(id);
          to.setIssue(call.bound.issue);
          to.setBranch(toText(call.bound.branch));
          to.setBase(toText(call.bound.base));
          to.setWork(toText(call.work));
          to.setRun(toText(call.run));
          to.setCall(toText(call.id));
          to.setAgain(again);
          request.setOperation(toText(call.operation));
          request.setArguments(toData(call.arguments));
          return request.send().then([](auto&& answer) -> Result {
            auto refusal = oc::read(answer.getRefusal());
            if (!refusal.reason.empty()) return refusal;
            if (answer.getResult().size() > mostResult)
              return Refusal{"github_unavailable", "the github provider's answer is too large", ""};
            return toolbelt::OperationResult{toString(answer.getResult()), answer.getIsError()};
          });
        });
  });
}

kj::Promise<OrRefusal<toolbelt::GitCredential>> Owner::credential(const std::string& work, const std::string& run,
                                                                  const std::string& protocol, const std::string& host,
                                                                  const std::string& path) {
  using Result = OrRefusal<toolbelt::GitCredential>;
  auto scope = findScope(work, run);
  if (!scope.ok()) return Result(scope.refusal());
  auto part = partOf(scope.value());
  if (!part.ok()) return Result(part.refusal());
  auto& connection = *part.value()->connection;
  auto& credentials = *part.value()->credentials;
  auto bound = scope.value();
  auto give = [&credentials, run, repo = bound.repo]() {
    return credentials.forRun(run, repo).then([](OrRefusal<SecretBytes> token) -> Result {
      if (!token.ok()) return token.refusal();
      return toolbelt::GitCredential{"x-access-token", std::move(token.value())};
    });
  };
  auto refusal = whyNotThisRepository(bound, connection.gitHost(), protocol, host, path);
  if (refusal.reason.empty()) return give();
  // GitHub sends git on to a repository's new name.
  auto own = bound.repo;
  bound.repo = repositoryIn(path);
  if (!whyNotThisRepository(bound, connection.gitHost(), protocol, host, path).reason.empty()) return Result(refusal);
  return isRenamed(connection, run, own, bound.repo).then([give, refusal](bool same) -> kj::Promise<Result> {
    if (!same) return Result(refusal);
    return give();
  });
}

// Are both names the same repository's? An agent can have only a few looked up.
kj::Promise<bool> Owner::isRenamed(Connection& connection, std::string run, std::string repo, std::string asked) {
  if (asked.empty() || ++lookUps[run] > mostLookUps) return false;
  return connection.facts(repo).then([&connection, asked](OrRefusal<RepositoryFacts> own) -> kj::Promise<bool> {
    if (!own.ok()) return false;
    return connection.facts(asked).then(
        [id = own.value().id](OrRefusal<RepositoryFacts> other) { return other.ok() && other.value().id == id; });
  });
}

void Owner::credentialRejected(const std::string&, const std::string& run) {
  for (auto* credentials : allCredentials()) credentials->rejected(run);
}

void Owner::runEnded(const std::string&, const std::string& run) {
  lookUps.erase(run);
  for (auto* credentials : allCredentials()) tasks.add(credentials->runEnded(run));
}

kj::Promise<void> Owner::close() {
  kj::Vector<kj::Promise<void>> all;
  for (auto* credentials : allCredentials()) all.add(credentials->close().eagerlyEvaluate(nullptr));
  return kj::joinPromises(all.releaseAsArray());
}

void Owner::taskFailed(kj::Exception&& exception) { logError("{}", describe(exception)); }

}  // namespace oc::hub
