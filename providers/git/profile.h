#pragma once

#include "job.h"
#include "providers/kit/profile.h"

namespace oc::git {

// What an instance with this job may do. Makes the directories that are the job's own to make (the workspace of a
// clone, the stand-in git directory of `pack`), since a rule of Landlock needs them to be there.
kit::Profile profileOf(const Job& job);

}  // namespace oc::git
