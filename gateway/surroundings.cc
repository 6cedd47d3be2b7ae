#include "surroundings.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/fd.h"

namespace oc::gateway {

namespace {

[[noreturn]] void failStep(const char* step) { fail(fmt::format("{}: {}", step, strerror(errno))); }

void check(int result, const char* step) {
  if (result < 0) failStep(step);
}

unsigned bitsOf(const Address& mask) {
  unsigned bits = 0;
  for (auto byte : mask.bytes) bits += static_cast<unsigned>(__builtin_popcount(byte));
  return bits;
}

// 0 or 1; a kernel without IPv6 has no such file.
bool isSet(const char* path) {
  auto file = openIfThere(path, O_RDONLY);
  if (!file) return false;
  return readAll(*file, 16).starts_with("1");
}

constexpr const char* forwardingFiles[] = {"/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv6/conf/all/forwarding"};

}  // namespace

std::vector<Network> ownNetworks() {
  ifaddrs* all = nullptr;
  check(getifaddrs(&all), "the gateway's own networks can't be listed");
  std::vector<Network> result;
  for (auto entry = all; entry != nullptr; entry = entry->ifa_next) {
    auto address = addressOf(entry->ifa_addr), mask = addressOf(entry->ifa_netmask);
    // The loopback is never dialed anyway, and refused by that name.
    if (address && mask && reachOf(*address) != Reach::Never) result.push_back(networkOf(*address, bitsOf(*mask)));
  }
  freeifaddrs(all);
  return result;
}

void stopForwarding() {
  for (auto path : forwardingFiles) {
    if (!isSet(path)) continue;
    kj::AutoCloseFd file(open(path, O_WRONLY | O_CLOEXEC));
    // Not allowed where the engine has done it already, or where it must: forwardsPackets() tells.
    ssize_t ignored = file.get() < 0 ? 0 : write(file, "0\n", 2);
    (void)ignored;
  }
}

bool forwardsPackets() {
  if (access(forwardingFiles[0], R_OK) < 0) failStep(forwardingFiles[0]);
  return isSet(forwardingFiles[0]) || isSet(forwardingFiles[1]);
}

size_t giveUpPrivileges(size_t descriptors) {
  check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "PR_SET_NO_NEW_PRIVS");
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {};
  check(static_cast<int>(syscall(SYS_capset, &header, none)), "dropping capabilities");
  rlimit noCore{0, 0};
  check(setrlimit(RLIMIT_CORE, &noCore), "RLIMIT_CORE");
  check(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), "PR_SET_DUMPABLE");
  rlimit files;
  check(getrlimit(RLIMIT_NOFILE, &files), "RLIMIT_NOFILE");
  files.rlim_cur = files.rlim_max = std::min<rlim_t>(files.rlim_max, descriptors);
  check(setrlimit(RLIMIT_NOFILE, &files), "RLIMIT_NOFILE");
  return files.rlim_cur;
}

}  // namespace oc::gateway
