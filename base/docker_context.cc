#include "docker_context.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "crypto.h"
#include "fd.h"
#include "json.h"
#include "paths.h"
#include "text.h"

namespace oc {

namespace {

constexpr size_t mostMetaBytes = 64u << 10;
constexpr size_t mostContexts = 256;

Refusal unavailable(const std::string& what, const std::string& fix) { return {"sandbox_unavailable", what, fix}; }

// A context's file as JSON; discarded when it is none or cannot be read.
Json readMeta(const std::string& path) {
  try {
    return parseJson(readFile(path, mostMetaBytes));
  } catch (const kj::Exception&) {
    return Json::value_t::discarded;
  }
}

std::string textAt(const Json& value, std::initializer_list<const char*> path) {
  auto at = &value;
  for (auto name : path) {
    if (!at->is_object() || !at->contains(name)) return "";
    at = &(*at)[name];
  }
  return at->is_string() ? at->get<std::string>() : "";
}

// The names of the contexts that are there, sorted.
std::vector<std::string> contextNames(const std::string& directory) {
  std::vector<std::string> names = {"default"};
  auto listing = opendir(directory.c_str());
  if (listing == nullptr) return names;
  KJ_DEFER(closedir(listing));
  while (auto entry = readdir(listing)) {
    if (names.size() == mostContexts) break;
    if (entry->d_name[0] == '.') continue;
    auto name = textAt(readMeta(fmt::format("{}/{}/meta.json", directory, entry->d_name)), {"Name"});
    if (!name.empty()) names.push_back(shortened(printable(name), 64));
  }
  std::sort(names.begin() + 1, names.end());
  return names;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (auto& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// "unix:///path" → "/path".
OrRefusal<std::string> socketOf(const std::string& host, const std::string& context) {
  constexpr std::string_view scheme = "unix://";
  if (host.starts_with(scheme)) {
    auto path = host.substr(scheme.size());
    if (path.starts_with('/') && path.find('\0') == std::string::npos) return normalizePath(path);
  }
  return unavailable(
      fmt::format(
          "the Docker context \"{}\" has the endpoint {}: only a Unix socket's engine (unix://…) shares this machine's "
          "files, and can be given a workspace",
          context, host.empty() ? "\"\"" : shortened(printable(host), 200)),
      "use a context whose engine runs on this machine: docker context ls");
}

bool isThere(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

std::string grant(const char* variable) {
  return fmt::format("grant {0}: \"settings\": {{\"extensions\": {{\"docker\": {{\"pass_env\": [\"{0}\"]}}}}}}",
                     variable);
}

OrRefusal<DockerEndpoint> defaultEndpoint(const DockerPlaces& places) {
  DockerEndpoint endpoint{"default", places.defaultSocket};
  if (isThere(places.defaultSocket)) return endpoint;
  auto rootless = [](const std::string& directory) { return directory.empty() ? "" : directory + "/docker.sock"; };
  if (isThere(rootless(places.runtimeDir))) {
    endpoint.socket = rootless(places.runtimeDir);
  } else if (isThere(rootless(places.runtimeDirNotGranted))) {
    return unavailable(
        fmt::format("there is no {}, and a rootless engine's socket is in XDG_RUNTIME_DIR, which Open Conduit's "
                    "Docker provider has not been granted",
                    places.defaultSocket),
        grant("XDG_RUNTIME_DIR"));
  }
  return endpoint;
}

Refusal noSuchContext(const std::string& context, const std::string& directory, const DockerPlaces& places,
                      bool elsewhere) {
  auto what = fmt::format("there is no Docker context \"{}\" in {}; there are: {}", context, directory,
                          joined(contextNames(directory)));
  if (!elsewhere) return unavailable(what, "name one of them (the binding's container.config.provider.context)");
  return unavailable(fmt::format("{}; it is in DOCKER_CONFIG ({}), which has not been granted", what,
                                 shortened(printable(places.configDirNotGranted), 200)),
                     grant("DOCKER_CONFIG"));
}

}  // namespace

OrRefusal<DockerEndpoint> findDockerEndpoint(const std::string& context, const DockerPlaces& places) {
  if (context.empty() || context == "default") return defaultEndpoint(places);
  auto shown = shortened(printable(context), 64);
  auto directory = (places.configDir.empty() ? places.home + "/.docker" : places.configDir) + "/contexts/meta";
  auto file = fmt::format("/{}/meta.json", sha256Hex(context));
  auto path = directory + file;
  if (!isThere(path)) {
    bool elsewhere =
        !places.configDirNotGranted.empty() && isThere(places.configDirNotGranted + "/contexts/meta" + file);
    return noSuchContext(shown, directory, places, elsewhere);
  }
  auto meta = readMeta(path);
  if (textAt(meta, {"Name"}) != context) {
    return unavailable(fmt::format("the Docker context \"{}\" cannot be read from {}", shown, path),
                       fmt::format("make it anew: docker context rm -f {0}; docker context create {0} --docker "
                                   "host=unix:///var/run/docker.sock (or where else its engine listens)",
                                   shellQuote(shown)));
  }
  auto socket = socketOf(textAt(meta, {"Endpoints", "docker", "Host"}), shown);
  if (!socket) return socket.refusal();
  return DockerEndpoint{context, socket.value()};
}

OrRefusal<kj::AutoCloseFd> dialDocker(const DockerEndpoint& endpoint) {
  struct sockaddr_un address {};
  address.sun_family = AF_UNIX;
  if (endpoint.socket.size() >= sizeof(address.sun_path)) {
    return unavailable(fmt::format("the engine's socket has a path of {} bytes, and 107 is the most: {}",
                                   endpoint.socket.size(), endpoint.socket),
                       "have the engine listen at a shorter path as well");
  }
  memcpy(address.sun_path, endpoint.socket.data(), endpoint.socket.size());
  int fd;
  // An engine that hangs takes no connections once its queue is full: that is told, and not waited for.
  KJ_SYSCALL(fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  kj::AutoCloseFd owned(fd);
  int error = 0;
  while (connect(fd, reinterpret_cast<struct sockaddr*>(&address), sizeof(address)) < 0) {
    error = errno;
    if (error != EINTR) break;
    error = 0;
  }
  if (error == 0) return kj::mv(owned);
  auto context =
      endpoint.context.empty() ? "" : fmt::format(" (context {})", shortened(printable(endpoint.context), 64));
  auto what = fmt::format("Docker's socket {}{} cannot be reached: {}", endpoint.socket, context,
                          error == EAGAIN ? "the engine takes no connections, it hangs" : strerror(error));
  if (error == EACCES || error == EPERM) {
    return unavailable(what,
                       "let your user use it: sudo usermod -aG docker \"$USER\", then sign in anew (mind that the "
                       "group can do on this machine what root can)");
  }
  if (error == ENOENT) return unavailable(what, "install and start Docker Engine 28 or later, or name another context");
  if (error == EAGAIN) return unavailable(what, "restart the Docker Engine: sudo systemctl restart docker");
  return unavailable(what, "start the Docker Engine: sudo systemctl start docker");
}

}  // namespace oc
