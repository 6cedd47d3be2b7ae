// Saving a workspace's branch: what the packing and the receiving side do.
#pragma once

#include <kj/async.h>
#include <kj/io.h>

#include <string>
#include <vector>

#include "base/refusal.h"
#include "git_command.h"

namespace oc::git {

struct TipFacts {
  std::string tip;
  uint32_t commits = 0;
};

// The packing side, which sees only the workspace: hostile in every byte. Its config, refs, index and hooks are never
// given to git; only its objects are, by way of a git directory of ours at `view`, which is empty afterwards.
kj::Promise<OrRefusal<TipFacts>> findTip(const Loop& loop, std::string workspace, std::string view, std::string branch,
                                         std::string base);
kj::Promise<OrRefusal<bool>> writePack(const Loop& loop, std::string workspace, std::string view, std::string tip,
                                       std::string base, kj::AutoCloseFd output);

// What is in the workspace's files and not in `tip`: changed, removed or new, ignored files apart. A folder of new
// files counts once. git may use up to 1 MiB for their names; more is a failure.
struct Uncommitted {
  uint32_t count = 0;
  std::vector<std::string> names;  // the first five, printable, up to 200 bytes each
};
kj::Promise<OrRefusal<Uncommitted>> findUncommitted(const Loop& loop, std::string workspace, std::string view,
                                                    std::string tip);

// The receiving side, which sees only the checkout.
struct ReceiveOrder {
  std::string checkout;
  std::string branch, old, tip, otherwise;
  uint64_t maxSize;
  bool interrupted = false;  // an earlier one may have been killed, and have left its lock
};
// The name of the branch that has the commits now.
kj::Promise<OrRefusal<std::string>> receivePack(const Loop& loop, ReceiveOrder order, kj::AutoCloseFd input);

}  // namespace oc::git
