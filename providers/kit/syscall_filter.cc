#include "syscall_filter.h"

#include <errno.h>
#include <kj/debug.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

namespace oc::kit {

namespace {

// `number` is for calls that libseccomp 2.5.4 does not know by name. From 424 on the numbers are the same on every
// architecture.
struct Call {
  const char* name;
  int number = -1;
};

// What no job of ours, nor an agent's, needs, and what has been the way into kernels.
constexpr Call operatorList[] = {
    {"acct"},         {"add_key"},         {"bpf"},           {"delete_module"},    {"finit_module"},
    {"init_module"},  {"kexec_file_load"}, {"kexec_load"},    {"keyctl"},           {"lookup_dcookie"},
    {"nfsservctl"},   {"perf_event_open"}, {"quotactl"},      {"quotactl_fd", 443}, {"reboot"},
    {"request_key"},  {"swapoff"},         {"swapon"},        {"userfaultfd"},      {"open_by_handle_at"},
    {"settimeofday"}, {"clock_settime"},   {"clock_adjtime"}, {"adjtimex"},         {"syslog"},
    {"vhangup"},
};

// Besides, for git and its children: everything that reaches into another process or changes the view of the system.
constexpr Call toolsList[] = {
    {"ptrace"},
    {"process_vm_readv"},
    {"process_vm_writev"},
    {"pidfd_getfd", 438},
    {"kcmp"},
    {"process_madvise", 440},
    {"process_mrelease", 448},
    {"mount"},
    {"umount2"},
    {"pivot_root"},
    {"chroot"},
    {"open_tree", 428},
    {"move_mount", 429},
    {"fsopen", 430},
    {"fsconfig", 431},
    {"fsmount", 432},
    {"fspick", 433},
    {"mount_setattr", 442},
    {"setns"},
    {"unshare"},
    {"setpriority"},
    {"sched_setaffinity"},
    {"sched_setparam"},
    {"sched_setscheduler"},
    {"sched_setattr"},
    {"ioprio_set"},
    {"migrate_pages"},
    {"move_pages"},
    {"setdomainname"},
    {"sethostname"},
    {"personality"},
    {"iopl"},
    {"ioperm"},
};

constexpr Call aloneList[] = {{"execve"}, {"execveat"}, {"fork"}, {"vfork"}};

// Answered as "this kernel has none", so that callers fall back on what can be filtered.
constexpr Call unknownList[] = {{"io_uring_setup", 425}, {"io_uring_enter", 426}, {"io_uring_register", 427}};

class Filter {
 public:
  Filter() : context(seccomp_init(SCMP_ACT_ALLOW)) {
    KJ_REQUIRE(context != nullptr, "seccomp_init failed");
    check(seccomp_attr_set(context, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS), "the architecture's rule");
    // no_new_privs is set, and verified, by the kit.
    check(seccomp_attr_set(context, SCMP_FLTATR_CTL_NNP, 0), "the no_new_privs attribute");
  }
  ~Filter() { seccomp_release(context); }
  KJ_DISALLOW_COPY(Filter);

  void answer(uint32_t action, const Call& call) {
    check(seccomp_rule_add(context, action, resolve(call), 0), call.name);
  }

  void answerWhen(uint32_t action, const Call& call, scmp_arg_cmp condition) {
    check(seccomp_rule_add(context, action, resolve(call), 1, condition), call.name);
  }

  void load() { check(seccomp_load(context), "loading the filter"); }

 private:
  static int resolve(const Call& call) {
    int number = seccomp_syscall_resolve_name(call.name);
    if (number == __NR_SCMP_ERROR) number = call.number;
    KJ_REQUIRE(number != -1, "libseccomp does not know this system call", call.name);
    return number;
  }

  static void check(int result, const char* what) {
    if (result < 0) KJ_FAIL_SYSCALL("seccomp", -result, what);
  }

  scmp_filter_ctx context;
};

constexpr uint32_t denied = SCMP_ACT_ERRNO(EPERM);
constexpr uint32_t unknown = SCMP_ACT_ERRNO(ENOSYS);

void denyTerminalInjection(Filter& filter) {
  // The kernel looks at 32 bits of the request.
  filter.answerWhen(denied, {"ioctl"}, SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffffu, TIOCSTI));
  filter.answerWhen(denied, {"ioctl"}, SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffffu, TIOCLINUX));
}

// The hypervisor and other machines on it: no network namespace is between, so it would be a way past every proxy.
void denyHypervisor(Filter& filter) {
  filter.answerWhen(denied, {"socket"}, SCMP_A0(SCMP_CMP_MASKED_EQ, 0xffffffffu, AF_VSOCK));
}

// An agent that stops the first process of its sandbox would never be seen to end.
void denyFirstProcess(Filter& filter) {
  filter.answerWhen(denied, {"ptrace"}, scmp_arg_cmp{1, SCMP_CMP_MASKED_EQ, 0xffffffffu, 1});
  filter.answerWhen(denied, {"process_vm_writev"}, scmp_arg_cmp{0, SCMP_CMP_MASKED_EQ, 0xffffffffu, 1});
}

void denyNamespaces(Filter& filter) {
  // clone3's flags lie in memory where a filter cannot see them: callers fall back on clone.
  filter.answer(unknown, {"clone3", 435});
  for (uint64_t flag :
       {CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC, CLONE_NEWUTS, CLONE_NEWCGROUP}) {
    filter.answerWhen(denied, {"clone"}, SCMP_A0(SCMP_CMP_MASKED_EQ, flag, flag));
  }
}

void denyUnixSockets(Filter& filter) {
  filter.answerWhen(denied, {"socket"}, SCMP_A0(SCMP_CMP_MASKED_EQ, 0xffffffffu, AF_UNIX));
  // A datagram pair can sendto() any socket that it can name.
  filter.answer(denied, {"socketpair"});
}

}  // namespace

std::vector<std::string> deniedCalls(SeccompList list) {
  std::vector<std::string> names;
  for (auto& call : operatorList) names.push_back(call.name);
  if (list != SeccompList::Operator) {
    for (auto& call : toolsList) names.push_back(call.name);
  }
  if (list == SeccompList::Alone) {
    for (auto& call : aloneList) names.push_back(call.name);
  }
  return names;
}

void restrictBySeccomp(const Profile& profile) {
  Filter filter;
  for (auto& call : operatorList) filter.answer(denied, call);
  for (auto& call : unknownList) filter.answer(unknown, call);
  denyTerminalInjection(filter);
  denyHypervisor(filter);
  denyFirstProcess(filter);
  if (profile.seccomp != SeccompList::Operator) {
    for (auto& call : toolsList) filter.answer(denied, call);
    filter.answerWhen(denied, {"prlimit64"}, scmp_arg_cmp{0, SCMP_CMP_NE, 0, 0});
    denyNamespaces(filter);
  }
  if (profile.seccomp == SeccompList::Alone) {
    for (auto& call : aloneList) filter.answer(denied, call);
    filter.answerWhen(denied, {"clone"}, SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
  }
  if (profile.denyUnixSockets) denyUnixSockets(filter);
  if (profile.denyAllSockets) filter.answer(denied, {"socket"});
  filter.load();
}

}  // namespace oc::kit
