#include "server.h"

#include <kj/debug.h>
#include <signal.h>

#include "base/text.h"
#include "check.h"
#include "facts.h"
#include "gateway_container.h"
#include "images.h"
#include "json_fields.h"
#include "names.h"
#include "proto/convert.h"
#include "refusals.h"

namespace oc::docker {

namespace {

// Fills in the refusal, if there is one; a connection that broke is one as well.
template <typename Context>
kj::Promise<void> answer(Step step, Context context) {
  auto caught = step.catch_([](kj::Exception&& exception) { return std::optional<Refusal>(engineGone(exception)); });
  return caught.then([context](std::optional<Refusal> refusal) mutable {
    if (refusal) write(context.getResults().initRefusal(), *refusal);
  });
}

Step refuse(Refusal refusal) { return std::optional<Refusal>(kj::mv(refusal)); }

template <typename Results>
void setTexts(Results results, const std::vector<std::string>& texts) {
  auto list = results.initLeft(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) list.set(i, toText(shortened(texts[i], 1024)));
}

template <typename Context>
kj::Promise<void> answerRemoved(kj::Promise<OrRefusal<Removed>> removed, Context context) {
  return answer(removed.then([context](OrRefusal<Removed> removed) mutable -> std::optional<Refusal> {
    if (!removed) return removed.refusal();
    context.getResults().setRemoved(removed.value().count);
    setTexts(context.getResults(), removed.value().left);
    return std::nullopt;
  }),
                context);
}

void tell(proto::Docker::ImageResults::Builder results, const Image& image) {
  results.setFound(true);
  auto to = results.initImage();
  to.setId(toText(image.id));
  to.setOs(toText(image.os));
  to.setArchitecture(toText(image.architecture));
  to.setSize(image.size);
  auto digests = to.initRepoDigests(image.repoDigests.size());
  for (size_t i = 0; i < image.repoDigests.size(); ++i) digests.set(i, toText(image.repoDigests[i]));
}

// A gateway ahead of its run. Its stream is the daemon's from here on, which has the other copy of it.
struct PreparingGateway {
  PreparingGateway(Engine& engine, Cleaner& cleaner, kj::Own<kj::AsyncIoStream> stream, GatewaySpec specParam,
                   const std::string& context)
      : engine(engine),
        cleaner(cleaner),
        stream(kj::mv(stream)),
        spec(kj::mv(specParam)),
        gateway(engine, engine, spec, context) {}

  Step run() {
    auto checked = engine.version().then([](Answer answer) { return refuseVersion(answer); });
    auto made = inOrder(
        kj::mv(checked), [this]() { return gateway.makePlaces(); }, [this]() { return gateway.make(); },
        [this]() { return gateway.attachTo(*stream); }, [this]() { return gateway.start(); });
    return made.then([this](std::optional<Refusal> refusal) { return refusal ? undo(kj::mv(*refusal)) : done(); },
                     [this](kj::Exception&& exception) { return undo(engineGone(exception)); });
  }

  Step undo(Refusal refusal) {
    return cleaner.removeRun(spec.owner, spec.name)
        .then([refusal](OrRefusal<Removed>) { return std::optional<Refusal>(refusal); },
              [refusal](kj::Exception&&) { return std::optional<Refusal>(refusal); });  // later, by its labels
  }

  Engine& engine;
  Cleaner& cleaner;
  kj::Own<kj::AsyncIoStream> stream;
  GatewaySpec spec;
  GatewayContainer gateway;
};

// What both kinds of job do.
class DockerServer : public proto::Docker::Server {
 public:
  DockerServer(kit::Context& context, Job job) : context(context), job(kj::mv(job)) {}

  kj::Promise<void> protections(ProtectionsContext call) override {
    kit::answerProtections(context, call.getResults());
    return kj::READY_NOW;
  }

  kj::Promise<void> engine(EngineContext call) override {
    return answer(tellEngine(calls(), call.getResults().initEngine(), job.context), call);
  }

  kj::Promise<void> image(ImageContext call) override {
    auto reference = toString(call.getParams().getReference());
    auto step = calls().version().then([this, reference, call](Answer version) mutable -> Step {
      if (auto refusal = refuseVersion(version)) return refusal;
      return findImage(calls(), reference, textField(version.body, "Arch", 32), job.context)
          .then([call](OrRefusal<std::optional<Image>> found) mutable -> std::optional<Refusal> {
            if (!found) return found.refusal();
            if (auto& image = found.value()) tell(call.getResults(), *image);
            return std::nullopt;
          });
    });
    return answer(kj::mv(step), call);
  }

