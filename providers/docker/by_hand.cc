#include "by_hand.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <kj/time.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crypto.h"
#include "base/docker_context.h"
#include "base/fd.h"
#include "base/paths.h"
#include "base/places.h"
#include "base/text.h"
#include "docker.capnp.h"
#include "job.h"
#include "providers/kit/agent_tree.h"
#include "providers/kit/frames.h"
#include "providers/kit/kit.h"
#include "sandbox.capnp.h"
#include "server.h"

namespace oc::docker {

const char* const usageByHand =
    "usage: open-conduit-docker check   [--context C] [--image REF]\n"
    "       open-conduit-docker pull    [--context C] --image REF\n"
    "       open-conduit-docker run     [--context C] --image REF [--read P]… [--write P]… [--env NAME=VALUE]…\n"
    "                                   [--memory BYTES] [--cpus N] [--pids N] [--limits none]\n"
    "                                   [--owner ID] [--gateway ID] [--times FILE] -- COMMAND…\n"
    "       open-conduit-docker inspect [--context C] [--owner ID] [--run ID]\n"
    "       open-conduit-docker remove  [--context C] [--owner ID] --run ID\n"
    "       open-conduit-docker sweep   [--context C] [--owner ID]\n"
    "\n"
    "The Engine's client, in an instance that is locked down as the daemon's are. REF is name@sha256:… or sha256:….\n"
    "`run` runs COMMAND in a container like a run's, without a network; your streams are its own. What it makes belongs\n"
    "to the owner \"by-hand\", unless you name another. The variables DOCKER_CONFIG and XDG_RUNTIME_DIR count here.\n";

namespace {

constexpr const char* owner = "by-hand";

struct Wanted {
  std::string command, context, image, gateway, times, owner = docker::owner, run;
  std::vector<std::string> words;
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<std::pair<std::string, bool>> mounts;  // path, writable
  uint64_t memory = 0, nanoCpus = 0, pids = 0;
  bool unlimited = false;
};

std::string absolute(const std::string& path) {
  if (path.starts_with('/')) return resolvePath(normalizePath(path));
  char* here = get_current_dir_name();
  if (here == nullptr) throw kit::UsageError{"the current directory cannot be found; give absolute paths"};
  KJ_DEFER(free(here));
  return resolvePath(normalizePath(std::string(here) + "/" + path));
}

uint64_t readNumber(const std::string& text, double unit) {
  char* end;
  auto value = strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(value > 0) || value * unit > 1e18)
    throw kit::UsageError{"no proper number: " + text};
  return static_cast<uint64_t>(value * unit);
}

void takeOption(Wanted& wanted, const std::string& option, const std::string& value) {
  if (option == "--context") {
    wanted.context = value;
  } else if (option == "--image") {
    wanted.image = value;
  } else if (option == "--gateway") {
    wanted.gateway = value;
  } else if (option == "--times") {
    wanted.times = value;
  } else if (option == "--owner") {
    wanted.owner = value;
  } else if (option == "--run") {
    wanted.run = value;
  } else if (option == "--read" || option == "--write") {
    wanted.mounts.emplace_back(absolute(value), option == "--write");
  } else if (option == "--env") {
    auto equals = value.find('=');
    if (equals == std::string::npos) throw kit::UsageError{"--env wants NAME=VALUE"};
    wanted.environment.emplace_back(value.substr(0, equals), value.substr(equals + 1));
  } else if (option == "--memory") {
    wanted.memory = readNumber(value, 1);
  } else if (option == "--cpus") {
    wanted.nanoCpus = readNumber(value, 1e9);
  } else if (option == "--limits" && value == "none") {
    wanted.unlimited = true;
  } else if (option == "--pids") {
    wanted.pids = readNumber(value, 1);
  } else {
    throw kit::UsageError{"unknown option: " + option};
  }
}

Wanted readWords(const std::vector<std::string>& words) {
  Wanted wanted;
  wanted.command = words[0];
  size_t i = 1;
  for (; i < words.size() && words[i] != "--"; i += 2) {
    if (i + 1 == words.size()) throw kit::UsageError{"a value is missing after " + words[i]};
    takeOption(wanted, words[i], words[i + 1]);
  }
  if (i < words.size()) wanted.words.assign(words.begin() + i + 1, words.end());
  if (wanted.words.empty() == (wanted.command == "run")) throw kit::UsageError{"a command is for run, behind --"};
  if (wanted.image.empty() && (wanted.command == "run" || wanted.command == "pull"))
    throw kit::UsageError{"--image is missing"};
  if (wanted.run.empty() && wanted.command == "remove") throw kit::UsageError{"--run is missing"};
  return wanted;
}

// Thrown where there is nothing to go on with.
struct Refused {
  Refusal refusal;
};

template <typename T>
T orThrow(OrRefusal<T> value) {
  if (!value) throw Refused{value.refusal()};
  return kj::mv(value).value();
}

// What a person's own environment says, all of it granted.
DockerPlaces placesByHand() {
  auto variable = [](const char* name) { return std::string(getenv(name) == nullptr ? "" : getenv(name)); };
  DockerPlaces places;
  places.home = findPlaces().home;
  places.configDir = variable("DOCKER_CONFIG");
  places.runtimeDir = variable("XDG_RUNTIME_DIR");
  return places;
}

std::vector<kj::AutoCloseFd> dial(const Wanted& wanted, unsigned count) {
  auto endpoint = orThrow(findDockerEndpoint(wanted.context, placesByHand()));
  std::vector<kj::AutoCloseFd> connections;
  for (unsigned i = 0; i < count; ++i) connections.push_back(orThrow(dialDocker(endpoint)));
  return connections;
}

kj::Own<kit::ByHandInstance> startTask(const Wanted& wanted) {
  Job job;
  job.connections = 1;
  job.owner = wanted.owner;
  job.context = wanted.context;
  auto connections = dial(wanted, job.connections);
  return kit::startByHand(jobWords(job), {{connections[0].get(), firstConnection(job)}});
}

template <typename Request>
auto ask(kj::WaitScope& scope, Request request) {
  auto answer = request.send().wait(scope);
  auto refusal = read(answer.getRefusal());
  if (!refusal.reason.empty()) throw Refused{refusal};
  return answer;
}

void printFact(const char* name, const std::string& value) {
  if (!value.empty()) printf("%-12s %s\n", name, printable(value).c_str());
}

int check(const Wanted& wanted, proto::Docker::Client docker, kj::WaitScope& scope) {
  auto answer = ask(scope, docker.engineRequest());
  auto engine = answer.getEngine();
  printFact("engine", fmt::format("{} (API {}), {}", toString(engine.getVersion()), toString(engine.getApiVersion()),
                                  toString(engine.getOperatingSystem())));
  printFact("kind", fmt::format("{}, linux/{}, {}, cgroup {}", engine.getRootless() ? "rootless" : "rootful",
                                toString(engine.getArchitecture()), toString(engine.getStorageDriver()),
                                toString(engine.getCgroupVersion())));
  printFact("limits", fmt::format("memory {}, cpus {}, pids {}", engine.getCanLimitMemory() ? "yes" : "no",
                                  engine.getCanLimitCpus() ? "yes" : "no", engine.getCanLimitPids() ? "yes" : "no"));
  if (wanted.image.empty()) return 0;
  auto request = docker.imageRequest();
  request.setReference(toText(wanted.image));
  auto found = ask(scope, kj::mv(request));
  printFact("image", found.getFound() ? toString(found.getImage().getId()) : "not there: open-conduit-docker pull");
  return found.getFound() ? 0 : 1;
}

int pull(const Wanted& wanted, proto::Docker::Client docker, kj::WaitScope& scope) {
  auto request = docker.pullRequest();
  request.setReference(toText(wanted.image));
  ask(scope, kj::mv(request));
  return 0;
}

int inspect(const Wanted& wanted, proto::Docker::Client docker, kj::WaitScope& scope) {
  auto request = docker.inspectRequest();
  request.setOwner(toText(wanted.owner));
  request.setRun(toText(wanted.run));
  auto answer = ask(scope, kj::mv(request));
  for (auto container : answer.getContainers()) {
    printf("%s  %-8s %-8s %s\n", toString(container.getId()).substr(0, 12).c_str(),
           toString(container.getRole()).c_str(), container.getRunning() ? "running" : "stopped",
           toString(container.getName()).c_str());
  }
  return 0;
}

template <typename Request>
int remove(Request request, kj::WaitScope& scope) {
  auto answer = ask(scope, kj::mv(request));
  printf("%u removed\n", answer.getRemoved());
  for (auto left : answer.getLeft()) printf("left: %s\n", printable(toString(left)).c_str());
  return answer.getLeft().size() == 0 ? 0 : 1;
}

int askTask(const Wanted& wanted) {
  auto instance = startTask(wanted);
  auto& scope = instance->io().waitScope;
  int code = 2;
  {
    auto docker = instance->capability().castAs<proto::Docker>();
    if (wanted.command == "check") code = check(wanted, docker, scope);
    if (wanted.command == "pull") code = pull(wanted, docker, scope);
    if (wanted.command == "inspect") code = inspect(wanted, docker, scope);
    if (wanted.command == "remove") {
      auto request = docker.removeRequest();
      request.setOwner(toText(wanted.owner));
      request.setRun(toText(wanted.run));
      code = remove(kj::mv(request), scope);
    }
    if (wanted.command == "sweep") {
      auto request = docker.sweepRequest();
      request.setOwner(toText(wanted.owner));
      code = remove(kj::mv(request), scope);
    }
  }
  instance->finish();
  return code;
}

// ---- run: the daemon and the shim in one ---------------------------------------------------------------------

std::string imageId(const Wanted& wanted) {
  auto instance = startTask(wanted);
  std::string id;
  {
    auto request = instance->capability().castAs<proto::Docker>().imageRequest();
    request.setReference(toText(wanted.image));
    auto answer = ask(instance->io().waitScope, kj::mv(request));
    id = toString(answer.getImage().getId());
  }
  instance->finish();
  if (id.empty()) {
    throw Refused{
        {"sandbox_unavailable", "the image is not there", "open-conduit-docker pull --image " + wanted.image}};
  }
  return id;
}

std::string randomRun() {
  auto bytes = SecretBytes::random(8);
  return "r-" + sha256Hex(bytes.view()).substr(0, 12);
}

void fillSpec(proto::RunSpec::Builder spec, const Wanted& wanted, const std::string& image, bool rootless) {
  spec.setOwner(toText(wanted.owner));
  spec.setRun(toText(wanted.run));
  spec.setRole("agent");
  spec.setImage(toText(image));
  auto words = spec.initCommand(wanted.words.size());
  for (size_t i = 0; i < wanted.words.size(); ++i) words.set(i, toText(wanted.words[i]));
  auto environment = spec.initEnvironment(wanted.environment.size());
  for (size_t i = 0; i < wanted.environment.size(); ++i) {
    environment[i].setName(toText(wanted.environment[i].first));
    environment[i].setValue(toText(wanted.environment[i].second));
  }
  spec.setDirectory("/");
  // A rootless engine's 0 is whoever runs it.
  spec.setUser(toText(rootless ? "0:0" : fmt::format("{}:{}", getuid(), getgid())));
  auto mounts = spec.initMounts(wanted.mounts.size());
  for (size_t i = 0; i < wanted.mounts.size(); ++i) {
    mounts[i].setSource(toText(wanted.mounts[i].first));
    mounts[i].setTarget(toText(wanted.mounts[i].first));
    mounts[i].setWritable(wanted.mounts[i].second);
  }
  spec.setMemoryBytes(wanted.memory);
  spec.setNanoCpus(wanted.nanoCpus);
  spec.setPids(wanted.pids);
  spec.setUnlimited(wanted.unlimited);
  spec.setTty(isatty(STDIN_FILENO) && isatty(STDOUT_FILENO));
  spec.setStdin(true);
  spec.setNetwork(!wanted.gateway.empty());
  spec.setGatewayImage(toText(wanted.gateway));
}

// How long each step took, in microseconds, a line each.
class Times {
 public:
  explicit Times(const std::string& file) : file(file) {}

