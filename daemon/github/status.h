// The one comment on an issue that says how its Work stands.
#pragma once

#include <kj/async.h>

#include <map>
#include <string>

#include "connection.h"
#include "daemon/state/github_store.h"

namespace oc::hub {

class Status final : private kj::TaskSet::ErrorHandler {
 public:
  Status(Connection& connection, state::GitHubStore& store) : connection(connection), store(store), tasks(*this) {}

  // A run of Work has come to another state. Work that was not made from an issue of this connection is passed over.
  // What is said already is not said again; while one edit is under way, only the latest state waits.
  void note(const state::WorkRow& work, const state::RunRow& run);

 private:
  void write(const std::string& work);
  kj::Promise<OrRefusal<uint64_t>> say(const std::string& work, const std::string& text, uint64_t comment);
  void failed(const std::string& work, const Refusal& why);
  void taskFailed(kj::Exception&& exception) override;

  struct Wanted {
    std::string text, run;
    uint64_t issue = 0;
    std::string repo;
    bool busy = false;  // it is being said, or will be said again after a pause
    unsigned failures = 0;
  };

  Connection& connection;
  state::GitHubStore& store;
  std::map<std::string, Wanted> wanted;  // by Work
  kj::TaskSet tasks;
};

// For people who read the issue: the run's state, and of a failure its reason's word; nothing of the machine.
std::string statusText(const state::WorkRow& work, const state::RunRow& run);

}  // namespace oc::hub
