// srt as a process: what it gets, and what it gets not.
#pragma once

#include <string>
#include <vector>

#include "base/spawn.h"
#include "parts.h"

namespace oc::srt {

// All of srt's environment. Its PATH finds bash and which, its home and its temporary directory are the scratch.
std::vector<std::pair<std::string, std::string>> srtEnvironment(const Job& job);

// Starts srt, which starts bash inside the sandbox on `script` (a file that can be read there). Its working directory
// is empty: srt looks there for files that a repository should not bring along and forbids to write them by
// placeholders, with which `git add -A` fails in a workspace. What is forbidden is in the settings. srt writes what its
// proxy refuses to `denials` (see denial_pipe.h); node closes that one for all that it starts.
Spawned startSrt(const Job& job, const std::string& settings, const std::string& script, int input, int output,
                 int errors, int denials);

// Runs a program of the job with one word and gives its output's first line; empty when it fails.
Spawned startTool(const Job& job, const std::string& program, const std::vector<std::string>& words, int output);

}  // namespace oc::srt
