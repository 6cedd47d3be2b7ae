// What a run's shim that was taken over can say to the daemon: its events, and its toolbelt's calls.
#include <stdlib.h>

#include <set>

#include "base/text.h"
#include "daemon/toolbelt/run_toolbelt.h"
#include "daemon/work/agent_parts.h"
#include "hostile_peer.h"
#include "proto/shim_peer.h"
#include "run.capnp.h"
#include "tests/fakes/memory_store.h"

namespace {

using namespace oc;

// What is told is bounded, whatever was said.
class Listener final : public work::AgentListener {
 public:
  kj::Promise<void> onNote(uint64_t, const std::string& text) override { return bounded(text, 1100); }
  kj::Promise<void> onSession(uint64_t, const std::string& session) override { return bounded(session, 300); }
  kj::Promise<void> onUsage(uint64_t, const state::Usage&) override { return kj::READY_NOW; }
  kj::Promise<void> onNetwork(uint64_t, const state::NetworkTotals&) override { return kj::READY_NOW; }
  kj::Promise<void> onDenied(uint64_t, const state::Denial& denial) override {
    return bounded(denial.kind, 64).then([denial]() { return bounded(denial.what, 1100); });
  }
  kj::Promise<void> onEnded(uint64_t seq, const work::AgentEnd& end) override {
    if (seq == 7) return kj::NEVER_DONE;  // a disk that is full
    if (end.process.known && (end.process.code < 0 || end.process.code > 255)) abort();
    return bounded(end.reason, 64).then([detail = end.detail]() { return bounded(detail, 1100); });
  }
  void onLost(const std::string&) override {}

 private:
  static kj::Promise<void> bounded(const std::string& text, size_t limit) {
    if (text.size() > limit) abort();
    return kj::READY_NOW;
  }
};

const std::vector<std::string> granted = {"conduit.work.get", "conduit.work.note", "conduit.work.finish", "test.do"};

class Work final : public toolbelt::WorkAccess {
 public:
  Work() {
    row.id = "w-1";
    row.title = "title";
  }
  const state::WorkRow& workRow() const override { return row; }
  const std::string& runId() const override { return run; }
  void addWorkNote(const std::string& text) override {
    if (++notes > 100 || text.size() > 3 * 4096 || hasControlCharacters(text.substr(0, text.find('\n')))) abort();
  }
  void askFinish() override {}

 private:
  state::WorkRow row;
  std::string run = "r-1";
  size_t notes = 0;
};

// No operation that the run was not given comes here.
class Owner final : public toolbelt::OperationOwner {
 public:
  kj::Promise<OrRefusal<toolbelt::OperationResult>> call(const std::string&, const std::string&,
                                                         const std::string& operation, const std::string& arguments,
                                                         const toolbelt::CallId&) override {
    if (operation != "test.do" || arguments.size() > (256u << 10)) abort();
    if (arguments.size() % 3 == 0) return kj::NEVER_DONE;
    return OrRefusal<toolbelt::OperationResult>(toolbelt::OperationResult{"{}", false});
  }
  kj::Promise<OrRefusal<toolbelt::GitCredential>> credential(const std::string&, const std::string&, const std::string&,
                                                             const std::string&, const std::string&) override {
    abort();
  }
  void credentialRejected(const std::string&, const std::string&) override {}
  void runEnded(const std::string&, const std::string&) override {}
};

std::vector<fuzz::Method> methods() {
  std::vector<fuzz::Method> all = {{capnp::typeId<proto::RunHost>(), 0}};
  for (uint16_t i = 0; i < 5; ++i) all.push_back({capnp::typeId<proto::Toolbelt>(), i});
  return all;
}

// The daemon's side of a run that has just begun.
struct Daemon {
  Daemon(kj::Own<kj::AsyncIoStream> stream)
      : connection(kj::mv(stream), capnp::rpc::twoparty::Side::CLIENT, nullptr, shimLimits(), "a run's shim") {
    auto begin = connection.bootstrapOfPeer().castAs<proto::Shim>().beginRequest();
    begin.setHost(work::hostFor(kj::addRef(*door), timer));
    begin.setToolbelt(belt.capability());
    begun = begin.send()
                .then([this](auto&& response) { session = response.getSession(); })
                .eagerlyEvaluate([](kj::Exception&&) {});
  }
  // Calls outlive their connection.
  ~Daemon() noexcept(false) { door->close(); }
  void inject() {
    auto request = session.injectRequest();
    request.setId("m-1");
    injected = request.send()
                   .then([](auto&& response) {
                     if (work::bounded(response.getWhy(), 256).size() > 300) abort();
                   })
                   .eagerlyEvaluate([](kj::Exception&&) {});
  }

  kj::TimerImpl timer{kj::origin<kj::TimePoint>()};
  Listener listener;
  kj::Own<work::EventDoor> door = kj::refcounted<work::EventDoor>(listener);
  fakes::MemoryStore store;
  toolbelt::Owners owners;
  Owner owner;
  toolbelt::FairQueue queue{4, 16};
  Work work;
  struct Registered {
    Registered(toolbelt::Owners& owners, Owner& owner) {
      owners.add("test.", owner);
      owners.add("github.", owner);
    }
  } registered{owners, owner};
  toolbelt::RunToolbelt belt{toolbelt::Shared{store, owners, queue}, work, granted};
  proto::RunSession::Client session = KJ_EXCEPTION(FAILED, "not begun");
  Connection connection;
  kj::Promise<void> begun = nullptr, injected = nullptr;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto io = kj::setupAsyncIo();
  fuzz::Input input(data, size,
                    {"conduit.work.get", "conduit.work.note", "test.do", "test.other", "github.git.credential", "{}"});
  auto pipe = io.provider->newTwoWayPipe();
  {
    Daemon daemon(kj::mv(pipe.ends[0]));
    fuzz::HostilePeer peer(kj::mv(pipe.ends[1]), methods());
    io.waitScope.poll();
    for (int steps = 0; !input.done() && !peer.isCutOff() && steps < 300; ++steps) {
      switch (input.below(16)) {
        case 0: daemon.belt.revoke(); break;
        case 1: daemon.inject(); break;
        case 4: daemon.timer.advanceTo(daemon.timer.now() + 10 * kj::SECONDS); break;
        case 2:
        case 3: peer.answer(input); break;
        default: peer.say(input);
      }
      io.waitScope.poll();
    }
  }
  io.waitScope.poll();
  return 0;
}
