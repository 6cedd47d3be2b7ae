#include "containers_ahead.h"

#include <dirent.h>
#include <kj/debug.h>
#include <unistd.h>

#include <algorithm>

#include "base/aside.h"
#include "base/crypto.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "container_plan.h"
#include "home.h"
#include "proto/convert.h"
#include "proto/rpc.h"
#include "quiet_stream.h"
#include "run_folders.h"
#include "workspace.h"

namespace oc::work {

namespace {

// The run that took the last one is being started just then, and whoever waits for it comes first; its gateway is made
// then, too.
constexpr auto quiet = 1500 * kj::MILLISECONDS;
constexpr auto startLimit = 120 * kj::SECONDS;
constexpr size_t mostId = 64;

// In the Work's folder as long as there is no Work of that id in the database; has the run's id in it.
std::string markOf(const Places& places, const std::string& work) { return places.workDir(work) + "/ahead"; }

kj::Promise<Refusal> startBy(proto::Docker::Client docker, const ContainerSpec& spec) {
  auto create = docker.createRequest();
  fill(create.initSpec(), spec);
  return create.send().then([docker](auto&& created) mutable -> kj::Promise<Refusal> {
    auto refusal = read(created.getRefusal());
    if (!refusal.reason.empty()) return refusal;
    return docker.startRequest().send().then([](auto&& started) { return read(started.getRefusal()); });
  });
}

}  // namespace

// The entry point says nothing before its agent is there.
struct ContainersAhead::Waiting {
  kj::Own<ContainerAhead> release() {
    agent.stop();
    gateway.stop();
    return kj::mv(ahead);
  }

