// What descriptor 3 serves, for both kinds of job; and what a run's shim gets on descriptor 4.
#pragma once

#include <kj/async-io.h>

#include "docker.capnp.h"
#include "job.h"
#include "providers/kit/kit.h"
#include "run_life.h"
#include "sandbox.capnp.h"

namespace oc::docker {

// Of a run's instance.
constexpr int shimDescriptor = 4;

capnp::Capability::Client serveTask(kit::Context& context, Job job, kj::Array<kj::Own<kj::AsyncIoStream>> connections);
// The shim's connection is wrapped here, and lives as long as the process.
capnp::Capability::Client serveRun(kit::Context& context, Job job, kj::Array<kj::Own<kj::AsyncIoStream>> connections);

}  // namespace oc::docker
