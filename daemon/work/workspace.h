// A Work's workspace, by way of the git provider: one short-lived instance a task, which sees only its job's paths.
#pragma once

#include <kj/async.h>

#include <string>
#include <vector>

#include "base/places.h"
#include "base/refusal.h"
#include "daemon/state/store.h"
#include "daemon/supervisor/supervisor.h"

namespace oc::work {

class Workspaces {
 public:
  Workspaces(supervisor::Supervisor& supervisor, const Places& places) : supervisor(supervisor), places(places) {}

  struct Made {
    std::string base, branch, from;
  };
  // Looks at the checkout and clones it (or adds a worktree), by one instance. What was half-made before is removed
  // first. Progress goes to `log`. Nothing half-made is left on a refusal.
  // `laidOut`: layOut has made its folders for a container, which has them open; they are filled.
  kj::Promise<OrRefusal<Made>> make(const state::WorkRow& work, int log, bool laidOut = false);

  // The folders and empty files of a workspace that a container mounts, before the clone is there; of one without a
  // repository the folder alone.
  static void layOut(const Places& places, const std::string& work, bool repository);

  // How many commits the branch that the Work began from has by now in the operator's checkout, which what was saved of
  // the Work has not. 0 where that cannot be told.
  kj::Promise<uint32_t> missing(const state::WorkRow& work);

  // Hard links to the outside refuse; the warnings are what a person would run there by accident.
  kj::Promise<OrRefusal<std::vector<std::string>>> scan(const state::WorkRow& work);

  struct Saved {
    std::string tip;       // what the checkout has now; empty when there was nothing new
    std::string savedAs;   // the branch that has it
    uint32_t commits = 0;  // new ones
    // Where there were none: what there is instead, in the workspace's files. Names as they may be shown.
    uint32_t uncommitted = 0;
    std::vector<std::string> uncommittedNames = {};  // the first few
  };
  // The branch's commits into the operator's checkout: packed by an instance that sees only the workspace, received by
  // one that sees only the checkout, with a pipe between them. `run` names the branch to fall back on.
  kj::Promise<OrRefusal<Saved>> save(const state::WorkRow& work, const std::string& run, int log);

  kj::Promise<OrRefusal<bool>> remove(const state::WorkRow& work);

 private:
  supervisor::LaunchSpec describe(const state::WorkRow& work, const std::string& role, bool checkout, bool workspace,
                                  int log) const;
  bool mayBeHalfMade(const state::WorkRow& work) const;

  supervisor::Supervisor& supervisor;
  const Places& places;
};

}  // namespace oc::work
