#include "profile.h"

namespace oc::kit {

std::vector<FileRule> systemFiles() {
  return {
      {"/usr", Access::ReadExecute},       {"/bin", Access::ReadExecute, true},   {"/sbin", Access::ReadExecute, true},
      {"/lib", Access::ReadExecute, true}, {"/lib64", Access::ReadExecute, true}, {"/etc", Access::Read},
      {"/dev/null", Access::ReadWrite},    {"/dev/zero", Access::Read, true},     {"/dev/urandom", Access::Read, true},
      {"/dev/random", Access::Read, true},
  };
}

}  // namespace oc::kit
