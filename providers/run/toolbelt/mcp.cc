#include "mcp.h"

#include <kj/debug.h>

#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "proto/rpc.h"

namespace oc::run {

namespace {

// The newest first. The last that let a message be an array of messages is 2025-03-26, and the one before knew none.
constexpr const char* withoutHandshakeVersion = "2026-07-28";
constexpr const char* handshakeVersions[] = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};
constexpr const char* batchVersion = "2025-03-26";

constexpr const char* versionKey = "io.modelcontextprotocol/protocolVersion";
constexpr const char* capabilitiesKey = "io.modelcontextprotocol/clientCapabilities";
constexpr const char* serverKey = "io.modelcontextprotocol/serverInfo";

enum Code {
  ParseError = -32700,
  InvalidRequest = -32600,
  MethodNotFound = -32601,
  InvalidParams = -32602,
  UnsupportedVersion = -32022
};

constexpr size_t mostCalls = 128;      // under way in one conversation
constexpr size_t mostHeld = 1u << 20;  // bytes of their arguments
constexpr size_t mostInBatch = 64;
constexpr size_t mostId = 256;
constexpr uint64_t toolsFreshMs = 3'600'000;  // a run's operations never change

Json serverInfo() { return {{"name", "open-conduit"}, {"title", "Open Conduit"}, {"version", OPEN_CONDUIT_VERSION}}; }

Json supportedVersions() {
  auto list = Json::array({withoutHandshakeVersion});
  for (auto version : handshakeVersions) list.push_back(version);
  return list;
}

constexpr const char* instructions =
    "The tools of this run's toolbelt. What they do happens outside of your sandbox, in the name of the operator who gave you "
    "this work. conduit.work.get tells what the work is.";

// Strings and whole numbers: what can be given back byte by byte.
bool isId(const Json& id) {
  if (id.is_string()) return id.get_ref<const std::string&>().size() <= mostId;
  return id.is_number_integer();
}

std::string textOf(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string quoted(const std::string& name) { return "\"" + shortened(printable(name), 128) + "\""; }

}  // namespace

// Of an array of messages: its answers go out together.
struct McpSession::Batch {
  Json answers = Json::array();
  size_t open = 0;
};

struct McpSession::Request {
  Json id;
  std::string method;
  Json params;  // an object
  bool handshake = true;
  std::shared_ptr<Batch> batch;
};

struct McpSession::Call {
  Request request;
  size_t size;
  kj::Promise<void> running;
};

McpSession::McpSession(const Operations& operations, Caller& caller, std::function<void(const std::string&)> send)
    : operations(operations), caller(caller), send(std::move(send)), ended(*this) {}

McpSession::~McpSession() noexcept(false) = default;

// ---- what comes in

void McpSession::refuseTooLong(size_t limit) {
  error(nullptr, InvalidRequest, fmt::format("the message has more than {} bytes, and was passed over", limit),
        nullptr);
}

void McpSession::receive(std::string_view line) {
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) return;
  auto message = parseJson(line);
  if (message.is_discarded()) {
    return error(nullptr, ParseError, "this is not JSON in UTF-8, on one line, at most 64 levels deep", nullptr);
  }
  if (!message.is_array()) return handle(std::move(message), nullptr);
  if (version == batchVersion) return handleBatch(message);
  error(nullptr, InvalidRequest, "this version of the protocol has one message a line, and no arrays of them", nullptr);
}

void McpSession::handleBatch(const Json& messages) {
  if (messages.empty() || messages.size() > mostInBatch) {
    return error(nullptr, InvalidRequest, fmt::format("an array has 1 to {} messages", mostInBatch), nullptr);
  }
  auto batch = std::make_shared<Batch>();
  ++batch->open;  // ours, until all are read
  for (auto& message : messages) handle(message, batch);
  if (--batch->open == 0 && !batch->answers.empty()) send(textOf(batch->answers));
}

