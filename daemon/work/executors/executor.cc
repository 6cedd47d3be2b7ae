#include "executor.h"

#include "daemon/work/git_setup.h"

namespace oc::work {

OrRefusal<AgentSetup> setUpAgent(const AgentRequest& request) {
  auto setup = request.binding.executor == "shell" ? setUpShell(request) : setUpClaudeCode(request);
  if (!setup.ok()) return setup;
  auto git = setUpGit(request.places.runFiles(request.run.id), request.places.workspace(request.work.id));
  setup.value().files[git.file] = git.text;
  for (auto& [name, value] : git.environment) setup.value().environment.emplace(name, value);
  return setup;
}

OrRefusal<bool> checkAgentsWrites(const config::Binding& binding, const std::vector<std::string>& allowed) {
  if (binding.executor == "claude-code") return checkClaudesWrites(binding, allowed);
  return true;
}

bool takesMessages(const std::string& executor) { return executor == "claude-code"; }

}  // namespace oc::work
