#include "session_bus.h"

#include <fmt/format.h>
#include <kj/debug.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <optional>

#include "text.h"

namespace oc {

namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= text.size();) {
    auto end = std::min(text.find(separator, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

int hexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Nothing when it is malformed.
std::optional<std::string> unescaped(const std::string& value) {
  std::string result;
  for (size_t i = 0; i < value.size(); ++i) {
    if (value[i] != '%') {
      result += value[i];
      continue;
    }
    if (i + 2 >= value.size()) return std::nullopt;
    int high = hexDigit(value[i + 1]), low = hexDigit(value[i + 2]);
    if (high < 0 || low < 0 || (high == 0 && low == 0)) return std::nullopt;
    result += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return result;
}

std::optional<BusSocket> socketOf(const std::string& address, const std::string& runtimeDir) {
  constexpr std::string_view unixTransport = "unix:";
  if (!address.starts_with(unixTransport)) return std::nullopt;
  for (auto& pair : split(address.substr(unixTransport.size()), ',')) {
    auto equals = pair.find('=');
    if (equals == std::string::npos) return std::nullopt;
    auto key = pair.substr(0, equals);
    auto value = unescaped(pair.substr(equals + 1));
    if (!value || value->empty()) return std::nullopt;
    if (key == "path") return BusSocket{*value, false};
    if (key == "abstract") return BusSocket{*value, true};
    if (key == "runtime" && *value == "yes" && !runtimeDir.empty()) return BusSocket{runtimeDir + "/bus", false};
  }
  return std::nullopt;
}

// The error, or 0 and `fd`.
int connectTo(const BusSocket& where, kj::AutoCloseFd& fd) {
  struct sockaddr_un address {};
  address.sun_family = AF_UNIX;
  // An abstract name begins with a NUL and has no end but the length.
  size_t offset = where.abstract ? 1 : 0;
  if (where.name.size() + offset >= sizeof(address.sun_path)) return ENAMETOOLONG;
  memcpy(address.sun_path + offset, where.name.data(), where.name.size());
  socklen_t length = offsetof(struct sockaddr_un, sun_path) + offset + where.name.size() + (where.abstract ? 0 : 1);
  int raw;
  KJ_SYSCALL(raw = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  fd = kj::AutoCloseFd(raw);
  return connect(raw, reinterpret_cast<struct sockaddr*>(&address), length) < 0 ? errno : 0;
}

std::string valueOf(const std::map<std::string, std::string>& environ, const char* name) {
  auto found = environ.find(name);
  return found == environ.end() ? "" : found->second;
}

constexpr const char* howToDoWithout =
    "on a machine without a desktop, use file:/path (mode 0600) in secret_refs, or start a bus and a keyring first: "
    "docs/secrets.md";

}  // namespace

std::vector<BusSocket> busSockets(const std::string& addresses, const std::string& runtimeDir) {
  std::vector<BusSocket> sockets;
  for (auto& address : split(addresses, ';')) {
    if (auto found = socketOf(address, runtimeDir)) sockets.push_back(std::move(*found));
  }
  return sockets;
}

OrRefusal<kj::AutoCloseFd> dialSessionBus(const std::map<std::string, std::string>& environ) {
  auto addresses = valueOf(environ, "DBUS_SESSION_BUS_ADDRESS"), runtimeDir = valueOf(environ, "XDG_RUNTIME_DIR");
  auto sockets = busSockets(addresses, runtimeDir);
  if (addresses.empty() && !runtimeDir.empty()) sockets.push_back({runtimeDir + "/bus", false});
  if (sockets.empty()) {
    return Refusal{"secret_unavailable",
                   addresses.empty()
                       ? "there is no session bus, and so no keyring: neither DBUS_SESSION_BUS_ADDRESS nor "
                         "XDG_RUNTIME_DIR is set"
                       : "DBUS_SESSION_BUS_ADDRESS names no Unix socket, and so there is no keyring",
                   howToDoWithout};
  }
  std::string tried;
  for (auto& socket : sockets) {
    kj::AutoCloseFd fd;
    int error = connectTo(socket, fd);
    if (error == 0) return kj::mv(fd);
    tried += fmt::format("{}{}: {}", tried.empty() ? "" : "; ", printable(socket.name), strerror(error));
  }
  return Refusal{"secret_unavailable",
                 fmt::format("the session bus does not answer, and so there is no keyring: {}", tried), howToDoWithout};
}

}  // namespace oc
