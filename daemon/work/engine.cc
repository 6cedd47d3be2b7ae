#include "engine.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <kj/debug.h>

#include "base/crypto.h"
#include "base/docker_context.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "proto/convert.h"

namespace oc::work {

namespace {

constexpr const char* makeGatewayImage =
    "make gateway-image, and set OPEN_CONDUIT_GATEWAY_IMAGE to the id that it prints";

constexpr auto askLimit = 30 * kj::SECONDS;
constexpr auto pullLimit = 30 * kj::MINUTES;
constexpr auto removeLimit = 120 * kj::SECONDS;
constexpr auto prepareLimit = 60 * kj::SECONDS;
// With the fourth one containers are removed two at a time.
constexpr size_t removeConnections = 4;
constexpr size_t maxNames = 64;

std::string bounded(capnp::Text::Reader text, size_t limit = 256) {
  return shortened(printable(toString(text)), limit);
}

Refusal failed(const kj::Exception& exception) {
  return {"sandbox_unavailable", describe(exception), "open-conduit doctor says what is missing"};
}

std::vector<std::string> texts(capnp::List<capnp::Text>::Reader list) {
  std::vector<std::string> result;
  for (auto text : list) {
    if (result.size() < maxNames) result.push_back(bounded(text, 512));
  }
  return result;
}

void write(capnp::List<capnp::Text>::Builder to, const std::vector<std::string>& from) {
  for (size_t i = 0; i < from.size(); ++i) to.set(i, toText(from[i]));
}

kj::AutoCloseFd duplicate(int fd) {
  int copy;
  KJ_SYSCALL(copy = fcntl(fd, F_DUPFD_CLOEXEC, 3));
  return kj::AutoCloseFd(copy);
}

// What a run's instance is started with; see proto/docker.capnp.
struct Links {
  kj::AutoCloseFd calls, waiting, agent, gateway, spare;
};

OrRefusal<Links> dialAll(const EngineFacts& where) {
  Links links;
  for (auto* link : {&links.calls, &links.waiting, &links.agent, &links.gateway, &links.spare}) {
    auto fd = dialDocker({where.context, where.socket});
    if (!fd.ok()) return fd.refusal();
    *link = kj::mv(fd.value());
  }
  return links;
}

OrRefusal<std::vector<kj::AutoCloseFd>> dial(const std::string& socket, size_t count) {
  std::vector<kj::AutoCloseFd> links;
  for (size_t i = 0; i < count; ++i) {
    auto fd = dialDocker({"", socket});
    if (!fd.ok()) return fd.refusal();
    links.push_back(kj::mv(fd.value()));
  }
  return OrRefusal<std::vector<kj::AutoCloseFd>>(kj::mv(links));
}

auto askToRemove(proto::Docker::Client docker, const std::string& owner, const std::string& run,
                 const std::string& gateway) {
  auto request = docker.removeRequest();
  request.setOwner(toText(owner));
  request.setRun(toText(run));
  request.setGateway(toText(gateway));
  return request.send();
}

// ---- asking

kj::Promise<OrRefusal<ImageFacts>> askImage(proto::Docker::Client docker, const std::string& reference, bool mayPull) {
  auto request = docker.imageRequest();
  request.setReference(toText(reference));
  return request.send().then(
      [docker, reference, mayPull](auto&& response) mutable -> kj::Promise<OrRefusal<ImageFacts>> {
        auto refusal = read(response.getRefusal());
        if (!refusal.reason.empty()) return OrRefusal<ImageFacts>(refusal);
        if (response.getFound()) {
          auto facts = readImage(response.getImage());
          facts.reference = reference;
          return OrRefusal<ImageFacts>(facts);
        }
        if (!mayPull) {
          return OrRefusal<ImageFacts>(Refusal{"sandbox_unavailable",
                                               fmt::format("the image {} is not there", printable(reference)),
                                               fmt::format("docker pull {}", reference)});
        }
        auto pull = docker.pullRequest();
        pull.setReference(toText(reference));
        return pull.send().then([docker, reference](auto&& answer) mutable -> kj::Promise<OrRefusal<ImageFacts>> {
          auto refusal = read(answer.getRefusal());
          if (!refusal.reason.empty()) return OrRefusal<ImageFacts>(refusal);
          return askImage(kj::mv(docker), reference, false);
        });
      });
}

kj::Promise<OrRefusal<kj::Own<RunEngine>>> askAll(kj::Timer& timer, kj::Own<RunEngine> run, EngineFacts where,
                                                  std::string image, std::string gatewayImage) {
  auto docker = run->instance->as<proto::Docker>();
  auto& ref = *run;
  return askEngine(timer, docker, where)
      .then([docker, &ref, image](OrRefusal<EngineFacts> engine) mutable -> kj::Promise<OrRefusal<ImageFacts>> {
        if (!engine.ok()) return OrRefusal<ImageFacts>(engine.refusal());
        ref.engine = engine.value();
        return askImage(docker, image, true);
      })
      .then([docker, &ref, gatewayImage](OrRefusal<ImageFacts> found) mutable -> kj::Promise<OrRefusal<ImageFacts>> {
        if (!found.ok()) return kj::mv(found);
        ref.image = found.value();
        if (ref.image.architecture != ref.engine.architecture) {
          return OrRefusal<ImageFacts>(
              Refusal{"sandbox_unavailable",
                      fmt::format("the image {} is for {}, and this Engine runs {}", printable(ref.image.reference),
                                  ref.image.architecture, ref.engine.architecture),
                      "name the digest of an image for this machine"});
        }
        if (gatewayImage.empty()) return OrRefusal<ImageFacts>(noGatewayImage(gatewayImage));
        return oc::work::askImage(docker, gatewayImage)
            .then([gatewayImage](OrRefusal<std::optional<ImageFacts>> gateway) {
              if (gateway.ok() && gateway.value()) return OrRefusal<ImageFacts>(*gateway.value());
              return OrRefusal<ImageFacts>(gateway.ok() ? noGatewayImage(gatewayImage)
                                                        : unfitGatewayImage(gateway.refusal()));
            });
      })
      .then([run = kj::mv(run)](OrRefusal<ImageFacts> gateway) mutable -> OrRefusal<kj::Own<RunEngine>> {
        if (!gateway.ok()) return gateway.refusal();
        run->gatewayImage = gateway.value();
        return kj::mv(run);
      });
}

}  // namespace

// One that takes connections and says nothing would keep a run for as long as a pull may take.
kj::Promise<OrRefusal<EngineFacts>> askEngine(kj::Timer& timer, proto::Docker::Client docker, EngineFacts where) {
  using Result = OrRefusal<EngineFacts>;
  auto place =
      (where.context.empty() ? "" : fmt::format("context {}, ", printable(where.context))) + printable(where.socket);
  auto answered = docker.engineRequest().send().then([where, place](auto&& response) -> Result {
    auto refusal = read(response.getRefusal());
    if (!refusal.reason.empty()) {
      refusal.what += fmt::format(" ({})", place);
      return refusal;
    }
    auto facts = readEngine(response.getEngine());
    facts.socket = where.socket;
    facts.context = where.context;
    return facts;
  });
  auto late = timer.afterDelay(askLimit).then([place]() -> Result {
    return Refusal{"sandbox_unavailable",
                   fmt::format("the engine does not answer within {} seconds ({})", askLimit / kj::SECONDS, place),
                   "restart the Docker Engine: sudo systemctl restart docker; then: open-conduit doctor"};
  });
  return answered.exclusiveJoin(kj::mv(late));
}

// A gateway is made here, or pulled by a person: which one it is has to be a decision.
Refusal noGatewayImage(const std::string& reference) {
  if (reference.empty()) {
    return {"sandbox_unavailable",
            "this build has no gateway image of its own, and OPEN_CONDUIT_GATEWAY_IMAGE is not set",
            "make gateway-image, and set OPEN_CONDUIT_GATEWAY_IMAGE to the id that it prints where the daemon runs"};
  }
  bool local = reference.starts_with("sha256:");
  return {"sandbox_unavailable", fmt::format("the gateway image {} is not there", printable(reference)),
          local ? makeGatewayImage : fmt::format("docker pull {}", reference)};
}

Refusal unfitGatewayImage(Refusal refusal) {
  refusal.what = "the gateway image does not fit: " + refusal.what;
  refusal.fix = makeGatewayImage;
  return refusal;
}

kj::Promise<OrRefusal<std::optional<ImageFacts>>> askImage(proto::Docker::Client docker, const std::string& reference) {
  using Result = OrRefusal<std::optional<ImageFacts>>;
  if (reference.empty()) return Result(std::optional<ImageFacts>());
  auto request = docker.imageRequest();
  request.setReference(toText(reference));
  return request.send().then([reference](auto&& response) -> Result {
    auto refusal = read(response.getRefusal());
    if (!refusal.reason.empty()) return refusal;
    if (!response.getFound()) return std::optional<ImageFacts>();
    auto facts = readImage(response.getImage());
    facts.reference = reference;
    return std::optional<ImageFacts>(std::move(facts));
  });
}

EngineFacts readEngine(proto::Engine::Reader from) {
  EngineFacts facts;
  facts.id = bounded(from.getId());
  facts.version = bounded(from.getVersion(), 64);
  facts.apiVersion = bounded(from.getApiVersion(), 16);
  facts.architecture = bounded(from.getArchitecture(), 32);
  facts.operatingSystem = bounded(from.getOperatingSystem());
  facts.rootless = from.getRootless();
  facts.limitsMemory = from.getCanLimitMemory();
  facts.limitsCpus = from.getCanLimitCpus();
  facts.limitsPids = from.getCanLimitPids();
  return facts;
}

ImageFacts readImage(proto::Image::Reader from) {
  return {"", bounded(from.getId()), bounded(from.getOs(), 32), bounded(from.getArchitecture(), 32),
          texts(from.getRepoDigests())};
}

void fill(proto::RunSpec::Builder to, const ContainerSpec& spec) {
  to.setOwner(toText(spec.owner));
  to.setRun(toText(spec.run));
  to.setRole(toText(spec.role));
  to.setPlanSha256(toText(spec.planSha256));
  to.setImage(toText(spec.image));
  to.setGatewayImage(toText(spec.gatewayImage));
  write(to.initCommand(spec.command.size()), spec.command);
  auto environment = to.initEnvironment(spec.environment.size());
  for (size_t i = 0; i < spec.environment.size(); ++i) {
    environment[i].setName(toText(spec.environment[i].first));
    environment[i].setValue(toText(spec.environment[i].second));
  }
  auto& settings = spec.settings;
  to.setDirectory(toText(settings.directory));
  to.setUser(toText(spec.user));
  auto mounts = to.initMounts(settings.mounts.size());
  for (size_t i = 0; i < settings.mounts.size(); ++i) {
    mounts[i].setSource(toText(settings.mounts[i].source));
    mounts[i].setTarget(toText(settings.mounts[i].target));
    mounts[i].setWritable(settings.mounts[i].writable);
  }
  to.setMemoryBytes(settings.memoryBytes);
  to.setNanoCpus(settings.nanoCpus);
  to.setPids(settings.pids);
  to.setTty(spec.tty);
  to.setColumns(spec.columns);
  to.setRows(spec.rows);
  to.setStdin(spec.stdinOpen);
  to.setNetwork(true);
  to.setHostname(toText(spec.hostname));
  to.setPreparedGateway(toText(spec.preparedGateway));
}

void fill(proto::GatewayPolicy::Builder to, const sandbox::ContainerSettings& settings, bool toolbelt) {
  auto allow = to.initAllow(settings.allow.size());
  for (size_t i = 0; i < settings.allow.size(); ++i) {
    auto& pattern = settings.allow[i];
    allow[i].setPattern(toText((pattern.subdomains ? "*." : "") + pattern.host));
    allow[i].setPort(pattern.port.value_or(0));
  }
  write(to.initPrivate(settings.allowedPrivate.size()), settings.allowedPrivate);
  write(to.initRefuse(settings.refusedAddresses.size()), settings.refusedAddresses);
  to.setSocketDirectory(sandbox::containerGateway);
  to.setToolbelt(toolbelt);
}

RunEngine::~RunEngine() noexcept(false) {
  if (instance.get() != nullptr) instance->kill();
}

kj::Promise<void> Engines::whenSwept(const std::string& socket) {
  auto found = sweeps.find(socket);
  return found == sweeps.end() ? kj::Promise<void>(kj::READY_NOW) : found->second.addBranch();
}

kj::Promise<OrRefusal<kj::Own<RunEngine>>> Engines::openFor(const std::string& run, EngineFacts where,
                                                            const std::string& image, const std::string& gatewayImage) {
  return whenSwept(where.socket).then([this, run, where, image, gatewayImage]() {
    return openNow(run, where, image, gatewayImage);
  });
}

kj::Promise<OrRefusal<kj::Own<RunEngine>>> Engines::openNow(const std::string& run, EngineFacts where,
                                                            const std::string& image, const std::string& gatewayImage) {
  auto links = dialAll(where);
  if (!links.ok()) return OrRefusal<kj::Own<RunEngine>>(links.refusal());
  auto process = makeSocketPair();
  auto& fds = links.value();
  supervisor::LaunchSpec spec;
  spec.provider = "docker";
  spec.label = "run " + run;
  spec.job = {"run", "--run", run, "--owner", ownerLabel, "--context", where.context};
  spec.descriptors = {{process.second.get(), 4}, {fds.calls.get(), 5},   {fds.waiting.get(), 6},
                      {fds.agent.get(), 7},      {fds.gateway.get(), 8}, {fds.spare.get(), 9}};
  spec.outlivesUs = true;
  auto opened = kj::heap<RunEngine>();
  opened->process = kj::mv(process.first);
  opened->agentStream = duplicate(fds.agent.get());
  opened->gatewayStream = duplicate(fds.gateway.get());
  auto started = supervisor.start(kj::mv(spec));
  auto ready = started.then(
      [this, opened = kj::mv(opened), where, image, gatewayImage](kj::Own<supervisor::Instance> instance) mutable {
        opened->instance = kj::mv(instance);
        return askAll(supervisor.timer(), kj::mv(opened), where, image, gatewayImage);
      });
  return withDeadline(supervisor.timer(), pullLimit, "open-conduit-docker", kj::mv(ready))
      .catch_([](kj::Exception&& exception) -> OrRefusal<kj::Own<RunEngine>> { return failed(exception); });
}

kj::Promise<OrRefusal<kj::Own<supervisor::Instance>>> Engines::startTask(const std::string& socket, size_t connections,
                                                                         const std::string& label) {
  auto links = dial(socket, connections);
  if (!links.ok()) return OrRefusal<kj::Own<supervisor::Instance>>(links.refusal());
  return startTask(kj::mv(links.value()), label);
}

kj::Promise<OrRefusal<kj::Own<supervisor::Instance>>> Engines::startTask(std::vector<kj::AutoCloseFd> links,
                                                                         const std::string& label) {
  supervisor::LaunchSpec spec;
  spec.provider = "docker";
  spec.label = label;
  spec.job = {"task", "--connections", std::to_string(links.size()), "--owner", ownerLabel};
  for (size_t i = 0; i < links.size(); ++i) spec.descriptors.emplace_back(links[i].get(), 4 + static_cast<int>(i));
  return supervisor.start(kj::mv(spec))
      .then(
          [](kj::Own<supervisor::Instance> instance) {
            return OrRefusal<kj::Own<supervisor::Instance>>(kj::mv(instance));
          },
          [](kj::Exception&& exception) { return OrRefusal<kj::Own<supervisor::Instance>>(failed(exception)); });
}

kj::Promise<OrRefusal<kj::AutoCloseFd>> Engines::prepareGateway(const std::string& socket, const std::string& name,
                                                                const std::string& image, const std::string& user) {
  using Result = OrRefusal<kj::AutoCloseFd>;
  auto links = dial(socket, 2);
  if (!links.ok()) return Result(links.refusal());
  auto stream = duplicate(links.value()[1].get());
  auto& timer = supervisor.timer();
  return startTask(kj::mv(links.value()), "gateway " + name)
      .then([this, name, image, user, &timer,
             stream = kj::mv(stream)](OrRefusal<kj::Own<supervisor::Instance>> task) mutable -> kj::Promise<Result> {
        if (!task.ok()) return Result(task.refusal());
        auto request = task.value()->as<proto::Docker>().prepareGatewayRequest();
        auto spec = request.initSpec();
        spec.setOwner(toText(ownerLabel));
        spec.setName(toText(name));
        spec.setImage(toText(image));
        spec.setUser(toText(user));
        auto made = request.send().then([](auto&& response) { return read(response.getRefusal()); });
        return withDeadline(timer, prepareLimit, "open-conduit-docker", kj::mv(made))
            .then([stream = kj::mv(stream)](Refusal refusal) mutable {
              return refusal.reason.empty() ? Result(kj::mv(stream)) : Result(refusal);
            })
            .attach(kj::mv(task.value()));
      })
      .catch_([](kj::Exception&& exception) { return Result(failed(exception)); })
      .then([this, socket, name](Result made) -> kj::Promise<Result> {
        if (made.ok()) return kj::mv(made);
        // A provider that died in the middle has left what it was making.
        return remove(socket, name).then([refusal = made.refusal()](std::vector<std::string>) {
          return Result(refusal);
        });
      });
}

template <typename Ask>
kj::Promise<std::vector<std::string>> Engines::removeByTask(const std::string& socket, const std::string& label,
                                                            Ask ask) {
  auto& timer = supervisor.timer();
  return startTask(socket, removeConnections, label)
      .then([ask, &timer](OrRefusal<kj::Own<supervisor::Instance>> task) -> kj::Promise<std::vector<std::string>> {
        if (!task.ok()) return std::vector<std::string>{task.refusal().what};
        auto removed = ask(task.value()->template as<proto::Docker>()).then([](auto&& response) {
          auto refusal = read(response.getRefusal());
          if (!refusal.reason.empty()) return std::vector<std::string>{refusal.what};
          return texts(response.getLeft());
        });
        return withDeadline(timer, removeLimit, "open-conduit-docker", kj::mv(removed)).attach(kj::mv(task.value()));
      })
      .catch_([](kj::Exception&& exception) { return std::vector<std::string>{describe(exception)}; });
}

kj::Promise<std::vector<std::string>> Engines::remove(const std::string& socket, const std::string& run,
                                                      const std::string& gateway) {
  return removeByTask(socket, "remove " + run, [this, run, gateway](proto::Docker::Client docker) {
    return askToRemove(docker, ownerLabel, run, gateway);
  });
}

kj::Promise<std::vector<std::string>> Engines::removeBy(proto::Docker::Client docker, const std::string& socket,
                                                        const std::string& run, const std::string& gateway) {
  auto removed = askToRemove(docker, ownerLabel, run, gateway).then([](auto&& response) {
    auto refusal = read(response.getRefusal());
    if (!refusal.reason.empty()) fail(refusal.what);
    return texts(response.getLeft());
  });
  return withDeadline(supervisor.timer(), removeLimit, "open-conduit-docker", kj::mv(removed))
      .catch_([this, socket, run, gateway](kj::Exception&& exception) {
        logDebug("run {}: {}", run, describe(exception));
        return remove(socket, run, gateway);
      });
}

kj::Promise<std::vector<std::string>> Engines::sweep(const std::string& socket, const std::vector<std::string>& keep) {
  auto swept = removeByTask(socket, "sweep", [this, socket, keep](proto::Docker::Client docker) {
    // Runs wait for this, and are not to wait for one that says nothing for as long as removing may take.
    EngineFacts where;
    where.socket = socket;
    return askEngine(supervisor.timer(), docker, where)
        .then([this, docker, keep](OrRefusal<EngineFacts> engine) mutable {
          if (!engine.ok()) fail(engine.refusal().what);
          auto request = docker.sweepRequest();
          request.setOwner(toText(ownerLabel));
          write(request.initKeep(keep.size()), keep);
          return request.send().then([](auto&& response) {
            if (response.getRemoved() > 0) logInfo("{} things of earlier runs were removed", response.getRemoved());
            return kj::mv(response);
          });
        });
  });
  auto over = kj::newPromiseAndFulfiller<void>();
  sweeps.insert_or_assign(socket, over.promise.fork());
  // It never breaks.
  return swept.then([fulfiller = kj::mv(over.fulfiller)](std::vector<std::string> left) mutable {
    fulfiller->fulfill();
    return left;
  });
}

kj::Promise<kj::Maybe<Engines::Found>> Engines::find(const std::string& socket, const std::string& run,
                                                     std::string& why) {
  auto& timer = supervisor.timer();
  return startTask(socket, 1, "inspect " + run)
      .then([this, run, &why, &timer](OrRefusal<kj::Own<supervisor::Instance>> task) -> kj::Promise<kj::Maybe<Found>> {
        if (!task.ok()) {
          why = task.refusal().what;
          return kj::Maybe<Found>(nullptr);
        }
        auto request = task.value()->as<proto::Docker>().inspectRequest();
        request.setOwner(toText(ownerLabel));
        request.setRun(toText(run));
        auto asked = request.send().then([&why](auto&& response) -> kj::Maybe<Found> {
          auto refusal = read(response.getRefusal());
          if (!refusal.reason.empty()) {
            why = refusal.what;
            return nullptr;
          }
          for (auto container : response.getContainers()) {
            if (toString(container.getRole()) != "agent") continue;
            return Found{bounded(container.getImageId()), bounded(container.getPlanSha256(), 64),
                         container.getRunning()};
          }
          why = "its container is not there any more";
          return nullptr;
        });
        return withDeadline(timer, askLimit, "open-conduit-docker", kj::mv(asked)).attach(kj::mv(task.value()));
      })
      .catch_([&why](kj::Exception&& exception) -> kj::Maybe<Found> {
        why = describe(exception);
        return nullptr;
      });
}

std::string ownerLabelOf(const Places& places) {
  auto path = places.stateDir + "/owner-label";
  if (openIfThere(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK) == std::nullopt)
    writeFileAtomically(path, newId("oc-"), 0600);
  auto label = readFile(path, 64);
  bool sound =
      label.size() >= 4 && label.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos;
  KJ_REQUIRE(sound, "the installation's label is not one that was written; remove the file, and a new one is made",
             path);
  return label;
}

}  // namespace oc::work
