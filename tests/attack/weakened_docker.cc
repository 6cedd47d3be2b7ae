// open-conduit-docker whose agent's container is asked for with a change, a JSON merge patch. The linker puts this in
// front of the real one (--wrap).
#include "providers/docker/spec.h"
#include "tests/attack/weakened.h"

extern "C" {

oc::Json __real__ZN2oc6docker14agentContainerB5cxx11ERKNS0_7RunSpecE(const oc::docker::RunSpec& spec);

oc::Json __wrap__ZN2oc6docker14agentContainerB5cxx11ERKNS0_7RunSpecE(const oc::docker::RunSpec& spec) {
  auto body = __real__ZN2oc6docker14agentContainerB5cxx11ERKNS0_7RunSpecE(spec);
  if (!oc::weakened::order.empty()) body.merge_patch(oc::parseJson(oc::weakened::order));
  return body;
}

}  // extern "C"
