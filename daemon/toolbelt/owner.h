// Who carries out the operations of one prefix: a provider's part of the daemon.
#pragma once

#include <kj/async.h>

#include <map>
#include <string>

#include "base/crypto.h"
#include "base/refusal.h"

namespace oc::toolbelt {

struct OperationResult {
  std::string json;      // at most 256 KiB; from the provider, passed on unread
  bool isError = false;  // the operation failed, and `json` says why to the agent
};

struct GitCredential {
  std::string username;
  SecretBytes password;
};

// One call, whichever daemon or instance is lost under it. Both are the shim's words.
struct CallId {
  std::string id;      // letters and digits, at most 32; empty: it has none
  bool again = false;  // its answer was lost: a write is done only where it was not done
};

// Runs of one Work are told apart by `run`. A promise may be dropped: its run has ended. What it breaks with is logged,
// and the agent is told that the operation failed.
class OperationOwner {
 public:
  virtual ~OperationOwner() noexcept(false) = default;

  // `operation` is one of the run's own. `arguments` is a JSON object of at most 256 KiB, hostile, that the shim says
  // keeps to the operation's schema.
  virtual kj::Promise<OrRefusal<OperationResult>> call(const std::string& work, const std::string& run,
                                                       const std::string& operation, const std::string& arguments,
                                                       const CallId& id) = 0;

  // For git: only the Work's own repository on its host, else `credential_refused`. All three are the agent's words.
  virtual kj::Promise<OrRefusal<GitCredential>> credential(const std::string& work, const std::string& run,
                                                           const std::string& protocol, const std::string& host,
                                                           const std::string& path) = 0;

  // git was refused with what it was given: it may have died early. The agent's word.
  virtual void credentialRejected(const std::string& work, const std::string& run) = 0;

  // The run's toolbelt is no more: what was minted for it is to be revoked. Called once for each run that had one of
  // this owner's operations, after the last call; also for one that an earlier daemon began.
  virtual void runEnded(const std::string& work, const std::string& run) = 0;
};

class Owners {
 public:
  // `prefix` is "github.". The owner outlives this.
  void add(const std::string& prefix, OperationOwner& owner) { owners[prefix] = &owner; }
  // Null when none is there.
  OperationOwner* of(const std::string& operation) const {
    auto found = owners.find(operation.substr(0, operation.find('.') + 1));
    return found == owners.end() ? nullptr : found->second;
  }

 private:
  std::map<std::string, OperationOwner*> owners;
};

}  // namespace oc::toolbelt
