#include "tree_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <kj/thread.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "proto/rpc.h"

namespace oc::git {

namespace {

// Together with a thread that goes down alone, and the few that are being read, below the 1,024 of a provider.
constexpr unsigned mostOpenTogether = 448;

// Open for as long as something beneath it is still to be opened.
struct Directory {
  explicit Directory(std::atomic<unsigned>& open) : open(open) { ++open; }
  ~Directory() { --open; }
  KJ_DISALLOW_COPY(Directory);

  std::atomic<unsigned>& open;
  kj::AutoCloseFd fd;
  TreePlace place;
};

struct Pending {
  std::shared_ptr<Directory> above;  // none: the root
  std::string name;
  TreePlace place;
};

// The latest comes first, so that few directories are open at a time: those on the way to where the threads are. Where
// these become many, one thread goes on alone, which adds one for each level at most.
class Queue {
 public:
  explicit Queue(unsigned threads) : threads(threads) {}

  void add(std::vector<Pending>&& more) {
    if (more.empty()) return;
    {
      std::lock_guard<std::mutex> lock(mutex);
      for (auto& one : more) waiting.push_back(std::move(one));
    }
    changed.notify_all();
  }

  // Waits for one; none is left when every thread waits, or somebody has ended it.
  std::optional<Pending> take() {
    std::unique_lock<std::mutex> lock(mutex);
    ++idle;
    if (idle == threads || open >= mostOpenTogether) changed.notify_all();
    changed.wait(lock, [this]() {
      if (ended || idle == threads) return true;
      return !waiting.empty() && open < mostOpenTogether;
    });
    if (ended || waiting.empty()) return std::nullopt;
    --idle;
    auto next = std::move(waiting.back());
    waiting.pop_back();
    return next;
  }

  // The first problem is the answer.
  void end(UnseenPart why) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (!problem) problem = std::move(why);
      ended = true;
    }
    changed.notify_all();
  }

  // Fewer came than were asked for.
  void haveThreads(unsigned count) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      threads = count;
    }
    changed.notify_all();
  }

  std::optional<UnseenPart> problem;
  std::atomic<unsigned> open = 0;  // directories

 private:
  unsigned threads;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Pending> waiting;
  unsigned idle = 0;
  bool ended = false;
};

class Walker {
 public:
  Walker(Queue& queue, TreeVisitor& visitor, std::atomic<uint64_t>& entries, uint64_t mostEntries)
      : queue(queue), visitor(visitor), entries(entries), mostEntries(mostEntries) {}

  // Whatever happens, the others do not wait for this one, and what was not seen is told.
  void walk() {
    auto failed = kj::runCatchingExceptions([this]() {
      while (auto next = queue.take()) {
        if (auto problem = read(std::move(*next))) queue.end(std::move(*problem));
      }
    });
    KJ_IF_MAYBE (exception, failed) queue.end({"", describe(*exception)});
  }

 private:
  std::optional<UnseenPart> read(Pending pending) {
    auto directory = std::make_shared<Directory>(queue.open);
    directory->place = std::move(pending.place);
    auto& place = directory->place;
    if (place.depth >= deepestTree) return UnseenPart{place.path, "it is nested too deep"};
    int parent = pending.above ? pending.above->fd.get() : AT_FDCWD;
    int fd = openat(parent, pending.name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
      if (errno == ENOENT && pending.above) return std::nullopt;
      return UnseenPart{place.path, strerror(errno)};
    }
    directory->fd = kj::AutoCloseFd(fd);
    pending.above = nullptr;

    std::vector<Pending> beneath;
    if (auto problem = list(directory, beneath)) return problem;
    queue.add(std::move(beneath));
    return std::nullopt;
  }

  std::optional<UnseenPart> list(const std::shared_ptr<Directory>& directory, std::vector<Pending>& beneath) {
    auto& place = directory->place;
    int fd = directory->fd.get();
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) return UnseenPart{place.path, strerror(errno)};
    std::unique_ptr<DIR, int (*)(DIR*)> listing(fdopendir(copy), closedir);
    if (!listing) {
      int error = errno;
      close(copy);
      return UnseenPart{place.path, strerror(error)};
    }
    for (;;) {
      errno = 0;
      auto* entry = readdir(listing.get());
      if (entry == nullptr) {
        if (errno != 0) return UnseenPart{place.path, strerror(errno)};
        return std::nullopt;
      }
      const char* name = entry->d_name;
      if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) continue;
      if (entries.fetch_add(1, std::memory_order_relaxed) >= mostEntries)
        return UnseenPart{place.path, "the workspace has too many files"};
      struct stat stats;
      if (fstatat(fd, name, &stats, AT_SYMLINK_NOFOLLOW) < 0) {
        if (errno == ENOENT) continue;
        return UnseenPart{pathOf(place, name), strerror(errno)};
      }
      auto marks = visitor.look(place, name, stats);
      if (S_ISDIR(stats.st_mode)) beneath.push_back({directory, name, {pathOf(place, name), marks, place.depth + 1}});
    }
  }

  static std::string pathOf(const TreePlace& directory, const char* name) {
    return directory.path.empty() ? std::string(name) : directory.path + "/" + name;
  }

  Queue& queue;
  TreeVisitor& visitor;
  std::atomic<uint64_t>& entries;
  uint64_t mostEntries;
};

}  // namespace

std::optional<UnseenPart> walkTree(const std::string& root, const std::vector<TreeVisitor*>& visitors,
                                   uint64_t mostEntries, uint64_t& entries) {
  KJ_REQUIRE(!visitors.empty());
  Queue queue(visitors.size());
  std::atomic<uint64_t> count = 0;
  std::vector<Pending> first(1);
  first[0].name = root;
  queue.add(std::move(first));
  {
    std::vector<kj::Own<kj::Thread>> threads;  // the end of the block waits for them
    auto failed = kj::runCatchingExceptions([&]() {
      for (size_t i = 1; i < visitors.size(); ++i) {
        threads.push_back(
            kj::heap<kj::Thread>([&, visitor = visitors[i]]() { Walker(queue, *visitor, count, mostEntries).walk(); }));
      }
    });
    if (failed != nullptr) queue.haveThreads(threads.size() + 1);
    Walker(queue, *visitors[0], count, mostEntries).walk();
  }
  entries = count;
  return std::move(queue.problem);
}

}  // namespace oc::git
