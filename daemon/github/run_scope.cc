#include "run_scope.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace oc::hub {

namespace {

bool sameName(std::string_view a, std::string_view b) {
  auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [lower](char x, char y) { return lower(x) == lower(y); });
}

Refusal refused(const std::string& what, const std::string& fix) { return {"credential_refused", what, fix}; }

}  // namespace

std::string repositoryIn(std::string_view path) {
  if (path.ends_with('/')) path.remove_suffix(1);
  if (path.ends_with(".git")) path.remove_suffix(4);
  return std::string(path);
}

Refusal whyNotThisRepository(const RunScope& scope, const std::string& gitHost, const std::string& protocol,
                             const std::string& host, const std::string& path) {
  auto own = fmt::format("https://{}/{}", gitHost, scope.repo);
  if (protocol != "https") {
    return refused(fmt::format("git asks for {} and tokens go over https alone", shortened(printable(protocol), 16)),
                   "use the remote " + own);
  }
  if (!sameName(host, gitHost)) {
    return refused(
        fmt::format("git asks for the host {}, and this run is for {}", shortened(printable(host), 128), gitHost),
        "use the remote " + own);
  }
  auto name = repositoryIn(path);
  if (path.empty())
    return refused("git does not say for which repository it asks", "set credential.useHttpPath to true");
  if (!sameName(name, scope.repo)) {
    return refused(fmt::format("git asks for {}, and this run is for {}", shortened(printable(path), 128), scope.repo),
                   "use the remote " + own);
  }
  return {};
}

}  // namespace oc::hub
