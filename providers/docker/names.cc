#include "names.h"

#include <algorithm>

namespace oc::docker {

bool isProperName(std::string_view name) {
  auto proper = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
  return !name.empty() && name.size() <= 64 && name[0] != '-' && std::all_of(name.begin(), name.end(), proper);
}

bool isPreparedName(std::string_view name) { return isProperName(name) && name.starts_with("g-"); }

bool isContainerId(std::string_view id) {
  return id.size() == 64 && id.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string containerName(const std::string& owner, const std::string& run, const std::string& role) {
  return "open-conduit-" + owner + "-" + run + "-" + role;
}

std::string volumeName(const std::string& owner, const std::string& run) { return "open-conduit-" + owner + "-" + run; }

std::string egressName(const std::string& owner) { return "open-conduit-egress-" + owner; }

}  // namespace oc::docker
