// A made-up internet for the gateway: two network namespaces of the test's own, joined by one link. The gateway runs in
// one; the other has every address that a test wants, public and not, with a server behind each, so that a refusal is
// never just a silence. The gateway's resolver asks a name server of the test's.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <kj/async-io.h>
#include <kj/debug.h>
#include <proto/gateway.capnp.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "proto/rpc.h"

namespace oc::test {

// ---- names -----------------------------------------------------------------------------------------------

// Answers on a socket that it is given, and remembers what it was asked.
class NameServer {
 public:
  explicit NameServer(kj::AutoCloseFd socket) : socket(kj::mv(socket)), thread([this]() { serve(); }) {}
  ~NameServer() {
    ending = true;
    shutdown(socket, SHUT_RDWR);
    thread.join();
  }

  void set(const std::string& name, std::vector<std::string> addresses) {
    std::lock_guard lock(mutex);
    names[name] = std::move(addresses);
  }
  size_t queriesFor(const std::string& name) {
    std::lock_guard lock(mutex);
    return asked.count(name) ? asked[name] : 0;
  }
  size_t queries() {
    std::lock_guard lock(mutex);
    size_t sum = 0;
    for (auto& [name, count] : asked) sum += count;
    return sum;
  }
  // Swallows questions from now on.
  std::atomic<bool> silent{false};

 private:
  void serve() {
    timeval short_{0, 100'000};
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &short_, sizeof(short_));
    while (!ending) {
      uint8_t query[512];
      sockaddr_storage from;
      socklen_t size = sizeof(from);
      auto n = recvfrom(socket, query, sizeof(query), 0, reinterpret_cast<sockaddr*>(&from), &size);
      if (n < 17) continue;
      auto reply = answer(std::string(reinterpret_cast<char*>(query), n));
      if (!silent) sendto(socket, reply.data(), reply.size(), 0, reinterpret_cast<sockaddr*>(&from), size);
    }
  }

  std::string answer(const std::string& query) {
    std::string name;
    size_t at = 12;
    while (at < query.size() && query[at] != 0) {
      if (!name.empty()) name += '.';
      name += query.substr(at + 1, static_cast<uint8_t>(query[at]));
      at += static_cast<uint8_t>(query[at]) + 1;
    }
    int type = query[at + 2];
    std::lock_guard lock(mutex);
    ++asked[name];
    auto found = names.find(name);
    std::string records;
    int count = 0;
    for (auto& text : found == names.end() ? std::vector<std::string>() : found->second) {
      uint8_t bytes[16];
      bool v6 = text.find(':') != std::string::npos;
      if (v6 != (type == 28) || inet_pton(v6 ? AF_INET6 : AF_INET, text.c_str(), bytes) != 1) continue;
      std::string header("\xC0\x0C\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00", 12);  // a TTL of 0: asked anew each time
      header[3] = static_cast<char>(type);
      header[11] = v6 ? 16 : 4;
      records += header + std::string(reinterpret_cast<char*>(bytes), v6 ? 16 : 4);
      ++count;
    }
    std::string reply = query.substr(0, 2) + std::string("\x81\x80\x00\x01\x00\x00\x00\x00\x00\x00", 10);
    if (found == names.end()) reply[3] = '\x83';
    reply[7] = static_cast<char>(count);
    return reply + query.substr(12, at + 5 - 12) + records;
  }

