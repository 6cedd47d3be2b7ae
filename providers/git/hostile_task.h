// The packing side of a save. The workspace's own .git/config could name programs to run, other places to read and a
// server to ask for missing objects; its refs, replacements, grafts and commit graph could lie. So git gets a directory
// made here, with a config of ours and no refs, and of the workspace only the object directory. Landlock keeps what
// that links to out of reach.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "git_command.h"
#include "task.h"

namespace oc::git {

// The fix for what is wrong with a workspace: git is not run in one by hand, since an agent wrote it.
inline constexpr std::string_view giveUpOrLookAtCopy =
    "give the Work up (open-conduit work cancel --discard), or look at a copy of the workspace in a container";

class HostileTask : protected Task {
 protected:
  HostileTask(const Loop& loop, std::string workspace, std::string view);

  // Refuses a workspace whose objects are not its own files.
  void requireRepository();

  // Before the first git: with ids of this kind, and HEAD at this commit, if there is one.
  void makeView(bool sha256, const std::string& head = "");
  // Also of what an instance that was killed has left. The directory itself stays: Landlock's rule is for this very
  // one.
  kj::Promise<void> clearView();

  // A git command on the view, with the workspace's objects.
  GitCommand onObjects(std::vector<std::string> arguments) const;

  // Whether the objects have it: of a base, then nothing of it need be sent. When the workspace has lost it, everything
  // is.
  kj::Promise<bool> has(const std::string& commit);

  template <typename T>
  kj::Promise<OrRefusal<T>> andClearView(kj::Promise<OrRefusal<T>> answer) {
    return answer.then([this](OrRefusal<T> answer) {
      return clearView()
          .catch_([](kj::Exception&&) {})  // the next one, or `remove`, clears it
          .then([answer = kj::mv(answer)]() mutable { return kj::mv(answer); });
    });
  }

  // A file of the view that is not there yet.
  void write(const char* name, const std::string& text);

  std::string workspace, view;

 private:
  void requireDirectory(const std::string& name);
};

}  // namespace oc::git
