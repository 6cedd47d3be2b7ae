#include "hidden_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "proto/rpc.h"
#include "sandbox_mounts.h"

namespace oc::srt {

HiddenWatch::HiddenWatch(kj::AsyncIoContext& io, std::vector<std::string> hiddenPaths,
                         kj::Function<std::vector<std::string>()> more, kj::Function<void(const std::string&)> broken)
    : timer(io.provider->getTimer()),
      paths(kj::mv(hiddenPaths)),
      more(kj::mv(more)),
      broken(kj::mv(broken)),
      tasks(*this) {
  for (auto& path : paths) {
    covered[path] = identify(path);
    watchAbove(path);
  }
  directories.insert("/");
  int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (fd >= 0) {
    inotify = kj::AutoCloseFd(fd);
    armAll();
    observer =
        kj::heap<kj::UnixEventPort::FdObserver>(io.unixEventPort, fd, kj::UnixEventPort::FdObserver::OBSERVE_READ);
    tasks.add(readEvents());
  } else {
    // A user has 128 of them by default. Slower then, but not blind.
    logWarning("no inotify instance is left; hidden paths are looked at 20 times a second instead");
  }
  tasks.add(lookNowAndThen());
}

void HiddenWatch::watchAbove(const std::string& path) {
  for (auto slash = path.rfind('/'); slash != 0 && slash != std::string::npos; slash = path.rfind('/', slash - 1)) {
    directories.insert(path.substr(0, slash));
  }
}

void HiddenWatch::addMore() {
  for (auto& path : more()) {
    if (covered.count(path) > 0 || paths.size() >= mostPaths) continue;
    covered[path] = {};  // as one that has come to be
    watchAbove(path);
    paths.push_back(path);
  }
}

void HiddenWatch::armAll() {
  if (inotify.get() < 0) return;
  for (auto& directory : directories) {
    int id = inotify_add_watch(inotify.get(), directory.c_str(), IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
    if (id >= 0) watched[id] = directory;
    // Not there, or not ours to watch: seen now and then.
  }
}

bool HiddenWatch::concerns(const std::string& path) const {
  return covered.count(path) > 0 || directories.count(path) > 0;
}

kj::Promise<void> HiddenWatch::readEvents() {
  return KJ_ASSERT_NONNULL(observer)->whenBecomesReadable().then([this]() {
    alignas(inotify_event) char buffer[16384];
    bool some = false;
    ssize_t n;
    while ((n = read(inotify.get(), buffer, sizeof(buffer))) > 0) {
      for (char* at = buffer; at < buffer + n;) {
        auto event = reinterpret_cast<inotify_event*>(at);
        at += sizeof(inotify_event) + event->len;
        auto found = watched.find(event->wd);
        if (event->mask & IN_Q_OVERFLOW) some = true;
        if (found == watched.end() || event->len == 0) continue;
        auto& directory = found->second;
        some = some || concerns((directory == "/" ? "" : directory) + "/" + event->name);
      }
    }
    if (some) {
      armAll();
      look();
    }
    return readEvents();
  });
}

kj::Promise<void> HiddenWatch::lookNowAndThen() {
  auto pause = inotify.get() < 0 ? 50 * kj::MILLISECONDS : 500 * kj::MILLISECONDS;
  return timer.afterDelay(pause).then([this]() {
    addMore();
    armAll();
    look();
    return lookNowAndThen();
  });
}

HiddenWatch::Identity HiddenWatch::identify(const std::string& path) {
  struct stat stats;
  if (stat(path.c_str(), &stats) < 0) return {};
  return {stats.st_dev, stats.st_ino};
}

void HiddenWatch::look() {
  std::vector<std::string> changed;
  for (auto& path : paths) {
    auto now = identify(path);
    if (now == Identity{}) {
      covered[path] = now;
    } else if (!(now == covered[path])) {
      changed.push_back(path);
    }
  }
  if (changed.empty() || gaveUp) return;
  auto result = coverInSandboxes(changed);
  if (!result.failure.empty()) {
    gaveUp = true;
    broken(result.failure);
    return;
  }
  for (auto& path : changed) {
    auto now = identify(path);
    if (result.covered > 0 && !(told[path] == now)) {
      logWarning("{} was made or replaced during the run; it is hidden from the agent", path);
      told[path] = now;
    }
    // Looked at a few times more: bubblewrap may be just about to put its mounts together. Before there is a sandbox it
    // does not count.
    if (result.sandboxes > 0 && ++looks[path] > looksUntilSettled) {
      covered[path] = identify(path);
      looks.erase(path);
    }
  }
}

void HiddenWatch::taskFailed(kj::Exception&& exception) {
  if (!gaveUp) broken(describe(exception));
  gaveUp = true;
}

}  // namespace oc::srt
