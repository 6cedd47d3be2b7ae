#include "git_command.h"

#include <fmt/format.h>
#include <kj/debug.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "base/fd.h"
#include "base/spawn.h"
#include "base/text.h"

namespace oc::git {

namespace {

constexpr const char* gitProgram = "/usr/bin/git";
constexpr size_t keptComplaint = 4096;

using Pairs = std::vector<std::pair<std::string, std::string>>;

// Settings of the command line's rank: above what any repository's config says.
const Pairs& standingSettings() {
  static const Pairs settings = {
      // Nothing of a repository's choosing is run.
      {"core.hooksPath", "/dev/null"},
      {"core.fsmonitor", "false"},
      {"core.sshCommand", "/bin/false"},
      {"core.askPass", "/bin/false"},
      {"core.alternateRefsCommand", "/bin/true"},
      {"credential.helper", ""},
      {"diff.external", ""},
      // Nor is anything that we did not ask for.
      {"gc.auto", "0"},
      {"maintenance.auto", "false"},
      {"submodule.recurse", "false"},
      {"protocol.allow", "never"},
      {"core.attributesFile", "/dev/null"},
      {"core.excludesFile", "/dev/null"},
      // An operator's git may hold a lock for a moment: wait that long, in milliseconds.
      {"core.filesRefLockTimeout", "2000"},
      {"core.packedRefsTimeout", "2000"},
      // What was saved is on the disk before we say so.
      {"core.fsync", "objects,derived-metadata,reference"},
  };
  return settings;
}

Pairs environmentFor(const GitCommand& command) {
  Pairs environment = {
      {"PATH", "/usr/bin:/bin"},
      {"HOME", "/nonexistent"},
      {"XDG_CONFIG_HOME", "/nonexistent"},
      {"LC_ALL", "C"},
      {"GIT_CONFIG_GLOBAL", "/dev/null"},
      {"GIT_CONFIG_SYSTEM", "/dev/null"},
      {"GIT_CONFIG_NOSYSTEM", "1"},
      {"GIT_ATTR_NOSYSTEM", "1"},
      {"GIT_TERMINAL_PROMPT", "0"},
      {"GIT_PAGER", "cat"},
      {"GIT_EDITOR", "/bin/false"},
      {"GIT_OPTIONAL_LOCKS", "0"},
      // Objects are what their ids say: no replacements, no grafts, nothing fetched when one is missing.
      {"GIT_NO_REPLACE_OBJECTS", "1"},
      {"GIT_GRAFT_FILE", "/nonexistent"},
      {"GIT_NO_LAZY_FETCH", "1"},
      // protocol.NAME.allow of a repository would win over protocol.allow; nothing wins over this.
      {"GIT_ALLOW_PROTOCOL", "none"},
      {"GIT_COMMITTER_NAME", "Open Conduit"},
      {"GIT_COMMITTER_EMAIL", "open-conduit@localhost"},
      {"GIT_DIR", command.gitDir},
  };
  if (!command.workTree.empty()) environment.emplace_back("GIT_WORK_TREE", command.workTree);
  if (!command.objectDirectory.empty()) environment.emplace_back("GIT_OBJECT_DIRECTORY", command.objectDirectory);
  std::string alternates;
  for (auto& directory : command.alternates) {
    // Quoted as in C, so that a colon in a path does not split it. Control characters never get here.
    std::string quoted = "\"";
    for (char c : directory) {
      if (c == '"' || c == '\\') quoted += '\\';
      quoted += c;
    }
    alternates += (alternates.empty() ? "" : ":") + quoted + "\"";
  }
  if (!alternates.empty()) environment.emplace_back("GIT_ALTERNATE_OBJECT_DIRECTORIES", alternates);

  Pairs settings = standingSettings();
  settings.emplace_back("safe.directory", command.workTree.empty() ? command.gitDir : command.workTree);
  settings.insert(settings.end(), command.settings.begin(), command.settings.end());
  environment.emplace_back("GIT_CONFIG_COUNT", std::to_string(settings.size()));
  for (size_t i = 0; i < settings.size(); ++i) {
    environment.emplace_back(fmt::format("GIT_CONFIG_KEY_{}", i), settings[i].first);
    environment.emplace_back(fmt::format("GIT_CONFIG_VALUE_{}", i), settings[i].second);
  }
  return environment;
}

// Who waits no longer than this wants no progress: a run's log begins with what its agent says.
constexpr auto quickLimit = std::chrono::seconds(1);

// Passes git's progress on to our standard error, which may be a terminal. git speaks ASCII with LC_ALL=C; whatever
// else is in there came out of a repository.
void passOn(kj::ArrayPtr<const kj::byte> bytes) {
  std::string safe;
  for (auto byte : bytes) {
    bool plain = (byte >= 0x20 && byte < 0x7F) || byte == '\n' || byte == '\r' || byte == '\t';
    safe += plain ? static_cast<char>(byte) : '?';
  }
  // A reader of our log that is gone is no reason to fail.
  ssize_t ignored = write(STDERR_FILENO, safe.data(), safe.size());
  (void)ignored;
}

// What is left of standard error without the progress lines, which end in \r or are overwritten by it.
std::string complaintFrom(const std::string& tail) {
  std::string result;
  size_t at = 0;
  while (at < tail.size()) {
    size_t end = tail.find('\n', at);
    if (end == std::string::npos) end = tail.size();
    std::string line = tail.substr(at, end - at);
    at = end + 1;
    auto overwritten = line.rfind('\r');
    if (overwritten != std::string::npos) line.erase(0, overwritten + 1);
    bool telling = line.starts_with("fatal:") || line.starts_with("error:");
    if (!telling) continue;
    if (!result.empty()) result += "; ";
    result += printable(line);
  }
  return shortened(result, 1024);
}

class Running {
 public:
  Running(const Loop& loop, GitCommand given) : loop(loop), limit(given.outputLimit), quiet(given.quiet) {
    start(given);
  }

