#include "daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <fmt/format.h>

#include "attack/battery.h"
#include "base/crypto.h"
#include "base/environment.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/places.h"
#include "base/procfs.h"
#include "control/server.h"
#include "github_service.h"
#include "proto/rpc.h"
#include "service.h"
#include "work/scheduler.h"

namespace oc {

namespace {

constexpr const char* usage =
    "usage: open-conduitd [--config FILE] [--allow-root]\n"
    "       open-conduitd [--config FILE] doctor [--attack SCOPE/BINDING] [--json]\n"
    "\n"
    "The daemon in the foreground. SIGHUP reads the config again; SIGTERM ends the daemon and lets runs go on:\n"
    "the next one takes them up. `open-conduit drain` stops them first.\n";

constexpr size_t tokenSize = 32;
constexpr auto closeLimit = 10 * kj::SECONDS;

void makeDirectoriesOfOurs(const Places& places) {
  for (auto& directory : {places.stateDir, places.dataDir, places.runtimeDir}) makePrivateDirectory(directory);
}

// Made once; the CLI reads it from the state directory, which is 0700.
SecretBytes operatorToken(const Places& places) {
  if (openIfThere(places.operatorToken(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK) == std::nullopt) {
    writeFileAtomically(places.operatorToken(), SecretBytes::random(tokenSize).view(), 0600);
  }
  auto token = readFile(places.operatorToken(), 4096);
  KJ_REQUIRE(token.size() == tokenSize, "the operator token is not 32 bytes; remove it, and a new one is made",
             places.operatorToken());
  return SecretBytes(token);
}

// The store's lock says that no other daemon serves this state: a socket that is there is a dead one's.
kj::AutoCloseFd listenForControl(const Places& places) {
  auto path = places.controlSocket();
  requireSocketPathFits(path);
  int fd;
  KJ_SYSCALL(fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  kj::AutoCloseFd owned(fd);
  struct sockaddr_un address {};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, path.c_str(), path.size() + 1);
  if (unlink(path.c_str()) < 0 && errno != ENOENT) KJ_FAIL_SYSCALL("unlink", errno, path);
  KJ_SYSCALL(bind(fd, reinterpret_cast<struct sockaddr*>(&address), sizeof(address)), path);
  KJ_SYSCALL(chmod(path.c_str(), 0600), path);
  KJ_SYSCALL(listen(fd, 64), path);
  return owned;
}

[[noreturn]] void fail(const Refusal& refusal) {
  throw DaemonUsage{fmt::format("open-conduitd: {}: {}\n  fix: {}\n", refusal.reason, refusal.what, refusal.fix), 1};
}

// Whoever asked for JSON gets the refusal as JSON.
int answerRefused(const DaemonOptions& options, const Refusal& refusal) {
  if (!options.json) fail(refusal);
  Json why = {{"reason", refusal.reason}, {"what", refusal.what}, {"fix", refusal.fix}};
  printf("%s\n", Json({{"refusal", why}}).dump().c_str());
  return 1;
}

std::string configPath(const DaemonOptions& options, const Places& places) {
  if (options.config.empty()) return places.config();
  if (options.config[0] == '/') return options.config;
  char* directory = get_current_dir_name();
  KJ_REQUIRE(directory != nullptr, "the working directory is not known");
  std::string result = std::string(directory) + "/" + options.config;
  free(directory);
  return result;
}

config::Config loadConfig(const std::string& path, const Places& places) {
  auto loaded = config::loadFile(path, config::environmentOf(places.home));
  std::string problems;
  for (auto& diagnostic : loaded.diagnostics) problems += config::render(diagnostic, path) + "\n";
  if (!loaded.config) throw DaemonUsage{problems, 1};
  if (!problems.empty()) fputs(problems.c_str(), stderr);
  return std::move(*loaded.config);
}

// What no provider's instance sees, whatever its job is (where the kernel grants mount namespaces).
std::vector<std::string> hiddenFromAll(const Places& places) {
  return {places.stateDir, places.configDir, places.runtimeDir, places.worksDir(), places.runsDir()};
}

struct World {
  Places places = findPlaces();
  kj::AsyncIoContext io = kj::setupAsyncIo();
  supervisor::Supervisor supervisor{io, ownDirectory()};
};

kj::Promise<void> reloadOnHangup(kj::AsyncIoContext& io, work::Scheduler& scheduler) {
  return io.unixEventPort.onSignal(SIGHUP).then([&io, &scheduler](siginfo_t) {
    service::reloading();
    scheduler.reload();
    service::ready();
    return reloadOnHangup(io, scheduler);
  });
}

}  // namespace

DaemonOptions readDaemonOptions(int argc, char** argv) {
  DaemonOptions options;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word == "--help" || word == "-h") throw DaemonUsage{usage, 0};
    if (word == "--version") throw DaemonUsage{"open-conduitd " OPEN_CONDUIT_VERSION "\n", 0};
    if (word == "--config" && i + 1 < argc) {
      options.config = argv[++i];
    } else if (word == "--allow-root") {
      options.allowRoot = true;
    } else if (word == "doctor") {
      options.doctor = true;
    } else if (word == "--attack" && options.doctor && i + 1 < argc) {
      options.attack = argv[++i];
    } else if (word == "--json") {
      options.json = true;
    } else {
      throw DaemonUsage{fmt::format("open-conduitd: unexpected word: {}\n\n{}", word, usage), 2};
    }
  }
  return options;
}

