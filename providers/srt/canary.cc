#include "canary.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>

#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "canary_probe.h"
#include "launch.h"
#include "machine.h"

namespace oc::srt {

namespace {

constexpr auto deadline = 30 * kj::SECONDS;  // srt starts in under a second; a loaded machine takes its time
constexpr uint64_t maxOutput = 64 << 10;

struct ToolOutput {
  ProcessEnd end;
  std::string text;
};

struct Minimum {
  int major, minor;
};

bool isAtLeast(const std::string& text, Minimum minimum) {
  auto digit = text.find_first_of("0123456789");
  int major = 0, minor = 0;
  if (digit == std::string::npos || sscanf(text.c_str() + digit, "%d.%d", &major, &minor) != 2) return false;
  return major != minimum.major ? major > minimum.major : minor >= minimum.minor;
}

std::string firstLine(const std::string& text) { return printable(text.substr(0, text.find('\n'))); }

class Checks final : public kj::Refcounted {
 public:
  Checks(const Job& job, kit::Context& context, kit::Reaper& reaper) : job(job), context(context), reaper(reaper) {}

  kj::Promise<std::vector<kit::Check>> run() {
    checkFiles();
    if (sound) checkPackage();
    if (!sound) return kj::mv(checks);
    return checkVersion("node", job.node, {22, 12}, "srt needs Node 22.12 or later")
        .then([this]() {
          return checkVersion("bubblewrap", job.bwrap, {0, 8},
                              "bubblewrap 0.8 or later is needed: it forbids nested namespaces");
        })
        .then([this]() -> kj::Promise<void> {
          if (!sound || !checkMachine()) return kj::READY_NOW;
          return runCanary();
        })
        .then([this]() {
          noteMissing();
          return kj::mv(checks);
        });
  }

 private:
  void checkFiles() {
    for (auto& [name, path] : {std::pair("node", job.node), std::pair("srt", job.cli),
                               std::pair("bubblewrap", job.bwrap), std::pair("socat", job.socat),
                               std::pair("ripgrep", job.ripgrep), std::pair("apply-seccomp", job.seccompHelper)}) {
      int mode = path == job.cli ? R_OK : X_OK;
      if (!path.empty() && access(path.c_str(), mode) == 0) continue;
      auto what = path.empty() ? fmt::format("{} was not found", name) : path + " cannot be used";
      add({name, false, what, fixFor(name), false});
    }
  }

  // No minimum here: who names srt's parts has looked at its version.
  void checkPackage() {
    auto manifest = job.cli.substr(0, job.cli.rfind("/dist/")) + "/package.json";
    try {
      auto version = parseJson(readFile(manifest, 1 << 20)).at("version").get<std::string>();
      add({"srt", true, "srt " + printable(shortened(version, 100)), "", false});
    } catch (const kj::Exception& exception) {
      add({"srt", false, describe(exception), fixFor("srt"), false});
    } catch (const Json::exception&) {
      add({"srt", false, manifest + " has no version", fixFor("srt"), false});
    }
  }

  static std::string fixFor(const std::string& name) {
    if (name == "bubblewrap" || name == "socat" || name == "ripgrep") return "sudo apt-get install " + name;
    return "install srt and its Node anew";
  }

  kj::Promise<void> checkVersion(const char* name, const std::string& program, Minimum minimum, const char* need) {
    return runTool(program, {"--version"}).then([this, name, minimum, need](ToolOutput output) {
      auto line = firstLine(output.text);
      bool runs = output.end.known && !output.end.signaled && output.end.code == 0;
      auto version = line.starts_with(name) ? line : fmt::format("{} {}", name, line);
      if (!runs) return add({name, false, fmt::format("{} does not run: {}", name, line), fixFor(name), false});
      if (!isAtLeast(line, minimum))
        return add({name, false, fmt::format("{}: {}", version, need), fixFor(name), false});
      add({name, true, version, "", false});
    });
  }

  bool checkMachine() {
    auto refusal = refuseMachine(context.protections);
    if (!refusal) {
      add({"kernel", true, "namespaces of our own", "", false});
      return true;
    }
    add({"kernel", false, refusal->what, refusal->fix, false});
    return false;
  }

  kj::Promise<ToolOutput> runTool(const std::string& program, const std::vector<std::string>& words) {
    auto pipe = makePipe();
    auto spawned = startTool(job, program, words, pipe.second.get());
    return collect(spawned.pid, kj::mv(pipe.first));
  }

  // Its output, and its end.
  kj::Promise<ToolOutput> collect(pid_t pid, kj::AutoCloseFd from) {
    auto end = reaper.whenEnded(pid);
    return readText(kj::mv(from)).then([end = kj::mv(end)](std::string text) mutable {
      return end.then([text = std::move(text)](ProcessEnd ended) mutable {
        return ToolOutput{ended, std::move(text)};
      });
    });
  }

  kj::Promise<std::string> readText(kj::AutoCloseFd from) {
    auto stream = context.io.lowLevelProvider->wrapInputFd(kj::mv(from));
    auto reading = stream->readAllText(maxOutput);
    return reading.then([](kj::String text) { return std::string(text.cStr(), text.size()); }).attach(kj::mv(stream));
  }

  kj::Promise<void> runCanary() {
    auto surroundings = kj::heap<CanarySurroundings>(job);
    auto devNull = openFile("/dev/null", O_RDWR);
    auto output = makePipe(), complaint = makePipe();
    auto srt = startSrt(job, surroundings->settingsFile(), surroundings->scriptFile(), devNull.get(),
                        output.second.get(), complaint.second.get(), devNull.get());
    output.second = nullptr;
    complaint.second = nullptr;
    auto said = readText(kj::mv(complaint.first));
    auto finished = collect(srt.pid, kj::mv(output.first));
    auto late = context.io.provider->getTimer().afterDelay(deadline).then([]() -> ToolOutput { return {}; });
    return finished.exclusiveJoin(kj::mv(late))
        .then([this, said = kj::mv(said)](ToolOutput result) mutable {
          return endCanary().then([this, result = std::move(result), said = kj::mv(said)]() mutable {
            return said.then([this, result = std::move(result)](std::string complaint) {
              if (!result.end.known) complaint = "it did not end in time. " + complaint;
              for (auto& check : judgeCanary(result.text, complaint)) add(check);
            });
          });
        })
        .attach(kj::mv(surroundings));
  }

  kj::Promise<void> endCanary() {
    KJ_REQUIRE(getpid() == 1, "not the first process of a pid namespace");
    auto killAll = []() { ::kill(-1, SIGKILL); };
    killAll();
    return reaper.whenChildless(killAll);
  }

  // What this kernel lacks, and does without.
  void noteMissing() {
    for (auto& missing : context.protections.missing) {
      if (missing.find("namespace") == std::string::npos) add({"kernel", false, missing, "a newer kernel", true});
    }
  }

  void add(kit::Check check) {
    sound = sound && (check.ok || check.wanted);
    checks.push_back(kj::mv(check));
  }

  const Job& job;
  kit::Context& context;
  kit::Reaper& reaper;
  bool sound = true;
  std::vector<kit::Check> checks;
};

}  // namespace

kj::Promise<std::vector<kit::Check>> runChecks(const Job& job, kit::Context& context, kit::Reaper& reaper) {
  auto checks = kj::refcounted<Checks>(job, context, reaper);
  auto running = checks->run();
  return running.attach(kj::mv(checks));
}

}  // namespace oc::srt
