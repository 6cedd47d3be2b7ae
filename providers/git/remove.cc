#include <dirent.h>
#include <errno.h>
#include <kj/debug.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/paths.h"
#include "job.h"
#include "task.h"
#include "tree_remover.h"
#include "workspace.h"

namespace oc::git {

namespace {

constexpr size_t smallFile = 64 << 10;

class Removal final : private Task {
 public:
  Removal(const Loop& loop, std::string workspace, std::string checkout)
      : Task(loop, "workspace_failed"), workspace(std::move(workspace)), checkout(std::move(checkout)) {}

  kj::Promise<OrRefusal<bool>> run() {
    Job job;
    job.workspace = workspace;
    auto steps = removeTreeInSteps(loop.timer, workspace)
                     .then([this, view = viewOf(job)]() { return removeTreeInSteps(loop.timer, view); })
                     .then([this]() {
                       if (!checkout.empty()) removeWorktreeEntries(checkout + "/.git", workspace);
                       return true;
                     });
    return orRefusal<bool>(kj::mv(steps));
  }

 private:
  std::string workspace, checkout;
};

bool pointsTo(const std::string& entry, const std::string& workspace) {
  auto path = entry + "/gitdir";
  struct stat stats;
  if (lstat(path.c_str(), &stats) < 0 || !S_ISREG(stats.st_mode)) return false;
  auto text = readFile(path, smallFile);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text == workspace + "/.git" || text == resolvePath(workspace) + "/.git";
}

}  // namespace

void removeWorktreeEntries(const std::string& gitDir, const std::string& workspace) {
  auto directory = gitDir + "/worktrees";
  DIR* listing = opendir(directory.c_str());
  if (listing == nullptr) {
    if (errno == ENOENT || errno == ENOTDIR) return;
    KJ_FAIL_SYSCALL("opendir", errno, directory);
  }
  KJ_DEFER(closedir(listing));
  while (struct dirent* found = readdir(listing)) {
    if (found->d_name[0] == '.') continue;
    auto entry = directory + "/" + found->d_name;
    if (pointsTo(entry, workspace)) removeTree(entry);
  }
}

kj::Promise<OrRefusal<bool>> removeWorkspace(const Loop& loop, std::string workspace, std::string checkout) {
  auto removal = kj::heap<Removal>(loop, std::move(workspace), std::move(checkout));
  auto promise = removal->run();
  return promise.attach(kj::mv(removal));
}

}  // namespace oc::git
