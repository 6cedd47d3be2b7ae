// The tokens that runs sign git in with: minted when git asks, kept in memory, and dead when the run has ended.
#pragma once

#include <kj/async.h>

#include <list>
#include <map>
#include <optional>
#include <string>

#include "connection.h"

namespace oc::hub {

class Credentials final : private kj::TaskSet::ErrorHandler {
 public:
  explicit Credentials(Connection& connection);

  // A token for the run, good for at least five more minutes. Asked again, the same one until then; asked at the same
  // time, one is minted. Refused (`credential_refused`) for a run that has ended, and while everything is being
  // revoked.
  kj::Promise<OrRefusal<SecretBytes>> forRun(std::string run, std::string repo);

  // git was refused with the run's token. It is revoked, and the next question gets another one. Not one that GitHub
  // may not know everywhere yet; and not more often than ten times a run.
  void rejected(const std::string& run);
  // How long that may take after a token was minted.
  kj::Duration settling = 30 * kj::SECONDS;

  // From here on nothing is minted for the run, one that is just being minted is revoked when it comes, and all that it
  // had is revoked. Resolves when they are dead, or when that has failed once: then it is tried again until they have
  // run out.
  kj::Promise<void> runEnded(std::string run);

  // For drain and SIGTERM. Runs that go on ask again, of the next daemon: this one mints no more.
  kj::Promise<void> close();

  // That may be alive, as far as we know.
  size_t live() const { return ledger.size(); }

 private:
  struct Entry {
    uint64_t number;
    std::string run;
    SecretBytes token;
    int64_t mintedAt, expiresAt;
    bool condemned = false;
    bool busy = false;     // is being revoked
    bool doubted = false;  // was refused when GitHub might not have known it yet
  };
  struct Run {
    bool ended = false;
    uint64_t current = 0;   // an entry's number
    uint64_t mintings = 0;  // begun so far
    unsigned rejections = 0;
    kj::Maybe<kj::ForkedPromise<kj::Maybe<Refusal>>> minting;
  };

  kj::Promise<kj::Maybe<Refusal>> mint(std::string run, std::string repo);
  kj::Promise<kj::Maybe<Refusal>> askToken(std::string run, std::string repo, uint64_t repositoryId);
  void keep(const std::string& run, capnp::Data::Reader token, int64_t expiresAt);
  OrRefusal<SecretBytes> current(const std::string& run);
  bool isSettled(const Entry& entry) const;
  void giveUp(Run& run, Entry& entry);
  kj::Promise<void> revokeCondemned();
  kj::Promise<void> revoke(uint64_t number);
  kj::Promise<void> tryAgainLater();
  Entry* entry(uint64_t number);
  void taskFailed(kj::Exception&& exception) override;

  Connection& connection;
  std::list<Entry> ledger;
  std::map<std::string, Run> runs;
  uint64_t lastNumber = 0;
  bool closing = false, retrying = false;
  kj::TaskSet tasks;
};

}  // namespace oc::hub
