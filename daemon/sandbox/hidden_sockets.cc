#include "hidden_sockets.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "base/fd.h"
#include "base/paths.h"
#include "paths_on_disk.h"

namespace oc::sandbox {

namespace {

// Names in /run (and in /var/run, where that is no link to it).
constexpr const char* inRun[] = {"docker.sock", "docker",         "containerd", "podman",          "dbus",
                                 "crio",        "k3s/containerd", "buildkit",   "systemd/private", "user"};

std::string valueOf(const std::map<std::string, std::string>& environ, const char* name) {
  auto found = environ.find(name);
  return found == environ.end() ? "" : found->second;
}

// "unix:///run/docker.sock" names a path; other schemes need the network.
std::string unixPath(const std::string& address) {
  for (std::string_view scheme : {"unix://", "unix:path="}) {
    if (address.starts_with(scheme)) return address.substr(scheme.size(), address.find(',') - scheme.size());
  }
  return "";
}

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

// Of the kernel's list: the eighth column is a path, where there is one. It may have blanks in it.
std::vector<std::string> boundPaths(const std::string& list) {
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

// The children of `directory` that hold none of `hidden`; those that do are gone through one level deeper.
void addShown(const std::string& directory, const std::set<std::string>& hidden, std::vector<std::string>& shown) {
  for (auto& child : childrenOf(directory)) {
    if (hidden.count(child) > 0) continue;
    bool holdsOne =
        std::any_of(hidden.begin(), hidden.end(), [&child](auto& path) { return isAtOrUnder(path, child); });
    if (holdsOne) {
      addShown(child, hidden, shown);
    } else {
      shown.push_back(child);
    }
  }
}

}  // namespace

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

HiddenSockets hiddenSockets(const std::map<std::string, std::string>& environ, const std::string& home,
                            const std::vector<std::string>& lifted, const std::string& bound) {
  std::set<std::string> hidden;
  auto hide = [&hidden](const std::string& path) {
    if (path.starts_with('/')) hidden.insert(normalizePath(path));
  };
  std::set<std::string> runs;
  for (auto run : {"/run", "/var/run"}) {
    if (isDirectory(run)) runs.insert(resolved(run));
  }
  for (auto& run : runs) {
    for (auto name : inRun) hide(run + "/" + name);
  }
  hide(valueOf(environ, "XDG_RUNTIME_DIR"));
  hide(valueOf(environ, "SSH_AUTH_SOCK"));
  for (auto name :
       {"DOCKER_HOST", "CONTAINER_HOST", "CONTAINERD_ADDRESS", "DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS"}) {
    hide(unixPath(valueOf(environ, name)));
  }
  hide(valueOf(environ, "CONTAINERD_ADDRESS"));
  hide(home + "/.docker/run");
  hide(home + "/.docker/desktop");
  hide(home + "/.colima");
  auto multiplexer = valueOf(environ, "TMUX");  // "socket,pid,number"
  hide(multiplexer.substr(0, multiplexer.find(',')));
  for (auto& path : boundPaths(bound)) hide(placeOfSocketThatLeadsOut(path));

  // A name and where it leads are one socket: /var/run/docker.sock lifts /run/docker.sock.
  std::set<std::string> lift;
  for (auto& path : lifted) lift.insert({path, resolved(path)});
  HiddenSockets result;
  std::set<std::string> held;
  for (auto& path : hidden) {
    if (lift.count(path) > 0 || lift.count(resolved(path)) > 0) continue;
    result.paths.push_back(path);
    held.insert({path, resolved(path)});
  }
  for (auto& run : runs) {
    result.directories.push_back(run);
    addShown(run, held, result.shown);
  }
  return result;
}

}  // namespace oc::sandbox
