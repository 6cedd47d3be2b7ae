#include "prepared_gateways.h"

#include <kj/debug.h>

#include <algorithm>

#include "base/crypto.h"
#include "base/error.h"
#include "base/log.h"
#include "quiet_stream.h"

namespace oc::work {

namespace {

// The run that took the last one is being started just then, and whoever waits for it comes first.
constexpr auto quiet = 1 * kj::SECONDS;

}  // namespace

struct PreparedGateways::Waiting {
  PreparedGateway release() {
    stream.stop();
    return kj::mv(gateway);
  }

  GatewayKind kind;
  PreparedGateway gateway;
  QuietStream stream;
};

PreparedGateways::PreparedGateways(supervisor::Supervisor& supervisor, Engines& engines, OnLeftover onLeftover)
    : supervisor(supervisor),
      engines(engines),
      onLeftover(std::move(onLeftover)),
      closing(kj::mv(ending.promise).fork()),
      tasks(*this) {}

PreparedGateways::~PreparedGateways() noexcept(false) = default;

void PreparedGateways::configure(size_t numberParam, std::vector<std::string> socketsParam) {
  number = numberParam;
  sockets = std::move(socketsParam);
  dropWhere([this](const Waiting& one) {
    return std::find(sockets.begin(), sockets.end(), one.kind.socket) == sockets.end();
  });
  for (size_t i = pool.size(); i-- > 0;) {
    if (waitingFor(pool[i]->kind) > number) drop(i);
  }
}

kj::Maybe<PreparedGateway> PreparedGateways::take(const GatewayKind& kind) {
  dropWhere([&kind](const Waiting& one) {
    return one.kind.socket == kind.socket && (one.kind != kind || !isQuiet(one.gateway.stream));
  });
  for (auto at = pool.begin(); at != pool.end(); ++at) {
    if ((*at)->kind != kind) continue;
    auto gateway = (*at)->release();
    pool.erase(at);
    return kj::mv(gateway);
  }
  return nullptr;
}

void PreparedGateways::giveBack(const GatewayKind& kind, PreparedGateway gateway) {
  keep(kind, kj::mv(gateway));
  configure(closed ? 0 : number, sockets);
}

void PreparedGateways::keep(const GatewayKind& kind, PreparedGateway gateway) {
  int fd = gateway.stream;
  auto hasEnded = [this, name = gateway.name]() {
    dropWhere([&name](const Waiting& one) {
      bool is = one.gateway.name == name;
      if (is) logWarning("the gateway {}, which was made ahead, has ended", name);
      return is;
    });
  };
  QuietStream stream(supervisor.context().unixEventPort, fd, tasks, hasEnded);
  pool.push_back(kj::heap<Waiting>(Waiting{kind, kj::mv(gateway), kj::mv(stream)}));
}

size_t PreparedGateways::waitingFor(const GatewayKind& kind) const {
  return static_cast<size_t>(std::count_if(pool.begin(), pool.end(), [&kind](auto& one) { return one->kind == kind; }));
}

bool PreparedGateways::wants(const GatewayKind& kind) const {
  return !closed && waitingFor(kind) < number &&
         std::find(sockets.begin(), sockets.end(), kind.socket) != sockets.end();
}

void PreparedGateways::replenish(const GatewayKind& kind) {
  if (!wants(kind) || making.count(kind.socket) != 0) return;
  auto made = supervisor.timer()
                  .afterDelay(quiet)
                  .exclusiveJoin(closing.addBranch())
                  .then([this, kind]() { return make(kind); })
                  .catch_([](kj::Exception&& e) { logWarning("{}", describe(e)); })
                  .fork();
  // Not from there: it would be its own promise that is erased.
  tasks.add(made.addBranch().then(
      [this, socket = kind.socket]() { return kj::evalLater([this, socket]() { making.erase(socket); }); }));
  making.emplace(kind.socket, kj::mv(made));
}

kj::Promise<void> PreparedGateways::make(GatewayKind kind) {
  if (!wants(kind)) return kj::READY_NOW;
  auto name = newId("g-");
  return engines.prepareGateway(kind.socket, name, kind.image, kind.user)
      .then([this, kind, name](OrRefusal<kj::AutoCloseFd> stream) -> kj::Promise<void> {
        if (!stream.ok()) {
          logWarning("no gateway could be made ahead: {}", stream.refusal().what);
          return kj::READY_NOW;
        }
        bool wanted = wants(kind);
        keep(kind, {name, kj::mv(stream.value())});
        if (!wanted) drop(pool.size() - 1);
        return make(kind);
      });
}

void PreparedGateways::drop(size_t index) {
  auto& one = *pool[index];
  auto name = one.gateway.name, socket = one.kind.socket;
  pool.erase(pool.begin() + static_cast<std::ptrdiff_t>(index));
  tasks.add(remove(socket, name));
}

void PreparedGateways::dropWhere(const std::function<bool(const Waiting&)>& which) {
  for (size_t i = pool.size(); i-- > 0;) {
    if (which(*pool[i])) drop(i);
  }
}

kj::Promise<void> PreparedGateways::remove(std::string socket, std::string name) {
  return engines.remove(socket, name).then([this, socket, name](std::vector<std::string> left) {
    for (auto& what : left) onLeftover(socket, name, what);
  });
}

// One that is just being made is waited for: what the Engine was asked to make, it makes.
kj::Promise<void> PreparedGateways::close() {
  closed = true;
  ending.fulfiller->fulfill();
  kj::Vector<kj::Promise<void>> all;
  for (auto& [socket, made] : making) all.add(made.addBranch());
  return kj::joinPromises(all.releaseAsArray()).then([this]() {
    dropWhere([](const Waiting&) { return true; });
    return tasks.onEmpty();
  });
}

void PreparedGateways::taskFailed(kj::Exception&& exception) { logError("{}", describe(exception)); }

}  // namespace oc::work
