// Directly to the machine, past the proxy.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools.h"

namespace oc::battery {

namespace {

struct sockaddr_in v4(const std::string& address, long port) {
  struct sockaddr_in result = {};
  result.sin_family = AF_INET;
  result.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, address.c_str(), &result.sin_addr);
  return result;
}

struct sockaddr_in6 v6(const std::string& address, long port) {
  struct sockaddr_in6 result = {};
  result.sin6_family = AF_INET6;
  result.sin6_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET6, address.c_str(), &result.sin6_addr);
  return result;
}

template <typename Address>
const struct sockaddr* asAny(const Address& address) {
  return reinterpret_cast<const struct sockaddr*>(&address);
}

// Within half a second: where packets are dropped, nothing would ever come back.
bool connects(int fd, const struct sockaddr* address, socklen_t length) {
  fcntl(fd, F_SETFL, O_NONBLOCK);
  if (connect(fd, address, length) == 0) return true;
  if (errno != EINPROGRESS) return false;
  struct timeval limit = {0, 500'000};
  fd_set set;
  FD_ZERO(&set);
  FD_SET(fd, &set);
  if (select(fd + 1, nullptr, &set, nullptr, &limit) != 1) {
    errno = ETIMEDOUT;
    return false;
  }
  socklen_t size = sizeof(errno);
  int error = 0;
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  errno = error;
  return error == 0;
}

template <typename Address>
Result byTcp(const Address& address, const Targets& t, int family, int protocol = 0) {
  File socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, protocol));
  if (!socket) return held(errno);
  if (!connects(socket.get(), asAny(address), sizeof(address))) return held(errno);
  (void)!write(socket.get(), "GET / HTTP/1.0\r\n\r\n", 18);
  return answerOf(socket.get(), t).find(t.marker()) != std::string::npos ? through() : held();
}

template <typename Address>
Result byUdp(int fd, const Address& address, const Targets& t) {
  if (fd < 0) return held(errno);
  if (sendto(fd, "udp", 3, 0, asAny(address), sizeof(address)) < 0) return held(errno);
  return answerOf(fd, t).find(t.marker()) != std::string::npos ? through() : held();
}

Result loopback(const Targets& t) { return byTcp(v4("127.0.0.1", t.number("tcp")), t, AF_INET); }
Result loopback6(const Targets& t) {
  return t.has("tcp6") ? byTcp(v6("::1", t.number("tcp6")), t, AF_INET6) : absent();
}
Result mapped(const Targets& t) {
  return t.has("tcp6") ? byTcp(v6("::ffff:127.0.0.1", t.number("tcp")), t, AF_INET6) : absent();
}
Result anyAddress(const Targets& t) { return byTcp(v4("0.0.0.0", t.number("tcp")), t, AF_INET); }
Result machine(const Targets& t) {
  return t.has("address4") ? byTcp(v4(t["address4"], t.number("tcp")), t, AF_INET) : absent();
}
Result multipath(const Targets& t) {
  constexpr int mptcp = 262;
  auto result = byTcp(v4("127.0.0.1", t.number("tcp")), t, AF_INET, mptcp);
  return result.error == EPROTONOSUPPORT || result.error == ENOPROTOOPT ? absent() : result;
}

// The first segment carries the request, without a connect.
Result fastOpen(const Targets& t) {
  File socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return held(errno);
  auto address = v4("127.0.0.1", t.number("tcp"));
  if (sendto(socket.get(), "GET / HTTP/1.0\r\n\r\n", 18, MSG_FASTOPEN, asAny(address), sizeof(address)) < 0)
    return held(errno);
  return answerOf(socket.get(), t).find(t.marker()) != std::string::npos ? through() : held();
}

Result udp(const Targets& t) {
  File socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return byUdp(socket.get(), v4("127.0.0.1", t.number("udp")), t);
}
Result udpToMachine(const Targets& t) {
  if (!t.has("address4")) return absent();
  File socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return byUdp(socket.get(), v4(t["address4"], t.number("udp")), t);
}
Result udpLite(const Targets& t) {
  if (!t.has("udplite")) return absent();
  File socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDPLITE));
  return byUdp(socket.get(), v4("127.0.0.1", t.number("udplite")), t);
}
Result boundToDevice(const Targets& t) {
  if (!t.has("address4")) return absent();
  File socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return held(errno);
  auto device = t["device"];
  if (setsockopt(socket.get(), SOL_SOCKET, SO_BINDTODEVICE, device.c_str(), static_cast<socklen_t>(device.size())) < 0)
    return held(errno);
  return byUdp(socket.get(), v4(t["address4"], t.number("udp")), t);
}
Result broadcast(const Targets& t) {
  if (!t.has("broadcast4")) return absent();
  File socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  int on = 1;
  if (!socket || setsockopt(socket.get(), SOL_SOCKET, SO_BROADCAST, &on, sizeof(on)) < 0) return held(errno);
  return byUdp(socket.get(), v4(t["broadcast4"], t.number("udp")), t);
}
Result multicast(const Targets& t) {
  if (!t.has("multicast")) return absent();
  File socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return byUdp(socket.get(), v4("239.255.77.77", t.number("multicast")), t);
}
Result ping(const Targets& t) {
  if (!t.has("address4")) return absent();
  File socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_ICMP));
  if (!socket) return held(errno);
  struct icmphdr echo = {};
  echo.type = ICMP_ECHO;
  auto address = v4(t["address4"], 0);
  if (sendto(socket.get(), &echo, sizeof(echo), 0, asAny(address), sizeof(address)) < 0) return held(errno);
  return waitToRead(socket.get(), 300) ? through() : held();
}

// The stand tries its door twenty times a second.
Result serve(const Targets& t) {
  File socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return held(errno);
  int on = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  auto address = v4("0.0.0.0", t.number("port_to_find"));
  if (bind(socket.get(), asAny(address), sizeof(address)) < 0 || listen(socket.get(), 4) < 0) return held(errno);
  return waitToRead(socket.get(), 500) ? through() : held();
}

}  // namespace

std::vector<Attack> networkAttacks() {
  return {
      {"TCP to the machine's loopback", "network", loopback},
      {"TCP to its loopback by IPv6", "network", loopback6},
      {"TCP to its loopback by a mapped address", "network", mapped},
      {"TCP to 0.0.0.0", "network", anyAddress},
      {"TCP to its own address", "network", machine},
      {"multipath TCP", "network", multipath},
      {"TCP's fast open", "network", fastOpen},
      {"UDP to the machine's loopback", "network", udp},
      {"UDP to its own address", "network", udpToMachine},
      {"UDP-Lite", "network", udpLite},
      {"UDP bound to a device", "network", boundToDevice},
      {"UDP to everybody on the link", "network", broadcast},
      {"UDP to a group", "network", multicast},
      {"ping", "network", ping},
      {"a port that the machine can reach", "network", serve},
  };
}

}  // namespace oc::battery
