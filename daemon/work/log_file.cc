#include "log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "base/fd.h"

namespace oc::work {

namespace {

struct OpenLog {
  kj::AutoCloseFd fd;
  uint64_t size;
};

std::optional<OpenLog> openLog(const std::string& path) {
  // O_NONBLOCK: a FIFO in its place must not hold us before fstat says what it is.
  auto fd = openIfThere(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!fd) return std::nullopt;
  struct stat stats;
  KJ_SYSCALL(fstat(fd->get(), &stats), path);
  KJ_REQUIRE(S_ISREG(stats.st_mode), "a run's log is no regular file", path);
  return OpenLog{kj::mv(*fd), static_cast<uint64_t>(stats.st_size)};
}

bool isLongerThan(const std::string& path, uint64_t offset) {
  auto log = openLog(path);
  return log && log->size > offset;
}

std::string directoryOf(const std::string& path) {
  auto slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

// A deleted file tells by IN_ATTRIB while somebody has it open, and by IN_DELETE_SELF after.
constexpr uint32_t OF_FILE = IN_MODIFY | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_DONT_FOLLOW;
constexpr uint32_t OF_DIRECTORY = IN_CREATE | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
constexpr int NO_WATCH = -1;

}  // namespace

// ---- the kernel's side

class LogReader::Inotify {
 public:
  explicit Inotify(kj::UnixEventPort& port)
      : fd(make()), observer(port, fd.get(), kj::UnixEventPort::FdObserver::OBSERVE_READ) {}
  KJ_DISALLOW_COPY(Inotify);

  // The watch of this very file or directory, one for all who wait for it. NO_WATCH: there is none there now.
  int watch(const std::string& path, uint32_t events) {
    int number = inotify_add_watch(fd.get(), path.c_str(), events);
    if (number < 0) {
      int error = errno;
      if (error == ENOENT || error == ENOTDIR) return NO_WATCH;
      KJ_REQUIRE(error != ENOSPC, "no inotify watch is left: raise fs.inotify.max_user_watches with sysctl", path);
      KJ_FAIL_SYSCALL("inotify_add_watch", error, path);
    }
    ++users[number];
    return number;
  }

  void unwatch(int number) {
    auto user = users.find(number);
    if (user == users.end() || --user->second > 0) return;
    users.erase(user);
    // Fails when what was watched went away meanwhile, and the watch with it.
    inotify_rm_watch(fd.get(), number);
  }

  template <typename OnEvent>
  kj::Promise<void> run(OnEvent&& onEvent) {
    return observer.whenBecomesReadable().then([this, &onEvent]() {
      while (readSome(onEvent)) {
      }
      return run(onEvent);
    });
  }

 private:
  static kj::AutoCloseFd make() {
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (fd < 0) {
      int error = errno;
      KJ_REQUIRE(error != EMFILE,
                 "no inotify instance or open file is left: raise fs.inotify.max_user_instances with sysctl, or the "
                 "limit of open files");
      KJ_FAIL_SYSCALL("inotify_init1", error);
    }
    return kj::AutoCloseFd(fd);
  }

  // False when there is no more: only then does the observer tell of the next.
  template <typename OnEvent>
  bool readSome(OnEvent& onEvent) {
    alignas(struct inotify_event) char buffer[16384];
    ssize_t n;
    KJ_NONBLOCKING_SYSCALL(n = ::read(fd.get(), buffer, sizeof(buffer)));
    if (n <= 0) return false;
    for (char* at = buffer; at < buffer + n;) {
      auto event = reinterpret_cast<const struct inotify_event*>(at);
      at += sizeof(*event) + event->len;
      // The kernel has removed the watch by itself, and may not be asked to do it again.
      if (event->mask & IN_IGNORED) users.erase(event->wd);
      onEvent(event->wd, (event->mask & IN_IGNORED) != 0);
    }
    return true;
  }

  kj::AutoCloseFd fd;
  kj::UnixEventPort::FdObserver observer;
  std::map<int, int> users;  // by watch: how many wait for it
};

// ---- one who waits

class LogReader::Waiting {
 public:
  Waiting(kj::PromiseFulfiller<void>& fulfiller, LogReader& reader, const std::string& path, uint64_t offset)
      : fulfiller(fulfiller), reader(&reader), path(path), offset(offset) {
    reader.all.insert(this);
    look();
  }
  ~Waiting() noexcept { finish(); }
  KJ_DISALLOW_COPY(Waiting);

