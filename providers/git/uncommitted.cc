// What an agent changed and did not commit. Its own index is not asked, which could say anything: one is made from the
// commit, so every file is read once.
#include <fmt/format.h>

#include "base/text.h"
#include "hostile_ref.h"
#include "hostile_task.h"
#include "save.h"

namespace oc::git {

namespace {

constexpr size_t mostNames = 5, longestName = 200;

class Comparing final : private HostileTask {
 public:
  Comparing(const Loop& loop, std::string workspace, std::string view, std::string tip)
      : HostileTask(loop, std::move(workspace), std::move(view)), tip(std::move(tip)) {}

  kj::Promise<OrRefusal<Uncommitted>> run() {
    auto steps = kj::evalNow([this]() {
                   if (!isObjectId(tip)) refuse(fmt::format("\"{}\" is no commit's id", shown(tip)), "");
                   requireRepository();
                   return clearView();
                 })
                     .then([this]() {
                       makeView(tip.size() == 64, tip);
                       return runGit(loop, onObjects({"read-tree", tip}));
                     })
                     .then([this](GitResult result) {
                       if (!result.ok()) refuse(fmt::format("{} cannot be read: {}", tip, result.why()), "");
                       return runGit(loop, status());
                     })
                     .then([this](GitResult result) {
                       if (!result.ok()) refuse(fmt::format("the files cannot be compared: {}", result.why()), "");
                       return read(result.output);
                     });
    return andClearView(orRefusal<Uncommitted>(kj::mv(steps)));
  }

 private:
  GitCommand status() const {
    auto command = onObjects(
        {"status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=normal", "--ignore-submodules=all"});
    command.workTree = workspace;
    command.quiet = true;
    return command;
  }

  // "XY NAME" each, ended by a zero byte.
  static Uncommitted read(const std::string& output) {
    Uncommitted result;
    for (size_t begin = 0; begin < output.size();) {
      auto end = output.find('\0', begin);
      if (end == std::string::npos) break;
      ++result.count;
      if (result.names.size() < mostNames && end > begin + 3)
        result.names.push_back(shortened(printable(output.substr(begin + 3, end - begin - 3)), longestName));
      begin = end + 1;
    }
    return result;
  }

  std::string tip;
};

}  // namespace

kj::Promise<OrRefusal<Uncommitted>> findUncommitted(const Loop& loop, std::string workspace, std::string view,
                                                    std::string tip) {
  auto comparing = kj::heap<Comparing>(loop, std::move(workspace), std::move(view), std::move(tip));
  auto promise = comparing->run();
  return promise.attach(kj::mv(comparing));
}

}  // namespace oc::git
