// From a binding's srt policy to the very settings file that srt gets, or the refusal that comes instead. Decides
// everything by looking at the operator's files and environment; starts nothing and changes nothing.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/places.h"
#include "base/refusal.h"
#include "daemon/config/model.h"

namespace oc::sandbox {

// srt's parts, by absolute path. Found by findSrt; nothing is taken from PATH.
struct SrtParts {
  std::string node, cli, version;  // cli: …/sandbox-runtime/dist/cli.js
  std::string bwrap, socat, ripgrep;
  std::string seccompHelper;  // apply-seccomp of the package; empty: none
  std::string found;          // the package as it was found, with links on the way

  std::string package() const;           // the directory of sandbox-runtime
  std::string modules() const;           // the one that holds what it loads besides: the outermost node_modules over it
  std::vector<std::string> all() const;  // every part by the place that must not be written
  // The same by the names that lead there.
  std::vector<std::string> names() const;
};

// Looks in the config's settings.extensions.srt, then in our own folder (DATA/open-conduit/srt), then where
// npm install -g puts things. Refuses (`sandbox_unavailable`) naming the part that is missing and how to get it; a
// package below the minimum version likewise. Reads package.json, runs nothing.
OrRefusal<SrtParts> findSrt(const config::ExtensionSettings& settings, const Places& places);

struct RunPlace {
  std::string work, run;
  std::string workspace, runFiles, tmp;  // tmp: the run's own TMPDIR, inside runFiles
  std::string toolbeltSocket;            // may be empty
  std::vector<std::string> ownFiles;     // Open Conduit's own, wherever they lie: see own_files.h
  bool toCome = false;                   // nothing of it is there yet: for `config explain`, as after a fresh clone
  std::string programs = {};             // where Open Conduit's programs are; empty: not known
  std::vector<std::string> agentsWrite = {};  // folders that some binding of the config lets its agents write
};

// Absolute paths, each with the rule that put it there: a field of the policy ("write[0]"), or a sentence. Of reading
// rules the deepest one over a path decides; writing takes an allowance and no denial over the path.
struct SrtRules {
  std::map<std::string, std::string> denyRead, allowRead, allowWrite, denyWrite;
};

struct SrtSettings {
  Json settings;                          // srt's settings file, to be written to settingsFile before the start
  std::string settingsFile;               // in the run's private directory: nothing that an agent can write
  std::vector<std::string> hidden, kept;  // for the instance's own mount namespace (kit's --hide, --keep)
  std::vector<std::string> sockets;       // that the policy lifts, by each of their names
  std::string scratch;                    // srt's own temporary directory: an empty file system of the instance's
  std::map<std::string, std::string> environment;  // what the sandbox adds: TMPDIR, …
  SrtRules rules;                                  // what the settings say, and why
  std::vector<std::string> notes;  // grants of the policy that come to nothing, each with why: for the run's log
};

// `environ` is the daemon's own environment (XDG_*, SSH_AUTH_SOCK, CLAUDE_CONFIG_DIR, DOCKER_HOST…).
OrRefusal<SrtSettings> makeSrtSettings(const config::SrtPolicy& policy, const SrtParts& parts, const Places& places,
                                       const RunPlace& place, const std::map<std::string, std::string>& environ);

// The job of open-conduit-srt, for the command line behind "--": of a run, and of doctor's check (which needs no run).
std::vector<std::string> srtJob(const SrtParts& parts, const SrtSettings& settings);
std::vector<std::string> srtCheckJob(const SrtParts& parts, const Places& places);

}  // namespace oc::sandbox
