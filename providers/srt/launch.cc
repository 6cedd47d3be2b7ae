#include "launch.h"

#include "base/fd.h"
#include "base/text.h"
#include "denial_pipe.h"

namespace oc::srt {

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
  spec.directory = job.scratch + "/empty";
  makeDirectories(spec.directory);
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
