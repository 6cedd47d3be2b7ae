// GitHub's operations for toolbelts: each call goes to the connection's provider, bound to what its run is for.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "connection.h"
#include "credentials.h"
#include "daemon/toolbelt/operations.h"
#include "daemon/toolbelt/owner.h"
#include "run_scope.h"

namespace oc::hub {

// Refuses for a run that has nothing to do with GitHub.
using FindScope = std::function<OrRefusal<RunScope>(const std::string& work, const std::string& run)>;

class Owner final : public toolbelt::OperationOwner, private kj::TaskSet::ErrorHandler {
 public:
  explicit Owner(FindScope findScope) : findScope(std::move(findScope)), tasks(*this) {}

  // The connection outlives this. One of the same id takes its place, and goes on as one that was removed.
  void add(Connection& connection);
  // Nothing is asked of the connection any more but to revoke what it minted, which stays good until its runs have
  // ended. Then, and when calls that are under way have had their time, it is stopped.
  void remove(const std::string& connection, kj::Duration callsTake = longestCall);
  // A write may have to wait its turn, and a limit of GitHub's for half a minute.
  static constexpr kj::Duration longestCall = 180 * kj::SECONDS;
  Credentials& credentialsOf(const std::string& connection) { return *parts.at(connection).credentials; }

  kj::Promise<OrRefusal<toolbelt::OperationResult>> call(const std::string& work, const std::string& run,
                                                         const std::string& operation, const std::string& arguments,
                                                         const toolbelt::CallId& id) override;
  kj::Promise<OrRefusal<toolbelt::GitCredential>> credential(const std::string& work, const std::string& run,
                                                             const std::string& protocol, const std::string& host,
                                                             const std::string& path) override;
  void credentialRejected(const std::string& work, const std::string& run) override;
  void runEnded(const std::string& work, const std::string& run) override;

  // For drain and SIGTERM: all tokens go, and no more are minted.
  kj::Promise<void> close();

 private:
  struct Part {
    Connection* connection;
    kj::Own<Credentials> credentials;
  };
  // One call, as it is asked of one instance after the other.
  struct Call {
    RunScope bound;
    std::string work, run, operation, arguments, id;
  };
  kj::Promise<OrRefusal<toolbelt::OperationResult>> ask(Connection& connection, const Call& call, bool again);
  OrRefusal<Part*> partOf(const RunScope& scope);
  kj::Promise<bool> isRenamed(Connection& connection, std::string run, std::string repo, std::string asked);
  kj::Promise<void> stopWhenQuiet(Connection& connection, Credentials& credentials);
  kj::Vector<Credentials*> allCredentials();
  void taskFailed(kj::Exception&& exception) override;

  FindScope findScope;
  std::map<std::string, Part> parts;
  std::vector<Part> removed;
  std::map<std::string, unsigned> lookUps;  // by run: names that were looked up since git asked by them
  kj::TaskSet tasks;
};

// GitHub's operations, for the daemon's catalogue.
void addOperations(toolbelt::Catalogue& catalogue);

}  // namespace oc::hub
