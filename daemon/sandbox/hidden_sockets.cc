#include "hidden_sockets.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "base/bound_sockets.h"
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
  for (auto& path : boundSockets(bound)) hide(placeOfSocketThatLeadsOut(path));

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