  kj::Promise<void> pull(PullContext call) override {
    return answer(pullImage(calls(), toString(call.getParams().getReference()), job.context), call);
  }

  kj::Promise<void> inspect(InspectContext call) override {
    auto owner = toString(call.getParams().getOwner()), run = toString(call.getParams().getRun());
    if (auto refusal = refuseOthers(owner, run, true)) return answer(kj::mv(refusal), call);
    auto step =
        cleaner().find(owner, run).then([this, call](OrRefusal<std::vector<FoundContainer>> found) mutable -> Step {
          if (!found) return refuse(found.refusal());
          return tellContainers(calls(), kj::mv(found.value()), call.getResults(), job.context);
        });
    return answer(kj::mv(step), call);
  }

  kj::Promise<void> remove(RemoveContext call) override {
    auto owner = toString(call.getParams().getOwner()), run = toString(call.getParams().getRun());
    auto gateway = toString(call.getParams().getGateway());
    if (auto refusal = refuseOthers(owner, run, false)) return answer(kj::mv(refusal), call);
    if (!gateway.empty() && !mayRemoveGateway(gateway)) return answer(refuse(notOurs()), call);
    return answerRemoved(cleaner().removeRun(owner, run, gateway), call);
  }

 protected:
  virtual Engine& calls() = 0;
  virtual Cleaner& cleaner() = 0;
  virtual bool mayRemoveGateway(const std::string& name) const { return isPreparedName(name); }

  static Refusal notOurs() { return {"sandbox_denied", "this instance has another job", ""}; }

  // What is not in this job, or has no proper name: an empty one would be anybody's.
  std::optional<Refusal> refuseOthers(const std::string& owner, const std::string& run, bool allRuns) const {
    bool proper = isProperName(owner) && (isProperName(run) || (run.empty() && allRuns && job.run.empty()));
    bool ours = (job.owner.empty() || owner == job.owner) && (job.run.empty() || run == job.run);
    if (proper && ours) return std::nullopt;
    return notOurs();
  }

  kit::Context& context;
  Job job;
};

class TaskServer final : public DockerServer {
 public:
  TaskServer(kit::Context& context, Job jobParam, kj::Array<kj::Own<kj::AsyncIoStream>> streamsParam)
      : DockerServer(context, kj::mv(jobParam)),
        streams(kj::mv(streamsParam)),
        first(kj::mv(streams[0])),
        theCleaner(timer(), first, secondOrFirst(), job.context) {}

  kj::Promise<void> sweep(SweepContext call) override {
    auto owner = toString(call.getParams().getOwner());
    if (auto refusal = refuseOthers(owner, "", true)) return answer(kj::mv(refusal), call);
    std::vector<std::string> keep;
    for (auto run : call.getParams().getKeep()) keep.push_back(toString(run));
    return answerRemoved(theCleaner.sweep(owner, kj::mv(keep)), call);
  }

  kj::Promise<void> check(CheckContext call) override {
    KJ_REQUIRE(streams.size() >= checkConnections, "a check needs three connections", streams.size());
    KJ_REQUIRE(streams[1].get() != nullptr, "an instance checks once");
    auto params = call.getParams().getSpec();
    auto spec = readSpec(params);
    if (!spec) return answer(refuse(spec.refusal()), call);
    if (auto refusal = refuseOthers(spec.value().owner, spec.value().run, false)) return answer(kj::mv(refusal), call);
    Checking::Setup setup{kj::mv(streams[1]), kj::mv(streams[2]), kj::mv(spec.value()), params.getGatewayPolicy()};
    auto checking = kj::heap<Checking>(timer(), first, kj::mv(setup), job.context);
    auto step = checking->run();
    return answer(step.then([call, checking = kj::mv(checking)](std::optional<Refusal> refusal) mutable {
      call.getResults().setExitCode(checking->exitCode());
      call.getResults().setOutput(toData(checking->output()));
      return refusal;
    }),
                  call);
  }