  kj::Own<ContainerAhead> ahead;
  QuietStream agent, gateway;
};

bool stillWaits(const RunEngine& engine) { return isQuiet(engine.agentStream) && isQuiet(engine.gatewayStream); }

ContainersAhead::ContainersAhead(Dependencies dependencies)
    : deps(std::move(dependencies)),
      closing(kj::mv(ending.promise).fork()),
      making(kj::Promise<void>(kj::READY_NOW).fork()),
      tasks(*this) {}

ContainersAhead::~ContainersAhead() noexcept(false) = default;

void ContainersAhead::configure(size_t numberParam) {
  number = numberParam;
  ++generation;
  while (!pool.empty()) drop(pool.size() - 1);
}

kj::Maybe<ContainersAhead::Ids> ContainersAhead::reserve(const std::string& binding) {
  for (auto at = pool.begin(); at != pool.end(); ++at) {
    if ((*at)->ahead->binding != binding) continue;
    auto ahead = (*at)->release();
    pool.erase(at);
    Ids ids{ahead->work, ahead->run};
    reserved.emplace(ids.run, kj::mv(ahead));
    return ids;
  }
  return nullptr;
}

kj::Maybe<kj::Own<ContainerAhead>> ContainersAhead::claim(const std::string& run) {
  auto found = reserved.find(run);
  if (found == reserved.end()) return nullptr;
  auto ahead = kj::mv(found->second);
  reserved.erase(found);
  unlink(markOf(deps.places, ahead->work).c_str());  // its Work is in the database
  return kj::mv(ahead);
}

void ContainersAhead::release(const std::string& run, bool folders) {
  auto found = reserved.find(run);
  if (found == reserved.end()) return;
  auto ahead = kj::mv(found->second);
  reserved.erase(found);
  tasks.add(remove(kj::mv(ahead), folders));
}

void ContainersAhead::keep(kj::Own<ContainerAhead> ahead) {
  auto hasEnded = [this, run = ahead->run]() {
    auto found = std::find_if(pool.begin(), pool.end(), [&run](auto& one) { return one->ahead->run == run; });
    if (found == pool.end()) return;
    logWarning("the container of {}, which was started ahead, has ended", run);
    drop(static_cast<size_t>(found - pool.begin()));
  };
  auto watch = [&](int fd) { return QuietStream(deps.supervisor.context().unixEventPort, fd, tasks, hasEnded); };
  auto agent = watch(ahead->engine->agentStream), gateway = watch(ahead->engine->gatewayStream);
  pool.push_back(kj::heap<Waiting>(Waiting{kj::mv(ahead), kj::mv(agent), kj::mv(gateway)}));
}

void ContainersAhead::replenish(const std::string& binding) {
  auto isFor = [&binding](auto& one) { return one->ahead->binding == binding; };
  if (closed || busy || number == 0 || std::any_of(pool.begin(), pool.end(), isFor)) return;
  busy = true;
  making = deps.supervisor.timer()
               .afterDelay(quiet)
               .exclusiveJoin(closing.addBranch())
               .then([this, binding]() { return make(binding); })
               .catch_([](kj::Exception&& e) { logWarning("{}", describe(e)); })
               .then([this]() { busy = false; })
               .fork();
  tasks.add(making.addBranch());
}

kj::Promise<void> ContainersAhead::make(std::string name) {
  auto config = kj::heap<config::Config>(deps.config());
  auto* binding = config->findBinding(name);
  if (closed || number == 0 || binding == nullptr || !binding->container) return kj::READY_NOW;
  auto ahead = kj::heap<ContainerAhead>();
  ahead->binding = name;
  ahead->work = newId("w-");
  ahead->run = newId("r-");
  auto& ref = *ahead;
  auto started = kj::evalNow([&]() {
    layOut(ref, *binding);
    return start(ref, *config);
  });
  return started.catch_([](kj::Exception&& e) {
                  return Refusal{"sandbox_unavailable", describe(e), ""};
                })
      .then([this, asked = generation, ahead = kj::mv(ahead),
             config = kj::mv(config)](Refusal refusal) mutable -> kj::Promise<void> {
        bool failed = !refusal.reason.empty();
        if (failed) logWarning("no container could be started ahead: {}", refusal.what);
        if (failed || closed || asked != generation) return remove(kj::mv(ahead), true);
        ahead->engine->containerStarted = true;
        keep(kj::mv(ahead));
        while (pool.size() > number) drop(0);
        return kj::READY_NOW;
      });
}

// The mark comes first.
void ContainersAhead::layOut(const ContainerAhead& ahead, const config::Binding& binding) {
  auto& places = deps.places;
  makePrivateDirectory(places.worksDir());
  makePrivateDirectory(places.workDir(ahead.work));
  writeFileAtomically(markOf(places, ahead.work), ahead.run, 0600);
  Workspaces::layOut(places, ahead.work, binding.hasResource);
  layOutHome(places, ahead.work);
  makeRunFolders(places, ahead.run, true);
}

kj::Promise<Refusal> ContainersAhead::start(ContainerAhead& ahead, const config::Config& config) {
  auto& binding = *config.findBinding(ahead.binding);
  auto& containers = deps.containers;
  auto where = containers.find(config, binding.container->context);
  if (!where.ok()) return where.refusal();
  return containers.engines.openFor(ahead.run, where.value(), binding.container->image, containers.gatewayImage())
      .then([this, &ahead](OrRefusal<kj::Own<RunEngine>> opened) -> kj::Promise<Refusal> {
        if (!opened.ok()) return opened.refusal();
        ahead.engine = kj::mv(opened.value());
        auto& engine = *ahead.engine;
        return deps.containers.checks.require(engine.engine, engine.image, engine.gatewayImage);
      })
      .then([this, &ahead, &config](Refusal refusal) -> kj::Promise<Refusal> {
        if (!refusal.reason.empty()) return refusal;
        auto plan = planFor(ahead, config);
        if (!plan.ok()) return plan.refusal();
        ahead.sha256 = plan.value().spec.planSha256;
        auto started = startBy(ahead.engine->instance->as<proto::Docker>(), plan.value().spec);
        return withDeadline(deps.supervisor.timer(), startLimit, "open-conduit-docker", kj::mv(started));
      });
}

// As the run will be planned, if nothing changes.
OrRefusal<ContainerPlan> ContainersAhead::planFor(const ContainerAhead& ahead, const config::Config& config) const {
  auto& binding = *config.findBinding(ahead.binding);
  auto& offered = config.findScope(binding.scope)->authorization.operations;
  bool toolbelt = !toolbelt::authorize(deps.catalogue, {binding.operations, offered}).offered.empty();
  return planContainer({config, binding, ahead.work, ahead.run, deps.places, toolbelt, *ahead.engine,
                        deps.containers.engines.owner(), deps.containers.programs()},
                       deps.own);
}

void ContainersAhead::drop(size_t index) {
  auto ahead = pool[index]->release();
  pool.erase(pool.begin() + static_cast<std::ptrdiff_t>(index));
  tasks.add(remove(kj::mv(ahead), true));
}

kj::Promise<void> ContainersAhead::removeContainer(kj::Own<RunEngine> engine, std::string run) {
  auto socket = engine->engine.socket;
  engine = nullptr;  // its instance ends
  return deps.containers.engines.remove(socket, run).then([this, socket, run](std::vector<std::string> left) {
    for (auto& what : left) deps.onLeftover(socket, run, what);
  });
}

// The container first, so that nothing of it looks into folders that go; without an instance none was made.
kj::Promise<void> ContainersAhead::remove(kj::Own<ContainerAhead> ahead, bool folders) {
  auto removed = ahead->engine.get() == nullptr ? kj::Promise<void>(kj::READY_NOW)
                                                : removeContainer(kj::mv(ahead->engine), ahead->run);
  if (!folders) return removed;
  return removed.then([this, ahead = kj::mv(ahead)]() {
    return aside([workDir = deps.places.workDir(ahead->work), runDir = deps.places.runDir(ahead->run)]() {
      removeTree(runDir);
      removeTree(workDir);
    });
  });
}

// One that is just being made is waited for: what the Engine was asked to make, it makes.
kj::Promise<void> ContainersAhead::close() {
  closed = true;
  ending.fulfiller->fulfill();
  return making.addBranch().then([this]() {
    while (!pool.empty()) drop(pool.size() - 1);
    while (!reserved.empty()) forget(reserved.begin()->first);
    return tasks.onEmpty();
  });
}

void ContainersAhead::removeLeftovers(const Places& places,
                                      const std::function<bool(const std::string& work)>& isWork) {
  DIR* listing = opendir(places.worksDir().c_str());
  if (listing == nullptr) return;
  KJ_DEFER(closedir(listing));
  while (auto* entry = readdir(listing)) {
    std::string work = entry->d_name;
    auto mark = markOf(places, work);
    if (work[0] == '.' || access(mark.c_str(), F_OK) < 0) continue;
    if (isWork(work)) {
      unlink(mark.c_str());
      continue;
    }
    auto run = readFile(mark, mostId);
    if (run.starts_with("r-") && run.find('/') == std::string::npos) removeTree(places.runDir(run));
    removeTree(places.workDir(work));
  }
}

void ContainersAhead::taskFailed(kj::Exception&& exception) { logError("{}", describe(exception)); }

}  // namespace oc::work
