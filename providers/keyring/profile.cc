#include "profile.h"

namespace oc::keyring {

kit::Profile profile() {
  kit::Profile profile;
  profile.files = {};
  profile.seccomp = kit::SeccompList::Alone;
  profile.denyAllSockets = true;
  profile.denyWriteExecute = true;
  profile.maxOpenFiles = 32;
  profile.maxFileSize = 1;
  profile.maxAddressSpace = 256u << 20;
  return profile;
}

}  // namespace oc::keyring
