#include "scan.h"

#include <fmt/format.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <unordered_map>

#include "base/aside.h"
#include "base/change_time.h"
#include "task.h"
#include "tree_walk.h"

namespace oc::git {

namespace {

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

struct Warning {
  size_t depth;
  std::string text;
};

// Of a directory: somewhere in the workspace's own .git, and of that in hooks; in a folder that a person's tools obey.
enum Marks : unsigned { inGit = 1, inHooks = 2, inObeyed = 4 };

// What is in a folder that tools obey, and that the repository may have itself; nullptr: it is none.
const char* obeyedAs(std::string_view folder) {
  if (folder == ".vscode" || folder == ".idea") return "an editor's tasks and settings";
  if (folder == ".husky" || folder == ".githooks") return "a directory of hooks";
  return nullptr;
}

using LinkedFiles = std::unordered_map<FileId, Links, HashFileId>;

// What one thread has seen. `linked` counts for all of them.
class Look final : public TreeVisitor {
 public:
  Look(std::atomic<size_t>& linked, int64_t clonedAt) : linked(linked), clonedAt(clonedAt) {}

  unsigned look(const TreePlace& directory, const char* name, const struct stat& stats) override {
    warn(directory, name, stats);
    if (!S_ISDIR(stats.st_mode)) {
      if (stats.st_nlink > 1) count(pathOf(directory, name), stats);
      return 0;
    }
    unsigned marks = directory.marks;
    if (directory.path.empty() && strcmp(name, ".git") == 0) marks |= inGit;
    if ((marks & inGit) != 0 && strcmp(name, "hooks") == 0) marks |= inHooks;
    if ((marks & inGit) == 0 && obeyedAs(name) != nullptr) marks |= inObeyed;
    return marks;
  }

  LinkedFiles links;
  std::vector<Warning> found;

 private:
  static std::string pathOf(const TreePlace& directory, const char* name) {
    return directory.path.empty() ? std::string(name) : directory.path + "/" + name;
  }

  void count(const std::string& path, const struct stat& stats) {
    auto& file = links[{stats.st_dev, stats.st_ino}];
    bool tooMany = file.found == 0 && ++linked > mostLinked;
    KJ_REQUIRE(!tooMany, "the workspace has too many files with several links");
    if (file.found == 0 || path < file.path) file.path = path;  // the first by name: the same at each scan
    ++file.found;
    file.expected = stats.st_nlink;
  }

  // What a person, their editor or their shell would run there without meaning to.
  void warn(const TreePlace& in, std::string_view name, const struct stat& stats) {
    bool top = in.path.empty();
    bool directory = S_ISDIR(stats.st_mode);
    if ((in.marks & inHooks) != 0 && !directory && !name.ends_with(".sample"))
      return add(in, name, "git runs it as a hook");
    if ((in.marks & inGit) != 0) {
      if (in.path == ".git" && name == "commondir")
        return add(in, name, "git takes its config and hooks from where it says");
      if (name == "config.worktree" && (stats.st_size != 0 || !S_ISREG(stats.st_mode)))
        return add(in, name, "a git config, which can name programs to run");
      return;
    }
    if (name == ".git") {
      if (top && directory) return;
      return add(in, name,
                 top ? "not a directory: the repository is elsewhere"
                     : "a repository in the workspace, with a config and hooks of its own");
    }
    if (changeTime(stats) <= clonedAt) return;
    if ((in.marks & inObeyed) != 0) return addFolderOf(in);
    if (name == ".envrc" && !directory) return add(in, name, "direnv runs it");
    if (directory && obeyedAs(name) != nullptr) return add(in, name, obeyedAs(name));
  }

  // Something in a folder that tools obey has changed: the folder is told of.
  void addFolderOf(const TreePlace& in) {
    size_t begin = 0, end = 0;
    for (;; begin = end + 1) {
      end = std::min(in.path.find('/', begin), in.path.size());
      auto name = std::string_view(in.path).substr(begin, end - begin);
      if (auto why = obeyedAs(name)) {
        add({in.path.substr(0, begin == 0 ? 0 : begin - 1)}, name, why);
        return;
      }
    }
  }

