// Whether this machine isolates at all.
#pragma once

#include <optional>

#include "base/refusal.h"
#include "proto/convert.h"

namespace oc::srt {

// uid 0, and namespaces that could not be made. Where AppArmor is why, both of its fixes are named.
std::optional<Refusal> refuseMachine(const Protections& protections);

// Ubuntu's AppArmor restriction is on (kernel.apparmor_restrict_unprivileged_userns=1). `file` is for tests.
bool appArmorRestricts(const char* file = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns");
// What to do about namespaces that the kernel does not grant.
std::string namespacesFix(bool appArmor);

}  // namespace oc::srt
