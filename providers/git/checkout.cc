#include "checkout.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/fd.h"
#include "base/paths.h"
#include "task.h"

namespace oc::git {

namespace {

constexpr size_t smallFile = 64 << 10;

bool isDirectory(const std::string& path) {
  struct stat stats;
  return stat(path.c_str(), &stats) == 0 && S_ISDIR(stats.st_mode);
}

bool exists(const std::string& path) {
  struct stat stats;
  return lstat(path.c_str(), &stats) == 0;
}

class Inspection : private Task {
 public:
  Inspection(const Loop& loop, std::string path) : Task(loop, "checkout_invalid"), given(std::move(path)) {}

  kj::Promise<OrRefusal<CheckoutFacts>> inspect() {
    auto steps = open().then([this]() { return readHead(); }).then([this]() { return readBranch(); });
    return orRefusal<CheckoutFacts>(steps.then([this]() { return std::move(facts); }));
  }

  kj::Promise<OrRefusal<CheckoutFacts>> reopen() {
    return orRefusal<CheckoutFacts>(open().then([this]() { return std::move(facts); }));
  }

 private:
  kj::Promise<void> open() {
    return kj::evalNow([this]() {
      findDirectory();
      findRepository();
      checkAlternates();
      return readConfig();
    });
  }

  void findDirectory() {
    struct stat stats;
    if (stat(given.c_str(), &stats) < 0) {
      if (errno == ENOENT || errno == ENOTDIR) {
        refuse(fmt::format("{} does not exist", given),
               "correct the binding's \"checkout\", or clone the repository there");
      }
      refuse(fmt::format("{} cannot be looked at: {}", given, strerror(errno)), "make it readable for you");
    }
    if (!S_ISDIR(stats.st_mode)) refuse(fmt::format("{} is not a directory", given), "give the top of a git checkout");
    requireOurs(given, stats);
    facts.path = resolvePath(given);
    if (facts.path.find("/.git/") != std::string::npos || facts.path.ends_with("/.git")) {
      refuse(fmt::format("{} lies within a .git directory", facts.path), "give the top of the checkout instead");
    }
  }

  void requireOurs(const std::string& path, const struct stat& stats) {
    if (stats.st_uid == geteuid()) return;
    // No number: in a user namespace of one's own all others are "nobody".
    refuse(fmt::format("{} is not yours: it belongs to another user", path),
           "use a checkout of your own: clone that one, or change its owner");
  }

  void findRepository() {
    facts.gitDir = facts.path + "/.git";
    struct stat stats;
    if (stat(facts.gitDir.c_str(), &stats) < 0) {
      if (isDirectory(facts.path + "/objects") && isDirectory(facts.path + "/refs") && exists(facts.path + "/HEAD")) {
        refuseBare();
      }
      refuse(fmt::format("{} is not the top of a git checkout: it has no .git", facts.path),
             "give the directory that has .git in it; git rev-parse --show-toplevel prints it");
    }
    if (S_ISREG(stats.st_mode)) refuseGitFile();
    if (!S_ISDIR(stats.st_mode)) refuse(fmt::format("{} is not a directory", facts.gitDir), "");
    requireOurs(facts.gitDir, stats);
    facts.gitDir = resolvePath(facts.gitDir);  // an operator may have linked it to another disk
    for (const char* part : {"/HEAD", "/objects", "/refs"}) {
      if (!exists(facts.gitDir + part)) {
        refuse(fmt::format("{} is not a git repository: it has no {}", facts.gitDir, part + 1), "");
      }
    }
  }

  [[noreturn]] void refuseBare() {
    refuse(fmt::format("{} is a bare repository", facts.path),
           "give a checkout of it: git clone it, and name that clone");
  }

