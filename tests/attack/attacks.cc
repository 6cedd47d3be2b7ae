#include "attacks.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

namespace oc::attack {

namespace {

int result(long value) { return value < 0 ? errno : 0; }

// ---- the daemon's process

int trace(const Targets& t) {
  if (ptrace(PTRACE_ATTACH, t.daemon, nullptr, nullptr) < 0) return errno;
  waitpid(t.daemon, nullptr, __WALL);
  ptrace(PTRACE_DETACH, t.daemon, nullptr, nullptr);
  return 0;
}

// Any address that is mapped: the vector of its own stack is not known, so its memory is asked for at ours, which tells
// EFAULT where the process may be read.
int readMemory(const Targets& t) {
  char here[8], there[8];
  struct iovec local = {here, sizeof(here)}, remote = {there, sizeof(there)};
  long n = syscall(SYS_process_vm_readv, t.daemon, &local, 1, &remote, 1, 0);
  return n < 0 && errno != EFAULT ? errno : 0;
}

int openOf(pid_t pid, const char* what, int flags) {
  auto path = "/proc/" + std::to_string(pid) + "/" + what;
  int fd = open(path.c_str(), flags | O_CLOEXEC);
  if (fd < 0) return errno;
  char byte;
  int read = result(::read(fd, &byte, 1));
  close(fd);
  return read == EIO || read == EFAULT ? 0 : read;  // mem at 0
}

int readEnvironment(const Targets& t) { return openOf(t.daemon, "environ", O_RDONLY); }
int openMemory(const Targets& t) { return openOf(t.daemon, "mem", O_RDWR); }

int listDescriptors(const Targets& t) {
  auto path = "/proc/" + std::to_string(t.daemon) + "/fd/0";
  char target[16];
  return result(readlink(path.c_str(), target, sizeof(target)));
}

int stealDescriptor(const Targets& t) {
  int pidfd = static_cast<int>(syscall(SYS_pidfd_open, t.daemon, 0));
  if (pidfd < 0) return errno;
  int code = result(syscall(438 /* pidfd_getfd */, pidfd, 0, 0));
  close(pidfd);
  return code;
}

int compareDescriptors(const Targets& t) { return result(syscall(SYS_kcmp, getpid(), t.daemon, KCMP_FILE, 0, 0)); }
// A signal that is ignored unless somebody waits for it.
int signalIt(const Targets& t) { return result(kill(t.daemon, SIGURG)); }
int limitIt(const Targets& t) {
  struct rlimit64 core = {0, 0};
  return result(syscall(SYS_prlimit64, t.daemon, RLIMIT_CORE, &core, nullptr));
}
// By one more than it has, which is allowed however nice the tests themselves are.
int slowIt(const Targets& t) {
  errno = 0;
  int now = getpriority(PRIO_PROCESS, t.daemon);
  return errno != 0 ? result(-1) : result(setpriority(PRIO_PROCESS, t.daemon, now + 1));
}
int pinIt(const Targets& t) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) CPU_SET(cpu, &set);
  return result(sched_setaffinity(t.daemon, sizeof(set), &set));
}
int rescheduleIt(const Targets& t) {
  struct sched_param parameters = {};
  return result(sched_setscheduler(t.daemon, SCHED_BATCH, &parameters));
}

// ---- files and sockets

int readPath(const std::string& path) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  char byte;
  int code = result(read(fd, &byte, 1));
  close(fd);
  return code;
}

int readSecret(const Targets& t) { return readPath(t.secretFile); }
int statSecret(const Targets& t) {
  struct stat stats;
  return result(stat(t.secretFile.c_str(), &stats));
}
int changeSecret(const Targets& t) { return result(chmod(t.secretFile.c_str(), 0600)); }
int readHome(const Targets& t) { return readPath(t.homeFile); }
int writeHome(const Targets& t) {
  int fd = open(t.homeFile.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd < 0) return errno;
  close(fd);
  return 0;
}
int writeBesideHome(const Targets& t) {
  auto path = t.homeFile + ".planted";
  int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return errno;
  close(fd);
  unlink(path.c_str());
  return 0;
}

