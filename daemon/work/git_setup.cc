#include "git_setup.h"

#include "daemon/config/git_host.h"

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

// Asked by git with `get`. The token is in no argument: printf is the shell's own.
constexpr const char* tokenHelper =
    "!f() { t=${GH_TOKEN:-$GITHUB_TOKEN}; test \"$1\" = get && test -n \"$t\" && "
    "printf 'username=x-access-token\\npassword=%s\\n' \"$t\"; }; f";

}  // namespace

std::vector<std::string> hostsOfTokens(const config::Config& config, const config::Binding& binding) {
  // Without a sandbox git is the operator's own, and so is what it signs in with.
  if (!binding.srt && !binding.container) return {};
  std::vector<std::string> hosts = {"github.com"};
  for (auto& connection : config.connections) {
    if (connection.id != binding.connection) continue;
    auto host = config::gitHostOf(connection.apiUrl);
    if (!host.empty() && host != hosts[0]) hosts.push_back(host);
  }
  return hosts;
}

GitSetup setUpGit(const std::string& runFiles, const std::string& workspace,
                  const std::vector<std::string>& tokenHosts) {
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
  for (auto& host : tokenHosts) {
    setup.text += "[credential " + quoted("https://" + host) + "]\n\thelper = " + quoted(tokenHelper) + "\n";
  }
  setup.environment = {{"GIT_CONFIG_SYSTEM", setup.file}};
  return setup;
}

}  // namespace oc::work
