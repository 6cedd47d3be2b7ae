#include "landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

namespace oc::kit {

namespace {

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

// include/uapi/linux/landlock.h of Linux 6.12, by ABI.
struct RulesetAttributes {
  uint64_t handledAccessFs;   // ABI 1
  uint64_t handledAccessNet;  // ABI 4
  uint64_t scoped;            // ABI 6
};
struct __attribute__((packed)) PathBeneath {
  uint64_t allowedAccess;
  int32_t parentFd;
};
struct NetPort {
  uint64_t allowedAccess;
  uint64_t port;
};

constexpr uint64_t execute = 1 << 0, writeFile = 1 << 1, readFileRight = 1 << 2, readDirectory = 1 << 3,
                   removeDirectory = 1 << 4, removeFile = 1 << 5, makeDirectory = 1 << 7, makeRegular = 1 << 8,
                   makeFifo = 1 << 10, makeSymlink = 1 << 12, refer = 1 << 13 /* ABI 2 */,
                   truncateRight = 1 << 14 /* ABI 3 */, ioctlDevice = 1 << 15 /* ABI 5 */;
constexpr uint64_t netRights = 3;    // bind and connect of TCP
constexpr uint64_t scopeRights = 3;  // abstract sockets, signals
constexpr uint64_t fileRights = execute | writeFile | readFileRight | truncateRight | ioctlDevice;
constexpr unsigned versionFlag = 1;
constexpr int pathBeneathType = 1;
constexpr int netPortType = 2;
constexpr uint64_t connectTcp = 1 << 1;

uint64_t knownFileRights(int abi) {
  uint64_t all = (1 << 13) - 1;
  if (abi >= 2) all |= refer;
  if (abi >= 3) all |= truncateRight;
  if (abi >= 5) all |= ioctlDevice;
  return all;
}

size_t attributeSize(int abi) { return abi >= 6 ? 24 : abi >= 4 ? 16 : 8; }

uint64_t rightsFor(Access access) {
  switch (access) {
    case Access::Read: return readFileRight | readDirectory;
    case Access::ReadExecute: return readFileRight | readDirectory | execute;
    case Access::ReadWrite:
      return readFileRight | readDirectory | writeFile | removeDirectory | removeFile | makeDirectory | makeRegular |
             makeFifo | makeSymlink | refer | truncateRight;
    case Access::Directories: return makeDirectory | removeDirectory;
  }
  KJ_UNREACHABLE;
}

void addRule(int ruleset, const FileRule& rule, uint64_t known) {
  int fd = open(rule.path.c_str(), O_PATH | O_CLOEXEC);
  if (fd < 0) {
    // EACCES: it is out of our reach as it is.
    if (rule.optional && (errno == ENOENT || errno == ENOTDIR || errno == EACCES)) return;
    KJ_FAIL_SYSCALL("open", errno, rule.path);
  }
  kj::AutoCloseFd owned(fd);
  struct stat stats;
  KJ_SYSCALL(fstat(fd, &stats), rule.path);
  uint64_t rights = rightsFor(rule.access) & known;
  // A right of directories on a file is EINVAL.
  if (!S_ISDIR(stats.st_mode)) rights &= fileRights;
  PathBeneath beneath{rights, fd};
  KJ_SYSCALL(syscall(SYS_landlock_add_rule, ruleset, pathBeneathType, &beneath, 0), rule.path);
}

}  // namespace

int landlockAbi() {
  long abi = syscall(SYS_landlock_create_ruleset, nullptr, 0, versionFlag);
  return abi < 0 ? 0 : static_cast<int>(abi);
}

LandlockResult restrictByLandlock(int abi, bool handleFiles, const std::vector<FileRule>& files,
                                  const std::vector<uint16_t>& ports, bool scopes) {
  bool scoped = scopes && abi >= 6;
  if (!handleFiles && !scoped) return {};
  RulesetAttributes attributes{};
  if (handleFiles) attributes.handledAccessFs = knownFileRights(abi);
  if (handleFiles && abi >= 4) attributes.handledAccessNet = netRights;
  if (scoped) attributes.scoped = scopeRights;

  int fd = static_cast<int>(syscall(SYS_landlock_create_ruleset, &attributes, attributeSize(abi), 0));
  if (fd < 0) KJ_FAIL_SYSCALL("landlock_create_ruleset", errno);
  kj::AutoCloseFd ruleset(fd);
  if (handleFiles) {
    for (auto& rule : files) addRule(fd, rule, attributes.handledAccessFs);
  }
  if (attributes.handledAccessNet != 0) {
    for (auto port : ports) {
      NetPort allowed{connectTcp, port};
      KJ_SYSCALL(syscall(SYS_landlock_add_rule, fd, netPortType, &allowed, 0), port);
    }
  }
  KJ_SYSCALL(syscall(SYS_landlock_restrict_self, fd, 0));
  return {handleFiles, scoped};
}

}  // namespace oc::kit
