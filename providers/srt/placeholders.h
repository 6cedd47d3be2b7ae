// What srt leaves behind when it is killed, and what may not be left behind by an agent.
#pragma once

#include <string>
#include <vector>

#include "settings.h"

namespace oc::srt {

class Placeholders {
 public:
  // Before the start: notes which paths that may not be written do not exist. srt puts an empty file or directory there
  // for as long as it runs, and takes it away only when it ends in peace.
  explicit Placeholders(const Settings& settings);

  // After the end: removes those that are there now and are empty. Nothing else can be in their place, since they were
  // read-only to the agent. A .git/commondir that was not there before goes as well, whatever is in it: git takes it
  // for the place of its config, so srt can put no placeholder there.
  void remove() const;

 private:
  std::vector<std::string> absent;
  std::vector<std::string> absentCommonDirs;
};

}  // namespace oc::srt
