#include "checked_out.h"

#include <dirent.h>
#include <kj/debug.h>
#include <sys/stat.h>

#include <vector>

#include "base/fd.h"

namespace oc::git {

namespace {

constexpr size_t smallFile = 64 << 10;

// The git directories of the checkout and of its worktrees.
std::vector<std::string> gitDirectories(const std::string& gitDir) {
  std::vector<std::string> result = {gitDir};
  DIR* listing = opendir((gitDir + "/worktrees").c_str());
  if (listing == nullptr) return result;
  KJ_DEFER(closedir(listing));
  while (struct dirent* entry = readdir(listing)) {
    if (entry->d_name[0] != '.') result.push_back(gitDir + "/worktrees/" + entry->d_name);
  }
  return result;
}

bool fileSays(const std::string& path, const std::string& branch) {
  struct stat stats;
  if (stat(path.c_str(), &stats) < 0 || !S_ISREG(stats.st_mode)) return false;
  auto text = readFile(path, smallFile);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  // HEAD: "ref: refs/heads/x"; a rebase: "refs/heads/x"; a bisection: "x".
  return text == "ref: refs/heads/" + branch || text == "refs/heads/" + branch || text == branch;
}

// Where git keeps refs in tables, HEAD is no file that tells: git itself is asked, too.
kj::Promise<bool> gitSays(const Loop& loop, const CheckoutFacts& checkout, const std::string& branch) {
  GitCommand command;
  command.arguments = {"worktree", "list", "--porcelain"};
  command.gitDir = checkout.gitDir;
  command.outputLimit = 4 << 20;
  return runGit(loop, kj::mv(command)).then([branch](GitResult result) {
    KJ_REQUIRE(result.ok(), "the checkout's worktrees cannot be listed", result.why());
    return ("\n" + result.output).find("\nbranch refs/heads/" + branch + "\n") != std::string::npos;
  });
}

}  // namespace

kj::Promise<bool> isCheckedOut(const Loop& loop, const CheckoutFacts& checkout, std::string branch) {
  return kj::evalNow([&]() -> kj::Promise<bool> {
    for (auto& directory : gitDirectories(checkout.gitDir)) {
      for (const char* file : {"/HEAD", "/rebase-merge/head-name", "/rebase-apply/head-name", "/BISECT_START"}) {
        if (fileSays(directory + file, branch)) return true;
      }
    }
    return gitSays(loop, checkout, branch);
  });
}

}  // namespace oc::git