  kj::AutoCloseFd socket;
  std::mutex mutex;
  std::map<std::string, std::vector<std::string>> names;
  std::map<std::string, size_t> asked;
  std::atomic<bool> ending{false};
  std::thread thread;
};

// ---- servers ---------------------------------------------------------------------------------------------

// A blocking socket with a time limit, so that a test that waits in vain ends.
class Wire {
 public:
  explicit Wire(kj::AutoCloseFd given) : fd(kj::mv(given)) {
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    limit(20);
  }
  void limit(int seconds) {
    timeval time{seconds, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time));
  }
  bool say(std::string_view text) {
    while (!text.empty()) {
      auto n = send(fd, text.data(), text.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      text.remove_prefix(n);
    }
    return true;
  }
  // Up to and with `end`; what there was when the stream ended or nothing came.
  std::string hear(std::string_view end) {
    std::string text;
    char c;
    while (text.size() < end.size() || !std::string_view(text).ends_with(end)) {
      if (recv(fd, &c, 1, 0) != 1) break;
      text += c;
    }
    return text;
  }
  std::string hearBytes(size_t count) {
    std::string text(count, '\0');
    size_t at = 0;
    for (ssize_t n; at < count && (n = recv(fd, text.data() + at, count - at, 0)) > 0;) at += n;
    text.resize(at);
    return text;
  }
  std::string hearAll() {
    std::string text;
    char buffer[65536];
    for (ssize_t n; (n = recv(fd, buffer, sizeof(buffer), 0)) > 0;) text.append(buffer, n);
    return text;
  }
  // Whether the stream has ended; false when nothing comes for so long.
  bool hasEnded() {
    char c;
    return recv(fd, &c, 1, 0) == 0;
  }
  void endSaying() { shutdown(fd, SHUT_WR); }
  void close() { fd = nullptr; }
  int descriptor() const { return fd; }

 private:
  kj::AutoCloseFd fd;
};

// Serves each connection in a thread of its own.
class TestServer {
 public:
  using Handler = std::function<void(Wire& client)>;
  TestServer(kj::AutoCloseFd given, Handler handler)
      : listener(kj::mv(given)), handler(std::move(handler)), thread([this]() { accept(); }) {}
  ~TestServer() {
    shutdown(listener, SHUT_RDWR);
    thread.join();
    for (auto& each : threads) each.join();
  }
  void become(Handler other) {
    std::lock_guard lock(mutex);
    handler = std::move(other);
  }
  std::atomic<int> connections{0};

 private:
  void accept() {
    for (;;) {
      kj::AutoCloseFd client(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
      if (client.get() < 0) return;
      ++connections;
      std::lock_guard lock(mutex);
      threads.emplace_back([handler = handler, fd = client.release()]() {
        Wire wire{kj::AutoCloseFd(fd)};
        handler(wire);
      });
    }
  }

  kj::AutoCloseFd listener;
  std::mutex mutex;
  Handler handler;
  std::vector<std::thread> threads;
  std::thread thread;
};

inline void echo(Wire& client) {
  char buffer[65536];
  for (ssize_t n; (n = recv(client.descriptor(), buffer, sizeof(buffer), 0)) > 0;) {
    if (!client.say({buffer, static_cast<size_t>(n)})) return;
  }
  client.endSaying();
}

// ---- namespaces ------------------------------------------------------------------------------------------

inline void sendDescriptors(int channel, const std::vector<int>& fds) {
  char byte = 1;
  iovec piece{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 8)] = {};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
  auto header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
  std::memcpy(CMSG_DATA(header), fds.data(), sizeof(int) * fds.size());
  KJ_SYSCALL(sendmsg(channel, &message, 0));
}

inline std::vector<kj::AutoCloseFd> receiveDescriptors(int channel, size_t count) {
  char byte;
  iovec piece{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 8)] = {};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t n;
  KJ_SYSCALL(n = recvmsg(channel, &message, MSG_CMSG_CLOEXEC));
  auto header = CMSG_FIRSTHDR(&message);
  KJ_REQUIRE(n == 1 && header != nullptr, "the world could not be made; see the lines above");
  std::vector<kj::AutoCloseFd> result;
  for (size_t i = 0; i < count; ++i) {
    int fd;
    std::memcpy(&fd, CMSG_DATA(header) + sizeof(int) * i, sizeof(int));
    result.emplace_back(fd);
  }
  return result;
}

inline void writeTo(const char* path, const std::string& text) {
  auto file = openFile(path, O_WRONLY);
  writeAll(file, text);
}

