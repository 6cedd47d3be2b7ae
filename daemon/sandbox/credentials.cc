#include "credentials.h"

#include "base/home_files.h"
#include "base/paths.h"

namespace oc::sandbox {

std::vector<std::string> commonCredentials(const std::string& home) {
  std::vector<std::string> paths;
  for (auto& name : credentialFiles()) paths.push_back(normalizePath(home + "/" + name));
  return paths;
}

std::vector<std::string> operatorsClaude(const std::string& home, const std::map<std::string, std::string>& environ) {
  std::vector<std::string> paths = {normalizePath(home + "/.claude"), normalizePath(home + "/.claude.json")};
  auto own = environ.find("CLAUDE_CONFIG_DIR");
  if (own != environ.end() && own->second.starts_with('/')) paths.push_back(normalizePath(own->second));
  return paths;
}

}  // namespace oc::sandbox
