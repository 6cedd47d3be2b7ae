#include "git_host.h"

namespace oc::config {

std::string gitHostOf(const std::string& apiUrl) {
  auto begin = apiUrl.find("://");
  if (begin == std::string::npos) return "";
  auto host = apiUrl.substr(begin + 3);
  host = host.substr(0, host.find('/'));
  return host == "api.github.com" ? "github.com" : host;
}

}  // namespace oc::config
