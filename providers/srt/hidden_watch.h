// What is hidden stays hidden.
//
// srt hides a path by a mount over it. The kernel takes that mount away, inside the sandbox too, when the path is
// replaced outside: programs write their credentials anew and rename them into place (docker login, git
// credential-store, claude). And a path that is not there yet gets no mount at all. So the paths and all directories
// above them are watched, and what comes to be in such a place is covered inside the sandbox as soon as it is seen,
// within a millisecond or so. A program inside that looks in just that moment can see it: this narrows a gap, and
// cannot close it. Places that are not known beforehand (of sockets that services bind) are asked for twice a second.
#pragma once

#include <kj/async-io.h>
#include <kj/async-unix.h>
#include <sys/types.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace oc::srt {

class HiddenWatch final : private kj::TaskSet::ErrorHandler {
 public:
  // `broken` is called, once, with the reason when a path cannot be covered: the run may not go on then.
  // `more` is asked for further paths now and then.
  HiddenWatch(kj::AsyncIoContext& io, std::vector<std::string> paths, kj::Function<std::vector<std::string>()> more,
              kj::Function<void(const std::string&)> broken);

 private:
  struct Identity {
    dev_t device = 0;
    ino_t inode = 0;
    bool operator==(const Identity&) const = default;
  };

  static constexpr size_t mostPaths = 10'000;
  static constexpr unsigned looksUntilSettled = 8;  // half a second each, when nothing else happens

  void watchAbove(const std::string& path);
  void addMore();
  void armAll();
  kj::Promise<void> readEvents();
  kj::Promise<void> lookNowAndThen();
  void look();
  bool concerns(const std::string& path) const;
  static Identity identify(const std::string& path);
  void taskFailed(kj::Exception&& exception) override;

  kj::Timer& timer;
  std::vector<std::string> paths;
  std::set<std::string> directories;        // every directory above one of the paths
  std::map<std::string, Identity> covered;  // as it was when it was seen to be covered, or absent
  kj::AutoCloseFd inotify;                  // none: only lookNowAndThen
  kj::Maybe<kj::Own<kj::UnixEventPort::FdObserver>> observer;
  std::map<int, std::string> watched;
  kj::Function<std::vector<std::string>()> more;
  kj::Function<void(const std::string&)> broken;
  std::map<std::string, Identity> told;  // to the log
  std::map<std::string, unsigned> looks;
  bool gaveUp = false;
  kj::TaskSet tasks;
};

}  // namespace oc::srt
