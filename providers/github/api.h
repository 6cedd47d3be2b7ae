// GitHub's REST API as the provider uses it: who signs in how, limits, retries, redirections, and what an answer means.
#pragma once

#include <kj/async-io.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "app_key.h"
#include "base/crypto.h"
#include "base/json.h"
#include "base/refusal.h"
#include "exchange.h"

namespace oc::github {

// How a call signs in.
struct SignIn {
  enum class Kind { App, Bot, Token } kind = Kind::Token;
  std::string token;   // Token; wiped after the call
  bool fresh = false;  // just made: GitHub may not know it everywhere yet, and a 401 is waited out
};

struct ApiCall {
  std::string method = "GET";
  std::string path;  // "/repos/o/r/issues?per_page=100", or a whole URL of the same API
  std::optional<Json> body;
  std::string etag;
  std::string what;          // "issue #7 of acme/web", for messages
  bool twiceIsOnce = false;  // a write that can be sent again without harm
  // For a write: was it done after all? Asked before it is sent again, when the answer to the first one was lost.
  std::function<kj::Promise<kj::Maybe<Json>>()> look;
};

struct ApiAnswer {
  int status = 0;
  Json body;
  std::string etag, next;  // `next`: the URL of the next page, of the same API; else empty
  bool notModified = false;
  Refusal refusal;          // reason empty: none
  uint32_t retryAfter = 0;  // seconds, with github_limited
  bool ok() const { return refusal.reason.empty(); }
};

struct Secrets {
  std::unique_ptr<AppKey> appKey, botKey;
  std::string appId, botAppId;
  SecretBytes token;
};

class Api {
 public:
  Api(kj::Timer& timer, const Job& job);

  // Never breaks. `patient`: waits for limits of up to half a minute instead of refusing.
  kj::Promise<ApiAnswer> call(SignIn signIn, ApiCall call, bool patient = true);

  Secrets secrets;
  // What GitHub's clock is ahead of ours, in seconds, as far as it had to be found out.
  int64_t clockAhead() const { return ahead; }
  int64_t lastDate() const { return date; }

 private:
  struct Attempt;
  kj::Promise<ApiAnswer> attempt(kj::Own<Attempt> attempt);
  kj::Promise<ApiAnswer> again(kj::Own<Attempt> attempt, kj::Duration after);
  kj::Promise<ApiAnswer> judge(kj::Own<Attempt> attempt, HttpAnswer answer);
  kj::Promise<ApiAnswer> lookFirst(kj::Own<Attempt> attempt, ApiAnswer failure);
  kj::Promise<void> writeTurn();
  SecretBytes authorizationOf(const SignIn& signIn);
  bool sameApi(const std::string& url) const;
  std::string urlOf(const std::string& path) const;
  bool learnClock(const HttpAnswer& answer);

  kj::Timer& timer;
  Job job;
  Exchanges exchanges;
  int64_t ahead = 0, date = 0;
  kj::TimePoint blockedUntil, nextWrite;
};

}  // namespace oc::github