  void step(const char* name) {
    auto now = kj::systemPreciseMonotonicClock().now();
    text += fmt::format("{}\t{}\n", name, (now - last) / kj::MICROSECONDS);
    last = now;
  }
  void write() const {
    if (!file.empty()) writeAll(openFile(file, O_WRONLY | O_CREAT | O_APPEND, 0644).get(), text);
  }

 private:
  std::string file, text;
  kj::TimePoint last = kj::systemPreciseMonotonicClock().now();
};

// A file, or /dev/null: always ready, and nothing that a poll takes.
class FileInput final : public kj::AsyncInputStream {
 public:
  kj::Promise<size_t> tryRead(void* buffer, size_t, size_t maxBytes) override {
    ssize_t n;
    KJ_SYSCALL(n = ::read(STDIN_FILENO, buffer, maxBytes));
    return static_cast<size_t>(n);
  }
};

kj::Own<kj::AsyncInputStream> standardInput(kj::AsyncIoContext& io) {
  struct stat stats;
  KJ_SYSCALL(fstat(STDIN_FILENO, &stats));
  bool pollable = S_ISFIFO(stats.st_mode) || S_ISSOCK(stats.st_mode) || isatty(STDIN_FILENO);
  if (!pollable) return kj::heap<FileInput>();
  return io.lowLevelProvider->wrapInputFd(STDIN_FILENO);
}

// Our standard streams are the container's.
class Streams {
 public:
  Streams(kj::AsyncIoContext& io, kj::AutoCloseFd attached, bool tty)
      : stream(io.lowLevelProvider->wrapSocketFd(kj::mv(attached))), input(standardInput(io)), tty(tty) {}