void McpSession::handle(Json message, const std::shared_ptr<Batch>& batch) {
  if (batch) ++batch->open;
  auto silent = [&batch]() {
    if (batch) --batch->open;  // notifications and answers have no answer
  };
  if (!message.is_object() || message.value("jsonrpc", Json()) != "2.0") {
    return error(nullptr, InvalidRequest, "a message is an object with \"jsonrpc\": \"2.0\"", batch);
  }
  auto method = message.value("method", Json());
  bool hasId = message.contains("id");
  if (method.is_null() && (message.contains("result") || message.contains("error")))
    return silent();  // we asked nothing
  if (hasId && !isId(message["id"])) {
    return error(nullptr, InvalidRequest, "an id is a text of at most 256 bytes or a whole number", batch);
  }
  auto id = hasId ? message["id"] : Json();
  if (!method.is_string()) return error(id, InvalidRequest, "\"method\" is missing, or no text", batch);
  auto params = message.value("params", Json::object());
  if (!hasId) {
    notified(method.get<std::string>(), params);
    return silent();
  }
  if (!params.is_object()) return error(id, InvalidParams, "\"params\" is no object", batch);
  if (calls.count(textOf(id)) != 0) return error(id, InvalidRequest, "a request with this id is under way", batch);
  request({id, method.get<std::string>(), std::move(params), true, batch});
}

void McpSession::notified(const std::string& method, const Json& params) {
  if (method != "notifications/cancelled" || !params.is_object()) return;
  auto found = calls.find(textOf(params.value("requestId", Json())));
  if (found == calls.end()) return;
  auto call = kj::mv(found->second);
  calls.erase(found);
  held -= call->size;
  auto batch = call->request.batch;
  if (batch && --batch->open == 0 && !batch->answers.empty()) send(textOf(batch->answers));
  tellWaiter();
}

// ---- requests

void McpSession::request(Request request) {
  auto meta = request.params.value("_meta", Json());
  request.handshake = request.method != "server/discover" && !(meta.is_object() && meta.contains(versionKey));
  if (request.handshake) return withHandshake(request);
  auto wanted = meta.is_object() ? meta.value(versionKey, Json()) : Json();
  if (!wanted.is_string()) {
    return error(request.id, InvalidParams, std::string("_meta has no ") + versionKey, request.batch);
  }
  if (wanted != withoutHandshakeVersion) {
    return error(request.id, UnsupportedVersion, "this version of the protocol is not spoken here", request.batch,
                 {{"supported", supportedVersions()}, {"requested", shortened(wanted.get<std::string>(), 64)}});
  }
  if (!meta.value(capabilitiesKey, Json()).is_object()) {
    return error(request.id, InvalidParams, std::string("_meta has no ") + capabilitiesKey, request.batch);
  }
  withoutHandshake(request);
}

void McpSession::withHandshake(const Request& request) {
  auto& method = request.method;
  if (method == "initialize") return initialize(request);
  if (method == "ping") return result(request, Json::object());
  bool known = method == "tools/list" || method == "tools/call";
  if (!known) return error(request.id, MethodNotFound, "there is no method " + quoted(method), request.batch);
  if (version.empty()) return error(request.id, InvalidRequest, "\"initialize\" comes first", request.batch);
  method == "tools/list" ? listTools(request) : callTool(request);
}

void McpSession::withoutHandshake(const Request& request) {
  auto& method = request.method;
  if (method == "tools/list") return listTools(request);
  if (method == "tools/call") return callTool(request);
  if (method != "server/discover") {
    return error(request.id, MethodNotFound, "there is no method " + quoted(method), request.batch);
  }
  result(request, {{"supportedVersions", supportedVersions()},
                   {"capabilities", {{"tools", Json::object()}}},
                   {"instructions", instructions},
                   {"ttlMs", toolsFreshMs},
                   {"cacheScope", "private"}});
}

void McpSession::initialize(const Request& request) {
  if (request.batch) return error(request.id, InvalidRequest, "\"initialize\" stands alone", request.batch);
  if (!version.empty()) return error(request.id, InvalidRequest, "\"initialize\" was there already", request.batch);
  auto wanted = request.params.value("protocolVersion", Json());
  if (!wanted.is_string()) return error(request.id, InvalidParams, "\"protocolVersion\" is missing", request.batch);
  version = handshakeVersions[0];
  for (auto known : handshakeVersions) {
    if (wanted == known) version = known;
  }
  result(request, {{"protocolVersion", version},
                   {"capabilities", {{"tools", Json::object()}}},
                   {"serverInfo", serverInfo()},
                   {"instructions", instructions}});
}

void McpSession::listTools(const Request& request) {
  if (request.params.contains("cursor") && !request.params["cursor"].is_null()) {
    return error(request.id, InvalidParams, "there is one page of tools, and no cursor into it", request.batch);
  }
  Json list = {{"tools", operations.tools()}};
  if (!request.handshake) {
    list["ttlMs"] = toolsFreshMs;
    list["cacheScope"] = "private";
  }
  result(request, std::move(list));
}