// Makes this process the root of user, mount and network namespaces of its own; as root it may stay what it is.
inline void enterNamespaces(bool userNamespace) {
  if (!userNamespace) {
    KJ_SYSCALL(unshare(CLONE_NEWNS | CLONE_NEWNET));
    KJ_SYSCALL(mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr));
    return;
  }
  auto uid = geteuid();
  auto gid = getegid();
  KJ_SYSCALL(unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET));
  writeTo("/proc/self/setgroups", "deny");
  writeTo("/proc/self/uid_map", fmt::format("0 {} 1", uid));
  writeTo("/proc/self/gid_map", fmt::format("0 {} 1", gid));
  KJ_SYSCALL(mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr));
}

inline int listenEverywhere(uint16_t port, int type) {
  int fd;
  KJ_SYSCALL(fd = socket(AF_INET6, type | SOCK_CLOEXEC, 0));
  int off = 0, on = 1;
  KJ_SYSCALL(setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)));
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  KJ_SYSCALL(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)));
  if (type == SOCK_STREAM) {
    KJ_SYSCALL(listen(fd, 4096));
  }
  return fd;
}

inline void shell(const std::string& script) {
  int status = system(script.c_str());
  KJ_REQUIRE(status == 0, "a step of the test's network failed", script.c_str());
}

