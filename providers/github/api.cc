#include "api.h"

#include <fmt/format.h>
#include <kj/debug.h>
#include <sodium.h>
#include <time.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "fields.h"

namespace oc::github {

namespace {

constexpr int mostAttempts = 4;
constexpr int mostRedirects = 3;
constexpr auto betweenWrites = 1 * kj::SECONDS;
constexpr auto firstPause = 500 * kj::MILLISECONDS;
// A limit that passes sooner is waited for; a later one is told to who asked.
constexpr uint32_t patienceSeconds = 30;
// What GitHub wants when it does not say for how long.
constexpr uint32_t unsaidLimitSeconds = 60;
constexpr uint32_t longestLimitSeconds = 3600;
// Beyond this a clock is wrong, rather than an answer late.
constexpr int64_t skewSeconds = 5;

uint32_t secondsOf(const std::string& text) {
  uint32_t value = 0;
  auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  return parsed.ec == std::errc() ? std::min(value, longestLimitSeconds) : 0;
}

int64_t clockNow() { return static_cast<int64_t>(time(nullptr)); }

// The words of an error of GitHub's, with its list of errors.
std::string wordsOf(const Json& body) {
  auto text = textOf(body, "message");
  auto& errors = fieldOf(body, "errors");
  if (!errors.is_array()) return text;
  size_t shown = 0;
  for (auto& error : errors) {
    if (++shown > 8) break;
    auto words =
        error.is_string() ? shortened(printable(error.get<std::string>()), 256) : textOf(error, "message", 256);
    if (words.empty()) words = fmt::format("{}: {}", textOf(error, "field", 64), textOf(error, "code", 64));
    text += (shown == 1 ? ": " : "; ") + words;
  }
  return shortened(text, 1500);
}

std::string nextOf(const std::string& link) {
  auto relation = link.find("rel=\"next\"");
  if (relation == std::string::npos) return "";
  auto open = link.rfind('<', relation);
  auto close = open == std::string::npos ? open : link.find('>', open);
  return close == std::string::npos || close > relation ? "" : link.substr(open + 1, close - open - 1);
}

Refusal refusal(std::string reason, const std::string& what, std::string fix) {
  return {std::move(reason), shortened(what, 2048), std::move(fix)};
}

bool isWrite(const std::string& method) { return method != "GET"; }

}  // namespace

struct Api::Attempt {
  SignIn signIn;
  ApiCall call;
  bool patient = true;
  int tries = 0, redirects = 0;
  bool clockLearned = false;
  bool perhapsDone = false;  // a write was sent, and how it ended is not known
  std::string url;