// ---- calls

void McpSession::callTool(const Request& request) {
  auto name = request.params.value("name", Json());
  if (!name.is_string()) return error(request.id, InvalidParams, "\"name\" is missing, or no text", request.batch);
  auto* operation = operations.tool(name.get<std::string>());
  if (operation == nullptr) {
    return error(request.id, InvalidParams, "there is no tool " + quoted(name.get<std::string>()), request.batch);
  }
  auto arguments = request.params.value("arguments", Json::object());
  if (arguments.is_null()) arguments = Json::object();
  if (!arguments.is_object()) return error(request.id, InvalidParams, "\"arguments\" is no object", request.batch);
  started(request, *operation, std::move(arguments));
}

void McpSession::started(const Request& request, const Operation& operation, Json arguments) {
  auto key = textOf(request.id);
  auto size = textOf(arguments).size();
  auto running = kj::evalNow([&]() -> kj::Promise<Answer> {
    // So that the model reads what is wrong, and can mend it, this is no error of the protocol.
    if (auto problem = operation.arguments.problem(arguments))
      return Answer{"These arguments do not fit. " + *problem, true};
    return caller.call(operation.name, std::move(arguments));
  });
  auto call = kj::heap<Call>(Call{request, size, nullptr});
  auto& ref = *call;
  calls[key] = kj::mv(call);
  held += size;
  // Later, for a call that is answered at once is in the table by then.
  ref.running = running
                    .catch_([](kj::Exception&& exception) {
                      logWarning("a call of the toolbelt: {}", describe(exception));
                      return Answer{"The operation failed in Open Conduit.", true};
                    })
                    .then([this, key](Answer answer) { finished(key, answer); })
                    .eagerlyEvaluate(nullptr);
}

void McpSession::finished(const std::string& key, const Answer& answer) {
  auto found = calls.find(key);
  auto call = kj::mv(found->second);
  calls.erase(found);
  held -= call->size;
  result(call->request,
         {{"content", Json::array({{{"type", "text"}, {"text", answer.text}}})}, {"isError", answer.isError}});
  tellWaiter();
  // Its promise is on the stack here.
  ended.add(kj::evalLater([call = kj::mv(call)]() {}));
}

// ---- what goes out

void McpSession::result(const Request& request, Json result) {
  if (!request.handshake) {
    result["resultType"] = "complete";
    result["_meta"] = {{serverKey, serverInfo()}};
  }
  answer({{"jsonrpc", "2.0"}, {"id", request.id}, {"result", std::move(result)}}, request.batch);
}

void McpSession::error(const Json& id, int code, const std::string& message, const std::shared_ptr<Batch>& batch,
                       Json data) {
  Json error = {{"code", code}, {"message", message}};
  if (!data.is_null()) error["data"] = std::move(data);
  answer({{"jsonrpc", "2.0"}, {"id", id}, {"error", std::move(error)}}, batch);
}

void McpSession::answer(Json message, const std::shared_ptr<Batch>& batch) {
  if (!batch) return send(textOf(message));
  batch->answers.push_back(std::move(message));
  if (--batch->open == 0) send(textOf(batch->answers));
}

bool McpSession::mayReceive() const { return calls.size() < mostCalls && held < mostHeld; }

kj::Promise<void> McpSession::whenMayReceive() {
  if (mayReceive()) return kj::READY_NOW;
  auto paf = kj::newPromiseAndFulfiller<void>();
  waiter = kj::mv(paf.fulfiller);
  return kj::mv(paf.promise);
}

kj::Promise<void> McpSession::whenIdle() {
  if (calls.empty()) return kj::READY_NOW;
  auto paf = kj::newPromiseAndFulfiller<void>();
  idleWaiter = kj::mv(paf.fulfiller);
  return kj::mv(paf.promise);
}

void McpSession::tellWaiter() {
  if (waiter.get() != nullptr && mayReceive()) kj::mv(waiter)->fulfill();
  if (idleWaiter.get() != nullptr && calls.empty()) kj::mv(idleWaiter)->fulfill();
}

void McpSession::taskFailed(kj::Exception&& exception) { logWarning("{}", describe(exception)); }

}  // namespace oc::run
