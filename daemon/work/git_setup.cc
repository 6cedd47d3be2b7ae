#include "git_setup.h"

namespace oc::work {

namespace {

std::string quoted(const std::string& value) {
  std::string result = "\"";
  for (char c : value) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

}  // namespace

GitSetup setUpGit(const std::string& runFiles, const std::string& workspace) {
  GitSetup setup;
  setup.file = runFiles + "/gitconfig";
  setup.text =
      "# Instead of the system's config, which is included below.\n"
      "[user]\n\tname = Open Conduit agent\n\temail = agent@open-conduit.invalid\n"
      "[safe]\n\tdirectory = " +
      quoted(workspace) +
      "\n"
      "[push]\n\tdefault = current\n"
      "[include]\n\tpath = /etc/gitconfig\n";
  setup.environment = {{"GIT_CONFIG_SYSTEM", setup.file}};
  return setup;
}

}  // namespace oc::work
