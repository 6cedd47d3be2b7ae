// What the canary tries: its surroundings, its script, and the reading of what it says.
#pragma once

#include <kj/io.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "parts.h"
#include "providers/kit/agent_tree.h"

namespace oc::srt {

// Files and listeners in the scratch, and on this host's loopback: what the canary tries to reach.
class CanarySurroundings {
 public:
  explicit CanarySurroundings(const Job& job);

  const std::string& settingsFile() const { return settings; }
  const std::string& scriptFile() const { return script; }

 private:
  void makeFiles();
  void listen();
  Json settingsJson() const;
  std::string scriptText() const;

  const Job& job;
  std::string root, settings, script;
  kj::AutoCloseFd refusedListener, allowedListener, unixListener;
  uint16_t refusedPort = 0, allowedPort = 0;
};

// From the canary's lines ("write-granted open") to checks. `complaint` is what srt said on its standard error.
std::vector<kit::Check> judgeCanary(const std::string& output, const std::string& complaint);

}  // namespace oc::srt
