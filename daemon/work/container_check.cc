#include "container_check.h"

#include <arpa/inet.h>
#include <capnp/serialize.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/crypto.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/sandbox/container.h"
#include "container_plan.h"
#include "proto/convert.h"

namespace oc::work {

namespace {

using control::DoctorLine;
using Lines = std::vector<DoctorLine>;

constexpr auto checkLimit = 120 * kj::SECONDS;
// Of the probe's exit code; see `open-conduit-toolbelt probe --help`.
constexpr int judged = 64, hostReached = 1, nameFound = 2, proxySilent = 4;

DoctorLine ok(const std::string& what) { return {"docker", "ok", what, ""}; }
DoctorLine failure(const std::string& what, const std::string& fix) { return {"docker", "FAIL", what, fix}; }
DoctorLine failure(const Refusal& refusal) { return failure(refusal.what, refusal.fix); }

// Of an image that a run would have pulled; an id is in no registry.
DoctorLine notThere(const std::string& image, const std::string& context) {
  auto docker = context.empty() || context == "default" ? "docker" : "docker --context " + shellQuote(context);
  if (image.starts_with("sha256:")) {
    return failure(
        "the image is not there, and an id can be pulled from nowhere: " + image,
        fmt::format("make it on this engine, and write the id that it has there: {} image ls --no-trunc", docker));
  }
  return {"docker", "warn", "the image is not there yet, so no container was tried: " + image,
          fmt::format("{} pull {} (the first run does so, too)", docker, image)};
}

// A port of this machine that a container must not reach, on every address.
kj::AutoCloseFd listenAnywhere(uint16_t& port) {
  int raw;
  KJ_SYSCALL(raw = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  kj::AutoCloseFd fd(raw);
  struct sockaddr_in address {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  KJ_SYSCALL(bind(raw, reinterpret_cast<struct sockaddr*>(&address), sizeof(address)));
  KJ_SYSCALL(listen(raw, 16));
  socklen_t size = sizeof(address);
  KJ_SYSCALL(getsockname(raw, reinterpret_cast<struct sockaddr*>(&address), &size));
  port = ntohs(address.sin_port);
  return fd;
}

constexpr std::string_view doctor = "open-conduit doctor";
// Where Debian, Fedora, Alpine and SUSE have them.
constexpr const char* certificateFiles =
    "/etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem /etc/ssl/ca-bundle.pem";

std::string keyOf(const EngineFacts& engine, const ImageFacts& image, const ImageFacts& gateway) {
  return engine.socket + "|" + engine.id + "|" + engine.version + "|" + image.id + "|" + gateway.id;
}

}  // namespace

// One container like a run's: its folder, its port of ours, and what is asked of it.
struct ContainerChecks::Trial {
  std::string folder, reference;
  uint16_t port = 0;
  kj::AutoCloseFd listener;
  ContainerSpec spec;

  Trial(const Places& places, const std::string& programs, const Engines& engines, const EngineFacts& engine,
        const ImageFacts& image, const ImageFacts& gateway)
      : folder(places.dataDir + "/checks/" + newId("c-")),
        reference(printable(image.reference)),
        listener(listenAnywhere(port)) {
    makePrivateDirectory(places.dataDir + "/checks");
    makePrivateDirectory(folder);
    mount(folder, folder, true);
    mount(programs + "/open-conduit-toolbelt", sandbox::containerProgram, false);
    spec.owner = engines.owner();
    spec.run = folder.substr(folder.rfind('/') + 1);
    spec.role = "check";
    spec.planSha256 = sha256Hex(spec.run);
    spec.image = image.id;
    spec.gatewayImage = gateway.id;
    spec.user = containerUser(engine);
    spec.hostname = "check";
    spec.settings.directory = folder;
    spec.settings.pids = engine.limitsPids ? 64 : 0;
    spec.settings.refusedAddresses = sandbox::ownAddresses();
    spec.command = command();
  }
  ~Trial() { removeTree(folder); }

  void mount(const std::string& source, const std::string& target, bool writable) {
    struct stat stats;
    KJ_SYSCALL(stat(source.c_str(), &stats), source);
    spec.settings.mounts.push_back({source, target, writable, stats.st_dev, stats.st_ino});
  }

  std::vector<std::string> command() const {
    auto words = containerEntry(spec.settings, false, false, false);
    words.insert(words.end(),
                 {"/bin/sh", "-c",
                  "command -v git >/dev/null && : > \"$0/has-git\"; for file in " + std::string(certificateFiles) +
                      "; do [ ! -s $file ] || : > \"$0/has-certificates\"; done; : > \"$0/made-inside\" && exec \"$@\"",
                  folder, sandbox::containerProgram, "probe", "--judge", "closed", "--timeout-ms", "1000"});
    for (auto& address : spec.settings.refusedAddresses) {
      auto host = address.find(':') == std::string::npos ? address : "[" + address + "]";
      if (!address.starts_with("fe80:")) words.insert(words.end(), {"--host", fmt::format("{}:{}", host, port)});
    }
    words.insert(words.end(), {"--host", fmt::format("127.0.0.1:{}", port), "--name", "example.com", "--proxy",
                               fmt::format("{}=example.com:443", sandbox::containerProxyPort)});
    return words;
  }

  Lines judge(int exitCode) const {
    Lines lines;
    struct stat stats;
    bool made = lstat((folder + "/made-inside").c_str(), &stats) == 0;
    if (!made) {
      constexpr int noShell = 127;  // the entry point's word for a command that isn't there
      lines.push_back(
          exitCode == noShell
              ? failure("the image has no /bin/sh: " + reference,
                        "use an image with /bin/sh, git, CA certificates and what the agent runs")
              : failure(
                    "a container like a run's could not make a file in a folder that was mounted into it",
                    "let the Engine have your own folders: SELinux, a remapped user, or an Engine in a virtual machine that "
                    "shares no folders can be in the way"));
    } else if (stats.st_uid != geteuid()) {
      lines.push_back(
          failure(fmt::format("a file that was made in a container is owned by uid {}, not by you", stats.st_uid),
                  "turn the Engine's userns-remap off, or use rootless Docker"));
    } else {
      lines.push_back(ok("a file that is made in a container is yours"));
    }
    if (made && lstat((folder + "/has-git").c_str(), &stats) < 0) {
      lines.push_back({"docker", "warn", "the image has no git: " + reference,
                       "an agent in it can't commit; use an image with git if it is to"});
    }
    if (made && lstat((folder + "/has-certificates").c_str(), &stats) < 0) {
      lines.push_back({"docker", "warn", "the image has no CA certificates: " + reference,
                       "programs in it trust no HTTPS server; install its package ca-certificates"});
    }
    if (exitCode == 0 && made) {
      lines.push_back(ok("a container reaches its gateway, no port of this machine and no outside name"));
      return lines;
    }
    int open = exitCode > judged && exitCode < judged + 8 ? exitCode - judged : 0;
    if ((open & hostReached) != 0) {
      lines.push_back(failure("a container reaches a port of this machine", "report it: its network should be none"));
    }
    if ((open & nameFound) != 0) {
      lines.push_back(failure("a container finds outside names", "report it: its network should be none"));
    }
    if ((open & proxySilent) != 0) {
      lines.push_back(failure("a container does not reach its gateway", "make gateway-image anew, or pull it again"));
    }
    if (open == 0 && made) {
      lines.push_back(
          failure(fmt::format("the probe in a container ended with exit status {}", exitCode), "see the daemon's log"));
    }
    return lines;
  }
};

kj::Promise<Lines> ContainerChecks::examine(const EngineFacts& where, const std::string& image) {
  auto& timer = supervisor.timer();
  auto examined = engines.whenSwept(where.socket)
                      .then([this, where]() { return engines.startTask(where.socket, 6, "doctor"); })
                      .then([this, where, image](OrRefusal<kj::Own<supervisor::Instance>> task) -> kj::Promise<Lines> {
                        if (!task.ok()) return Lines{failure(task.refusal())};
                        auto asked = askEngine(supervisor.timer(), task.value()->as<proto::Docker>(), where);
                        return asked.then([this, image, task = kj::mv(task.value())](
                                              OrRefusal<EngineFacts> engine) mutable -> kj::Promise<Lines> {
                          if (!engine.ok()) return Lines{failure(engine.refusal())};
                          return examineImages(kj::mv(task), engine.value(), image);
                        });
                      });
  return withDeadline(timer, checkLimit, "open-conduit-docker", kj::mv(examined))
      .catch_(
          [](kj::Exception&& exception) -> Lines { return {failure(describe(exception), "see the daemon's log")}; });
}

kj::Promise<Lines> ContainerChecks::examineImages(kj::Own<supervisor::Instance> task, EngineFacts engine,
                                                  std::string image) {
  Lines lines = {ok(fmt::format("context {}: Docker Engine {}{}", engine.context, engine.version,
                                engine.rootless ? ", rootless" : ""))};
  if (engine.operatingSystem == "Docker Desktop") {
    lines.push_back(
        {"docker", "warn", "this is Docker Desktop, which is not tested", "the checks below say whether it holds"});
  }
  auto docker = task->as<proto::Docker>();
  return askImage(docker, gatewayImage)
      .then([this, task = kj::mv(task), engine, image, lines = kj::mv(lines),
             docker](OrRefusal<std::optional<ImageFacts>> gateway) mutable -> kj::Promise<Lines> {
        if (!gateway.ok() || !gateway.value()) {
          lines.push_back(failure(gateway.ok() ? noGatewayImage(gatewayImage) : unfitGatewayImage(gateway.refusal())));
          return kj::mv(lines);
        }
        lines.push_back(ok("the gateway image is there: " + gateway.value()->id));
        return askImage(docker, image)
            .then([this, task = kj::mv(task), engine, image, gatewayFacts = *gateway.value(),
                   lines = kj::mv(lines)](OrRefusal<std::optional<ImageFacts>> there) mutable -> kj::Promise<Lines> {
              if (!there.ok() || !there.value()) {
                lines.push_back(there.ok() ? notThere(image, engine.context) : failure(there.refusal()));
                return kj::mv(lines);
              }
              lines.push_back(ok("the image is there: " + image));
              return tryContainer(kj::mv(task), engine, *there.value(), gatewayFacts)
                  .then([lines = kj::mv(lines)](Lines more) mutable {
                    lines.insert(lines.end(), more.begin(), more.end());
                    return kj::mv(lines);
                  });
            });
      });
}

kj::Promise<Lines> ContainerChecks::tryContainer(kj::Own<supervisor::Instance> task, EngineFacts engine,
                                                 ImageFacts image, ImageFacts gateway) {
  auto trial = kj::heap<Trial>(places, programs, engines, engine, image, gateway);
  auto request = task->as<proto::Docker>().checkRequest();
  auto spec = request.initSpec();
  fill(spec, trial->spec);
  capnp::MallocMessageBuilder policy;
  fill(policy.initRoot<proto::GatewayPolicy>(), trial->spec.settings, false);
  auto words = capnp::messageToFlatArray(policy);
  spec.setGatewayPolicy(words.asBytes());
  auto key = keyOf(engine, image, gateway);
  return request.send()
      .then([this, key, trial = kj::mv(trial)](auto&& response) -> Lines {
        auto refusal = oc::read(response.getRefusal());
        auto lines = refusal.reason.empty() ? trial->judge(response.getExitCode()) : Lines{failure(refusal)};
        passed[key] = std::all_of(lines.begin(), lines.end(), [](auto& line) { return line.level != "FAIL"; });
        return lines;
      })
      .attach(kj::mv(task));
}

kj::Promise<Refusal> ContainerChecks::require(const EngineFacts& engine, const ImageFacts& image,
                                              const ImageFacts& gateway) {
  auto found = passed.find(keyOf(engine, image, gateway));
  if (found != passed.end() && found->second) return Refusal();
  return engines.startTask(engine.socket, 6, "doctor")
      .then([this, engine, image, gateway](OrRefusal<kj::Own<supervisor::Instance>> task) -> kj::Promise<Lines> {
        if (!task.ok()) return Lines{failure(task.refusal())};
        return tryContainer(kj::mv(task.value()), engine, image, gateway);
      })
      .then(
          [](Lines lines) -> Refusal {
            for (auto& line : lines) {
              if (line.level != "FAIL") continue;
              bool further = !line.fix.starts_with(doctor);
              return {"sandbox_unavailable", line.what, line.fix + (further ? fmt::format("; then: {}", doctor) : "")};
            }
            return {};
          },
          [](kj::Exception&& exception) -> Refusal {
            return {"sandbox_unavailable", describe(exception), std::string(doctor)};
          });
}

}  // namespace oc::work
