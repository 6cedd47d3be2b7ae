// Unix sockets, by every kind and way, and what the kernel tells of the machine's sockets.
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>

#include "tools.h"

namespace oc::battery {

namespace {

struct Address {
  struct sockaddr_un un = {};
  socklen_t length = 0;
  const struct sockaddr* get() const { return reinterpret_cast<const struct sockaddr*>(&un); }
};

Address addressOf(const std::string& name) {
  Address address;
  address.un.sun_family = AF_UNIX;
  auto size = std::min(name.size(), sizeof(address.un.sun_path) - 1);
  memcpy(address.un.sun_path, name.data(), size);
  bool abstract = name.starts_with('\0');
  address.length = static_cast<socklen_t>(offsetof(struct sockaddr_un, sun_path) + size + (abstract ? 0 : 1));
  return address;
}

Result connectTo(const std::string& name, int type, const Targets& t) {
  File socket(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  if (!socket) return held(errno);
  auto address = addressOf(name);
  if (connect(socket.get(), address.get(), address.length) < 0) return held(errno);
  return answerOf(socket.get(), t).find(t.marker()) != std::string::npos ? through() : held();
}

std::string hidden(const Targets& t, const char* name) { return t["runtime"] + "/" + name; }
std::string abstractOf(const Targets& t, const char* name) { return std::string(1, '\0') + t[name]; }

Result stream(const Targets& t) { return connectTo(hidden(t, "stream"), SOCK_STREAM, t); }
Result packets(const Targets& t) { return connectTo(hidden(t, "packets"), SOCK_SEQPACKET, t); }
Result abstractStream(const Targets& t) { return connectTo(abstractOf(t, "abstract"), SOCK_STREAM, t); }
Result ofTheState(const Targets& t) { return connectTo(t["own"] + "/socket", SOCK_STREAM, t); }
Result ofAnotherRun(const Targets& t) { return connectTo(t["beside"] + "/socket", SOCK_STREAM, t); }
Result ofTheOperator(const Targets& t) { return connectTo(t["outside"] + "/socket", SOCK_STREAM, t); }

Result byLink(const Targets& t) {
  auto link = t["workspace"] + "/attack-socket";
  if (symlink(hidden(t, "stream").c_str(), link.c_str()) < 0) return held(errno);
  return connectTo(link, SOCK_STREAM, t);
}

// What arrives is named in the evidence.
Result send(int fd, const std::string& name, const Targets& t, const char* what) {
  auto address = addressOf(name);
  if (sendto(fd, what, strlen(what), 0, address.get(), address.length) < 0) return held(errno);
  usleep(50'000);
  return look(t["evidence"] + "/" + what);
}
Result sendAlone(const std::string& name, const Targets& t, const char* what) {
  File socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return socket ? send(socket.get(), name, t, what) : held(errno);
}
// Where sockets cannot be made, a pair of them may still be.
Result sendByPair(const std::string& name, const Targets& t, const char* what) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair) < 0) return held(errno);
  return send(pair[0], name, t, what);
}
Result datagram(const Targets& t) { return sendAlone(hidden(t, "datagrams"), t, "datagram"); }
Result datagramOfPair(const Targets& t) { return sendByPair(hidden(t, "datagrams"), t, "pair"); }
Result abstractDatagram(const Targets& t) { return sendAlone(abstractOf(t, "abstract_datagrams"), t, "abstract"); }
Result abstractDatagramOfPair(const Targets& t) {
  return sendByPair(abstractOf(t, "abstract_datagrams"), t, "abstract-pair");
}

Result receiveDescriptor(const Targets& t) {
  File socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return held(errno);
  auto address = addressOf(hidden(t, "giver"));
  if (connect(socket.get(), address.get(), address.length) < 0) return held(errno);
  char byte, control[CMSG_SPACE(sizeof(int))] = {};
  struct iovec data = {&byte, 1};
  struct msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  if (!waitToRead(socket.get(), 400) || recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC) <= 0) return held(errno);
  auto* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr) return held();
  int fd;
  memcpy(&fd, CMSG_DATA(header), sizeof(fd));
  File file(fd);
  char text[256] = {};
  return pread(file.get(), text, sizeof(text) - 1, 0) > 0 && strstr(text, t.marker().c_str()) ? through() : held();
}

