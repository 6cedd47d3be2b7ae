#include "stand.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <mqueue.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <functional>

#include "tools.h"

namespace oc::battery {

namespace {

constexpr int tick = 50;  // milliseconds between two looks for what an agent offers
// What the secret is in this process's environment.
constexpr const char* markerVariable = "OPEN_CONDUIT_ATTACK_SECRET";
char memory[64];  // with the secret, for those who read another process

std::string randomHex() {
  unsigned char bytes[8];
  if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes)) abort();
  std::string text;
  char two[3];
  for (auto byte : bytes) {
    snprintf(two, sizeof(two), "%02x", byte);
    text += two;
  }
  return text;
}

void put(const std::string& path, const std::string& text, mode_t mode = 0600) {
  if (!writeText(path, text)) {
    perror(path.c_str());
    exit(1);
  }
  chmod(path.c_str(), mode);
}

class Stand {
 public:
  explicit Stand(const std::vector<std::string>& words) {
    for (auto& word : words) {
      auto equals = word.find('=');
      auto name = word.substr(0, equals), value = word.substr(equals + 1);
      if (name == "repository") {
        repositories.push_back(value);
      } else {
        t.set(name, value);
      }
    }
    marker = getenv(markerVariable);
    t.set("marker", marker);
    t.set("evidence", t["root"] + "/evidence");
    mkdir(t["evidence"].c_str(), 0700);
  }

  int run() {
    becomeVictim();
    plant();
    makeSockets();
    makePorts();
    makeObjects();
    takeLodger();
    tell();
    serve();
    takeAway();
    return 0;
  }

 private:
  // ---- the process

  void becomeVictim() {
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    // So that a machine's Yama does not do the sandbox's work.
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    memcpy(memory, marker.data(), marker.size());
    sigset_t blocked;
    sigemptyset(&blocked);
    ownerSignal = SIGRTMIN + 3;
    sigaddset(&blocked, ownerSignal);
    sigprocmask(SIG_BLOCK, &blocked, nullptr);
    on(signalfd(-1, &blocked, SFD_CLOEXEC), [this](int fd) {
      struct signalfd_siginfo info;
      if (read(fd, &info, sizeof(info)) == sizeof(info)) prove("owner");
    });
    t.set("pid", std::to_string(getpid()));
    t.set("stand", "root=" + t["root"]);
    t.set("address", std::to_string(reinterpret_cast<uintptr_t>(memory)));
    t.set("owner_signal", std::to_string(ownerSignal));
    auto killer = textOf("/proc/self/oom_score_adj");
    t.set("oom_score_adj", killer.substr(0, killer.find('\n')));
  }

  void prove(const std::string& what) { put(t["evidence"] + "/" + what, what); }

  // ---- files

  void plant() {
    for (auto& name : namesIn(t["evidence"])) unlink((t["evidence"] + "/" + name).c_str());
    auto own = t["own"];
    put(own + "/secret", marker);
    put(own + "/to-take", marker);
    put(own + "/named-" + marker, "");
    put(own + "/program", "#!/bin/sh\necho " + marker + "\n", 0700);
    unlink((own + "/made-by-open").c_str());
    unlink((own + "/link").c_str());
    (void)!symlink(("/" + marker).c_str(), (own + "/link").c_str());
    if (setxattr((own + "/secret").c_str(), "user.secret", marker.data(), marker.size(), 0) == 0)
      t.set("attributes", "yes");
    put(t["beside"] + "/secret", marker);
    plantOutside();
    for (auto& repository : repositories) makeRepository(repository);
    nameHandle(own + "/secret");
    if (secretFd < 0) secretFd = open((own + "/secret").c_str(), O_RDONLY | O_CLOEXEC);
    t.set("secret_fd", std::to_string(secretFd));
  }

