#include "connection.h"

#include <kj/debug.h>

#include "base/text.h"
#include "proto/convert.h"

namespace oc::run {

namespace {

constexpr size_t greetingLimit = 4096;
constexpr size_t lineLimit = 1u << 20;
constexpr auto greetingTime = 10 * kj::SECONDS;
constexpr auto partingTime = 5 * kj::SECONDS;

const Refusal badGreeting = {"hello_invalid",
                             "the first line is no {\"open_conduit\": 1, \"token\": …, \"channel\": …} of this version",
                             "connect by open-conduit-toolbelt"};

Json errorOf(const Refusal& refusal) {
  return {{"error", {{"reason", refusal.reason}, {"what", refusal.what}, {"fix", refusal.fix}}}};
}

std::string textAt(const Json& object, const char* key) {
  auto value = object.value(key, Json());
  return value.is_string() ? value.get<std::string>() : std::string();
}

}  // namespace

// The calls of this connection: their answers go to its writer.
class ToolbeltConnection::OwnCaller final : public Caller {
 public:
  OwnCaller(DaemonCalls& calls, LineWriter& out) : calls(calls), out(out) {}
  kj::Promise<Answer> call(const std::string& operation, Json arguments) override {
    return calls.call(out, operation, kj::mv(arguments));
  }

 private:
  DaemonCalls& calls;
  LineWriter& out;
};

ToolbeltConnection::ToolbeltConnection(World world, kj::Own<kj::AsyncIoStream> streamParam)
    : world(world),
      stream(kj::mv(streamParam)),
      reader(*stream),
      writer(*stream),
      writing(writer.run().eagerlyEvaluate(nullptr)) {}

kj::Promise<void> ToolbeltConnection::serve() {
  auto late = world.timer.afterDelay(greetingTime).then([]() { return kj::Maybe<LineReader::Line>(nullptr); });
  auto served = reader.next(greetingLimit)
                    .exclusiveJoin(kj::mv(late))
                    .then([this](kj::Maybe<LineReader::Line> line) -> kj::Promise<void> {
                      KJ_IF_MAYBE (first, line) {
                        return greet(kj::mv(*first));
                      }
                      return kj::READY_NOW;
                    });
  // A stream that cannot be written to any more ends it, too.
  return served.exclusiveJoin(kj::mv(writing));
}

kj::Promise<void> ToolbeltConnection::greet(LineReader::Line line) {
  auto hello = line.tooLong ? Json(Json::value_t::discarded) : parseJson(line.text);
  if (!hello.is_object() || hello.value("open_conduit", Json()) != 1) return refuse(badGreeting);
  if (!equalSecrets(world.token.view(), textAt(hello, "token"))) {
    return refuse({"token_invalid", "that is not this run's token", "use the run's own OPEN_CONDUIT_TOOLBELT_TOKEN"});
  }
  auto channel = textAt(hello, "channel");
  if (channel == "mcp") return mcp();
  if (channel == "call") return withOneObject([this](const Json& request) { return oneCall(request); });
  if (channel == "git-credential") return withOneObject([this](const Json& request) { return oneCredential(request); });
  return refuse(badGreeting);
}

kj::Promise<void> ToolbeltConnection::refuse(const Refusal& refusal) { return sayLast(errorOf(refusal)); }

kj::Promise<void> ToolbeltConnection::sayLast(const Json& message) {
  writer.send(message.dump(-1, ' ', false, Json::error_handler_t::replace));
  return writer.whenTaken().exclusiveJoin(world.timer.afterDelay(partingTime));
}

// ---- mcp

kj::Promise<void> ToolbeltConnection::mcp() {
  auto caller = kj::heap<OwnCaller>(world.calls, writer);
  auto session =
      kj::heap<McpSession>(world.operations, *caller, [this](const std::string& line) { writer.send(line); });
  auto& ref = *session;
  return mcpLoop(ref).attach(kj::mv(session), kj::mv(caller));
}

kj::Promise<void> ToolbeltConnection::mcpLoop(McpSession& session) {
  if (!session.mayReceive()) return session.whenMayReceive().then([this, &session]() { return mcpLoop(session); });
  if (!writer.hasRoom()) return writer.whenRoom().then([this, &session]() { return mcpLoop(session); });
  return reader.next(lineLimit).then([this, &session](kj::Maybe<LineReader::Line> line) -> kj::Promise<void> {
    KJ_IF_MAYBE (message, line) {
      message->tooLong ? session.refuseTooLong(lineLimit) : session.receive(message->text);
      // Lines that were read together are handled one a turn, so that others have theirs.
      return kj::evalLater([this, &session]() { return mcpLoop(session); });
    }
    // Who has said all may still want the answers.
    return session.whenIdle().then([this]() { return writer.whenTaken(); });
  });
}

// ---- one question, one answer

kj::Promise<void> ToolbeltConnection::withOneObject(kj::Function<kj::Promise<void>(const Json&)> use) {
  return reader.next(lineLimit).then(
      [this, use = kj::mv(use)](kj::Maybe<LineReader::Line> line) mutable -> kj::Promise<void> {
        KJ_IF_MAYBE (text, line) {
          auto request = text->tooLong ? Json(Json::value_t::discarded) : parseJson(text->text);
          if (!request.is_object()) {
            return refuse({"request_invalid", "the second line is no JSON object of at most 1 MiB and 64 levels", ""});
          }
          return use(request);
        }
        return kj::READY_NOW;
      });
}

kj::Promise<void> ToolbeltConnection::oneCall(const Json& request) {
  auto name = textAt(request, "operation");
  auto* operation = world.operations.tool(name);
  if (operation == nullptr) {
    return refuse(
        {"operation_denied",
         fmt::format("this run has no operation {}", name.empty() ? "without a name" : shortened(printable(name), 128)),
         "an operation has to be listed by the binding and by its scope's authorization"});
  }
  auto arguments = request.value("arguments", Json::object());
  if (arguments.is_null()) arguments = Json::object();
  auto problem = operation->arguments.problem(arguments);
  if (problem) return refuse({"arguments_invalid", *problem, ""});
  return world.calls.call(writer, operation->name, kj::mv(arguments)).then([this](Answer answer) {
    auto result = parseJson(answer.text);
    if (result.is_discarded()) result = answer.text;
    return sayLast({{"result", result}, {"isError", answer.isError}});
  });
}

kj::Promise<void> ToolbeltConnection::oneCredential(const Json& request) {
  if (!world.operations.has("github.git.credential")) {
    return refuse(
        {"operation_denied", "git has no credential in this run: it has no operation github.git.credential",
         "the operator lists it (or @github.workspace) in the binding's operations and the scope's authorization"});
  }
  if (request.value("rejected", Json()) == true) {
    return world.calls.call(writer, "github.git.credential.rejected", Json::object()).then([this](Answer) {
      return sayLast({{"rejected", true}});
    });
  }
  return world.calls.credential(writer, textAt(request, "protocol"), textAt(request, "host"), textAt(request, "path"))
      .then([this](OrRefusal<Credential> given) {
        if (!given.ok()) return refuse(given.refusal());
        auto& credential = given.value();
        return sayLast({{"username", credential.username}, {"password", std::string(credential.password.view())}});
      });
}

}  // namespace oc::run