  kj::Promise<void> feed() {
    return input->pumpTo(*stream)
        .ignoreResult()
        .then([this]() { stream->shutdownWrite(); })
        .catch_([](kj::Exception&&) {});
  }

  kj::Promise<void> print() {
    return stream->tryRead(buffer, 1, sizeof(buffer)).then([this](size_t n) -> kj::Promise<void> {
      if (n == 0) return kj::READY_NOW;
      auto bytes = kj::arrayPtr(buffer, n);
      auto write = [](int fd, kj::ArrayPtr<const kj::byte> bytes) {
        writeAll(fd, {reinterpret_cast<const char*>(bytes.begin()), bytes.size()});
      };
      if (tty) {
        write(STDOUT_FILENO, bytes);
      } else {
        frames.feed(bytes, [&write](kit::FrameReader::Stream stream, kj::ArrayPtr<const kj::byte> bytes) {
          write(stream == kit::FrameReader::Stream::Output ? STDOUT_FILENO : STDERR_FILENO, bytes);
        });
      }
      return print();
    });
  }

 private:
  kj::Own<kj::AsyncIoStream> stream;
  kj::Own<kj::AsyncInputStream> input;
  bool tty;
  kit::FrameReader frames;
  kj::byte buffer[65536];
};

int waitForEnd(kit::ByHandInstance& instance, proto::Process::Client process, kj::AutoCloseFd attached, bool tty) {
  auto& io = instance.io();
  Streams streams(io, kj::mv(attached), tty);
  auto feeding = streams.feed().eagerlyEvaluate(nullptr);
  auto printing = streams.print().eagerlyEvaluate(nullptr);
  auto stops = kit::stopOnSignals(io.unixEventPort, process, SIGTERM).eagerlyEvaluate(nullptr);
  auto code = kit::exitCode(read(process.waitRequest().send().wait(io.waitScope).getStatus()));
  printing.wait(io.waitScope);
  return code;
}

int runOne(const Wanted& wanted, const std::string& image) {
  for (int number : {SIGINT, SIGTERM}) kj::UnixEventPort::captureSignal(number);
  Job job;
  job.kind = Kind::Run;
  job.owner = wanted.owner;
  job.run = wanted.run;
  job.context = wanted.context;
  auto connections = dial(wanted, 5);
  auto shim = makeSocketPair();
  std::vector<std::pair<int, int>> descriptors = {{shim.second.get(), shimDescriptor}};
  for (int i = 0; i < 5; ++i) descriptors.emplace_back(connections[i].get(), firstConnection(job) + i);
  auto instance = kit::startByHand(jobWords(job), descriptors);
  shim.second = nullptr;
  auto attached = kj::mv(connections[2]);
  connections.clear();
  auto& io = instance->io();
  int code;
  {
    Connection connection(io.lowLevelProvider->wrapSocketFd(kj::mv(shim.first)), capnp::rpc::twoparty::Side::CLIENT,
                          nullptr, RpcLimits(), "the instance");
    auto docker = instance->capability().castAs<proto::Docker>();
    Times times(wanted.times);
    auto engine = ask(io.waitScope, docker.engineRequest());
    times.step("engine");
    auto create = docker.createRequest();
    auto spec = create.initSpec();
    fillSpec(spec, wanted, image, engine.getEngine().getRootless());
    bool tty = spec.getTty();
    ask(io.waitScope, kj::mv(create));
    times.step("create");
    ask(io.waitScope, docker.startRequest());
    times.step("start");
    code = waitForEnd(*instance, connection.bootstrapOfPeer().castAs<proto::Process>(), kj::mv(attached), tty);
    auto removal = docker.removeRequest();
    removal.setOwner(toText(wanted.owner));
    removal.setRun(toText(wanted.run));
    times.step("end");
    auto removed = ask(io.waitScope, kj::mv(removal));
    times.step("remove");
    times.write();
    for (auto left : removed.getLeft()) fprintf(stderr, "left: %s\n", printable(toString(left)).c_str());
  }
  instance->finish();
  return code;
}

}  // namespace

int byHand(const std::vector<std::string>& words) {
  auto wanted = readWords(words);
  try {
    if (wanted.command == "run") {
      if (wanted.run.empty()) wanted.run = randomRun();
      return runOne(wanted, imageId(wanted));
    }
    for (auto known : {"check", "pull", "inspect", "remove", "sweep"}) {
      if (wanted.command == known) return askTask(wanted);
    }
  } catch (const Refused& refused) {
    return kit::printRefusal(refused.refusal);
  }
  throw kit::UsageError{"unknown command: " + wanted.command};
}

}  // namespace oc::docker
