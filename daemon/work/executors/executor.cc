#include "executor.h"

#include "daemon/work/git_setup.h"
#include "find_claude.h"

namespace oc::work {

OrRefusal<AgentSetup> setUpAgent(const AgentRequest& request) {
  auto setup = request.binding.executor == "shell" ? setUpShell(request) : setUpClaudeCode(request);
  if (!setup.ok()) return setup;
  auto git = setUpGit(request.places.runFiles(request.run.id), request.places.workspace(request.work.id),
                      hostsOfTokens(request.config, request.binding));
  setup.value().files[git.file] = git.text;
  for (auto& [name, value] : git.environment) setup.value().environment.emplace(name, value);
  return setup;
}

AgentSetup setUpAttached(const std::string& executor, const state::WorkRow& work, const std::string& run,
                         const Places& places) {
  AgentSetup setup;
  setup.command = {"/bin/sh"};
  if (executor == "claude-code") {
    setup.command = claudesAttachedWords(work.session, true);
    setup.command.insert(setup.command.begin(), "claude");
    setup.environment = claudesEnvironment(places.runFiles(run) + "/tmp");
  }
  auto git = setUpGit(places.runFiles(run), places.workspace(work.id), {});
  setup.files[git.file] = git.text;
  for (auto& [name, value] : git.environment) setup.environment.emplace(name, value);
  return setup;
}

OrRefusal<std::vector<std::string>> attachedCommandOnHost(const config::Config& config, const config::Binding& binding,
                                                          const state::WorkRow& work, const Places& places,
                                                          const Environment& own) {
  // The caller's own shell, which the daemon need not know.
  if (binding.executor != "claude-code") return std::vector<std::string>{"/bin/sh", "-c", "exec \"${SHELL:-/bin/sh}\""};
  auto program = findClaude(config, binding, places, own);
  if (!program.ok()) return program.refusal();
  auto command = claudesAttachedWords(work.session, false);
  command.insert(command.begin(), program.value());
  return command;
}

OrRefusal<bool> checkAgentsWrites(const config::Binding& binding, const std::vector<std::string>& allowed) {
  if (binding.executor == "claude-code") return checkClaudesWrites(binding, allowed);
  return true;
}

bool takesMessages(const std::string& executor) { return executor == "claude-code"; }

}  // namespace oc::work