  void plantOutside() {
    auto outside = t["outside"] + "/";
    for (auto& name : namesIn(t["outside"])) {
      auto path = outside + name;
      if (name.starts_with("made-by-") && unlink(path.c_str()) < 0) rmdir(path.c_str());
    }
    put(outside + "secret", marker);
    for (auto name : {"to-append", "to-truncate", "to-rename", "to-overwrite", "to-exchange", "to-remove", "to-chmod",
                      "to-touch", "to-chown", "to-remount"}) {
      put(outside + name, "the operator's\n");
    }
    mkdir((outside + "to-rmdir").c_str(), 0700);
    mkfifo((outside + "pipe").c_str(), 0600);
    if (pipeFd < 0) pipeFd = open((outside + "pipe").c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
    for (auto place : {"/tmp", "/var/tmp", "/dev/shm"}) unlink((std::string(place) + "/oc-attack-" + marker).c_str());
  }

  // As open-conduit-git makes one, without a git.
  static void makeRepository(const std::string& path) {
    auto git = path + "/.git";
    for (auto name : {"", "/hooks", "/info", "/modules", "/worktrees", "/objects", "/refs", "/refs/heads"})
      mkdir((git + name).c_str(), 0700);
    put(git + "/HEAD", "ref: refs/heads/main\n");
    put(git + "/config", "[core]\n\trepositoryformatversion = 0\n");
    put(git + "/info/exclude", "");
    put(git + "/config.worktree", "");
  }

  void nameHandle(const std::string& path) {
    struct {
      struct file_handle head;
      unsigned char bytes[128];
    } handle = {};
    handle.head.handle_bytes = sizeof(handle.bytes);
    int mount;
    if (name_to_handle_at(AT_FDCWD, path.c_str(), &handle.head, &mount, 0) < 0) return;
    std::string hex;
    char two[3];
    for (unsigned i = 0; i < handle.head.handle_bytes; ++i) {
      snprintf(two, sizeof(two), "%02x", handle.head.f_handle[i]);
      hex += two;
    }
    t.set("handle", hex);
    t.set("handle_type", std::to_string(handle.head.handle_type));
  }

  // ---- Unix sockets

  int listenUnix(const std::string& name, int type) {
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    bool abstract = name.starts_with('\0');
    if (name.size() >= sizeof(address.sun_path)) {
      fprintf(stderr, "a socket's path is too long: %s\n", name.c_str());
      exit(1);
    }
    memcpy(address.sun_path, name.data(), name.size());
    auto length = static_cast<socklen_t>(offsetof(struct sockaddr_un, sun_path) + name.size() + (abstract ? 0 : 1));
    if (bind(fd, reinterpret_cast<struct sockaddr*>(&address), length) < 0) {
      perror(name.c_str());
      exit(1);
    }
    if (type != SOCK_DGRAM) listen(fd, 64);
    return fd;
  }

  void greetAt(const std::string& name, int type) {
    on(listenUnix(name, type), [this](int fd) {
      File taken(accept4(fd, nullptr, nullptr, SOCK_CLOEXEC));
      (void)!send(taken.get(), marker.data(), marker.size(), MSG_NOSIGNAL);
    });
  }
  void collectAt(const std::string& name) {
    on(listenUnix(name, SOCK_DGRAM), [this](int fd) {
      char text[32];
      ssize_t n = recv(fd, text, sizeof(text), 0);
      std::string what(text, static_cast<size_t>(std::max<ssize_t>(n, 0)));
      bool proper = std::all_of(what.begin(), what.end(), [](char c) { return (c >= 'a' && c <= 'z') || c == '-'; });
      if (!what.empty() && proper) prove(what);
    });
  }

  void giveDescriptorAt(const std::string& name) {
    on(listenUnix(name, SOCK_STREAM), [this](int fd) {
      File taken(accept4(fd, nullptr, nullptr, SOCK_CLOEXEC));
      char byte = 'd';
      alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
      struct iovec data = {&byte, 1};
      struct msghdr message = {};
      message.msg_iov = &data;
      message.msg_iovlen = 1;
      message.msg_control = control;
      message.msg_controllen = sizeof(control);
      auto* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int));
      memcpy(CMSG_DATA(header), &secretFd, sizeof(int));
      sendmsg(taken.get(), &message, MSG_NOSIGNAL);
    });
  }

  void makeSockets() {
    auto runtime = t["runtime"] + "/";
    greetAt(runtime + "stream", SOCK_STREAM);
    greetAt(runtime + "packets", SOCK_SEQPACKET);
    giveDescriptorAt(runtime + "giver");
    collectAt(runtime + "datagrams");
    for (auto place : {"own", "beside", "outside"}) greetAt(t[place] + "/socket", SOCK_STREAM);
    t.set("abstract", "oc-stand-" + marker);
    t.set("abstract_datagrams", "oc-stand-d-" + marker);
    t.set("abstract_to_find", "oc-find-" + marker);
    greetAt(std::string(1, '\0') + t["abstract"], SOCK_STREAM);
    collectAt(std::string(1, '\0') + t["abstract_datagrams"]);
  }

  // ---- ports

  struct Bound {
    int fd = -1;
    long port = 0;
  };

  static Bound bindTo(int family, int type, int protocol, long port = 0) {
    Bound bound;
    bound.fd = socket(family, type | SOCK_CLOEXEC, protocol);
    if (bound.fd < 0) return bound;
    struct sockaddr_in any4 = {};
    struct sockaddr_in6 any6 = {};
    any4.sin_family = AF_INET;
    any4.sin_port = htons(static_cast<uint16_t>(port));
    any6.sin6_family = AF_INET6;
    int on = 1;
    if (family == AF_INET6) setsockopt(bound.fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    auto* address =
        family == AF_INET ? reinterpret_cast<struct sockaddr*>(&any4) : reinterpret_cast<struct sockaddr*>(&any6);
    socklen_t length = family == AF_INET ? sizeof(any4) : sizeof(any6);
    if (bind(bound.fd, address, length) < 0 || getsockname(bound.fd, address, &length) < 0) {
      close(bound.fd);
      return Bound();
    }
    bound.port = ntohs(family == AF_INET ? any4.sin_port : any6.sin6_port);
    return bound;
  }

  void answerTcp(int fd) {
    File taken(accept4(fd, nullptr, nullptr, SOCK_CLOEXEC));
    char request[4096];
    if (waitToRead(taken.get(), 100)) (void)!recv(taken.get(), request, sizeof(request), MSG_DONTWAIT);
    auto answer = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: " + std::to_string(marker.size()) +
                  "\r\n\r\n" + marker;
    (void)!send(taken.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    shutdown(taken.get(), SHUT_WR);
    if (waitToRead(taken.get(), 50)) (void)!recv(taken.get(), request, sizeof(request), MSG_DONTWAIT);
  }
  void answerUdp(int fd) {
    struct sockaddr_storage from = {};
    socklen_t length = sizeof(from);
    char request[256];
    if (recvfrom(fd, request, sizeof(request), MSG_DONTWAIT, reinterpret_cast<struct sockaddr*>(&from), &length) < 0)
      return;
    sendto(fd, marker.data(), marker.size(), 0, reinterpret_cast<struct sockaddr*>(&from), length);
  }

  void makePorts() {
    auto tcp = bindTo(AF_INET, SOCK_STREAM, 0);
    int queue = 16;
    setsockopt(tcp.fd, IPPROTO_TCP, TCP_FASTOPEN, &queue, sizeof(queue));
    listenTcp("tcp", tcp);
    listenTcp("tcp6", bindTo(AF_INET6, SOCK_STREAM, 0));
    listenUdp("udp", bindTo(AF_INET, SOCK_DGRAM, 0));
    listenUdp("udplite", bindTo(AF_INET, SOCK_DGRAM, IPPROTO_UDPLITE));
    auto group = bindTo(AF_INET, SOCK_DGRAM, 0);
    struct ip_mreqn membership = {};
    inet_pton(AF_INET, "239.255.77.77", &membership.imr_multiaddr);
    if (setsockopt(group.fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &membership, sizeof(membership)) == 0)
      listenUdp("multicast", group);
    // A port that is free now, for who wants to be found.
    auto free = bindTo(AF_INET, SOCK_STREAM, 0);
    portToFind = free.port;
    close(free.fd);
    t.set("port_to_find", std::to_string(portToFind));
    nameInterface();
  }
  void listenTcp(const char* name, Bound bound) {
    if (bound.fd < 0 || listen(bound.fd, 64) < 0) return;
    t.set(name, std::to_string(bound.port));
    on(bound.fd, [this](int fd) { answerTcp(fd); });
  }
  void listenUdp(const char* name, Bound bound) {
    if (bound.fd < 0) return;
    t.set(name, std::to_string(bound.port));
    on(bound.fd, [this](int fd) { answerUdp(fd); });
  }

  void nameInterface() {
    struct ifaddrs* all = nullptr;
    if (getifaddrs(&all) < 0) return;
    auto text = [](struct sockaddr* address) {
      char name[INET_ADDRSTRLEN] = {};
      inet_ntop(AF_INET, &reinterpret_cast<struct sockaddr_in*>(address)->sin_addr, name, sizeof(name));
      return std::string(name);
    };
    for (auto* one = all; one != nullptr; one = one->ifa_next) {
      if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET || (one->ifa_flags & IFF_LOOPBACK) != 0)
        continue;
      t.set("interface", one->ifa_name);
      t.set("device", one->ifa_name);
      t.set("address4", text(one->ifa_addr));
      if ((one->ifa_flags & IFF_BROADCAST) != 0 && one->ifa_broadaddr != nullptr)
        t.set("broadcast4", text(one->ifa_broadaddr));
      break;
    }
    freeifaddrs(all);
  }

  // ---- the kernel's objects

  void makeObjects() {
    shm = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
    strcpy(static_cast<char*>(shmat(shm, nullptr, 0)), marker.c_str());
    auto key = static_cast<key_t>(strtoul(marker.substr(4, 7).c_str(), nullptr, 16) | 1);
    keyed = shmget(key, 4096, IPC_CREAT | IPC_EXCL | 0600);
    msg = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
    sem = semget(IPC_PRIVATE, 1, IPC_CREAT | 0600);
    semctl(sem, 0, SETVAL, 100);
    t.set("shm", std::to_string(shm));
    t.set("shm_key", std::to_string(key));
    t.set("msg", std::to_string(msg));
    t.set("sem", std::to_string(sem));
    t.set("posix_shm", "oc-stand-" + marker);
    put("/dev/shm/oc-stand-" + marker, marker);
    mq_attr attributes = {};
    attributes.mq_maxmsg = 4;
    attributes.mq_msgsize = 128;
    auto name = "/oc-stand-" + marker;
    mqueue = mq_open(name.c_str(), O_CREAT | O_RDWR | O_NONBLOCK | O_CLOEXEC, 0600, &attributes);
    if (mqueue >= 0) t.set("mqueue", name);
    constexpr int userKeyring = -4, setPermissions = 5;
    constexpr unsigned possessorAndUser = 0x3f3f0000;
    key_ = syscall(SYS_add_key, "user", name.c_str(), marker.data(), marker.size(), userKeyring);
    if (key_ >= 0 && syscall(SYS_keyctl, setPermissions, key_, possessorAndUser, 0, 0) == 0)
      t.set("key", std::to_string(key_));
    openTerminal();
    refillObjects();
  }

  // Those that an attack takes something from.
  void refillObjects() {
    struct {
      long type = 1;
      char text[128] = {};
    } message;
    strcpy(message.text, marker.c_str());
    msgsnd(msg, &message, sizeof(message.text), IPC_NOWAIT);
    if (mqueue >= 0) mq_send(mqueue, marker.data(), marker.size(), 0);
    if (toRemove >= 0) shmctl(toRemove, IPC_RMID, nullptr);
    toRemove = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
    t.set("shm_to_remove", std::to_string(toRemove));
  }

  void openTerminal() {
    terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal < 0 || grantpt(terminal) < 0 || unlockpt(terminal) < 0) return;
    t.set("pts", ptsname(terminal));
    // So that its other end is never the last, and writing to it works.
    terminalEnd = open(ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
  }

  // A process with a mount of its own.
  void takeLodger() {
    auto lodging = t["root"] + "/lodging";
    mkdir(lodging.c_str(), 0700);
    int ready[2];
    if (pipe(ready) < 0) return;
    lodger = fork();
    if (lodger == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (ownNamespaces() != 0 || mount("none", lodging.c_str(), "tmpfs", 0, nullptr) < 0) _exit(1);
      if (!writeText(lodging + "/secret", marker) || write(ready[1], "r", 1) != 1) _exit(1);
      for (;;) pause();
    }
    close(ready[1]);
    char byte;
    if (read(ready[0], &byte, 1) == 1) {
      t.set("lodger", std::to_string(lodger));
      t.set("lodging", lodging);
    }
    close(ready[0]);
  }

  // ---- serving

  void on(int fd, std::function<void(int)> action) {
    if (fd >= 0) handlers.emplace_back(fd, std::move(action));
  }

  void tell() {
    auto text = t.toText() + "ready\n";
    (void)!write(STDOUT_FILENO, text.data(), text.size());
  }

  void serve() {
    for (;;) {
      std::vector<struct pollfd> waiting = {{STDIN_FILENO, POLLIN, 0}};
      for (auto& [fd, action] : handlers) waiting.push_back({fd, POLLIN, 0});
      if (poll(waiting.data(), waiting.size(), tick) < 0 && errno != EINTR) return;
      if (waiting[0].revents != 0) {
        char line[64];
        if (read(STDIN_FILENO, line, sizeof(line)) <= 0) return;
        plant();
        refillObjects();
        tell();
      }
      for (size_t i = 1; i < waiting.size(); ++i) {
        if (waiting[i].revents != 0) handlers[i - 1].second(waiting[i].fd);
      }
      knock();
    }
  }

  // At what an agent may offer.
  void knock() {
    File door(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    struct sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(portToFind));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    (void)!connect(door.get(), reinterpret_cast<struct sockaddr*>(&address), sizeof(address));
    File other(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    struct sockaddr_un name = {};
    name.sun_family = AF_UNIX;
    auto text = t["abstract_to_find"];
    memcpy(name.sun_path + 1, text.data(), text.size());
    (void)!connect(other.get(), reinterpret_cast<struct sockaddr*>(&name),
                   static_cast<socklen_t>(offsetof(struct sockaddr_un, sun_path) + 1 + text.size()));
    char buffer[256];
    while (pipeFd >= 0 && read(pipeFd, buffer, sizeof(buffer)) > 0) continue;
    struct pollfd shown = {terminal, POLLIN, 0};
    if (terminal >= 0 && poll(&shown, 1, 0) == 1 && (shown.revents & POLLIN) != 0)
      (void)!read(terminal, buffer, sizeof(buffer));
  }

  void takeAway() {
    for (int id : {shm, keyed, toRemove}) shmctl(id, IPC_RMID, nullptr);
    msgctl(msg, IPC_RMID, nullptr);
    semctl(sem, 0, IPC_RMID);
    unlink(("/dev/shm/oc-stand-" + marker).c_str());
    if (mqueue >= 0) mq_unlink(("/oc-stand-" + marker).c_str());
    constexpr int unlinkKey = 9, userKeyring = -4;
    if (key_ >= 0) syscall(SYS_keyctl, unlinkKey, key_, userKeyring, 0, 0);
    for (auto place : {"/tmp", "/var/tmp", "/dev/shm"}) unlink((std::string(place) + "/oc-attack-" + marker).c_str());
    if (lodger > 0) {
      kill(lodger, SIGKILL);
      waitpid(lodger, nullptr, 0);
    }
  }

  Targets t;
  std::string marker;
  std::vector<std::string> repositories;
  std::vector<std::pair<int, std::function<void(int)>>> handlers;
  int ownerSignal = 0, secretFd = -1, pipeFd = -1, terminal = -1, terminalEnd = -1;
  int shm = -1, keyed = -1, toRemove = -1, msg = -1, sem = -1;
  long key_ = -1, portToFind = 0;
  mqd_t mqueue = -1;
  pid_t lodger = 0;
};

}  // namespace

int runStand(const std::vector<std::string>& words) {
  if (getenv(markerVariable) != nullptr) return Stand(words).run();
  // What /proc shows of an environment is what the program was started with.
  setenv(markerVariable, ("mark" + randomHex()).c_str(), 1);
  std::vector<char*> again = {const_cast<char*>("open-conduit-attack"), const_cast<char*>("stand")};
  for (auto& word : words) again.push_back(const_cast<char*>(word.c_str()));
  again.push_back(nullptr);
  execv("/proc/self/exe", again.data());
  perror("open-conduit-attack");
  return 1;
}

}  // namespace oc::battery