  [[noreturn]] void refuseGitFile() {
    auto text = readFile(facts.gitDir, smallFile);
    auto target = text.substr(std::min(text.size(), text.find(' ') + 1));
    while (!target.empty() && target.back() == '\n') target.pop_back();
    if (target.find("/worktrees/") != std::string::npos) {
      auto main = target.substr(0, target.find("/.git/worktrees/"));
      refuse(fmt::format("{} is a linked worktree of another checkout", facts.path),
             fmt::format("give the main checkout instead: {}", shown(main)));
    }
    if (target.find("/modules/") != std::string::npos) {
      refuse(fmt::format("{} is a submodule of another checkout", facts.path),
             "clone its repository by itself, and give that clone");
    }
    refuse(fmt::format("{} is a file: the repository lies elsewhere ({})", facts.gitDir, shown(target)),
           "give a checkout that has its .git directory in itself");
  }

  void checkAlternates() {
    for (auto& directory : alternatesOf(facts.gitDir + "/objects")) {
      int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
      if (fd < 0) {
        refuse(
            fmt::format("{} borrows objects from {}, which cannot be read: {}", facts.path, shown(directory),
                        strerror(errno)),
            "make that directory readable; or copy the objects: git repack -a -d, then remove .git/objects/info/alternates");
      }
      close(fd);
    }
  }

  GitCommand command(std::vector<std::string> arguments) {
    GitCommand command;
    command.arguments = std::move(arguments);
    command.gitDir = facts.gitDir;
    return command;
  }

  kj::Promise<void> readConfig() {
    return runGit(loop, command({"config", "--local", "--includes", "--list", "-z"})).then([this](GitResult result) {
      if (!result.ok()) {
        refuse(fmt::format("the config of {} cannot be read: {}", facts.path, result.why()),
               "correct .git/config; files that it includes must lie within the checkout");
      }
      parseConfig(result.output);
      if (facts.setting("core.bare") == "true") refuseBare();
      if (facts.setting("extensions.partialclone")) {
        refuse(fmt::format("{} is a partial clone: it lacks objects that a clone of it needs", facts.path),
               "use a full clone: git fetch --refetch --no-filter, or clone it anew without --filter");
      }
      facts.sha256 = facts.setting("extensions.objectformat") == "sha256";
    });
  }

  // Entries end in NUL; a key is followed by a newline and its value, or by nothing, which means "true".
  void parseConfig(const std::string& listing) {
    for (size_t at = 0; at < listing.size();) {
      size_t end = std::min(listing.find('\0', at), listing.size());
      auto entry = listing.substr(at, end - at);
      auto newline = entry.find('\n');
      auto value = newline == std::string::npos ? "true" : entry.substr(newline + 1);
      facts.config.emplace_back(entry.substr(0, newline), value);
      at = end + 1;
    }
  }

  kj::Promise<void> readHead() {
    return runGit(loop, command({"rev-parse", "--verify", "--quiet", "HEAD^{commit}"})).then([this](GitResult result) {
      facts.head = result.line();
      if (result.ok() && isObjectId(facts.head)) return;
      refuse(
          fmt::format("{} has no commit yet{}{}", facts.path, result.complaint.empty() ? "" : ": ", result.complaint),
          "make one: git commit --allow-empty -m start");
    });
  }

  kj::Promise<void> readBranch() {
    return runGit(loop, command({"symbolic-ref", "--quiet", "HEAD"})).then([this](GitResult result) {
      constexpr std::string_view heads = "refs/heads/";
      auto ref = result.line();
      if (result.ok() && ref.starts_with(heads)) facts.branch = ref.substr(heads.size());
    });
  }

  std::string given;
  CheckoutFacts facts;
};

void collectAlternates(const std::string& objectDirectory, int depth, std::vector<std::string>& found) {
  constexpr int deepest = 5;  // as git
  constexpr size_t most = 64;
  if (depth == deepest) return;
  auto path = objectDirectory + "/info/alternates";
  if (access(path.c_str(), R_OK) < 0) return;  // none, or not ours to read: opening the directory will tell
  auto text = readFile(path, smallFile);
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    auto line = text.substr(at, end - at);
    at = end + 1;
    if (line.empty() || line[0] == '#') continue;
    auto directory = normalizePath(line[0] == '/' ? line : objectDirectory + "/" + line);
    if (std::find(found.begin(), found.end(), directory) != found.end()) continue;
    KJ_REQUIRE(found.size() < most, "too many alternates", path);
    found.push_back(directory);
    collectAlternates(directory, depth + 1, found);
  }
}

}  // namespace

