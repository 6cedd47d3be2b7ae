#include "machine.h"

#include <fcntl.h>
#include <kj/exception.h>
#include <unistd.h>

#include "base/fd.h"

namespace oc::srt {

std::optional<Refusal> refuseMachine(const Protections& protections) {
  if (geteuid() == 0) {
    // Under uid 0 the sandboxed command would keep all capabilities.
    return Refusal{"sandbox_unavailable", "srt isolates nothing for root", "run the daemon as an ordinary user"};
  }
  std::string missing;
  for (auto [present, name] :
       {std::pair(protections.userNamespace, "user"), std::pair(protections.mountNamespace, "mount"),
        std::pair(protections.pidNamespace, "pid"), std::pair(protections.ipcNamespace, "ipc")}) {
    if (!present) missing += (missing.empty() ? "" : ", ") + std::string(name);
  }
  if (missing.empty()) return std::nullopt;
  bool appArmor = appArmorRestricts();
  return Refusal{
      "sandbox_unavailable",
      "this kernel does not grant namespaces (" + missing + ")" + (appArmor ? ": AppArmor restricts them" : ""),
      namespacesFix(appArmor)};
}

bool appArmorRestricts(const char* file) {
  try {
    auto fd = openIfThere(file, O_RDONLY);
    return fd && readAll(fd->get(), 64).starts_with('1');
  } catch (const kj::Exception&) {
    return false;
  }
}

std::string namespacesFix(bool appArmor) {
  if (appArmor) {
    return "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0, or give bwrap and open-conduit-srt AppArmor profiles "
           "that allow userns";
  }
  return "sudo sysctl user.max_user_namespaces=15000 kernel.unprivileged_userns_clone=1 (where they exist); in a container, "
         "let it make user namespaces";
}

}  // namespace oc::srt
