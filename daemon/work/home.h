// A Work's own home: HOME and CLAUDE_CONFIG_DIR of its container runs, one directory. It lasts as long as the Work.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/places.h"
#include "base/refusal.h"
#include "daemon/config/model.h"

namespace oc::work {

struct Home {
  std::string path;
  std::vector<std::string> notes;
};

// Whether a Work's home may begin with this seed: an agent will read all of it. Refuses (`sandbox_denied`) one that has
// anything of Open Conduit's own in it or lies there, and one that an agent could replace by a link to something else.
OrRefusal<bool> checkSeed(const config::Config& config, const Places& places, const std::string& seed);

// Makes the home of a Work, mode 0700, in its directory, which must be there; a home that is complete stays as it is.
// `seed`, the operator's, is copied into a new one, once: files and their modes, directories, links as they are (where
// they lead is not looked at). No `.credentials.json` of any directory is copied, whether a file or a link, and no
// socket, device or pipe: the notes say how many were left out. Hard links become files of their own. A copy that was
// broken off, by a kill or a full disk, is begun again.
//
// It blocks for as long as the copying takes: call it from a thread, kj::Thread for one, where a seed may be large.
// Refuses
// (`home_failed`): no such seed, one that is no directory or cannot be read, a disk that is full. Then nothing is left.
OrRefusal<Home> makeHome(const Places& places, const std::string& work, const std::string& seed);

// An empty home, for a container that is started before the Work is there; makeHome fills this very folder.
void layOutHome(const Places& places, const std::string& work);

// With the Work. Not there: fine.
void removeHome(const Places& places, const std::string& work);

}  // namespace oc::work
