#include "examine.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>

#include "fields.h"

namespace oc::github {

namespace {

// GitHub takes JWTs that are at most ten minutes from its own clock.
constexpr int64_t clockLimit = 60;

struct Examination {
  Session& session;
  std::vector<std::string> repos, needs;
  std::vector<Check> checks;

  void add(Check check) {
    if (checks.size() < 64) checks.push_back(std::move(check));
  }
  void fail(const Refusal& refusal) { add({refusal.what, refusal.fix, false, false}); }

  void addClock() {
    auto theirs = session.api.lastDate();
    if (theirs == 0) return;
    auto differs = theirs - clockMs() / 1000;
    bool ok = std::llabs(differs) <= clockLimit;
    add({ok ? "this machine's clock agrees with GitHub's"
            : fmt::format("this machine's clock is {} s {} GitHub's", std::llabs(differs),
                          differs > 0 ? "behind" : "ahead of"),
         ok ? "" : "set the clock, or turn on its synchronization (timedatectl set-ntp true)", ok, true});
  }

  kj::Promise<bool> app(SignIn::Kind kind, const char* whose) {
    ApiCall call;
    call.path = "/app";
    call.what = "the App";
    return session.api.call({kind, "", false}, std::move(call), false).then([this, whose](ApiAnswer answer) {
      addClock();
      if (!answer.ok()) fail(answer.refusal);
      if (answer.ok())
        add({fmt::format("{}: GitHub knows the key of {}", whose, textOf(answer.body, "slug", 128)), "", true, false});
      return answer.ok();
    });
  }

  kj::Promise<void> installation(SignIn::Kind kind, const std::string& repo, std::vector<std::string> wanted) {
    return session.installationOf(kind, repo).then([this, repo, wanted](OrRefusal<Installation> found) {
      if (!found.ok()) return fail(found.refusal());
      std::string missing;
      for (auto& need : wanted) {
        auto equals = need.find('=');
        auto name = need.substr(0, equals), level = need.substr(equals + 1);
        auto has = found.value().permissions.find(name);
        bool granted = has != found.value().permissions.end() &&
                       (has->second == level || has->second == "write" || has->second == "admin");
        if (!granted) missing += (missing.empty() ? "" : ", ") + fmt::format("{}: {}", name, level);
      }
      if (missing.empty())
        return add({"the App is installed on " + repo + " with what the bindings' operations need", "", true, false});
      add({fmt::format("the App lacks permissions on {} that the bindings' operations need: {}", repo, missing),
           "grant them in the App's settings (\"Permissions & events\"), and accept the change where it is installed",
           false, false});
    });
  }

  kj::Promise<void> oneRepo(size_t index) {
    if (index >= repos.size()) return kj::READY_NOW;
    auto& repo = repos[index];
    auto next = [this, index]() { return oneRepo(index + 1); };
    std::vector<std::string> git, others;
    for (auto& need : needs) (need.starts_with("contents=") ? git : others).push_back(need);
    if (!session.byApp()) {
      return session.repository(repo)
          .then([this, repo](OrRefusal<Repository> found) {
            if (!found.ok()) return fail(found.refusal());
            add({"the token can read " + repo, "", true, false});
          })
          .then(kj::mv(next));
    }
    bool bot = session.api.secrets.botKey != nullptr;
    if (!bot) others.insert(others.end(), git.begin(), git.end());
    auto first = installation(SignIn::Kind::App, repo, others);
    if (!bot) return first.then(kj::mv(next));
    return first.then([this, repo, git]() { return installation(SignIn::Kind::Bot, repo, git); }).then(kj::mv(next));
  }

  kj::Promise<void> limit() {
    if (repos.empty()) return kj::READY_NOW;
    return session.repository(repos[0]).then([this](OrRefusal<Repository> found) -> kj::Promise<void> {
      if (!found.ok()) return kj::READY_NOW;  // said already
      ApiCall call;
      call.path = session.base() + "/rate_limit";
      call.what = "the rate limit";
      return session.call(found.value(), std::move(call), false).then([this](ApiAnswer answer) {
        if (!answer.ok()) return fail(answer.refusal);
        auto& core = fieldOf(fieldOf(answer.body, "resources"), "core");
        auto left = numberOf(core, "remaining"), all = numberOf(core, "limit");
        bool ok = all == 0 || left * 10 >= all;
        add({fmt::format("{} of {} requests are left in this hour", left, all),
             ok ? "" : "poll less often (poll_interval), or find out who else uses this App or token", ok, true});
      });
    });
  }
};

}  // namespace

kj::Promise<std::vector<Check>> examine(Session& session, std::vector<std::string> repos,
                                        std::vector<std::string> needs) {
  if (repos.size() > 64) repos.resize(64);
  auto examination = kj::heap<Examination>(Examination{session, std::move(repos), std::move(needs), {}});
  auto& ref = *examination;
  kj::Promise<bool> keys = true;
  if (session.byApp()) keys = ref.app(SignIn::Kind::App, "App");
  if (session.api.secrets.botKey != nullptr) {
    keys =
        keys.then([&ref](bool ok) { return ok ? ref.app(SignIn::Kind::Bot, "bot's App") : kj::Promise<bool>(false); });
  }
  return keys
      .then([&ref](bool ok) -> kj::Promise<void> {
        if (!ok) return kj::READY_NOW;
        return ref.oneRepo(0).then([&ref]() { return ref.limit(); });
      })
      .then([examination = kj::mv(examination)]() mutable { return std::move(examination->checks); });
}

}  // namespace oc::github
