// Waiting for a run's end.
#pragma once

#include <string>

#include "cli/client.h"
#include "cli/world.h"

namespace oc::cli {

using EndedRun = capnp::Response<proto::Control::WaitRunResults>;

// Until the run has ended, also over a daemon's restart. Nothing when Ctrl-C came first: the run then goes on, and a
// line on standard error says so. Throws Failure when no daemon comes back for a minute.
kj::Maybe<EndedRun> awaitRun(World& world, Link link, const std::string& run);

// The same for its tries: a run that failed and is tried again is not the end yet. Tells each further try on standard
// error, unless `quiet`.
kj::Maybe<EndedRun> awaitLastTry(World& world, Link link, std::string run, bool quiet);

// How it ended, on standard error, with the reason and the fix of one that was refused.
void tellEnd(World& world, proto::Run::Reader run);

}  // namespace oc::cli
