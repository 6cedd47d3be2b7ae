#include "system_paths.h"

#include <algorithm>

#include "paths_on_disk.h"

namespace oc::sandbox {

namespace {

constexpr const char* programs[] = {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"};
constexpr const char* ofEtc[] = {"alternatives",
                                 "bash.bashrc",
                                 "ca-certificates",
                                 "ca-certificates.conf",
                                 "debian_version",
                                 "fonts",
                                 "gai.conf",
                                 "group",
                                 "host.conf",
                                 "hosts",
                                 "inputrc",
                                 "ld.so.cache",
                                 "ld.so.conf",
                                 "ld.so.conf.d",
                                 "locale.alias",
                                 "localtime",
                                 "mime.types",
                                 "nsswitch.conf",
                                 "os-release",
                                 "passwd",
                                 "pki",
                                 "protocols",
                                 "services",
                                 "shells",
                                 "ssl",
                                 "terminfo",
                                 "timezone"};

}  // namespace

std::vector<std::string> systemPaths() {
  std::vector<std::string> candidates(std::begin(programs), std::end(programs)), found;
  for (auto name : ofEtc) candidates.push_back(std::string("/etc/") + name);
  for (auto& path : candidates) {
    if (!exists(path)) continue;
    found.push_back(path);
    auto real = resolved(path);
    if (real != path) found.push_back(real);
  }
  return found;
}

}  // namespace oc::sandbox
