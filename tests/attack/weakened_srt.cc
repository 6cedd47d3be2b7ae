// open-conduit-srt with one measure less. The linker puts these in front of the real ones (--wrap).
#include <kj/debug.h>
#include <seccomp.h>

#include "providers/kit/namespaces.h"
#include "providers/kit/syscall_filter.h"
#include "providers/srt/placeholders.h"
#include "tests/attack/weakened.h"

using oc::weakened::order;

extern "C" {

void __real__ZN2oc3kit17restrictBySeccompERKNS0_7ProfileE(const oc::kit::Profile& profile);
void __real__ZN2oc3kit15enterNamespacesERKNS0_7ProfileERNS_11ProtectionsEPFviE(const oc::kit::Profile& profile,
                                                                               oc::Protections& protections,
                                                                               void (*onServing)(pid_t));
void __real__ZNK2oc3srt12Placeholders6removeEv(const oc::srt::Placeholders* self);

// A filter that lets everything pass, since the daemon looks whether there is one.
void __wrap__ZN2oc3kit17restrictBySeccompERKNS0_7ProfileE(const oc::kit::Profile& profile) {
  if (order != "seccomp") return __real__ZN2oc3kit17restrictBySeccompERKNS0_7ProfileE(profile);
  auto filter = seccomp_init(SCMP_ACT_ALLOW);
  KJ_REQUIRE(filter != nullptr && seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, 0) == 0 && seccomp_load(filter) == 0);
  seccomp_release(filter);
}

// It says that it has one, since without one it launches nothing.
void __wrap__ZN2oc3kit15enterNamespacesERKNS0_7ProfileERNS_11ProtectionsEPFviE(const oc::kit::Profile& profile,
                                                                               oc::Protections& protections,
                                                                               void (*onServing)(pid_t)) {
  auto without = profile;
  if (order == "ipc namespace") without.ipcNamespace = oc::kit::Need::No;
  __real__ZN2oc3kit15enterNamespacesERKNS0_7ProfileERNS_11ProtectionsEPFviE(without, protections, onServing);
  if (order == "ipc namespace") protections.ipcNamespace = true;
}

void __wrap__ZNK2oc3srt12Placeholders6removeEv(const oc::srt::Placeholders* self) {
  if (order != "removal of commondir") __real__ZNK2oc3srt12Placeholders6removeEv(self);
}

}  // extern "C"