// Out of every directory that it was handed.
int climbOut(const Targets& t) {
  int code = EBADF;  // it has none
  for (int fd = 0; fd < 64; ++fd) {
    struct stat stats;
    if (fstat(fd, &stats) < 0 || !S_ISDIR(stats.st_mode)) continue;
    std::string up;
    for (int i = 0; i < 20; ++i) up += "../";
    int found = openat(fd, (up + t.homeFile.substr(1)).c_str(), O_RDONLY | O_CLOEXEC);
    if (found >= 0) {
      close(found);
      return 0;
    }
    code = errno;
  }
  return code;
}

int connectTo(const std::string& path) {
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  struct sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, path.data(), std::min(path.size(), sizeof(address.sun_path)));
  auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  int code = result(connect(fd, reinterpret_cast<struct sockaddr*>(&address), length));
  close(fd);
  return code;
}

int connectSocket(const Targets& t) { return connectTo(t.socket); }
int connectHidden(const Targets& t) { return connectTo(t.hiddenSocket); }
int connectAbstract(const Targets& t) { return connectTo(std::string(1, '\0') + t.abstractSocket); }

// A pair is allowed where programs need it, and a datagram pair can send to whatever it can name.
int sendFromPair(const Targets& t) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair) < 0) return errno;
  struct sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, t.socket.data(), t.socket.size());
  // The target is a stream socket: EPROTOTYPE says that it was found.
  long sent = sendto(pair[0], "x", 1, 0, reinterpret_cast<struct sockaddr*>(&address), sizeof(address));
  int code = sent < 0 && errno != EPROTOTYPE && errno != EISCONN ? errno : 0;
  close(pair[0]);
  close(pair[1]);
  return code;
}

struct sockaddr_in loopback(int port) {
  struct sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int connectTcp(const Targets& t) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  auto address = loopback(t.tcpPort);
  int code = result(connect(fd, reinterpret_cast<struct sockaddr*>(&address), sizeof(address)));
  close(fd);
  return code;
}

int sendUdp(const Targets& t) {
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  auto address = loopback(t.udpPort);
  int code = result(sendto(fd, "x", 1, 0, reinterpret_cast<struct sockaddr*>(&address), sizeof(address)));
  close(fd);
  return code;
}

int openNetlink(const Targets&) {
  int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  close(fd);
  return 0;
}

int attachShared(const Targets& t) {
  void* memory = shmat(t.sharedMemory, nullptr, SHM_RDONLY);
  if (memory == reinterpret_cast<void*>(-1)) return errno;
  shmdt(memory);
  return 0;
}

// ---- the kernel's wide interfaces

int addKey(const Targets&) {
  constexpr int processKeyring = -2;
  return result(syscall(SYS_add_key, "user", "open-conduit-attack", "x", 1, processKeyring));
}

int faultHandler(const Targets&) {
  constexpr int userModeOnly = 1;
  int fd = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | userModeOnly));
  if (fd < 0) return errno;
  close(fd);
  return 0;
}

int ioUring(const Targets&) {
  char parameters[512] = {};
  int fd = static_cast<int>(syscall(425, 1, parameters));
  if (fd < 0) return errno;
  close(fd);
  return 0;
}

// In a child, since it changes what the next attack meets. Where there is no child to be had, it is the attack that
// failed.
int inChild(int (*body)()) {
  pid_t child = fork();
  if (child < 0) return errno;
  if (child == 0) _exit(body());
  int status;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int newNamespace(const Targets&) {
  return inChild([]() { return result(unshare(CLONE_NEWUSER)); });
}

int mountOver(const Targets&) {
  return inChild([]() {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0) return errno;
    return result(mount("none", "/tmp", "tmpfs", 0, nullptr));
  });
}

int runProgram(const Targets&) {
  return inChild([]() {
    execl("/bin/true", "true", nullptr);
    return errno;
  });
}

int dumpCore(const Targets&) {
  struct rlimit limit = {1 << 20, 1 << 20};
  return result(setrlimit(RLIMIT_CORE, &limit));
}

