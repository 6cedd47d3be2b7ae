#include "home.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <limits.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/fd.h"
#include "base/paths.h"
#include "base/text.h"
#include "written_by_agents.h"

namespace oc::work {

namespace {

// A tree of links to itself by mounts would go on for ever.
constexpr int mostDepth = 100;

struct CopyFailed {
  std::string what;
  int error = 0;
};

[[noreturn]] void failCopy(const char* doing, const std::string& name) {
  auto error = errno;
  throw CopyFailed{fmt::format("{} {}: {}", doing, shortened(printable(name), 200), strerror(error)), error};
}

const char* fixFor(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR: return "make this folder, or name another one in the binding's config.home_seed";
    case EACCES:
    case EPERM: return "make it readable for you, or take it out of the folder that home_seed names";
    case ENOSPC:
    case EDQUOT: return "make room on the disk, or put less into the folder that home_seed names";
    default: return "look at the folder that home_seed names, and at the room on the disk";
  }
}

// Beneath descriptors, so that nothing that is renamed meanwhile leads elsewhere; no link is followed.
class SeedCopy {
 public:
  void copy(int from, int to, const std::string& at, int depth) {
    if (depth > mostDepth) throw CopyFailed{"it is nested more than 100 deep at " + shortened(printable(at), 200), 0};
    std::unique_ptr<DIR, int (*)(DIR*)> directory(fdopendir(from), closedir);
    if (!directory) {
      close(from);
      failCopy("reading", at);
    }
    while (true) {
      errno = 0;
      auto* entry = readdir(directory.get());
      if (entry == nullptr) break;
      std::string name = entry->d_name;
      if (name != "." && name != "..") copyEntry(dirfd(directory.get()), to, name, at + "/" + name, depth);
    }
    if (errno != 0) failCopy("reading", at);
  }

  std::vector<std::string> notes() const {
    std::vector<std::string> result;
    if (credentials > 0) result.push_back(fmt::format("home_seed: {} .credentials.json left out", credentials));
    if (special > 0) {
      result.push_back(
          fmt::format("home_seed: {} sockets, devices and pipes left out, {} the first", special, firstSpecial));
    }
    return result;
  }

 private:
  void copyEntry(int from, int to, const std::string& name, const std::string& at, int depth) {
    // And what was saved beside it: a copy, an editor's or one half written.
    if (name.starts_with(".credentials.json")) {
      ++credentials;
      return;
    }
    struct stat stats;
    if (fstatat(from, name.c_str(), &stats, AT_SYMLINK_NOFOLLOW) < 0) failCopy("looking at", at);
    if (S_ISLNK(stats.st_mode)) return copyLink(from, to, name, at);
    if (S_ISREG(stats.st_mode)) return copyFile(from, to, name, at);
    if (S_ISDIR(stats.st_mode)) return copyDirectory(from, to, name, at, stats.st_mode, depth);
    if (special++ == 0) firstSpecial = shortened(printable(at), 200);
  }

  void copyLink(int from, int to, const std::string& name, const std::string& at) {
    char target[PATH_MAX];
    auto n = readlinkat(from, name.c_str(), target, sizeof(target) - 1);
    if (n < 0) failCopy("reading", at);
    target[n] = '\0';
    if (symlinkat(target, to, name.c_str()) < 0) failCopy("copying", at);
  }

  void copyFile(int from, int to, const std::string& name, const std::string& at) {
    int raw = openat(from, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (raw < 0) failCopy("reading", at);
    kj::AutoCloseFd in(raw);
    struct stat stats;
    if (fstat(raw, &stats) < 0 || !S_ISREG(stats.st_mode)) failCopy("reading", at);
    // Never set-uid; always its owner's.
    int made =
        openat(to, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, (stats.st_mode & 0777) | 0600);
    if (made < 0) failCopy("copying", at);
    kj::AutoCloseFd out(made);
    // What it grows by meanwhile is not copied: it could grow for ever.
    for (off_t left = stats.st_size; left > 0;) {
      auto n = sendfile(made, raw, nullptr, std::min<off_t>(left, 1u << 20));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) failCopy("copying", at);
      if (n == 0) return;
      left -= n;
    }
  }

