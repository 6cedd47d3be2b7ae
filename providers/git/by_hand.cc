#include "by_hand.h"

#include <fmt/format.h>
#include <stdio.h>
#include <unistd.h>

#include <map>
#include <optional>

#include "base/json.h"
#include "base/paths.h"
#include "base/text.h"
#include "git.capnp.h"
#include "job.h"
#include "proto/convert.h"
#include "providers/kit/kit.h"

namespace oc::git {

const char* const usageByHand =
    "usage: open-conduit-git check\n"
    "       open-conduit-git inspect  --checkout P\n"
    "       open-conduit-git clone    --checkout P --workspace W --branch B [--start COMMIT]\n"
    "       open-conduit-git worktree --checkout P --workspace W --branch B [--start COMMIT]\n"
    "       open-conduit-git pack     --workspace W --branch B --base COMMIT > FILE\n"
    "       open-conduit-git receive  --checkout P --branch B --tip COMMIT [--old COMMIT]\n"
    "                                 [--otherwise NAME] [--max-size BYTES] < FILE\n"
    "       open-conduit-git scan     --workspace W\n"
    "       open-conduit-git remove   --workspace W [--checkout P]\n"
    "\n"
    "One task on one repository, in an instance that is locked down to just that, as the daemon starts it.\n"
    "With --json the answer is JSON. `pack` says on standard error which tip it packed: `receive` wants it.\n";

namespace {

struct Wanted {
  Job job;
  bool json = false;
  std::string branch, start, base, tip, old, otherwise;
};

// A person may write a relative path.
std::string absolute(const std::string& path) {
  if (path.empty() || path[0] == '/') return path;
  char* here = get_current_dir_name();
  if (here == nullptr) throw kit::UsageError{"the current directory cannot be found; give absolute paths"};
  KJ_DEFER(free(here));
  return normalizePath(std::string(here) + "/" + path);
}

// Options that are the method's; the others are the job's.
Wanted readWords(const std::vector<std::string>& words) {
  Wanted wanted;
  std::map<std::string, std::string*> own = {{"--branch", &wanted.branch}, {"--start", &wanted.start},
                                             {"--base", &wanted.base},     {"--tip", &wanted.tip},
                                             {"--old", &wanted.old},       {"--otherwise", &wanted.otherwise}};
  std::vector<std::string> job = {words[0]};
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "--json") {
      wanted.json = true;
      continue;
    }
    auto option = own.find(words[i]);
    if (i + 1 == words.size()) throw kit::UsageError{fmt::format("a value is missing after {}", printable(words[i]))};
    if (option != own.end()) {
      *option->second = words[++i];
    } else {
      bool path = words[i] == "--checkout" || words[i] == "--workspace";
      job.push_back(words[i]);
      ++i;
      job.push_back(path ? absolute(words[i]) : words[i]);
    }
  }
  wanted.job = parseJob(job);
  return wanted;
}

void require(const std::string& value, const char* option) {
  if (value.empty()) throw kit::UsageError{fmt::format("{} is missing", option)};
}

void requireOptions(const Wanted& wanted) {
  switch (wanted.job.role) {
    case Role::Clone:
    case Role::Worktree: return require(wanted.branch, "--branch");
    case Role::Pack:
      require(wanted.branch, "--branch");
      require(wanted.base, "--base");
      if (isatty(STDOUT_FILENO)) throw kit::UsageError{"a pack is not for a terminal: send standard output to a file"};
      return;
    case Role::Receive: require(wanted.branch, "--branch"); return require(wanted.tip, "--tip");
    default: return;
  }
}

using Facts = std::vector<std::pair<std::string, Json>>;

int print(const Wanted& wanted, FILE* to, const Facts& facts) {
  if (wanted.json) {
    auto document = Json::object();
    for (auto& [name, value] : facts) document[name] = value;
    fprintf(to, "%s\n", document.dump(2).c_str());
    return 0;
  }
  for (auto& [name, value] : facts) {
    if (value.is_array()) {
      for (auto& item : value) fprintf(to, "%-10s %s\n", name.c_str(), printable(item.get<std::string>()).c_str());
    } else {
      auto text = value.is_string() ? value.get<std::string>() : value.dump();
      if (!text.empty()) fprintf(to, "%-10s %s\n", name.c_str(), printable(text).c_str());
    }
  }
  return 0;
}

