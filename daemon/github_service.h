// GitHub in the daemon: the config's connections, kept running, and what becomes of issues and comments.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "daemon/github/from_config.h"
#include "daemon/github/owner.h"
#include "daemon/github/status.h"
#include "daemon/github/webhooks.h"
#include "daemon/work/scheduler.h"

namespace oc {

class GitHubService final : private hub::WorkSink, private kj::TaskSet::ErrorHandler {
 public:
  // Starts the connections of the config. Outlives the scheduler.
  GitHubService(supervisor::Supervisor& supervisor, const config::Config& config, work::Environment own);

  // Adds the operations and hooks; before the scheduler recovers.
  void attach(work::Scheduler& scheduler);
  // Begins to look for issues and comments; after it has.
  void start();

  // Doctor's lines: each connection, with the repositories and permissions that its scopes and bindings need.
  kj::Promise<std::vector<control::DoctorLine>> examine();
  // All tokens of runs go; none is minted any more.
  kj::Promise<void> close() { return owner.close(); }

 private:
  // In this order: what comes first outlives the rest.
  struct Part {
    kj::Own<hub::Connection> connection;
    kj::Own<hub::Status> status;
    kj::Own<hub::Intake> intake;
    kj::Own<hub::Webhooks> webhooks;
  };

  void addConnections();
  void retire(Part& part);
  void replaceChanged();
  void lookForOtherSecrets(const std::string& connection);
  void noteLatest(const std::string& connection);
  void makeIntakes();
  std::optional<control::DoctorLine> examineWebhooks(const std::string& id, Part& part) const;
  void makeWebhooks(const config::Connection& connection, Part& part);
  void reload(const config::Config& changed);
  void note(const state::WorkRow& work, const state::RunRow& run);
  std::set<std::string> reposOf(const std::string& connection) const;
  OrRefusal<hub::RunScope> scopeOf(const std::string& work) const;
  kj::Promise<OrRefusal<work::Environment>> gitOf(const state::WorkRow& work, const config::Binding& binding,
                                                  const std::string& helper);
  hub::ReadSecret readSecret();

  OrRefusal<hub::NewWork> describe(const hub::Route& route, uint64_t issue, const std::string& title,
                                   const std::string& body) override;
  void added(const std::string& work) override;
  void dropped(const hub::NewWork& work) override;
  kj::Promise<void> deliver(const std::string& work, const std::string& key, const std::string& text,
                            const std::string& policy) override;
  void end(const std::string& work) override;
  bool isOpen(const std::string& work) override;
  void taskFailed(kj::Exception&& exception) override;

  supervisor::Supervisor& supervisor;
  config::Config config;
  work::Environment own;
  work::Scheduler* scheduler = nullptr;
  std::vector<kj::Own<hub::Connection>> former;  // changed or removed; calls that are under way may refer to one
  std::map<std::string, Part> parts;             // by the connection's id
  hub::Owner owner;
  kj::TaskSet tasks;
};

}  // namespace oc