  void add(const TreePlace& in, std::string_view name, const char* why) {
    if (found.size() == keptWarnings) return;
    auto path = pathOf(in, std::string(name).c_str());
    size_t depth = std::count(path.begin(), path.end(), '/');
    Warning warning{depth, fmt::format("{}: {}", shown(path), why)};
    // The files of one folder come one after the other.
    if (found.empty() || found.back().text != warning.text) found.push_back(std::move(warning));
  }

  std::atomic<size_t>& linked;
  int64_t clonedAt;
};

// How many can look at a time: the processors that there are, to a few.
unsigned threadsToScan() {
  auto processors = sysconf(_SC_NPROCESSORS_ONLN);
  return static_cast<unsigned>(std::clamp<long>(processors, 1, mostTreeThreads));
}

Refusal unseen(const std::string& workspace, const std::string& path, const std::string& why) {
  return {"sandbox_denied", fmt::format("{}/{} cannot be looked at: {}", shown(workspace), shown(path), why),
          "hard links to files outside the workspace could hide there: make it readable, or remove it"};
}

LinkedFiles joined(std::vector<Look>& looks) {
  auto all = std::move(looks[0].links);
  for (size_t i = 1; i < looks.size(); ++i) {
    for (auto& [id, more] : looks[i].links) {
      auto& file = all[id];
      if (file.found == 0 || more.path < file.path) file.path = more.path;
      file.found += more.found;
      file.expected = std::max(file.expected, more.expected);
    }
    looks[i].links.clear();
  }
  return all;
}

std::optional<Refusal> refuseLinksToOutside(const std::string& workspace, const LinkedFiles& links) {
  std::string first;
  size_t others = 0;
  for (auto& [id, file] : links) {
    if (file.found >= file.expected) continue;
    others += first.empty() ? 0 : 1;
    if (first.empty() || file.path < first) first = file.path;
  }
  if (first.empty()) return std::nullopt;
  return Refusal{"sandbox_denied",
                 fmt::format("{}/{} has a hard link outside the workspace{}", shown(workspace), shown(first),
                             others == 0 ? "" : fmt::format(", as have {} other files", others)),
                 "copy the file instead of linking it; with pnpm, set package-import-method=copy"};
}

std::vector<std::string> nearestToTheTop(std::vector<Look>& looks) {
  std::vector<Warning> all;
  for (auto& look : looks) std::move(look.found.begin(), look.found.end(), std::back_inserter(all));
  std::sort(all.begin(), all.end(),
            [](auto& a, auto& b) { return a.depth != b.depth ? a.depth < b.depth : a.text < b.text; });
  std::vector<std::string> texts;
  for (auto& warning : all) {
    if (texts.size() == mostWarnings) break;
    if (texts.empty() || texts.back() != warning.text) texts.push_back(std::move(warning.text));
  }
  return texts;
}

OrRefusal<ScanFacts> scan(const std::string& workspace, int64_t clonedAt) {
  std::atomic<size_t> linked = 0;
  std::vector<Look> looks;
  for (unsigned i = threadsToScan(); i > 0; --i) looks.emplace_back(linked, clonedAt);
  std::vector<TreeVisitor*> visitors;
  for (auto& look : looks) visitors.push_back(&look);
  ScanFacts facts;
  auto problem = walkTree(workspace, visitors, mostEntries, facts.entries);
  if (problem) return unseen(workspace, problem->path, problem->why);
  if (auto refusal = refuseLinksToOutside(workspace, joined(looks))) return *refusal;
  facts.warnings = nearestToTheTop(looks);
  return facts;
}

class Scan final : private Task {
 public:
  explicit Scan(const Loop& loop) : Task(loop, "sandbox_denied") {}

  kj::Promise<OrRefusal<ScanFacts>> run(std::string workspace, int64_t clonedAt) {
    return orRefusal<ScanFacts>(aside([workspace = std::move(workspace), clonedAt]() {
                                  return scan(workspace, clonedAt);
                                }).then([this](OrRefusal<ScanFacts> scanned) { return accept(kj::mv(scanned)); }));
  }
};

}  // namespace

kj::Promise<OrRefusal<ScanFacts>> scanWorkspace(const Loop& loop, std::string workspace, int64_t clonedAt) {
  auto scan = kj::heap<Scan>(loop);
  auto promise = scan->run(std::move(workspace), clonedAt);
  return promise.attach(kj::mv(scan));
}

}  // namespace oc::git
