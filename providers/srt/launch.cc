#include "launch.h"

#include <sys/stat.h>

#include "base/text.h"
#include "denial_pipe.h"

namespace oc::srt {

namespace {

// srt protects files such as .gitconfig in its own working directory, absent ones by placeholders. In a folder that the
// sandbox has read-only anyway no placeholder can be made, and whether srt sees that beforehand depends on what else of
// the machine it may look at. It leaves /dev out, which is the sandbox's own; of what is in there, terminals are few.
std::string workingDirectory() {
  struct stat stats;
  return stat("/dev/pts", &stats) == 0 && S_ISDIR(stats.st_mode) ? "/dev/pts" : "/dev";
}

}  // namespace

std::vector<std::pair<std::string, std::string>> srtEnvironment(const Job& job) {
  return {
      {"PATH", "/usr/bin:/bin"}, {"HOME", job.scratch}, {"TMPDIR", job.scratch}, {"CLAUDE_CODE_TMPDIR", job.scratch}};
}

Spawned startSrt(const Job& job, const std::string& settings, const std::string& script, int input, int output,
                 int errors, int denials) {
  SpawnSpec spec;
  spec.program = job.node;
  spec.arguments = {"--import", tellDenials(job.cli), job.cli, "--settings", settings, "-c", ". " + shellQuote(script)};
  spec.environment = srtEnvironment(job);
  spec.descriptors = {{input, 0}, {output, 1}, {errors, 2}, {denials, denialDescriptor}};
  spec.controlGroups = job.cgroups;
  spec.directory = workingDirectory();
  return spawn(spec);
}

Spawned startTool(const Job& job, const std::string& program, const std::vector<std::string>& words, int output) {
  SpawnSpec spec;
  spec.program = program;
  spec.arguments = words;
  spec.environment = srtEnvironment(job);
  spec.descriptors = {{output, 1}, {output, 2}};
  return spawn(spec);
}

}  // namespace oc::srt
