// What the kernel keeps for a user, beside files and processes: System V and POSIX objects, and keys.
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools.h"

namespace oc::battery {

namespace {

int idOf(const Targets& t, const char* name) { return static_cast<int>(t.number(name)); }

Result attach(const Targets& t) {
  auto* memory = static_cast<char*>(shmat(idOf(t, "shm"), nullptr, SHM_RDONLY));
  if (memory == reinterpret_cast<char*>(-1)) return held(errno);
  return std::string(memory, 64).find(t.marker()) != std::string::npos ? through() : held();
}
Result findByKey(const Targets& t) { return judge(shmget(static_cast<key_t>(t.number("shm_key")), 1, 0)); }
Result destroy(const Targets& t) { return judge(shmctl(idOf(t, "shm_to_remove"), IPC_RMID, nullptr)); }
Result receive(const Targets& t) {
  struct {
    long type;
    char text[128];
  } message = {};
  if (msgrcv(idOf(t, "msg"), &message, sizeof(message.text), 0, IPC_NOWAIT) < 0) return held(errno);
  return strstr(message.text, t.marker().c_str()) != nullptr ? through() : held();
}
Result lower(const Targets& t) {
  struct sembuf operation = {0, -1, IPC_NOWAIT};
  return judge(semop(idOf(t, "sem"), &operation, 1));
}
Result queue(const Targets& t) {
  if (!t.has("mqueue")) return absent();
  mqd_t opened = mq_open(t["mqueue"].c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (opened < 0) return held(errno);
  std::string text(8192, '\0');
  ssize_t n = mq_receive(opened, text.data(), text.size(), nullptr);
  if (n < 0) return held(errno);
  return text.find(t.marker()) != std::string::npos ? through() : held();
}
Result posix(const Targets& t) { return readPath("/dev/shm/" + t["posix_shm"], t); }

constexpr int keyctlRead = 11, keyctlLink = 8, processKeyring = -2;
Result readKey(const Targets& t) {
  if (!t.has("key")) return absent();
  char text[128] = {};
  if (syscall(SYS_keyctl, keyctlRead, t.number("key"), text, sizeof(text) - 1, 0) < 0) return held(errno);
  return strstr(text, t.marker().c_str()) != nullptr ? through() : held();
}
Result linkKey(const Targets& t) {
  if (!t.has("key")) return absent();
  return judge(syscall(SYS_keyctl, keyctlLink, t.number("key"), processKeyring, 0, 0));
}
Result addKey(const Targets&) {
  return judge(syscall(SYS_add_key, "user", "open-conduit-attack", "x", 1, processKeyring));
}

}  // namespace

std::vector<Attack> memoryAttacks() {
  return {
      {"attach System V shared memory", "ipc", attach},   {"find System V shared memory by its key", "ipc", findByKey},
      {"destroy System V shared memory", "ipc", destroy}, {"receive from a System V queue", "ipc", receive},
      {"lower a System V semaphore", "ipc", lower},       {"receive from a POSIX queue", "ipc", queue},
      {"open POSIX shared memory", "ipc", posix},         {"read a key of the user's", "ipc", readKey},
      {"link a key of the user's", "ipc", linkKey},       {"make a key", "kernel", addKey},
  };
}

}  // namespace oc::battery
