#include "claude_code.h"

#include <fmt/format.h>
#include <kj/debug.h>

#include "base/crypto.h"
#include "base/json.h"
#include "base/text.h"

namespace oc::run {

namespace {

constexpr size_t mostHeldErrors = 64 << 10;
constexpr size_t mostSaid = 4096;
constexpr size_t mostMessages = 1000;       // that a run remembers
constexpr size_t mostUnwritten = 4u << 20;  // of messages that the agent does not read

// The same id gives the same uuid, so that a message that comes twice is one to the agent, too.
std::string uuidOf(const std::string& id) {
  auto hex = sha256Hex("open-conduit message " + id);
  return hex.substr(0, 8) + "-" + hex.substr(8, 4) + "-5" + hex.substr(13, 3) + "-a" + hex.substr(17, 3) + "-" +
         hex.substr(20, 12);
}

std::string userLine(const std::string& uuid, const std::string& text) {
  Json message = {{"type", "user"},
                  {"uuid", uuid},
                  {"message", {{"role", "user"}, {"content", {{{"type", "text"}, {"text", text}}}}}}};
  return message.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string orElse(const std::string& text, const char* otherwise) { return text.empty() ? otherwise : text; }

// The second where what it was told is no name that a session could have, the third where the session's file is there
// and cannot be read.
bool isAboutSession(const std::string& error) {
  return error.find("No conversation found") != error.npos ||
         error.find("--resume requires a valid session") != error.npos ||
         error.find("Failed to resume session") != error.npos;
}

std::string shown(const std::string& text) { return shortened(printable(text), 600); }

}  // namespace

ClaudeCodeExecutor::ClaudeCodeExecutor(const std::string& configJson, ExecutorHost& host) : host(host) {
  auto config = parseJson(configJson);
  KJ_REQUIRE(config.is_object(), "the executor's config is no JSON object");
  firstId = config.value("message", "first");
  resumed = config.value("session", "");
  for (auto& name : config.value("required_servers", Json::array())) required.insert(name.get<std::string>());
  endWithin = config.value("end_seconds", uint64_t{20}) * kj::SECONDS;
  mostRetries = config.value("most_retries", mostRetries);
}

void ClaudeCodeExecutor::start(std::string brief) { host.write(userLine(uuidOf(firstId), brief)); }

// ---- the streams

void ClaudeCodeExecutor::received(Stream stream, kj::ArrayPtr<const kj::byte> bytes, RunLog& log) {
  std::string_view view(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
  if (stream == Stream::Output) {
    output(view, log);
  } else {
    errors(view, log);
  }
}

void ClaudeCodeExecutor::output(std::string_view bytes, RunLog& log) {
  auto append = [&log](std::string_view piece) {
    log.append(kj::arrayPtr(reinterpret_cast<const kj::byte*>(piece.data()), piece.size()));
  };
  while (!bytes.empty()) {
    if (!midLine && midErrorLine) {
      append("\n");
      midErrorLine = false;
    }
    auto end = bytes.find('\n');
    auto piece = bytes.substr(0, end);
    reader.feed(piece);
    midLine = true;
    if (end == std::string_view::npos) return append(bytes);
    append(bytes.substr(0, end + 1));
    endLine();
    midLine = false;
    flushErrors(log);
    bytes.remove_prefix(end + 1);
  }
}

// The two streams share a log; a line of one is not cut by the other, as far as memory allows.
void ClaudeCodeExecutor::errors(std::string_view bytes, RunLog& log) {
  if (said.size() < mostSaid) said += bytes.substr(0, mostSaid - said.size());
  bool fits = heldErrors.size() + bytes.size() <= mostHeldErrors;
  if (!fits) flushErrors(log);
  if (bytes.size() > mostHeldErrors) {
    log.append(kj::arrayPtr(reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()));
    return;
  }
  heldErrors += bytes;
  if (!midLine) flushErrors(log);
}

void ClaudeCodeExecutor::flushErrors(RunLog& log) {
  if (heldErrors.empty()) return;
  log.append(kj::arrayPtr(reinterpret_cast<const kj::byte*>(heldErrors.data()), heldErrors.size()));
  midErrorLine = !heldErrors.ends_with('\n');
  heldErrors.clear();
}

void ClaudeCodeExecutor::endLine() {
  auto* line = reader.finish();
  if (line == nullptr) return plainLine(reader.beginning());
  event(*line);
}

void ClaudeCodeExecutor::plainLine(const std::string& text) {
  if (said.size() < mostSaid) said += text.substr(0, mostSaid - said.size()) + "\n";
}

// ---- what it says

void ClaudeCodeExecutor::event(const ClaudeLine& line) {
  bool known = line.type == "system" || line.type == "assistant" || line.type == "user" || line.type == "result" ||
               line.type == "command_lifecycle" || line.type == "stream_event";
  if (known && !line.session.empty() && line.session != session && line.type != "result") {
    session = shortened(printable(line.session), 256);
    host.tellSession(session);
  }
  if (line.type == "system" && line.subtype == "init") onInit(line);
  if (line.type == "system" && line.subtype == "api_retry") onRetry(line);
  if (line.type == "assistant") retries = 0;
  if (line.type == "user" && line.isReplay) acknowledge(line.uuid, true, "");
  if (line.type == "command_lifecycle") {
    if (line.state == "started") acknowledge(line.commandUuid, true, "");
    if (line.state == "cancelled") acknowledge(line.commandUuid, false, "the agent dropped it");
  }
  if (line.type == "result") return onResult(line);
  bool goesOn = line.type == "assistant" || line.type == "user" || (line.type == "system" && line.subtype == "init");
  if (waitsForEnd && !closed && goesOn) {
    waitsForEnd = false;
    host.expectNoEnd();
  }
}

void ClaudeCodeExecutor::onInit(const ClaudeLine& line) {
  begun = true;
  for (auto& name : required) {
    auto found = line.servers.find(name);
    auto status = found == line.servers.end() ? "missing" : found->second;
    if (status == "connected" || status == "pending") continue;
    return giveUp("mcp_failed", fmt::format("its MCP server {} is {}", name, shown(status)));
  }
}

// It retries by itself, longer and longer; CLAUDE_CODE_MAX_RETRIES bounds it, and this one that does not obey.
void ClaudeCodeExecutor::onRetry(const ClaudeLine& line) {
  auto why = shown(orElse(line.error, "no word why"));
  if (retries == 0)
    host.tellNote(
        fmt::format("the API answered {} ({}); Claude Code tries again", orElse(line.apiStatus, "nothing"), why));
  if (++retries > mostRetries) {
    giveUp("retry_storm", fmt::format("{} calls of the API in a row failed, the last with {} ({})", retries,
                                      orElse(line.apiStatus, "no answer"), why));
  }
}

void ClaudeCodeExecutor::onResult(const ClaudeLine& line) {
  result = std::make_unique<ClaudeLine>(line);
  // Tokens and cost are of all turns so far; the number of turns is of this one.
  auto turns = usage.turns + line.usage.turns;
  if (line.hasUsage) usage = line.usage;
  usage.costMicroUsd = std::max(usage.costMicroUsd, line.usage.costMicroUsd);
  usage.turns = turns;
  host.tellUsage(usage);
  waitsForEnd = true;
  if (openMessages() == 0) {
    closed = true;
    host.closeInput();
  }
  host.expectEnd(endWithin);
}

// Nothing more is expected of it.
void ClaudeCodeExecutor::giveUp(const std::string& word, const std::string& text) {
  if (!givenUp.word.empty()) return;
  givenUp = {word, text};
  closed = true;
  refuseAll("the run is being ended");
  host.closeInput();
  host.expectEnd(0 * kj::SECONDS);
}

// ---- messages

kj::Promise<Delivery> ClaudeCodeExecutor::inject(const std::string& id, const std::string& text) {
  auto known = messages.find(id);
  if (known != messages.end()) return known->second.answer.addBranch();
  if (closed) return Delivery{false, "the agent's turn has ended"};
  if (host.unwritten() + text.size() > mostUnwritten) return Delivery{false, "the agent does not read what it is told"};
  if (messages.size() >= mostMessages) return Delivery{false, "a run takes at most 1000 messages"};
  auto pair = kj::newPromiseAndFulfiller<Delivery>();
  auto uuid = uuidOf(id);
  auto added = messages.emplace(id, Message{uuid, kj::mv(pair.fulfiller), pair.promise.fork(), true});
  host.write(userLine(uuid, text));
  return added.first->second.answer.addBranch();
}

void ClaudeCodeExecutor::acknowledge(const std::string& uuid, bool delivered, const char* why) {
  for (auto& [id, message] : messages) {
    if (!message.open || message.uuid != uuid) continue;
    message.open = false;
    message.fulfiller->fulfill(Delivery{delivered, why});
  }
}

void ClaudeCodeExecutor::refuseAll(const char* why) {
  for (auto& [id, message] : messages) {
    if (message.open) message.fulfiller->fulfill(Delivery{false, why});
    message.open = false;
  }
}

size_t ClaudeCodeExecutor::openMessages() const {
  size_t count = 0;
  for (auto& [id, message] : messages) count += message.open ? 1 : 0;
  return count;
}

bool ClaudeCodeExecutor::interrupt() {
  refuseAll("the run is being stopped");
  if (closed) return false;
  Json request = {
      {"type", "control_request"}, {"request_id", "open-conduit-stop"}, {"request", {{"subtype", "interrupt"}}}};
  host.write(request.dump() + "\n");
  closed = true;
  host.closeInput();
  return begun;
}

// ---- the end

Verdict ClaudeCodeExecutor::finished(const ProcessEnd& ended, RunLog& log) {
  if (midLine) {
    endLine();
    log.append(kj::arrayPtr(reinterpret_cast<const kj::byte*>("\n"), 1));
    midLine = false;
  }
  flushErrors(log);
  refuseAll("the agent's turn has ended");
  if (!givenUp.word.empty()) return givenUp;
  return result ? ofResult(ended) : withoutResult(ended);
}

Verdict ClaudeCodeExecutor::ofResult(const ProcessEnd& ended) const {
  auto& last = *result;
  if (last.subtype.starts_with("error_max_turns"))
    return {"max_turns", "it came to the end of the turns that it may have"};
  if (last.subtype.starts_with("error_max_budget")) return {"budget", "it came to the end of what it may cost"};
  auto words = shown(!last.error.empty() ? last.error : last.result);
  if (!resumed.empty() && last.isError && isAboutSession(last.error)) {
    return {"session_lost", "the session that it was to resume is not there: " + words};
  }
  if (last.isError && last.subtype == "success") {
    return {"api_error",
            fmt::format("the API failed{}: {}", last.apiStatus.empty() ? "" : " with " + last.apiStatus, words)};
  }
  if (last.isError || last.subtype != "success") {
    return {"agent_error", fmt::format("Claude Code ended its turn with {}: {}", shown(last.subtype), words)};
  }
  bool endedByItself = ended.known && !ended.signaled;
  if (endedByItself && ended.code != 0) {
    return {"agent_error", fmt::format("it said that it succeeded, and ended with exit status {}", ended.code)};
  }
  return {"done", ""};
}

// It never came to a result: what it printed tells why, as far as it was Claude Code at all.
Verdict ClaudeCodeExecutor::withoutResult(const ProcessEnd& ended) const {
  auto words = shown(said);
  bool exited = ended.known && !ended.signaled;
  if (exited && ended.code == 127 && !begun) return {"agent_missing", "there is no program claude: " + words};
  if (exited && ended.code == 126 && !begun) return {"agent_missing", "the program claude cannot be started: " + words};
  if (said.find("unknown option") != std::string::npos && !begun) {
    return {"agent_unsuited", "this version of Claude Code lacks an option that is needed: " + words};
  }
  if (!resumed.empty() && isAboutSession(said)) {
    return {"session_lost", "the session that it was to resume is not there: " + words};
  }
  if (exited && !begun && session.empty()) {
    return {"agent_unsuited",
            fmt::format("what it printed is not what Claude Code prints (exit status {}); is claude another "
                        "program there? {}",
                        ended.code, words)};
  }
  if (exited)
    return {"agent_error", fmt::format("it ended without a result, with exit status {}: {}", ended.code, words)};
  return {};  // a signal, or nobody knows
}

}  // namespace oc::run