  bool concerns(int number) const { return number == watch; }
  void lose() { watch = NO_WATCH; }

  void fail(kj::Exception reason) {
    finish();
    fulfiller.reject(kj::mv(reason));
  }

  // Has it grown? If not, makes sure that we will hear when to look again.
  void look() {
    try {
      while (reader != nullptr) {
        if (isLongerThan(path, offset)) {
          finish();
          fulfiller.fulfill();
        } else if (!moveToWhatIsThere()) {
          return;
        }
      }
    } catch (const kj::Exception& e) {
      fail(kj::cp(e));
    }
  }

 private:
  // Watches the file, or of what does not exist yet, the deepest directory above it that does. True when that
  // is another one than before: then something may have happened before the watch was there, and we must look
  // again.
  bool moveToWhatIsThere() {
    auto& inotify = reader->inotify();
    std::string place = path;
    int found = inotify.watch(place, OF_FILE);
    while (found == NO_WATCH) {
      KJ_REQUIRE(place != "/", "not even the root directory can be watched", path);
      place = directoryOf(place);
      found = inotify.watch(place, OF_DIRECTORY);
    }
    bool other = found != watch;
    inotify.unwatch(watch);  // ours until now; if it is the same one, it has counted us twice
    watch = found;
    return other;
  }

  void finish() {
    if (reader == nullptr) return;
    if (watch != NO_WATCH) reader->inotify().unwatch(watch);
    watch = NO_WATCH;
    reader->forget(*this);
    reader = nullptr;
  }

  kj::PromiseFulfiller<void>& fulfiller;
  LogReader* reader;  // null: it is over
  std::string path;
  uint64_t offset;
  int watch = NO_WATCH;
};

// ---- the reader

LogReader::LogReader(kj::UnixEventPort& port) : port(port) {}

LogReader::~LogReader() noexcept {
  failAll(KJ_EXCEPTION(DISCONNECTED, "nobody reads logs any more"));
  events = nullptr;  // it uses what inotify has
}

LogBytes LogReader::read(const std::string& path, uint64_t offset) {
  LogBytes result{{}, offset};
  auto log = openLog(path);
  if (!log || log->size <= offset) return result;
  result.bytes.resize(std::min<uint64_t>(MOST_BYTES, log->size - offset));
  size_t have = 0;
  while (have < result.bytes.size()) {
    ssize_t n;
    KJ_SYSCALL(n = pread(log->fd.get(), result.bytes.data() + have, result.bytes.size() - have, offset + have), path);
    if (n == 0) break;  // somebody has cut it short since
    have += n;
  }
  result.bytes.resize(have);
  result.next = offset + have;
  return result;
}

kj::Promise<void> LogReader::whenGrown(const std::string& path, uint64_t offset) {
  KJ_REQUIRE(!path.empty() && path[0] == '/', "not an absolute path", path);
  KJ_REQUIRE(!deaf, "logs cannot be followed any more, since inotify failed: restart the daemon");
  return kj::newAdaptedPromise<void, Waiting>(*this, path, offset);
}

LogReader::Inotify& LogReader::inotify() {
  if (inotifyOnceNeeded == nullptr) {
    inotifyOnceNeeded = std::make_unique<Inotify>(port);
    auto onEvent = [this](int watch, bool isGone) { this->onEvent(watch, isGone); };
    auto handler = kj::heap(kj::mv(onEvent));
    auto running = inotifyOnceNeeded->run(*handler);
    events = running.attach(kj::mv(handler)).eagerlyEvaluate([this](kj::Exception&& e) {
      deaf = true;
      failAll(e);
    });
  }
  return *inotifyOnceNeeded;
}

void LogReader::forget(Waiting& waiting) { all.erase(&waiting); }

void LogReader::onEvent(int watch, bool watchIsGone) {
  bool overflow = watch < 0;  // the kernel dropped events: anything may have happened
  std::set<Waiting*> concerned;
  for (auto waiting : all) {
    if (overflow || waiting->concerns(watch)) concerned.insert(waiting);
  }
  for (auto waiting : concerned) {
    if (watchIsGone) waiting->lose();
    waiting->look();
  }
}

void LogReader::failAll(const kj::Exception& reason) {
  auto left = all;
  for (auto waiting : left) waiting->fail(kj::cp(reason));
}

}  // namespace oc::work