std::optional<std::string> CheckoutFacts::setting(const std::string& key) const {
  for (auto entry = config.rbegin(); entry != config.rend(); ++entry) {
    if (entry->first == key) return entry->second;
  }
  return std::nullopt;
}

bool CheckoutFacts::hasRemote(const std::string& name) const { return setting("remote." + name + ".url").has_value(); }

kj::Promise<OrRefusal<CheckoutFacts>> inspectCheckout(const Loop& loop, std::string path) {
  auto inspection = kj::heap<Inspection>(loop, std::move(path));
  auto promise = inspection->inspect();
  return promise.attach(kj::mv(inspection));
}

kj::Promise<OrRefusal<CheckoutFacts>> reopenCheckout(const Loop& loop, std::string path) {
  auto inspection = kj::heap<Inspection>(loop, std::move(path));
  auto promise = inspection->reopen();
  return promise.attach(kj::mv(inspection));
}

namespace {

kj::Promise<uint32_t> countCommits(const Loop& loop, const std::string& gitDir, const std::string& branch,
                                   const std::string& tip) {
  GitCommand command;
  command.arguments = {"rev-list", "--count", "--max-count=1000", "refs/heads/" + branch, "^" + tip, "--"};
  command.gitDir = gitDir;
  return runGit(loop, kj::mv(command)).then([](GitResult result) -> uint32_t {
    auto line = result.line();
    bool number =
        result.ok() && !line.empty() && line.size() < 9 && line.find_first_not_of("0123456789") == std::string::npos;
    return number ? std::stoul(line) : 0;
  });
}

}  // namespace

kj::Promise<OrRefusal<uint32_t>> countMissing(const Loop& loop, std::string path, std::string branch, std::string tip) {
  return reopenCheckout(loop, std::move(path))
      .then([&loop, branch = std::move(branch),
             tip = std::move(tip)](OrRefusal<CheckoutFacts> checkout) mutable -> kj::Promise<OrRefusal<uint32_t>> {
        if (!checkout.ok()) return OrRefusal<uint32_t>(checkout.refusal());
        if (!isObjectId(tip)) return OrRefusal<uint32_t>(uint32_t{0});
        return isBranchName(loop, branch)
            .then([&loop, branch, tip, gitDir = checkout.value().gitDir](bool valid) -> kj::Promise<uint32_t> {
              if (!valid) return uint32_t{0};
              return countCommits(loop, gitDir, branch, tip);
            })
            .then([](uint32_t commits) { return OrRefusal<uint32_t>(commits); });
      });
}

std::vector<std::string> alternatesOf(const std::string& objectDirectory) {
  std::vector<std::string> found;
  collectAlternates(objectDirectory, 0, found);
  return found;
}

std::string withoutCredentials(const std::string& url) {
  auto scheme = url.find("://");
  if (scheme == std::string::npos) return url;  // a path, or user@host:path, where nothing secret has a place
  auto start = scheme + 3;
  auto end = std::min(url.find_first_of("/?#", start), url.size());
  auto at = url.rfind('@', end == 0 ? 0 : end - 1);
  std::string user;
  auto host = start;
  if (at != std::string::npos && at >= start && at < end) {
    host = at + 1;
    user = url.substr(start, at - start);
    user = user.substr(0, user.find(':'));
  }
  bool http = url.starts_with("http");
  std::string result = url.substr(0, start);
  if (!http && !user.empty()) result += user + "@";
  result += url.substr(host);
  if (http) result = result.substr(0, result.find_first_of("?#"));
  return result;
}

}  // namespace oc::git
