// A run's toolbelt as its agent meets it, in this process: the shim's server, a daemon that is a fake, and connections
// to it.
#pragma once

#include <capnp/message.h>
#include <kj/async-io.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/json.h"
#include "proto/convert.h"
#include "providers/run/toolbelt/server.h"

namespace oc::test {

inline std::string repeated(const std::string& text, size_t times) {
  std::string result;
  for (size_t i = 0; i < times; ++i) result += text;
  return result;
}

constexpr const char* anyObject = R"({"type":"object"})";

struct FakeOperation {
  std::string name, schema = anyObject;
  bool hidden = false;
};

// Answers, or lets calls wait until `release`.
class FakeDaemon final : public proto::Toolbelt::Server {
 public:
  struct State {
    std::vector<std::string> called;  // "operation arguments"
    bool holds = false;
    size_t held = 0, mostHeld = 0;
    std::vector<kj::Own<kj::PromiseFulfiller<void>>> waiting;
    std::string answer = R"({"fine":true})";
    bool isError = false;

    void release() {
      for (auto& one : waiting) one->fulfill();
      waiting.clear();
    }
  };
  explicit FakeDaemon(State& state) : state(state) {}

  kj::Promise<void> call(CallContext context) override {
    auto operation = toString(context.getParams().getOperation());
    state.called.push_back(operation + " " + toString(context.getParams().getArguments()));
    return held().then([this, context, operation]() mutable {
      auto results = context.getResults();
      if (operation == "test_simple_text") {
        results.setResult(toData("This is a simple text response for testing."));
      } else {
        results.setResult(toData(state.answer));
      }
      results.setIsError(state.isError || operation == "test_error_handling");
    });
  }
  kj::Promise<void> getWork(GetWorkContext context) override {
    state.called.push_back("getWork");
    return held().then([context]() mutable {
      auto work = context.getResults().initWork();
      work.setId("w-1");
      work.setTitle("A title");
      work.setBody(toData("The request\xff"));
    });
  }
  kj::Promise<void> gitCredential(GitCredentialContext context) override {
    state.called.push_back("gitCredential " + toString(context.getParams().getHost()));
    context.getResults().setUsername("x-access-token");
    context.getResults().setPassword("a-password");
    return kj::READY_NOW;
  }

 private:
  kj::Promise<void> held() {
    if (!state.holds) return kj::READY_NOW;
    state.mostHeld = std::max(state.mostHeld, ++state.held);
    auto paf = kj::newPromiseAndFulfiller<void>();
    state.waiting.push_back(kj::mv(paf.fulfiller));
    return paf.promise.attach(kj::defer([this]() { --state.held; }));
  }
  State& state;
};

// One connection, from the agent's side.
class AgentEnd {
 public:
  AgentEnd(kj::AsyncIoContext& io, kj::Own<kj::AsyncIoStream> stream) : io(io), stream(kj::mv(stream)) {}

  void say(const std::string& line) { write(line + "\n"); }
  void write(const std::string& bytes) { stream->write(bytes.data(), bytes.size()).wait(io.waitScope); }
  void ask(const Json& message) { say(message.dump()); }
  void end() { stream->shutdownWrite(); }

  // The next line; "(nothing)" when none comes within the time, "(end)" when none will.
  std::string line(kj::Duration time = 20 * kj::SECONDS) {
    while (true) {
      auto end = text.find('\n');
      if (end != std::string::npos) {
        auto result = text.substr(0, end);
        text.erase(0, end + 1);
        return result;
      }
      auto late = io.provider->getTimer().afterDelay(time).then([]() { return SIZE_MAX; });
      auto n = stream->tryRead(buffer, 1, sizeof(buffer))
                   .exclusiveJoin(kj::mv(late))
                   .catch_([](kj::Exception&&) { return size_t(0); })
                   .wait(io.waitScope);
      if (n == SIZE_MAX) return "(nothing)";
      if (n == 0) return "(end)";
      text.append(buffer, n);
    }
  }
  Json answer() { return parseJson(line()); }
  bool isQuiet() { return line(200 * kj::MILLISECONDS) == "(nothing)"; }

  kj::AsyncIoContext& io;
  kj::Own<kj::AsyncIoStream> stream;
  std::string text;
  char buffer[65536];
};

class ToolbeltWorld {
 public:
  explicit ToolbeltWorld(std::vector<FakeOperation> operations = {{"conduit.work.get"}, {"test.do"}}) {
    capnp::MallocMessageBuilder message;
    auto setup = message.initRoot<proto::ToolbeltSetup>();
    setup.setToken(toData(std::string(32, '\x5a')));
    auto list = setup.initOperations(operations.size());
    for (size_t i = 0; i < operations.size(); ++i) {
      list[i].setName(toText(operations[i].name));
      list[i].setDescription("What it does.");
      list[i].setInputSchema(toText(operations[i].schema));
      list[i].setHidden(operations[i].hidden);
    }
    server = kj::heap<run::ToolbeltServer>(io.provider->getTimer(), setup.asReader(), [this]() { return alive; });
    attach();
  }
  ~ToolbeltWorld() noexcept(false) { serving.clear(); }

  void attach() { server->attach(kj::heap<FakeDaemon>(daemon)); }

  // Connected, and nothing said.
  kj::Own<AgentEnd> connect() {
    auto pipe = io.provider->newTwoWayPipe();
    serving.push_back(server->serve(kj::mv(pipe.ends[0])).eagerlyEvaluate(nullptr));
    return kj::heap<AgentEnd>(io, kj::mv(pipe.ends[1]));
  }
  kj::Own<AgentEnd> channel(const std::string& name) {
    auto agent = connect();
    agent->ask({{"open_conduit", 1}, {"token", token}, {"channel", name}});
    return agent;
  }
  // After the handshake.
  kj::Own<AgentEnd> mcp(const std::string& version = "2025-11-25") {
    auto agent = channel("mcp");
    agent->ask({{"jsonrpc", "2.0"},
                {"id", "hello"},
                {"method", "initialize"},
                {"params",
                 {{"protocolVersion", version},
                  {"capabilities", Json::object()},
                  {"clientInfo", {{"name", "t"}, {"version", "1"}}}}}});
    agent->line();
    agent->ask({{"jsonrpc", "2.0"}, {"method", "notifications/initialized"}});
    return agent;
  }
  static Json call(const Json& id, const std::string& tool, const Json& arguments = Json::object()) {
    return {{"jsonrpc", "2.0"},
            {"id", id},
            {"method", "tools/call"},
            {"params", {{"name", tool}, {"arguments", arguments}}}};
  }
  void settle() { io.provider->getTimer().afterDelay(50 * kj::MILLISECONDS).wait(io.waitScope); }

  kj::AsyncIoContext io = kj::setupAsyncIo();
  std::string token = repeated("5a", 32);
  FakeDaemon::State daemon;
  bool alive = true;
  kj::Own<run::ToolbeltServer> server;
  std::vector<kj::Promise<void>> serving;
};

}  // namespace oc::test