  void copyDirectory(int from, int to, const std::string& name, const std::string& at, mode_t mode, int depth) {
    int in = openat(from, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (in < 0) failCopy("reading", at);
    KJ_ON_SCOPE_FAILURE(close(in));
    if (mkdirat(to, name.c_str(), 0700) < 0) failCopy("copying", at);
    int made = openat(to, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (made < 0) failCopy("copying", at);
    kj::AutoCloseFd out(made);
    copy(dup(in), made, at, depth + 1);
    close(in);
    if (fchmod(made, (mode & 0777) | 0700) < 0) failCopy("copying", at);
  }

  size_t credentials = 0, special = 0;
  std::string firstSpecial;
};

// Beside a home that was laid out and not made yet.
std::string laidOutMark(const Places& places, const std::string& work) { return places.workHome(work) + ".laid-out"; }

// The directory stays the same one.
void emptyDirectory(const std::string& path) {
  std::unique_ptr<DIR, int (*)(DIR*)> listing(opendir(path.c_str()), closedir);
  while (auto* entry = listing ? readdir(listing.get()) : nullptr) {
    std::string name = entry->d_name;
    if (name != "." && name != "..") removeTree(path + "/" + name);
  }
}

bool isThere(const std::string& path) {
  struct stat stats;
  return lstat(path.c_str(), &stats) == 0;
}

}  // namespace

OrRefusal<bool> checkSeed(const config::Config& config, const Places& places, const std::string& seed) {
  auto denied = [&seed](const std::string& why) {
    return Refusal{"sandbox_denied", fmt::format("home_seed: {} {}", printable(seed), why),
                   "give it a folder of its own, with nothing in it but what an agent may read"};
  };
  auto all = stations(seed);
  for (auto system : {"/proc", "/sys", "/dev"}) {
    if (liesIn(all, system)) return denied(fmt::format("lies in {}, which is the machine's own", system));
  }
  for (auto& own : {places.configDir, places.stateDir, places.dataDir, places.runtimeDir}) {
    if (liesIn(all, own)) return denied(fmt::format("lies in {}, which is Open Conduit's own", own));
    if (isAtOrUnder(own, seed) || isAtOrUnder(resolvedOr(own), all.back()))
      return denied(fmt::format("has {} in it, which is Open Conduit's own", own));
  }
  auto who = whoMayHaveWritten(config, places, seed);
  if (!who.empty()) return denied("could have been written by an agent: " + who);
  return true;
}

OrRefusal<Home> makeHome(const Places& places, const std::string& work, const std::string& seed) {
  Home home{places.workHome(work), {}};
  auto laidOut = laidOutMark(places, work);
  bool fills = isThere(laidOut);
  if (isThere(home.path) && !fills) {
    makePrivateDirectory(home.path);
    return home;
  }
  // Beside it, and renamed when it is whole: a home that is there is a whole one. One that was laid out is one when its
  // mark is gone.
  auto making = fills ? home.path : home.path + ".new";
  try {
    if (fills) {
      emptyDirectory(making);
    } else {
      removeTree(making);
    }
    makePrivateDirectory(making);
    if (!seed.empty()) {
      SeedCopy copy;
      auto to = openFile(making, O_RDONLY | O_DIRECTORY);
      int from = open(seed.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
      if (from < 0) failCopy("opening", seed);
      copy.copy(from, to.get(), seed, 0);
      home.notes = copy.notes();
    }
    auto done = fills ? unlink(laidOut.c_str()) : rename(making.c_str(), home.path.c_str());
    if (done < 0) failCopy("making", home.path);
  } catch (const CopyFailed& failed) {
    fills ? emptyDirectory(making) : removeTree(making);
    return Refusal{"home_failed", fmt::format("the Work's home could not be made of {}: {}", seed, failed.what),
                   fixFor(failed.error)};
  }
  return home;
}

void layOutHome(const Places& places, const std::string& work) {
  openFile(laidOutMark(places, work), O_WRONLY | O_CREAT, 0600);
  makePrivateDirectory(places.workHome(work));
}

void removeHome(const Places& places, const std::string& work) {
  unlink(laidOutMark(places, work).c_str());
  removeTree(places.workHome(work) + ".new");
  removeTree(places.workHome(work));
}

}  // namespace oc::work
