// GitHub's provider, taken over: what it says of events, tokens and repositories, as the daemon takes it in; and the
// listener for webhooks.
#include <stdlib.h>
#include <unistd.h>

#include "base/text.h"
#include "daemon/github/intake.h"
#include "daemon/github/owner.h"
#include "daemon/github/status.h"
#include "daemon/github/webhooks.h"
#include "fake_supervisor.h"

namespace {

using namespace oc;

struct Sink final : public hub::WorkSink {
  OrRefusal<hub::NewWork> describe(const hub::Route& route, uint64_t, const std::string& title,
                                   const std::string& body) override {
    // What is GitHub's is bounded by the time that it is asked to be Work.
    if (body.size() > (17u << 20)) abort();
    if (title.size() > 1024 || hasControlCharacters(title) || !isUtf8(title)) {
      return Refusal{"request_invalid", "no title", ""};
    }
    hub::NewWork made;
    made.work.id = "w-" + std::to_string(++count);
    made.work.scope = route.scope;
    made.work.binding = route.binding;
    made.work.title = title;
    made.run.id = "r-" + std::to_string(count);
    made.run.work = made.work.id;
    return made;
  }
  void added(const std::string&) override {}
  void dropped(const hub::NewWork&) override {}
  kj::Promise<void> deliver(const std::string&, const std::string&, const std::string& text,
                            const std::string&) override {
    if (text.size() > (2u << 20)) abort();
    return kj::READY_NOW;
  }
  void end(const std::string&) override {}
  bool isOpen(const std::string&) override { return true; }
  int count = 0;
};

std::string database() {
  const char* named = getenv("FUZZ_STATE");
  return (named != nullptr ? std::string(named) : "/tmp") + "/g" + std::to_string(getpid()) + ".db";
}

hub::ReadSecret secrets() {
  return [](std::string, std::string) -> kj::Promise<OrRefusal<SecretBytes>> {
    return OrRefusal<SecretBytes>(SecretBytes("secret"));
  };
}

struct Daemon {
  explicit Daemon(kj::AsyncIoContext& io) : supervisor(io, "/nowhere") {
    for (auto suffix : {"", "-wal", "-shm"}) unlink((database() + suffix).c_str());
    auto opened = state::Store::open(database());
    if (!opened.ok()) abort();
    store = std::move(opened.value());
    hub::ConnectionSpec spec;
    spec.id = "github";
    spec.key = "keyring:key";
    connection = kj::heap<hub::Connection>(supervisor, spec, secrets());
    hub::Route route;
    route.name = "issues";
    route.scope = "web";
    route.binding = "agent";
    route.activePolicy = "inject";
    intake =
        kj::heap<hub::Intake>(*connection, store->gitHub(), sink, std::vector<hub::Source>{{"acme/web", {route}, 1}});
    owner = kj::heap<hub::Owner>([](const std::string&, const std::string&) -> OrRefusal<hub::RunScope> {
      return hub::RunScope{"github", "acme/web", 1, "agent/1", "main"};
    });
    owner->add(*connection);
    status = kj::heap<hub::Status>(*connection, store->gitHub());
    webhooks =
        kj::heap<hub::Webhooks>(supervisor, 0, "keyring:hook", secrets(), std::vector<hub::Intake*>{intake.get()});
  }

  void ask(size_t what) {
    switch (what) {
      case 0: doing(intake->look("acme/web").ignoreResult()); break;
      case 1:
        doing(owner->credential("w-1", "r-1", "https", "github.com", "acme/web.git").then([](auto&& given) {
          if (given.ok() && given.value().password.size() > 4096) abort();
        }));
        break;
      case 2: doing(owner->call("w-1", "r-1", "github.issue.get", "{}", {"c1", true}).ignoreResult()); break;
      case 3: owner->runEnded("w-1", "r-1"); break;
      case 4: doing(connection->facts("acme/web").ignoreResult()); break;
      case 5: doing(connection->examine({"acme/web"}, {"issues=write"}).ignoreResult()); break;
      case 6: {
        auto work = store->allWork();
        auto runs = store->recentRuns(1);
        if (!work.empty() && !runs.empty()) status->note(work.front(), runs.front());
      }
    }
  }
  void doing(kj::Promise<void> promise) {
    all.push_back(promise.eagerlyEvaluate([](kj::Exception&&) {}));
  }

  supervisor::Supervisor supervisor;
  std::unique_ptr<state::Store> store;
  Sink sink;
  kj::Own<hub::Connection> connection;
  kj::Own<hub::Intake> intake;
  kj::Own<hub::Owner> owner;
  kj::Own<hub::Status> status;
  kj::Own<hub::Webhooks> webhooks;
  std::vector<kj::Promise<void>> all;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto io = kj::setupAsyncIo();
  fuzz::Input input(data, size, {"acme/web", "octocat", std::string(64, 'a'), "ghs_token", "main", "{}"});
  {
    Daemon daemon(io);
    for (int steps = 0; !input.done() && steps < 200; ++steps) {
      io.waitScope.poll();
      auto peers = fuzz::livePeers();
      auto what = input.below(16);
      if (what < 7) {
        daemon.ask(what);
      } else if (!peers.empty()) {
        auto& peer = *peers[input.below(peers.size())];
        if (what < 10) {
          peer.say(input);
        } else {
          peer.answer(input);
        }
      }
      io.waitScope.poll();
    }
    if (daemon.store->integrity() != "ok") abort();
    daemon.all.clear();
    fuzz::forgetPeers();
    io.waitScope.poll();
  }
  io.waitScope.poll();
  for (auto suffix : {"", "-wal", "-shm"}) unlink((database() + suffix).c_str());
  return 0;
}