  ~Running() noexcept(false) {
    if (ended) return;
    stop();
    waitpid(child.pid, nullptr, 0);
  }

  kj::Promise<GitResult> finish() {
    auto promises = kj::heapArrayBuilder<kj::Promise<void>>(4);
    // A join looks at none before all are ready; but the input must be closed when it is written.
    promises.add(feed().eagerlyEvaluate(nullptr));
    promises.add(readOutput().eagerlyEvaluate(nullptr));
    promises.add(readErrors().eagerlyEvaluate(nullptr));
    promises.add(whenEnded(loop.port, child.pidfd.get())
                     .then([this](ProcessEnd end) {
                       ended = true;
                       result.end = end;
                     })
                     .eagerlyEvaluate(nullptr));
    return kj::joinPromises(promises.finish()).then([this]() {
      KJ_REQUIRE(!overflowed, "git printed more than expected", limit);
      result.complaint = complaintFrom(tail);
      return kj::mv(result);
    });
  }

 private:
  void start(GitCommand& command) {
    SpawnSpec spec;
    spec.program = gitProgram;
    spec.arguments = command.arguments;
    spec.environment = environmentFor(command);
    spec.directory = command.workTree.empty() ? "/" : command.workTree;
    spec.dieWithParent = true;

    FdPair in, out, err = makePipe();
    spec.descriptors.emplace_back(err.second.get(), STDERR_FILENO);
    if (command.inputFd.get() >= 0) {
      spec.descriptors.emplace_back(command.inputFd.get(), STDIN_FILENO);
    } else if (!command.input.empty()) {
      in = makePipe();
      spec.descriptors.emplace_back(in.first.get(), STDIN_FILENO);
    }
    if (command.outputFd.get() >= 0) {
      spec.descriptors.emplace_back(command.outputFd.get(), STDOUT_FILENO);
    } else {
      out = makePipe();
      spec.descriptors.emplace_back(out.second.get(), STDOUT_FILENO);
    }
    child = spawn(spec);

    errors = loop.provider.wrapInputFd(kj::mv(err.first));
    if (out.first.get() >= 0) output = loop.provider.wrapInputFd(kj::mv(out.first));
    if (in.second.get() >= 0) {
      input = loop.provider.wrapOutputFd(kj::mv(in.second));
      inputText = kj::mv(command.input);
    }
    command.inputFd = nullptr;
    command.outputFd = nullptr;
  }

  void stop() {
    kill(-child.pid, SIGKILL);  // its helpers are in its session's process group
    sendSignal(child.pidfd.get(), SIGKILL);
  }

  kj::Promise<void> feed() {
    KJ_IF_MAYBE (stream, input) {
      return (*stream)
          ->write(inputText.data(), inputText.size())
          .then([this]() { input = nullptr; },
                [this](kj::Exception&&) { input = nullptr; });  // it ended early: its exit code tells
    }
    return kj::READY_NOW;
  }

  kj::Promise<void> readOutput() {
    KJ_IF_MAYBE (stream, output) {
      return (*stream)->tryRead(outputBuffer, 1, sizeof(outputBuffer)).then([this](size_t n) -> kj::Promise<void> {
        if (n == 0) return kj::READY_NOW;
        if (result.output.size() + n > limit) {
          overflowed = true;
          result.output.clear();
          stop();
        }
        if (!overflowed) result.output.append(outputBuffer, n);
        return readOutput();
      });
    }
    return kj::READY_NOW;
  }

  kj::Promise<void> readErrors() {
    return errors->tryRead(errorBuffer, 1, sizeof(errorBuffer)).then([this](size_t n) -> kj::Promise<void> {
      if (n == 0) return kj::READY_NOW;
      if (!quiet && std::chrono::steady_clock::now() - began > quickLimit) passOn(kj::arrayPtr(errorBuffer, n));
      tail.append(reinterpret_cast<const char*>(errorBuffer), n);
      if (tail.size() > keptComplaint) tail.erase(0, tail.size() - keptComplaint);
      return readErrors();
    });
  }

  Loop loop;
  size_t limit;
  bool quiet;
  Spawned child{-1, nullptr};
  bool ended = false;
  bool overflowed = false;
  kj::Own<kj::AsyncInputStream> errors;
  kj::Maybe<kj::Own<kj::AsyncInputStream>> output;
  kj::Maybe<kj::Own<kj::AsyncOutputStream>> input;
  std::string inputText;
  std::string tail;
  const std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
  char outputBuffer[16384];
  kj::byte errorBuffer[4096];
  GitResult result;
};

}  // namespace

Loop loopOf(kj::AsyncIoContext& io) { return {*io.lowLevelProvider, io.unixEventPort, io.provider->getTimer()}; }

std::string GitResult::line() const {
  std::string text = output;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::string GitResult::why() const {
  if (!complaint.empty()) return complaint;
  if (!end.known) return "git ended in an unknown way";
  if (!end.signaled) return fmt::format("git ended with {}", end.code);
  if (end.code == SIGXFSZ) return "git was ended by the limit on the size of files";
  return fmt::format("git was ended by signal {}", end.code);
}

kj::Promise<GitResult> runGit(const Loop& loop, GitCommand command) {
  return kj::evalNow([&]() {
    auto running = kj::heap<Running>(loop, kj::mv(command));
    auto promise = running->finish();
    // Also when nobody waits for it yet: two of them may be at the ends of one pipe.
    return promise.attach(kj::mv(running)).eagerlyEvaluate(nullptr);
  });
}

}  // namespace oc::git
