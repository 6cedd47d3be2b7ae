// A command, run once. The request, or the message that the run begins with, is in a file.
#include "executor.h"

namespace oc::work {

OrRefusal<AgentSetup> setUpShell(const AgentRequest& request) {
  AgentSetup setup;
  setup.command = request.binding.command;
  std::string body;
  for (auto& message : request.messages.first) body += (body.empty() ? "" : "\n") + message.text;
  setup.files[request.places.runFiles(request.run.id) + "/body"] = request.messages.first.empty() ? request.body : body;
  return setup;
}

}  // namespace oc::work
