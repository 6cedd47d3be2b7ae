#include "toolbelt_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/json.h"

namespace oc::client {

namespace {

constexpr size_t mostLine = 8u << 20;

std::string variable(const char* name) {
  const char* value = getenv(name);
  if (value == nullptr || *value == '\0') {
    throw Trouble(std::string(name) + " is not set: this works inside of a run of Open Conduit that has a toolbelt");
  }
  return value;
}

void connectTo(int fd, const struct sockaddr* address, socklen_t size, const std::string& where) {
  if (connect(fd, address, size) == 0) return;
  throw Trouble("the toolbelt at " + where + " cannot be reached: " + strerror(errno));
}

int openSocket(int family) {
  int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) throw Trouble(std::string("no socket: ") + strerror(errno));
  return fd;
}

int connectUnix(const std::string& path) {
  struct sockaddr_un address {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) throw Trouble("the toolbelt's path is too long: " + path);
  memcpy(address.sun_path, path.c_str(), path.size() + 1);
  int fd = openSocket(AF_UNIX);
  connectTo(fd, reinterpret_cast<struct sockaddr*>(&address), sizeof(address), path);
  return fd;
}

int connectTcp(const std::string& place) {
  auto colon = place.rfind(':');
  struct sockaddr_in address {};
  address.sin_family = AF_INET;
  char* end = nullptr;
  auto port = colon == std::string::npos ? 0 : strtoul(place.c_str() + colon + 1, &end, 10);
  if (port == 0 || port > 65535 || *end != '\0' ||
      inet_pton(AF_INET, place.substr(0, colon).c_str(), &address.sin_addr) != 1) {
    throw Trouble("OPEN_CONDUIT_TOOLBELT has no address and port: tcp:" + place);
  }
  address.sin_port = htons(static_cast<uint16_t>(port));
  int fd = openSocket(AF_INET);
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  connectTo(fd, reinterpret_cast<struct sockaddr*>(&address), sizeof(address), place);
  return fd;
}

int connectByVariable() {
  auto place = variable("OPEN_CONDUIT_TOOLBELT");
  if (place.compare(0, 5, "unix:") == 0) return connectUnix(place.substr(5));
  if (place.compare(0, 4, "tcp:") == 0) return connectTcp(place.substr(4));
  throw Trouble("OPEN_CONDUIT_TOOLBELT is neither unix:/path nor tcp:address:port: " + place);
}

}  // namespace

ToolbeltSocket::ToolbeltSocket(const std::string& channel) : socket(-1) {
  auto token = variable("OPEN_CONDUIT_TOOLBELT_TOKEN");
  socket = connectByVariable();
  // Whoever refuses has closed already, and has said why: that is read, and this may fail.
  writeAll(socket, Json{{"open_conduit", 1}, {"token", token}, {"channel", channel}}.dump() + "\n");
}

ToolbeltSocket::~ToolbeltSocket() {
  if (socket >= 0) close(socket);
}

void ToolbeltSocket::writeLine(const std::string& line) { writeAll(socket, line + "\n"); }

std::string ToolbeltSocket::readLine() {
  std::string line;
  char buffer[65536];
  while (line.size() <= mostLine) {
    ssize_t n = read(socket, buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw Trouble("the toolbelt closed the connection without an answer: the run may have ended");
    line.append(buffer, n);
    auto end = line.find('\n');
    if (end == std::string::npos) continue;
    line.resize(end);
    return line;
  }
  throw Trouble("the toolbelt's answer is too long");
}

bool writeAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes.remove_prefix(n);
  }
  return true;
}

std::string refusalIn(const std::string& line) {
  auto message = parseJson(line);
  if (!message.is_object() || message.contains("jsonrpc") || !message.contains("error")) return "";
  auto& error = message["error"];
  if (!error.is_object()) return "";
  auto text = [&error](const char* key) {
    auto value = error.value(key, Json());
    return value.is_string() ? value.get<std::string>() : std::string();
  };
  auto sentence = text("what") + " (" + text("reason") + ")";
  if (!text("fix").empty()) sentence += "; " + text("fix");
  return sentence;
}

}  // namespace oc::client
