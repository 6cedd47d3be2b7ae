// Claude Code: its command line, its environment, and what it is told.
#include <fmt/format.h>
#include <kj/exception.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/json.h"
#include "base/paths.h"
#include "base/text.h"
#include "daemon/config/playbook.h"
#include "executor.h"
#include "find_claude.h"

namespace oc::work {

namespace {

// One word: it is the agent that said what its session is called, and one that begins with a dash would be an option.
std::string resuming(const std::string& session) { return "--resume=" + session; }

// What of a request goes into the brief; all of it is in the body's file.
constexpr size_t mostBody = 256u << 10;
constexpr const char* toolbeltServer = "open_conduit";

class ClaudeSetup {
 public:
  explicit ClaudeSetup(const AgentRequest& request) : request(request), binding(request.binding) {}

  OrRefusal<AgentSetup> make() {
    auto program = findProgram();
    if (!program.ok()) return program.refusal();
    auto brief = makeBrief();
    if (!brief.ok()) return brief.refusal();
    setup.brief = brief.value();
    setup.resumes = !request.work.session.empty();
    writeCommand(program.value());
    writeEnvironment();
    writeFiles();
    writeShimsConfig();
    return setup;
  }

 private:
  // In a container the image's own; what is not there, the end of the run says.
  OrRefusal<std::string> findProgram() const {
    if (binding.container) return std::string("claude");
    return findClaude(request.config, binding, request.places, request.own);
  }

  // ---- what it is told

  OrRefusal<std::string> makeBrief() const {
    if (!request.work.session.empty()) return laterTurn();
    auto playbook =
        config::findPlaybook(request.places, binding.playbook.empty() ? config::defaultPlaybook : binding.playbook);
    if (!playbook.ok()) return playbook.refusal();
    auto rendered = config::renderPlaybook(playbook.value(), briefing());
    if (!rendered.ok()) return rendered;
    return rendered.value() + messages() + movedBase();
  }

  std::string laterTurn() const {
    if (request.messages.first.empty())
      return "The last turn ended before it was done. Look where things stand, and go on.\n" + movedBase();
    auto text = messages() + movedBase();
    if (request.run.attempt > 1) text = "The last turn ended early; what follows may have been said already.\n" + text;
    return text.substr(std::min(text.find_first_not_of('\n'), text.size()));
  }

  // What is to be done then, the playbook has said.
  std::string movedBase() const {
    if (request.baseMovedBy == 0) return "";
    return fmt::format("\n{} has moved on: it has {} commit{} that {} has not.\n", request.work.from,
                       request.baseMovedBy, request.baseMovedBy == 1 ? "" : "s", request.work.branch);
  }

  std::string messages() const {
    std::string text;
    for (auto& message : request.messages.first) {
      text += "\n" + (message.author.empty() ? message.text + "\n" : config::quotedText(message.author, message.text));
    }
    return text;
  }

  config::Briefing briefing() const {
    auto& work = request.work;
    auto body = request.body;
    if (body.size() > mostBody) {
      body = fmt::format("{}\n(This is the beginning; all {} bytes are in {}.)", shortened(body, mostBody), body.size(),
                         bodyFile());
    }
    return {work.title.empty() ? "(untitled)" : work.title,
            body.empty() ? "(nothing but the title)" : body,
            request.author.empty() ? "the operator" : request.author,
            request.number.empty() ? work.id : request.number,
            work.branch,
            work.id,
            request.run.id,
            work.scope,
            work.binding,
            work.from.empty() ? work.base : work.from};
  }

  // ---- how it is started