int printRefusal(const Wanted& wanted, const Refusal& refusal) {
  if (!wanted.json) return kit::printRefusal(refusal);
  Json document = {{"reason", refusal.reason}, {"what", refusal.what}, {"fix", refusal.fix}};
  fprintf(stderr, "%s\n", document.dump(2).c_str());
  return 1;
}

class Asking {
 public:
  Asking(const Wanted& wanted, kit::ByHandInstance& instance)
      : wanted(wanted), git(instance.capability().castAs<proto::Git>()), scope(instance.io().waitScope) {}

  int run() {
    switch (wanted.job.role) {
      case Role::Check:
        return ask(git.checkRequest(), [](auto& answer) { return Facts{{"version", toString(answer.getVersion())}}; });
      case Role::Inspect:
        return ask(git.inspectRequest(), [](auto& answer) {
          auto checkout = answer.getCheckout();
          return Facts{{"head", toString(checkout.getHead())},
                       {"branch", toString(checkout.getBranch())},
                       {"origin", toString(checkout.getOrigin())}};
        });
      case Role::Clone: return make(git.cloneRequest());
      case Role::Worktree: return make(git.worktreeRequest());
      case Role::Pack: return pack();
      case Role::Receive: return receive();
      case Role::Scan:
        return ask(git.scanRequest(), [](auto& answer) {
          auto warnings = Json::array();
          for (auto text : answer.getWarnings()) warnings.push_back(toString(text));
          return Facts{{"warning", warnings}};
        });
      case Role::Remove: return ask(git.removeRequest(), [](auto&) { return Facts{}; });
    }
    KJ_UNREACHABLE;
  }

 private:
  template <typename Request, typename Tell>
  int ask(Request request, Tell tell, FILE* to = stdout) {
    auto answer = request.send().wait(scope);
    auto refusal = read(answer.getRefusal());
    if (!refusal.reason.empty()) return printRefusal(wanted, refusal);
    return print(wanted, to, tell(answer));
  }

  template <typename Request>
  int make(Request request) {
    request.setBranch(toText(wanted.branch));
    request.setStartPoint(toText(wanted.start));
    return ask(kj::mv(request), [](auto& answer) {
      return Facts{{"branch", toString(answer.getWorkspace().getBranch())},
                   {"base", toString(answer.getWorkspace().getBase())}};
    });
  }

  int pack() {
    auto asked = git.tipRequest();
    asked.setBranch(toText(wanted.branch));
    asked.setBase(toText(wanted.base));
    std::string tip;
    int code = ask(
        kj::mv(asked),
        [&tip](auto& answer) {
          tip = toString(answer.getTip());
          return Facts{{"tip", tip}, {"commits", answer.getCommits()}};
        },
        stderr);
    if (code != 0) return code;
    auto request = git.packRequest();
    request.setTip(toText(tip));
    request.setBase(toText(wanted.base));
    return ask(
        kj::mv(request), [](auto&) { return Facts{}; }, stderr);
  }

  int receive() {
    auto request = git.receiveRequest();
    request.setBranch(toText(wanted.branch));
    request.setOld(toText(wanted.old.empty() ? std::string(40, '0') : wanted.old));
    request.setTip(toText(wanted.tip));
    request.setOtherwise(toText(wanted.otherwise.empty() ? wanted.branch + "-saved" : wanted.otherwise));
    return ask(kj::mv(request), [](auto& answer) { return Facts{{"branch", toString(answer.getSavedAs())}}; });
  }

  const Wanted& wanted;
  proto::Git::Client git;
  kj::WaitScope& scope;
};

}  // namespace

int byHand(const std::vector<std::string>& words) {
  auto wanted = readWords(words);
  requireOptions(wanted);
  std::vector<std::pair<int, int>> descriptors;
  if (wanted.job.role == Role::Receive) descriptors.emplace_back(STDIN_FILENO, STDIN_FILENO);
  if (wanted.job.role == Role::Pack) descriptors.emplace_back(STDOUT_FILENO, STDOUT_FILENO);
  auto instance = kit::startByHand(jobWords(wanted.job), std::move(descriptors));
  int code = Asking(wanted, *instance).run();
  instance->finish();
  return code;
}

}  // namespace oc::git