// The stand looks for it twenty times a second.
Result offerAbstract(const Targets& t) {
  File socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return held(errno);
  auto address = addressOf(abstractOf(t, "abstract_to_find"));
  if (bind(socket.get(), address.get(), address.length) < 0 || listen(socket.get(), 4) < 0) return held(errno);
  return waitToRead(socket.get(), 500) ? through() : held();
}

Result interfaces(const Targets& t) {
  struct ifaddrs* all = nullptr;
  if (getifaddrs(&all) < 0) return held(errno);
  bool found = false;
  for (auto* one = all; one != nullptr; one = one->ifa_next) found = found || t["interface"] == one->ifa_name;
  freeifaddrs(all);
  return found ? through() : held();
}

Result namesOfSockets(const Targets& t) {
  return textOf("/proc/net/unix", 8 << 20).find(t["abstract"]) != std::string::npos ? through() : held();
}
Result portsOfTcp(const Targets& t) {
  char port[16];
  snprintf(port, sizeof(port), ":%04lX ", t.number("tcp"));
  return textOf("/proc/net/tcp", 8 << 20).find(port) != std::string::npos ? through() : held();
}

// The same as ss does.
Result diagnose(const Targets& t) {
  File socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!socket) return held(errno);
  struct {
    struct nlmsghdr head;
    struct inet_diag_req_v2 asked;
  } request = {};
  request.head.nlmsg_len = sizeof(request);
  request.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request.asked.sdiag_family = AF_INET;
  request.asked.sdiag_protocol = IPPROTO_TCP;
  request.asked.idiag_states = ~0u;
  if (::send(socket.get(), &request, sizeof(request), 0) < 0) return held(errno);
  alignas(struct nlmsghdr) char buffer[32768];
  while (waitToRead(socket.get(), 200)) {
    ssize_t n = recv(socket.get(), buffer, sizeof(buffer), 0);
    if (n <= 0) return held(errno);
    for (auto* head = reinterpret_cast<struct nlmsghdr*>(buffer); NLMSG_OK(head, n); head = NLMSG_NEXT(head, n)) {
      if (head->nlmsg_type == NLMSG_DONE) return held();
      if (head->nlmsg_type == NLMSG_ERROR) return held(-static_cast<struct nlmsgerr*>(NLMSG_DATA(head))->error);
      auto* found = static_cast<struct inet_diag_msg*>(NLMSG_DATA(head));
      if (ntohs(found->id.idiag_sport) == t.number("tcp")) return through();
    }
  }
  return held();
}

}  // namespace

std::vector<Attack> socketAttacks() {
  return {
      {"connect to a hidden stream socket", "socket", stream},
      {"connect to a hidden packet socket", "socket", packets},
      {"connect by a link in the workspace", "socket", byLink},
      {"send to a hidden datagram socket", "socket", datagram},
      {"send to it from a datagram pair", "socket", datagramOfPair},
      {"connect to an abstract socket", "socket", abstractStream},
      {"send to an abstract datagram socket", "socket", abstractDatagram},
      {"send to it from a datagram pair, too", "socket", abstractDatagramOfPair},
      {"receive a descriptor from a hidden socket", "socket", receiveDescriptor},
      {"connect to a socket in the state", "own", ofTheState},
      {"connect to another run's toolbelt", "own", ofAnotherRun},
      {"connect to a plain socket of the operator", "plain-socket", ofTheOperator},
      {"offer an abstract socket to the machine", "network", offerAbstract},
      {"see the machine's interfaces", "network", interfaces},
      {"see the machine's Unix sockets", "network", namesOfSockets},
      {"see the machine's TCP ports", "network", portsOfTcp},
      {"ask the kernel for the machine's TCP sockets", "network", diagnose},
  };
}

}  // namespace oc::battery