  void writeCommand(const std::string& program) {
    auto& command = setup.command;
    command = {program,
               "-p",
               "--verbose",
               "--input-format",
               "stream-json",
               "--output-format",
               "stream-json",
               "--replay-user-messages",
               "--permission-mode",
               "bypassPermissions"};
    // No other servers than ours: a repository may name some, and they would be started without a question.
    command.insert(command.end(), {"--strict-mcp-config", "--mcp-config", serversFile()});
    if (!request.work.session.empty()) command.push_back(resuming(request.work.session));
    if (binding.maxTurns > 0) command.insert(command.end(), {"--max-turns", fmt::format("{}", binding.maxTurns)});
    if (binding.maxBudgetUsd > 0)
      command.insert(command.end(), {"--max-budget-usd", fmt::format("{}", binding.maxBudgetUsd)});
  }

  void writeEnvironment() {
    setup.environment = claudesEnvironment(request.places.runFiles(request.run.id) + "/tmp");
    // Some two minutes.
    setup.environment["CLAUDE_CODE_MAX_RETRIES"] = "6";
    // Else it looks its tools up first, one turn more.
    if (!request.toolbeltClient.empty()) setup.environment["ENABLE_TOOL_SEARCH"] = "false";
  }

  void writeFiles() {
    setup.files[bodyFile()] = request.body;
    Json servers = {{"mcpServers", Json::object()}};
    if (!request.toolbeltClient.empty()) {
      servers["mcpServers"][toolbeltServer] = {
          {"type", "stdio"}, {"command", request.toolbeltClient}, {"args", {"mcp"}}};
    }
    setup.files[serversFile()] = servers.dump();
  }

  void writeShimsConfig() {
    Json config = {{"message", request.run.id}, {"session", request.work.session}, {"required_servers", Json::array()}};
    auto wanted = binding.requires_.find("toolbelt");
    if (!request.toolbeltClient.empty() && wanted != binding.requires_.end())
      config["required_servers"] = {toolbeltServer};
    setup.executorConfig = config.dump();
  }

  std::string bodyFile() const { return request.places.runFiles(request.run.id) + "/body"; }
  std::string serversFile() const { return request.places.runFiles(request.run.id) + "/mcp.json"; }

  const AgentRequest& request;
  const config::Binding& binding;
  AgentSetup setup;
};

}  // namespace

Environment claudesEnvironment(const std::string& temporary) {
  return {{"DISABLE_AUTOUPDATER", "1"},
          {"DISABLE_TELEMETRY", "1"},
          {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"},
          {"CLAUDE_CODE_TMPDIR", temporary}};
}

std::vector<std::string> claudesAttachedWords(const std::string& session, bool sandboxed) {
  std::vector<std::string> words;
  if (sandboxed) words = {"--permission-mode", "bypassPermissions"};
  if (!session.empty()) words.push_back(resuming(session));
  return words;
}

OrRefusal<AgentSetup> setUpClaudeCode(const AgentRequest& request) { return ClaudeSetup(request).make(); }

OrRefusal<bool> checkClaudesWrites(const config::Binding& binding, const std::vector<std::string>& allowed) {
  auto directory = binding.env.find("CLAUDE_CONFIG_DIR");
  if (directory == binding.env.end()) {
    return Refusal{"sandbox_config", "a sandboxed claude needs a CLAUDE_CONFIG_DIR of its own",
                   "set it in the binding's config.env, and name it in sandbox.config.write"};
  }
  auto& path = directory->second;
  struct stat stats;
  if (stat(path.c_str(), &stats) != 0 || !S_ISDIR(stats.st_mode)) {
    return Refusal{"sandbox_denied", fmt::format("CLAUDE_CONFIG_DIR: {} is not a directory that is there", path),
                   "mkdir -p " + shellQuote(path)};
  }
  std::string real = path;
  try {
    real = resolvePath(path);
  } catch (const kj::Exception&) {
  }
  auto grants = [&real](const std::string& grant) { return isAtOrUnder(real, grant); };
  if (std::any_of(allowed.begin(), allowed.end(), grants)) return true;
  return Refusal{"sandbox_denied",
                 fmt::format("CLAUDE_CONFIG_DIR: {} is not granted in write, and claude needs to write there", path),
                 fmt::format("add \"{}\" to sandbox.config.write", path)};
}

}  // namespace oc::work