void hardenSelf() {
  KJ_SYSCALL(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0));
  struct rlimit none {
    0, 0
  };
  KJ_SYSCALL(setrlimit(RLIMIT_CORE, &none));
  umask(077);
  signal(SIGPIPE, SIG_IGN);
}

// The usual soft limit is 1024, which some ninety runs in containers fill (eleven descriptors each). The soft limit is
// low for programs that use select(), and nothing here does; what is started sets a limit of its own
// (Profile::maxOpenFiles).
void allowManyDescriptors() {
  struct rlimit files;
  KJ_SYSCALL(getrlimit(RLIMIT_NOFILE, &files));
  files.rlim_cur = files.rlim_max;
  KJ_SYSCALL(setrlimit(RLIMIT_NOFILE, &files));
}

void refuseRoot(const DaemonOptions& options) {
  if (geteuid() != 0 || options.allowRoot) return;
  throw DaemonUsage{
      "open-conduitd: it refuses to run as root: agents would be root too, and a sandbox keeps little from root\n"
      "  fix: run it as the user whose repositories it works on\n",
      1};
}

int runDaemon(const DaemonOptions& options) {
  kj::UnixEventPort::captureSignal(SIGTERM);
  kj::UnixEventPort::captureSignal(SIGINT);
  kj::UnixEventPort::captureSignal(SIGHUP);
  World world;
  auto& places = world.places;
  auto path = configPath(options, places);
  auto config = loadConfig(path, places);
  makeDirectoriesOfOurs(places);
  auto store = state::Store::open(places.database());
  if (!store.ok()) fail(store.refusal());
  auto token = operatorToken(places);
  world.supervisor.setHidden(hiddenFromAll(places));

  GitHubService gitHub(world.supervisor, config, ownEnvironment());
  work::Scheduler scheduler(world.io, world.supervisor, std::move(store.value()), std::move(config),
                            {path, places, ownEnvironment(), ownDirectory(), service::runs});
  auto listener = world.io.lowLevelProvider->wrapListenSocketFd(listenForControl(places));
  gitHub.attach(scheduler);
  scheduler.recover();
  gitHub.start();
  auto serving = control::serve(world.io, kj::mv(listener), token, scheduler);
  auto watchdog = service::feedWatchdog(world.io.provider->getTimer()).eagerlyEvaluate([](kj::Exception&& e) {
    logError("{}", describe(e));
  });
  auto reloading =
      reloadOnHangup(world.io, scheduler).eagerlyEvaluate([](kj::Exception&& e) { logError("{}", describe(e)); });
  service::ready();
  logInfo("version {} serves {}", OPEN_CONDUIT_VERSION, places.controlSocket());

  auto asked =
      world.io.unixEventPort.onSignal(SIGTERM).exclusiveJoin(world.io.unixEventPort.onSignal(SIGINT)).ignoreResult();
  serving.exclusiveJoin(kj::mv(asked)).wait(world.io.waitScope);
  service::stopping();
  unlink(places.controlSocket().c_str());
  // Runs that go on ask again, of the next daemon.
  kj::Vector<kj::Promise<void>> closing;
  closing.add(gitHub.close());
  closing.add(scheduler.close());
  kj::joinPromises(closing.releaseAsArray())
      .exclusiveJoin(world.io.provider->getTimer().afterDelay(closeLimit))
      .wait(world.io.waitScope);
  logInfo("ends; runs go on, and the next daemon takes them up");
  return 0;
}

