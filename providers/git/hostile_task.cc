#include "hostile_task.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "hostile_ref.h"
#include "object_files.h"
#include "tree_remover.h"

namespace oc::git {

HostileTask::HostileTask(const Loop& loop, std::string workspace, std::string view)
    : Task(loop, "save_failed"), workspace(std::move(workspace)), view(std::move(view)) {}

void HostileTask::requireRepository() {
  struct stat stats;
  if (lstat(workspace.c_str(), &stats) < 0)
    refuse(fmt::format("{} cannot be looked at: {}", workspace, strerror(errno)), "");
  requireDirectory(".git");
  requireDirectory(".git/objects");
  // Ours had none: somebody put them there, and they may point anywhere.
  for (const char* name : {"alternates", "http-alternates"}) {
    int fd = openBeneath(workspace, fmt::format(".git/objects/info/{}", name), O_PATH);
    if (fd < 0) continue;
    close(fd);
    refuse(fmt::format("{}/.git/objects/info/{} was added: the repository's objects are elsewhere", workspace, name),
           std::string(giveUpOrLookAtCopy));
  }
  auto odd = oddObject(workspace + "/.git/objects");
  if (!odd.found) return;
  auto path = fmt::format("{}/.git/objects{}{}", workspace, odd.name.empty() ? "" : "/", shown(odd.name));
  if (odd.error != 0) {
    refuse(fmt::format("{} cannot be looked into: {}", path, strerror(odd.error)),
           fmt::format("the run closed it; chmod -R u+rwX {}", shellQuote(workspace + "/.git/objects")));
  }
  refuse(path + " is not a file or a directory of git's",
         "the run put it there; look at the workspace before you use it, and remove that");
}

void HostileTask::makeView(bool sha256, const std::string& head) {
  if (mkdir(view.c_str(), 0700) < 0 && errno != EEXIST) KJ_FAIL_SYSCALL("mkdir", errno, view);
  for (const char* part : {"/objects", "/refs"}) KJ_SYSCALL(mkdir((view + part).c_str(), 0700), view);
  write("HEAD", head.empty() ? "ref: refs/heads/none\n" : head + "\n");
  write("config", fmt::format("[core]\n\trepositoryformatversion = {}\n\tbare = true\n{}", sha256 ? 1 : 0,
                              sha256 ? "[extensions]\n\tobjectformat = sha256\n" : ""));
}

kj::Promise<void> HostileTask::clearView() { return removeTreeInSteps(loop.timer, view, true); }

GitCommand HostileTask::onObjects(std::vector<std::string> arguments) const {
  GitCommand command;
  // What the checkout itself lacks, a shallow checkout, is behind `base`: nothing needs the hostile shallow file.
  command.arguments = {"--shallow-file", ""};
  command.arguments.insert(command.arguments.end(), arguments.begin(), arguments.end());
  command.gitDir = view;
  command.objectDirectory = workspace + "/.git/objects";
  // Derived data in the object directory, which could say something else than the objects.
  command.settings = {{"core.commitGraph", "false"}, {"core.multiPackIndex", "false"}, {"pack.useBitmaps", "false"}};
  return command;
}

kj::Promise<bool> HostileTask::has(const std::string& commit) {
  auto question = onObjects({"cat-file", "-e", commit + "^{commit}"});
  question.quiet = true;
  return runGit(loop, kj::mv(question)).then([](GitResult result) { return result.ok(); });
}

void HostileTask::requireDirectory(const std::string& name) {
  int fd = openBeneath(workspace, name, O_PATH | O_DIRECTORY);
  if (fd < 0) {
    refuse(fmt::format("{}/{} is not a directory of its own: {}", workspace, name, strerror(errno)),
           "the run replaced it; look at the workspace before you use it");
  }
  close(fd);
}

void HostileTask::write(const char* name, const std::string& text) {
  auto fd = openFile(view + "/" + name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  writeAll(fd.get(), text);
}

}  // namespace oc::git
