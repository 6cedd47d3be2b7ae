#include "credentials.h"

#include <fmt/format.h>
#include <kj/debug.h>
#include <sodium.h>
#include <time.h>

#include "base/log.h"
#include "lost_instance.h"
#include "proto/convert.h"

namespace oc::hub {

namespace {

// git does not ask again when a token dies under it.
constexpr int64_t marginMs = 5 * 60 * 1000;
constexpr auto callLimit = 60 * kj::SECONDS;
constexpr auto revokeLimit = 30 * kj::SECONDS;
constexpr auto betweenTries = 2 * kj::SECONDS;
constexpr size_t longestToken = 4096;
constexpr unsigned mostRejections = 10;

int64_t nowMs() {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1000000;
}

Refusal ended() { return {"credential_refused", "the run has ended, or the daemon is being stopped", ""}; }

bool isToken(capnp::Data::Reader data) {
  if (data.size() == 0 || data.size() > longestToken) return false;
  for (auto byte : data) {
    if (byte <= 0x20 || byte >= 0x7f) return false;
  }
  return true;
}

void wipe(capnp::Data::Reader data) { sodium_memzero(const_cast<kj::byte*>(data.begin()), data.size()); }

}  // namespace

// A new instance knows nothing of what an earlier one minted: it revokes what has to go.
Credentials::Credentials(Connection& connection) : connection(connection), tasks(*this) {
  connection.onUp([this]() { tasks.add(kj::evalLater([this]() { return revokeCondemned(); })); });
}

Credentials::Entry* Credentials::entry(uint64_t number) {
  for (auto& one : ledger) {
    if (one.number == number) return &one;
  }
  return nullptr;
}

OrRefusal<SecretBytes> Credentials::current(const std::string& run) {
  auto& known = runs[run];
  auto* found = entry(known.current);
  if (known.ended || closing || found == nullptr) return ended();
  return found->token.clone();
}

// ---- minting

kj::Promise<OrRefusal<SecretBytes>> Credentials::forRun(std::string run, std::string repo) {
  using Token = OrRefusal<SecretBytes>;
  auto& known = runs[run];
  if (known.ended || closing) return Token(ended());
  auto* has = entry(known.current);
  if (has != nullptr && has->doubted && isSettled(*has)) {
    giveUp(known, *has);
    has = nullptr;
  }
  if (has != nullptr && has->expiresAt > nowMs() + marginMs) return Token(has->token.clone());
  if (known.minting == nullptr) {
    ++known.mintings;
    known.minting = mint(run, repo).fork();
  }
  auto which = known.mintings;
  return KJ_ASSERT_NONNULL(known.minting).addBranch().then([this, run, which](kj::Maybe<Refusal> refusal) -> Token {
    if (runs[run].mintings == which) runs[run].minting = nullptr;
    KJ_IF_MAYBE (why, refusal) {
      return *why;
    }
    return current(run);
  });
}

// A token that an instance was lost with is nobody's, and ends by itself.
kj::Promise<kj::Maybe<Refusal>> Credentials::mint(std::string run, std::string repo) {
  using Result = kj::Maybe<Refusal>;
  return connection.facts(repo)
      .then([this, run, repo](OrRefusal<RepositoryFacts> facts) -> kj::Promise<Result> {
        if (!facts.ok()) return Result(facts.refusal());
        auto asked = pastLostInstances<Result>(
            connection.timer(), [this, run, repo, id = facts.value().id](bool) { return askToken(run, repo, id); });
        return withDeadline(connection.timer(), callLimit, "open-conduit-github", kj::mv(asked));
      })
      .catch_([](kj::Exception&& exception) -> Result {
        return Refusal{"github_unavailable", describe(exception), "try again"};
      });
}

kj::Promise<kj::Maybe<Refusal>> Credentials::askToken(std::string run, std::string repo, uint64_t repositoryId) {
  using Result = kj::Maybe<Refusal>;
  return connection.client().then(
      [this, run, repo, repositoryId](OrRefusal<proto::GitHub::Client> client) -> kj::Promise<Result> {
        if (!client.ok()) return Result(client.refusal());
        auto request = client.value().mintRequest();
        request.setRepo(toText(repo));
        request.setRepositoryId(repositoryId);
        return request.send().then([this, run](auto&& answer) -> Result {
          auto refusal = oc::read(answer.getRefusal());
          if (!refusal.reason.empty()) return refusal;
          auto token = answer.getToken();
          if (!isToken(token))
            return Refusal{"github_unavailable", "the github provider's answer has no token in it", "try again"};
          keep(run, token, answer.getExpiresAt());
          wipe(token);
          return nullptr;
        });
      });
}

void Credentials::keep(const std::string& run, capnp::Data::Reader token, int64_t expiresAt) {
  Entry minted{++lastNumber,
               run,
               SecretBytes(std::string_view(reinterpret_cast<const char*>(token.begin()), token.size())),
               nowMs(),
               expiresAt,
               false,
               false};
  auto& known = runs[run];
  minted.condemned = known.ended || closing;
  if (!minted.condemned) known.current = minted.number;
  ledger.push_back(std::move(minted));
  if (ledger.back().condemned) tasks.add(kj::evalLater([this]() { return revokeCondemned(); }));
}

// ---- revoking

void Credentials::rejected(const std::string& run) {
  auto known = runs.find(run);
  if (known == runs.end() || known->second.ended || known->second.rejections >= mostRejections) return;
  auto* has = entry(known->second.current);
  if (has == nullptr) return;
  has->doubted = true;
  if (isSettled(*has)) giveUp(known->second, *has);
}

bool Credentials::isSettled(const Entry& entry) const {
  return nowMs() - entry.mintedAt >= settling / kj::MILLISECONDS;
}

void Credentials::giveUp(Run& run, Entry& entry) {
  ++run.rejections;
  run.current = 0;
  entry.condemned = true;
  logWarning("GitHub has refused the token of run {}, which gets another one", entry.run);
  tasks.add(revokeCondemned());
}

kj::Promise<void> Credentials::runEnded(std::string run) {
  auto& known = runs[run];
  known.ended = true;
  for (auto& one : ledger) {
    if (one.run == run) one.condemned = true;
  }
  kj::Promise<void> minted = kj::READY_NOW;
  KJ_IF_MAYBE (minting, known.minting) {
    // It comes condemned.
    minted = minting->addBranch().ignoreResult();
  }
  // What there is goes at once; what is coming, when it has come.
  auto first = revokeCondemned();
  return first.then([minted = kj::mv(minted)]() mutable { return kj::mv(minted); })
      .then([this]() { return revokeCondemned(); })
      .then([this, run]() { runs[run].minting = nullptr; });
}

kj::Promise<void> Credentials::close() {
  closing = true;
  for (auto& one : ledger) one.condemned = true;
  kj::Vector<kj::Promise<void>> coming;
  for (auto& [run, known] : runs) {
    KJ_IF_MAYBE (minting, known.minting) {
      coming.add(minting->addBranch().ignoreResult());
    }
  }
  auto minted = kj::joinPromises(coming.releaseAsArray());
  return revokeCondemned().then([minted = kj::mv(minted)]() mutable { return kj::mv(minted); }).then([this]() {
    return revokeCondemned();
  });
}

kj::Promise<void> Credentials::revokeCondemned() {
  kj::Vector<kj::Promise<void>> all;
  for (auto& one : ledger) {
    if (one.condemned && !one.busy) all.add(revoke(one.number).eagerlyEvaluate(nullptr));
  }
  return kj::joinPromises(all.releaseAsArray());
}

kj::Promise<void> Credentials::revoke(uint64_t number) {
  entry(number)->busy = true;
  return connection.client()
      .then([this, number](OrRefusal<proto::GitHub::Client> client) -> kj::Promise<bool> {
        if (!client.ok()) return false;
        auto request = client.value().revokeRequest();
        request.setToken(toData(entry(number)->token.view()));
        auto sent = request.send().then([](auto&& answer) {
          auto refusal = oc::read(answer.getRefusal());
          if (!refusal.reason.empty())
            logWarning("a token could not be revoked, and it is tried again: {}", refusal.what);
          return refusal.reason.empty();
        });
        return withDeadline(connection.timer(), revokeLimit, "open-conduit-github", kj::mv(sent));
      })
      .catch_([](kj::Exception&& exception) {
        logWarning("a token could not be revoked, and it is tried again: {}", describe(exception));
        return false;
      })
      .then([this, number](bool dead) {
        auto* one = entry(number);
        one->busy = false;
        if (dead || one->expiresAt < nowMs()) {
          ledger.remove_if([number](auto& other) { return other.number == number; });
        } else if (!retrying) {
          retrying = true;
          tasks.add(tryAgainLater());
        }
      });
}

kj::Promise<void> Credentials::tryAgainLater() {
  return connection.timer().afterDelay(betweenTries).then([this]() {
    retrying = false;
    return revokeCondemned();
  });
}

void Credentials::taskFailed(kj::Exception&& exception) { logError("{}", describe(exception)); }

}  // namespace oc::hub