int runDoctorOnce(const DaemonOptions& options) {
  World world;
  auto& places = world.places;
  auto config = loadConfig(configPath(options, places), places);
  makeDirectoriesOfOurs(places);
  world.supervisor.setHidden(hiddenFromAll(places));
  auto own = ownEnvironment();
  work::Containers containers(world.supervisor, places, own, ownDirectory());
  work::Doctor doctor(world.supervisor, places, own, containers);
  auto lines = doctor.examine(config).wait(world.io.waitScope);
  GitHubService gitHub(world.supervisor, config, own);
  for (auto& line : gitHub.examine().wait(world.io.waitScope)) lines.push_back(line);
  auto checks = Json::array();
  bool failed = false;
  for (auto& line : lines) {
    failed = failed || line.level == "FAIL";
    if (options.json) {
      checks.push_back({{"name", line.name}, {"level", line.level}, {"what", line.what}, {"fix", line.fix}});
    } else {
      printf("%-5s %-10s %s\n", line.level.c_str(), line.name.c_str(), line.what.c_str());
      if (!line.fix.empty()) printf("      fix: %s\n", line.fix.c_str());
    }
  }
  if (options.json) printf("%s\n", Json({{"checks", checks}}).dump().c_str());
  return failed ? 1 : 0;
}

int runAttackOnce(const DaemonOptions& options) {
  World world;
  auto& places = world.places;
  auto config = loadConfig(configPath(options, places), places);
  auto binding = config.findBinding(options.attack);
  if (binding == nullptr) {
    return answerRefused(options, {"binding_missing", fmt::format("the config has no binding {}", options.attack),
                                   "the config's scopes name them as SCOPE/BINDING"});
  }
  makeDirectoriesOfOurs(places);
  world.supervisor.setHidden(hiddenFromAll(places));
  auto own = ownEnvironment();
  work::Containers containers(world.supervisor, places, own, ownDirectory());
  auto report =
      attack::runBattery({config, *binding, places, world.supervisor, containers, own}).wait(world.io.waitScope);
  if (!report.ok()) return answerRefused(options, report.refusal());
  auto rows = Json::array();
  for (auto& row : report.value().rows) {
    if (options.json) {
      rows.push_back({{"against", row.against},
                      {"attack", row.name},
                      {"outside", row.outside},
                      {"inside", row.inside},
                      {"verdict", attack::toText(row.verdict)}});
    } else {
      printf("%-9s %-12s %-50s %s\n", attack::toText(row.verdict), row.against.c_str(), row.name.c_str(),
             row.inside.c_str());
    }
  }
  bool held = report.value().held();
  if (options.json)
    printf("%s\n", Json({{"ok", held}, {"seconds", report.value().seconds}, {"attacks", rows}}).dump().c_str());
  return held ? 0 : 1;
}

}  // namespace oc
