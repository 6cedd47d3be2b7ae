#include "bound_sockets.h"

#include <fcntl.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "fd.h"

namespace oc {

namespace {

// Sockets of services that do as they are told, wherever they lie, by their last name or what it begins with.
constexpr const char* knownNames[] = {"docker.sock",  "containerd.sock",  "podman.sock",       "buildkitd.sock",
                                      "crio.sock",    "cri-dockerd.sock", "balena.sock",       "lxd.socket",
                                      "incus.socket", "libvirt-sock",     "system_bus_socket", "bus",
                                      "snapd.socket", "kwallet5.socket"};
constexpr const char* knownBeginnings[] = {"S.gpg-agent", "S.scdaemon", "S.keyboxd", "vscode-ipc-", "vscode-git-",
                                           "wayland-",    "kitty-",     "nvim.",     "dbus-"};
// Directories of which such a service has one for each user or session.
constexpr const char* knownDirectories[] = {".X11-unix", ".ICE-unix", "tmux-", "ssh-",
                                            "emacs",     "screens",   "S-",    "keyring"};

bool beginsWithOne(std::string_view name, const auto& beginnings) {
  return std::any_of(std::begin(beginnings), std::end(beginnings), [name](auto one) { return name.starts_with(one); });
}

}  // namespace

std::vector<std::string> boundSockets(const std::string& list) {
  std::vector<std::string> paths;
  constexpr size_t most = 16 << 20;
  auto fd = openIfThere(list, O_RDONLY);
  if (!fd) return paths;
  auto text = readAll(fd->get(), most);
  for (size_t at = 0; at < text.size();) {
    auto end = std::min(text.find('\n', at), text.size());
    auto path = text.find(" /", at);
    if (path < end) paths.push_back(text.substr(path + 1, end - path - 1));
    at = end + 1;
  }
  return paths;
}

std::string placeOfSocketThatLeadsOut(const std::string& path) {
  auto slash = path.rfind('/');
  if (slash == std::string::npos || slash == 0) return "";
  auto directory = path.substr(0, slash);
  std::string_view name = std::string_view(path).substr(slash + 1),
                   above = std::string_view(directory).substr(directory.rfind('/') + 1);
  if (beginsWithOne(above, knownDirectories)) return directory;
  bool known = std::any_of(std::begin(knownNames), std::end(knownNames), [name](auto one) { return name == one; });
  return known || beginsWithOne(name, knownBeginnings) ? path : "";
}

}  // namespace oc