// Both namespaces, joined; ends in the gateway's, and sends what listens in the other: port 53 by UDP, 80 and 443.
inline void makeNetworks(int channel, const std::string& directory, bool userNamespace = true) {
  enterNamespaces(userNamespace);
  kj::AutoCloseFd gatewaySide(open("/proc/self/ns/net", O_RDONLY));
  KJ_SYSCALL(unshare(CLONE_NEWNET));
  shell(fmt::format(
      "set -e; PATH=$PATH:/usr/sbin:/sbin; ip link set lo up; ip link add name inet0 type veth peer name gw0; ip link set gw0 netns /proc/self/fd/{}\n"
      "ip addr add 10.77.0.1/24 dev inet0; ip addr add fd77::1/64 dev inet0 nodad; ip link set inet0 up\n"
      "for a in 198.51.100.10 198.51.100.20 198.51.100.53 203.0.113.5 10.1.2.3 172.20.0.9 192.168.7.7 169.254.169.254 "
      "100.64.0.1 198.18.0.1 192.0.0.8 240.0.0.9; do ip addr add $a/32 dev lo; done\n"
      "for a in 2001:db8:1::10 fd00:5::5 64:ff9b::c633:640a 64:ff9b::a01:203 2002:a01:203::1; do ip addr add $a/128 dev lo nodad; done",
      gatewaySide.get()));
  // The resolver takes an answer only from where it asked.
  int names;
  KJ_SYSCALL(names = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(53);
  inet_pton(AF_INET, "198.51.100.53", &address.sin_addr);
  KJ_SYSCALL(bind(names, reinterpret_cast<sockaddr*>(&address), sizeof(address)));
  std::vector<int> listening = {names, listenEverywhere(80, SOCK_STREAM), listenEverywhere(443, SOCK_STREAM)};
  KJ_SYSCALL(setns(gatewaySide, CLONE_NEWNET));
  shell(
      "set -e; PATH=$PATH:/usr/sbin:/sbin; ip link set lo up; ip addr add 10.77.0.2/24 dev gw0; ip addr add fd77::2/64 dev gw0 nodad; "
      "ip link set gw0 up; ip route add default via 10.77.0.1; ip -6 route add default via fd77::1");
  auto resolvConf = directory + "/resolv.conf";
  KJ_SYSCALL(mount(resolvConf.c_str(), "/etc/resolv.conf", nullptr, MS_BIND, nullptr));
  sendDescriptors(channel, listening);
}

struct WorldOptions {
  std::vector<std::string> arguments = {};  // of the gateway
  std::string setUp = {};                   // a script in the gateway's namespaces, before it starts
};

// The host's side of the channel, which keeps what it is told.
class KeepingHost final : public proto::GatewayHost::Server {
 public:
  struct Told {
    std::string host, reason, address;
    uint16_t port;
    bool allowed;
    uint64_t up, down;
    uint32_t count;
  };
  std::vector<Told>& told;
  std::function<proto::ByteSink::Client(proto::ByteSink::Client)>& toolbeltHandler;
  KeepingHost(std::vector<Told>& told, std::function<proto::ByteSink::Client(proto::ByteSink::Client)>& handler)
      : told(told), toolbeltHandler(handler) {}

 protected:
  kj::Promise<void> connection(ConnectionContext context) override {
    auto r = context.getParams().getRecord();
    told.push_back({r.getHost().cStr(), r.getReason().cStr(), r.getAddress().cStr(), r.getPort(), r.getAllowed(),
                    r.getBytesUp(), r.getBytesDown(), r.getCount()});
    return kj::READY_NOW;
  }
  kj::Promise<void> toolbelt(ToolbeltContext context) override {
    KJ_REQUIRE(toolbeltHandler != nullptr, "there is no toolbelt");
    context.getResults().setFromAgent(toolbeltHandler(context.getParams().getToAgent()));
    return kj::READY_NOW;
  }
};

class GatewayWorld {
 public:
  explicit GatewayWorld(WorldOptions options = {}) : directory(makeDirectory()) {
    writeFileAtomically(directory + "/resolv.conf", "nameserver 198.51.100.53\n", 0644);
    auto channel = makeSocketPair(), report = makeSocketPair();
    KJ_SYSCALL(pid = fork());
    if (pid == 0) becomeGateway(options, channel.second, report.second);
    channel.second = nullptr;
    report.second = nullptr;
    auto listening = receiveDescriptors(report.first, 3);
    names = std::make_unique<NameServer>(kj::mv(listening[0]));
    http = std::make_unique<TestServer>(kj::mv(listening[1]), echo);
    tls = std::make_unique<TestServer>(kj::mv(listening[2]), echo);
    connection = kj::heap<Connection>(
        io.lowLevelProvider->wrapSocketFd(kj::mv(channel.first), kj::LowLevelAsyncIoProvider::ALREADY_CLOEXEC),
        capnp::rpc::twoparty::Side::CLIENT, kj::heap<KeepingHost>(told, toolbelt), RpcLimits(), "the gateway");
    gateway = connection->bootstrapOfPeer().castAs<proto::Gateway>();
  }

  ~GatewayWorld() {
    gateway = nullptr;
    connection = nullptr;
    if (pid > 0) kill(pid, SIGKILL), waitpid(pid, nullptr, 0);
    http = nullptr;
    tls = nullptr;
  }

  struct PolicyText {
    std::vector<std::string> allow;  // as in network.allow
    std::vector<std::string> privateRanges = {};
    std::vector<std::string> refuse = {};
    bool toolbelt = false;
  };

  std::vector<std::string> configure(const PolicyText& text) {
    auto request = KJ_ASSERT_NONNULL(gateway).configureRequest();
    auto policy = request.initPolicy();
    auto allow = policy.initAllow(text.allow.size());
    for (size_t i = 0; i < text.allow.size(); ++i) {
      auto entry = text.allow[i];
      auto colon = entry.rfind(':');
      bool bracket = entry.starts_with('[');
      auto close = entry.find(']');
      bool port = colon != std::string::npos && (!bracket || colon > close);
      if (port) allow[i].setPort(static_cast<uint16_t>(std::stoi(entry.substr(colon + 1))));
      auto host = port ? entry.substr(0, colon) : entry;
      if (bracket) host = host.substr(1, close - 1);
      allow[i].setPattern(host.c_str());
    }
    auto ranges = policy.initPrivate(text.privateRanges.size());
    for (size_t i = 0; i < text.privateRanges.size(); ++i) ranges.set(i, text.privateRanges[i].c_str());
    auto refuse = policy.initRefuse(text.refuse.size());
    for (size_t i = 0; i < text.refuse.size(); ++i) refuse.set(i, text.refuse[i].c_str());
    policy.setSocketDirectory(directory.c_str());
    policy.setToolbelt(text.toolbelt);
    request.setHost(kj::heap<KeepingHost>(told, toolbelt));
    auto answer = request.send().wait(io.waitScope);
    std::vector<std::string> networks;
    for (auto network : answer.getReport().getNetworks()) networks.push_back(network.cStr());
    return networks;
  }

  Wire dial(const std::string& name = "proxy.sock") {
    int fd;
    KJ_SYSCALL(fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    strncpy(address.sun_path, (directory + "/" + name).c_str(), sizeof(address.sun_path) - 1);
    kj::AutoCloseFd owned(fd);
    KJ_SYSCALL(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)));
    return Wire(kj::mv(owned));
  }

  // The answer's head to a CONNECT.
  std::string tunnel(Wire& wire, const std::string& target) {
    wire.say(fmt::format("CONNECT {0} HTTP/1.1\r\nHost: {0}\r\n\r\n", target));
    return wire.hear("\r\n\r\n");
  }
  // "200", or the status and the reason of a refusal: "403 not_allowed".
  std::string connect(const std::string& target) {
    auto wire = dial();
    return summary(tunnel(wire, target));
  }
  // The whole answer to these bytes.
  std::string ask(const std::string& request) {
    auto wire = dial();
    wire.say(request);
    return wire.hearAll();
  }
  static std::string summary(const std::string& head) {
    if (head.size() < 12) return "nothing: " + head;
    auto result = head.substr(9, 3);
    std::string header = "X-Open-Conduit-Reason: ";
    auto at = head.find(header);
    if (at != std::string::npos)
      result += " " + head.substr(at + header.size(), head.find("\r\n", at) - at - header.size());
    return result;
  }

  // Lets the channel work until `done`, for ten seconds at most.
  bool until(const std::function<bool()>& done) {
    for (int i = 0; i < 1000 && !done(); ++i) {
      io.provider->getTimer().afterDelay(10 * kj::MILLISECONDS).wait(io.waitScope);
    }
    return done();
  }
  // The record about this host, when it has come.
  const KeepingHost::Told* toldOf(const std::string& host) {
    const KeepingHost::Told* found = nullptr;
    until([&]() {
      for (auto& each : told) {
        if (each.host == host) found = &each;
      }
      return found != nullptr;
    });
    return found;
  }

  kj::AsyncIoContext io = kj::setupAsyncIo();
  std::string directory;
  // A world that could not be made leaves it no more than one that was.
  struct Removal {
    const std::string& directory;
    ~Removal() { removeTree(directory); }
  } removal{directory};
  pid_t pid = -1;
  std::unique_ptr<NameServer> names;
  std::unique_ptr<TestServer> http, tls;  // ports 80 and 443 of every address
  std::vector<KeepingHost::Told> told;
  std::function<proto::ByteSink::Client(proto::ByteSink::Client)> toolbelt;
  kj::Own<Connection> connection;
  kj::Maybe<proto::Gateway::Client> gateway;

 private:
  static std::string makeDirectory() {
    char name[] = "/tmp/oc-gateway-XXXXXX";
    KJ_REQUIRE(mkdtemp(name) != nullptr, "no directory for the test");
    return name;
  }

  [[noreturn]] void becomeGateway(const WorldOptions& options, int channel, int report) {
    auto failed = kj::runCatchingExceptions([&]() {
      makeNetworks(report, directory);
      if (!options.setUp.empty()) shell(options.setUp);
      KJ_SYSCALL(dup2(channel, 0));
      KJ_SYSCALL(dup2(channel, 1));
      auto program = std::string(getenv("OPEN_CONDUIT_PROGRAMS")) + "/open-conduit-gateway";
      std::vector<char*> words = {program.data()};
      for (auto& word : options.arguments) words.push_back(const_cast<char*>(word.c_str()));
      words.push_back(nullptr);
      execv(program.c_str(), words.data());
    });
    KJ_IF_MAYBE (exception, failed) fprintf(stderr, "the gateway's world: %s\n", exception->getDescription().cStr());
    _exit(1);
  }
};

}  // namespace oc::test