// More than a provider needs, and less than the hard limit that systems come with.
int takeDescriptors(const Targets&) {
  constexpr int many = 2000;
  int code = 0, last = -1, made = 0;
  for (; made < many && code == 0; ++made) {
    last = dup(0);
    if (last < 0) code = errno;
  }
  for (int fd = 3; fd <= many + 16; ++fd) {
    if (fd > 15) close(fd);  // what it was given lies below
  }
  return code;
}

// Address space: what is mapped and never touched costs nobody anything.
int takeMemory(const Targets&) {
  constexpr size_t much = 16ull << 30;
  void* memory = mmap(nullptr, much, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return errno;
  munmap(memory, much);
  return 0;
}

// More than a program with its threads needs, and less than systems let a user have. They wait until all are there.
int takeProcesses(const Targets&) {
  constexpr int many = 1500;
  int gate[2];
  if (pipe(gate) < 0) return errno;
  int code = 0, made = 0;
  for (; made < many && code == 0; ++made) {
    pid_t child = fork();
    if (child < 0) code = errno;
    if (child != 0) continue;
    char byte;
    close(gate[1]);
    _exit(static_cast<int>(read(gate[0], &byte, 1)));
  }
  close(gate[0]);
  close(gate[1]);
  while (waitpid(-1, nullptr, 0) > 0) {
  }
  return code;
}

int writeableCode(const Targets&) {
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return errno;
  munmap(page, 4096);
  return 0;
}

}  // namespace

std::vector<std::string> toWords(const Targets& t) {
  return {std::to_string(t.daemon),
          t.secretFile,
          t.homeFile,
          t.socket,
          t.hiddenSocket,
          t.abstractSocket,
          std::to_string(t.tcpPort),
          std::to_string(t.udpPort),
          std::to_string(t.sharedMemory)};
}

Targets targetsFrom(const std::vector<std::string>& w) {
  return {std::stoi(w.at(0)), w.at(1),           w.at(2), w.at(3), w.at(4), w.at(5), std::stoi(w.at(6)),
          std::stoi(w.at(7)), std::stoi(w.at(8))};
}

const std::vector<Attack>& allAttacks() {
  static const std::vector<Attack> attacks = {
      {"ptrace the daemon", trace},
      {"process_vm_readv of the daemon", readMemory},
      {"/proc/PID/environ of the daemon", readEnvironment},
      {"/proc/PID/mem of the daemon", openMemory},
      {"/proc/PID/fd of the daemon", listDescriptors},
      {"pidfd_getfd from the daemon", stealDescriptor},
      {"kcmp with the daemon", compareDescriptors},
      {"signal the daemon", signalIt},
      {"prlimit the daemon", limitIt},
      {"setpriority of the daemon", slowIt},
      {"sched_setaffinity of the daemon", pinIt},
      {"sched_setscheduler of the daemon", rescheduleIt},
      {"read the state", readSecret},
      {"stat the state", statSecret},
      {"chmod the state", changeSecret},
      {"connect to a socket in the state", connectHidden},
      {"read the operator's files", readHome},
      {"write the operator's files", writeHome},
      {"make a file beside them", writeBesideHome},
      {"climb out of a directory descriptor", climbOut},
      {"connect to a path socket", connectSocket},
      {"send from a datagram pair", sendFromPair},
      {"connect to an abstract socket", connectAbstract},
      {"TCP to loopback", connectTcp},
      {"UDP to loopback", sendUdp},
      {"netlink", openNetlink},
      {"attach System V shared memory", attachShared},
      {"add_key", addKey},
      {"userfaultfd", faultHandler},
      {"io_uring", ioUring},
      {"a user namespace of its own", newNamespace},
      {"mount over /tmp", mountOver},
      {"run a program", runProgram},
      {"raise the core limit", dumpCore},
      {"memory that is written and run", writeableCode},
      {"2000 descriptors", takeDescriptors},
      {"16 GiB of memory", takeMemory},
      {"1500 processes", takeProcesses},
  };
  return attacks;
}

}  // namespace oc::attack