  ~Attempt() { sodium_memzero(signIn.token.data(), signIn.token.size()); }
};

Api::Api(kj::Timer& timer, const Job& job)
    : timer(timer), job(job), exchanges(job), blockedUntil(timer.now()), nextWrite(timer.now()) {}

kj::Promise<ApiAnswer> Api::call(SignIn signIn, ApiCall call, bool patient) {
  auto attempt = kj::heap<Attempt>();
  attempt->signIn = std::move(signIn);
  attempt->url = urlOf(call.path);
  attempt->call = std::move(call);
  attempt->patient = patient;
  return this->attempt(kj::mv(attempt));
}

std::string Api::urlOf(const std::string& path) const { return path.starts_with("https://") ? path : job.api + path; }

// Scheme, host, port and the API's own path: a token goes nowhere else, whatever an answer says.
bool Api::sameApi(const std::string& url) const {
  return url.size() <= 4096 && url.starts_with(job.api + "/") && !hasControlCharacters(url);
}

SecretBytes Api::authorizationOf(const SignIn& signIn) {
  auto now = clockNow() + ahead;
  switch (signIn.kind) {
    case SignIn::Kind::App:
      return SecretBytes("Bearer " +
                         KJ_REQUIRE_NONNULL(kj::Maybe<AppKey&>(secrets.appKey.get())).jwt(secrets.appId, now));
    case SignIn::Kind::Bot:
      return SecretBytes("Bearer " +
                         KJ_REQUIRE_NONNULL(kj::Maybe<AppKey&>(secrets.botKey.get())).jwt(secrets.botAppId, now));
    case SignIn::Kind::Token: break;
  }
  auto text = "token " + signIn.token;
  KJ_DEFER(sodium_memzero(text.data(), text.size()));
  return SecretBytes(text);
}

// Content that people see is written a second apart, as GitHub wants it. Tokens are no content.
kj::Promise<void> Api::writeTurn() {
  auto now = timer.now();
  auto turn = std::max(now, nextWrite);
  nextWrite = turn + betweenWrites;
  return turn == now ? kj::Promise<void>(kj::READY_NOW) : timer.atTime(turn);
}

kj::Promise<ApiAnswer> Api::attempt(kj::Own<Attempt> attempt) {
  auto& ref = *attempt;
  ++ref.tries;
  auto now = timer.now();
  if (now < blockedUntil) {
    auto left = static_cast<uint32_t>((blockedUntil - now) / kj::SECONDS) + 1;
    if (!ref.patient || left > patienceSeconds) {
      ApiAnswer answer;
      answer.retryAfter = left;
      answer.refusal =
          refusal("github_limited",
                  fmt::format("GitHub's rate limit does not let us ask for {}, for {} s more", ref.call.what, left),
                  "wait; a shorter interval of polling does not help");
      return answer;
    }
    --ref.tries;
    return again(kj::mv(attempt), (blockedUntil - now) + 50 * kj::MILLISECONDS);
  }
  bool content = isWrite(ref.call.method) && ref.signIn.kind == SignIn::Kind::Token && ref.call.method != "DELETE";
  auto turn = content ? writeTurn() : kj::Promise<void>(kj::READY_NOW);
  return turn
      .then([this, &ref]() {
        HttpRequest request;
        request.method = ref.call.method;
        request.url = ref.url;
        request.authorization = authorizationOf(ref.signIn);
        request.headers = {"Accept: application/vnd.github+json", "User-Agent: open-conduit/" OPEN_CONDUIT_VERSION,
                           "X-GitHub-Api-Version: 2022-11-28"};
        if (!ref.call.etag.empty()) request.headers.push_back("If-None-Match: " + ref.call.etag);
        if (ref.call.body) request.body = ref.call.body->dump(-1, ' ', false, Json::error_handler_t::replace);
        request.once = isWrite(ref.call.method) && !ref.call.twiceIsOnce;
        return exchanges.run(std::move(request));
      })
      .then([this, attempt = kj::mv(attempt)](HttpAnswer answer) mutable {
        return judge(kj::mv(attempt), std::move(answer));
      });
}

kj::Promise<ApiAnswer> Api::again(kj::Own<Attempt> attempt, kj::Duration after) {
  return timer.afterDelay(after).then(
      [this, attempt = kj::mv(attempt)]() mutable { return this->attempt(kj::mv(attempt)); });
}

// True when our clock was the trouble, and is known better now.
bool Api::learnClock(const HttpAnswer& answer) {
  auto theirs = dateOf(answer.header("date"));
  if (theirs == 0) return false;
  auto known = ahead;
  ahead = theirs - clockNow();
  return std::abs(ahead - known) > skewSeconds;
}

// What an answer means: a value, another try, or a refusal.
kj::Promise<ApiAnswer> Api::judge(kj::Own<Attempt> attempt, HttpAnswer http) {
  auto& call = attempt->call;
  ApiAnswer answer;
  answer.status = http.status;
  answer.etag = http.header("etag");
  if (answer.etag.size() > 256 || hasControlCharacters(answer.etag)) answer.etag.clear();
  if (auto theirs = dateOf(http.header("date"))) date = theirs;
  auto pause = firstPause * (1 << std::min(attempt->tries - 1, 6));
  bool mayTryAgain = attempt->tries < mostAttempts;

  bool noAnswer = http.status == 0 || http.status >= 500;
  if (!noAnswer && http.status != 204 && http.status != 304) {
    answer.body = parseJson(http.body);
    // A page of a proxy's, or half an answer.
    if (answer.body.is_discarded()) noAnswer = http.status < 300 || http.status >= 400;
  }
  if (noAnswer) {
    auto why = http.status == 0     ? http.trouble
               : http.status >= 500 ? fmt::format("it answered with status {}", http.status)
                                    : fmt::format("its answer, of status {}, is no JSON", http.status);
    answer.refusal = refusal("github_unavailable",
                             fmt::format("GitHub ({}) did not answer for {}: {}", job.apiHost.host, call.what, why),
                             "see https://www.githubstatus.com, the proxy, and the connection's api_url");
    if (isWrite(call.method) && !call.twiceIsOnce && http.sent) {
      if (!call.look) return answer;
      return lookFirst(kj::mv(attempt), std::move(answer));
    }
    if (!mayTryAgain) return answer;
    return again(kj::mv(attempt), pause);
  }

  if (http.status == 304) {
    answer.notModified = true;
    return answer;
  }
  if (http.status >= 200 && http.status < 300) {
    auto next = nextOf(http.header("link"));
    if (sameApi(next)) answer.next = next;
    return answer;
  }
  if (http.status == 301 || http.status == 302 || http.status == 307 || http.status == 308) {
    auto target = http.header("location");
    if (!sameApi(target) || ++attempt->redirects > mostRedirects) {
      answer.refusal = refusal("github_unavailable", fmt::format("GitHub sends us elsewhere for {}", call.what), "");
      return answer;
    }
    // The method stays: the same resource has another address now.
    attempt->url = target;
    return this->attempt(kj::mv(attempt));
  }

  auto words = wordsOf(answer.body);
  auto retryAfter = secondsOf(http.header("retry-after"));
  bool exhausted = http.header("x-ratelimit-remaining") == "0";
  bool secondary = retryAfter != 0 || words.find("secondary rate limit") != std::string::npos;
  if (http.status == 429 || (http.status == 403 && (exhausted || secondary))) {
    uint32_t wait = retryAfter;
    if (wait == 0 && exhausted) {
      int64_t reset = 0;
      auto text = http.header("x-ratelimit-reset");
      std::from_chars(text.data(), text.data() + text.size(), reset);
      auto theirs = dateOf(http.header("date"));
      auto left = reset - (theirs != 0 ? theirs : clockNow() + ahead);
      wait = static_cast<uint32_t>(std::clamp<int64_t>(left, 1, longestLimitSeconds));
    }
    if (wait == 0) wait = std::min(longestLimitSeconds, unsaidLimitSeconds << std::min(attempt->tries - 1, 5));
    blockedUntil = std::max(blockedUntil, timer.now() + wait * kj::SECONDS);
    // Nothing was done, so nothing can be doubled: attempt() waits, or says so.
    if (!mayTryAgain) attempt->patient = false;
    return this->attempt(kj::mv(attempt));
  }

  switch (http.status) {
    case 401: {
      bool byApp = attempt->signIn.kind != SignIn::Kind::Token;
      if (byApp && !attempt->clockLearned && learnClock(http)) {
        attempt->clockLearned = true;
        return this->attempt(kj::mv(attempt));
      }
      if (attempt->signIn.fresh && mayTryAgain) return again(kj::mv(attempt), pause);
      answer.refusal =
          byApp
              ? refusal(
                    "github_credentials", fmt::format("GitHub does not take the App's key: {}", words),
                    "is the key this App's (app_id), and not deleted there? open-conduit doctor also compares the clocks")
              : refusal(
                    "github_credentials",
                    fmt::format("GitHub does not take the token any more, for {}: {}", call.what, words),
                    "a personal token may have expired or been deleted; an App may have been uninstalled or suspended");
      return answer;
    }
    case 403: {
      auto accepted = shortened(printable(http.header("x-accepted-github-permissions")), 256);
      auto needs = accepted.empty() ? std::string() : fmt::format(" (it needs {})", accepted);
      answer.refusal =
          refusal("github_denied", fmt::format("GitHub denies {}: {}{}", call.what, words, needs),
                  accepted.empty() ? "" : "grant the App that permission, and accept it where the App is installed");
      return answer;
    }
    case 404:
      answer.refusal = refusal("github_denied", fmt::format("there is no {}, or it is not shown to us", call.what),
                               "is the App installed on the repository, and is its name right?");
      return answer;
    case 409:
      answer.refusal =
          refusal("github_conflict", fmt::format("GitHub finds a conflict in {}: {}", call.what, words), "");
      return answer;
    case 410:
      answer.refusal = refusal("github_gone", fmt::format("{} is gone: {}", call.what, words), "");
      return answer;
    default:
      answer.refusal =
          refusal("github_invalid",
                  fmt::format("GitHub does not accept {} (status {}): {}", call.what, http.status, words), "");
      return answer;
  }
}

// The answer to a write was lost. It is sent again only when it was not done.
kj::Promise<ApiAnswer> Api::lookFirst(kj::Own<Attempt> attempt, ApiAnswer failure) {
  auto pause = firstPause * (1 << std::min(attempt->tries - 1, 6));
  bool mayTryAgain = attempt->tries < mostAttempts;
  return timer.afterDelay(pause)
      .then([&ref = *attempt]() { return ref.call.look(); })
      .then([this, attempt = kj::mv(attempt), failure = std::move(failure),
             mayTryAgain](kj::Maybe<Json> found) mutable -> kj::Promise<ApiAnswer> {
        KJ_IF_MAYBE (body, found) {
          if (body->is_discarded()) return kj::mv(failure);  // nobody can say
          ApiAnswer answer;
          answer.status = 200;
          answer.body = std::move(*body);
          return answer;
        }
        if (!mayTryAgain) return kj::mv(failure);
        return this->attempt(kj::mv(attempt));
      });
}

}  // namespace oc::github
