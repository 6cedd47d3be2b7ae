#include "scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <unordered_map>

#include "task.h"

namespace oc::git {

namespace {

constexpr size_t entriesPerStep = 5000;
constexpr size_t deepest = 512;  // directories in each other; each holds a descriptor, a provider may have 1,024
constexpr uint64_t mostEntries = 50'000'000;
constexpr size_t mostLinked = 5'000'000;  // files with several links: about 100 bytes of memory each
constexpr size_t mostWarnings = 100;
constexpr size_t keptWarnings = 10'000;

struct FileId {
  dev_t device;
  ino_t inode;
  bool operator==(const FileId&) const = default;
};
struct HashFileId {
  size_t operator()(const FileId& id) const { return std::hash<uint64_t>()(id.inode * 31 + id.device); }
};

struct Links {
  nlink_t expected = 0;  // as the file system counts them, wherever they are
  nlink_t found = 0;     // in the workspace
  std::string path;      // the first of its names
};

struct Level {
  DIR* listing;
  std::string path;  // relative to the workspace; empty for itself
  bool inGit;        // somewhere in the workspace's own .git
  bool inHooks;
};

struct Warning {
  size_t depth;
  std::string text;
};

class Scan final : private Task {
 public:
  Scan(const Loop& loop, std::string workspace) : Task(loop, "sandbox_denied"), workspace(std::move(workspace)) {}
  ~Scan() noexcept(false) {
    for (auto& level : levels) closedir(level.listing);
  }

  kj::Promise<OrRefusal<ScanFacts>> run() {
    auto steps = kj::evalNow([this]() {
                   enter(AT_FDCWD, workspace.c_str(), "", false, false);
                   return inSteps(loop.timer, [this]() { return step(); });
                 }).then([this]() {
      refuseLinksToOutside();
      return collect();
    });
    return orRefusal<ScanFacts>(kj::mv(steps));
  }

 private:
  bool step() {
    for (size_t n = 0; n < entriesPerStep && !levels.empty(); ++n) {
      errno = 0;
      struct dirent* entry = readdir(levels.back().listing);
      if (entry == nullptr) {
        if (errno != 0) refuseUnseen(levels.back().path, strerror(errno));
        closedir(levels.back().listing);
        levels.pop_back();
        continue;
      }
      if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
      if (++facts.entries > mostEntries) refuseUnseen(levels.back().path, "the workspace has too many files");
      look(entry->d_name);
    }
    return levels.empty();
  }

  void look(const char* name) {
    auto& level = levels.back();
    auto path = level.path.empty() ? std::string(name) : level.path + "/" + name;
    struct stat stats;
    if (fstatat(dirfd(level.listing), name, &stats, AT_SYMLINK_NOFOLLOW) < 0) {
      if (errno == ENOENT) return;
      refuseUnseen(path, strerror(errno));
    }
    warn(level, name, path, stats);
    if (S_ISDIR(stats.st_mode)) {
      bool inGit = level.inGit || (level.path.empty() && strcmp(name, ".git") == 0);
      enter(dirfd(level.listing), name, path, inGit, level.inHooks || (inGit && strcmp(name, "hooks") == 0));
    } else if (stats.st_nlink > 1) {
      count(path, stats);
    }
  }

  void enter(int parent, const char* name, const std::string& path, bool inGit, bool inHooks) {
    if (levels.size() == deepest) refuseUnseen(path, "it is nested too deep");
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
      if (errno == ENOENT && !levels.empty()) return;
      refuseUnseen(path, strerror(errno));
    }
    DIR* listing = fdopendir(fd);
    if (listing == nullptr) {
      int error = errno;
      close(fd);
      KJ_FAIL_SYSCALL("fdopendir", error, path);
    }
    levels.push_back({listing, path, inGit, inHooks});
  }

  void count(const std::string& path, const struct stat& stats) {
    auto& file = links[{stats.st_dev, stats.st_ino}];
    if (file.found == 0 || path < file.path) file.path = path;  // the first by name: the same at each scan
    ++file.found;
    file.expected = stats.st_nlink;
    if (links.size() > mostLinked) refuseUnseen(path, "the workspace has too many files with several links");
  }

  void refuseLinksToOutside() {
    std::string first;
    size_t others = 0;
    for (auto& [id, file] : links) {
      if (file.found >= file.expected) continue;
      others += first.empty() ? 0 : 1;
      if (first.empty() || file.path < first) first = file.path;
    }
    if (first.empty()) return;
    refuse(fmt::format("{}/{} has a hard link outside the workspace{}", shown(workspace), shown(first),
                       others == 0 ? "" : fmt::format(", as have {} other files", others)),
           "copy the file instead of linking it; with pnpm, set package-import-method=copy");
  }

  [[noreturn]] void refuseUnseen(const std::string& path, const char* why) {
    refuse(fmt::format("{}/{} cannot be looked at: {}", shown(workspace), shown(path), why),
           "hard links to files outside the workspace could hide there: make it readable, or remove it");
  }

  // What a person, their editor or their shell would run there without meaning to.
  void warn(const Level& level, const std::string& name, const std::string& path, const struct stat& stats) {
    bool top = level.path.empty();
    bool directory = S_ISDIR(stats.st_mode);
    if (level.inHooks && !directory && !name.ends_with(".sample")) return add(path, "git runs it as a hook");
    if (level.inGit) {
      if (level.path == ".git" && name == "commondir")
        return add(path, "git takes its config and hooks from where it says");
      if (name == "config.worktree" && (stats.st_size != 0 || !S_ISREG(stats.st_mode)))
        return add(path, "a git config, which can name programs to run");
      return;
    }
    if (name == ".git") {
      if (top && directory) return;
      return add(path, top ? "not a directory: the repository is elsewhere"
                           : "a repository in the workspace, with a config and hooks of its own");
    }
    if (name == ".envrc" && !directory) return add(path, "direnv runs it");
    if ((name == ".vscode" || name == ".idea") && directory) return add(path, "an editor's tasks and settings");
    if ((name == ".husky" || name == ".githooks") && directory) return add(path, "a directory of hooks");
  }

  void add(const std::string& path, const char* why) {
    if (found.size() == keptWarnings) return;
    size_t depth = std::count(path.begin(), path.end(), '/');
    found.push_back({depth, fmt::format("{}: {}", shown(path), why)});
  }

  ScanFacts collect() {
    std::sort(found.begin(), found.end(),
              [](auto& a, auto& b) { return a.depth != b.depth ? a.depth < b.depth : a.text < b.text; });
    for (auto& warning : found) {
      if (facts.warnings.size() == mostWarnings) break;
      facts.warnings.push_back(std::move(warning.text));
    }
    return std::move(facts);
  }

  std::string workspace;
  std::vector<Level> levels;
  std::unordered_map<FileId, Links, HashFileId> links;
  std::vector<Warning> found;
  ScanFacts facts;
};

}  // namespace

kj::Promise<OrRefusal<ScanFacts>> scanWorkspace(const Loop& loop, std::string workspace) {
  auto scan = kj::heap<Scan>(loop, std::move(workspace));
  auto promise = scan->run();
  return promise.attach(kj::mv(scan));
}

}  // namespace oc::git