  kj::Promise<void> prepareGateway(PrepareGatewayContext call) override {
    KJ_REQUIRE(streams.size() >= 2 && streams[1].get() != nullptr, "a gateway needs a connection of its own");
    auto spec = readSpec(call.getParams().getSpec());
    if (!spec) return answer(refuse(spec.refusal()), call);
    if (auto refusal = refuseOthers(spec.value().owner, spec.value().name, false)) return answer(kj::mv(refusal), call);
    auto preparing =
        kj::heap<PreparingGateway>(first, theCleaner, kj::mv(streams[1]), kj::mv(spec.value()), job.context);
    auto step = preparing->run();
    return answer(step.attach(kj::mv(preparing)), call);
  }

 private:
  // Calls, the agent's stream, the gateway's.
  static constexpr size_t checkConnections = 3;

  Engine& secondOrFirst() {
    if (streams.size() <= checkConnections) return first;
    return *second.emplace(kj::heap<Engine>(kj::mv(streams[checkConnections])));
  }

  Engine& calls() override { return first; }
  Cleaner& cleaner() override { return theCleaner; }
  kj::Timer& timer() { return context.io.provider->getTimer(); }

  kj::Array<kj::Own<kj::AsyncIoStream>> streams;
  Engine first;
  kj::Maybe<kj::Own<Engine>> second;
  Cleaner theCleaner;
};

class RunServer final : public DockerServer {
 public:
  RunServer(kit::Context& context, Job job, kj::Own<RunLife> life)
      : DockerServer(context, kj::mv(job)), life(kj::mv(life)) {}

  kj::Promise<void> create(CreateContext call) override {
    auto spec = readSpec(call.getParams().getSpec());
    if (!spec) return answer(refuse(spec.refusal()), call);
    auto step = life->create(kj::mv(spec.value())).then([this, call](std::optional<Refusal> refusal) mutable {
      if (!refusal) {
        call.getResults().setAgent(toText(life->agentId()));
        call.getResults().setGateway(toText(life->gatewayId()));
      }
      return refusal;
    });
    return answer(kj::mv(step), call);
  }

  kj::Promise<void> start(StartContext call) override { return answer(life->start(), call); }

  kj::Promise<void> resize(ResizeContext call) override {
    return answer(life->resize(call.getParams().getColumns(), call.getParams().getRows()), call);
  }

 private:
  Engine& calls() override { return life->engine(); }
  Cleaner& cleaner() override { return life->cleaner(); }
  bool mayRemoveGateway(const std::string& name) const override { return name == life->preparedGateway(); }

  kj::Own<RunLife> life;
};

class ProcessServer final : public proto::Process::Server {
 public:
  explicit ProcessServer(kj::Own<RunLife> life) : life(kj::mv(life)) {}

  kj::Promise<void> signal(SignalContext call) override { return life->signal(call.getParams().getNumber()); }

  kj::Promise<void> wait(WaitContext call) override {
    return life->wait().then([call](AgentEnd end) mutable {
      auto status = call.getResults().initStatus();
      write(status, end.end);
      if (!end.end.known) status.setUnknown(toText(end.why));
    });
  }

 private:
  kj::Own<RunLife> life;
};

// The connection to the shim, for as long as this process lives: the daemon's may be gone long before.
struct Shim {
  Shim(kit::Context& context, RunLife& life)
      // The shim reads the agent's bytes: it is bounded like a stranger.
      : connection(context.io.lowLevelProvider->wrapSocketFd(kj::AutoCloseFd(shimDescriptor)),
                   capnp::rpc::twoparty::Side::SERVER, kj::heap<ProcessServer>(kj::addRef(life)), instanceLimits(),
                   "the shim"),
        gone(connection.onDisconnect().then([&life]() { life.shimGone(); }).eagerlyEvaluate(nullptr)) {}

  Connection connection;
  kj::Promise<void> gone;
};

}  // namespace

capnp::Capability::Client serveTask(kit::Context& context, Job job, kj::Array<kj::Own<kj::AsyncIoStream>> connections) {
  return kj::heap<TaskServer>(context, kj::mv(job), kj::mv(connections));
}

capnp::Capability::Client serveRun(kit::Context& context, Job job, kj::Array<kj::Own<kj::AsyncIoStream>> connections) {
  // From a terminal these reach us as well; the shim is who stops the agent.
  for (int number : {SIGINT, SIGQUIT, SIGHUP, SIGTERM}) ::signal(number, SIG_IGN);
  auto life = kj::refcounted<RunLife>(context, job, kj::mv(connections));
  static auto* shim = new Shim(context, *life);  // never deleted: the process ends by _exit
  (void)shim;
  return kj::heap<RunServer>(context, kj::mv(job), kj::mv(life));
}

}  // namespace oc::docker
