#pragma once

#include "job.h"
#include "providers/kit/profile.h"

namespace oc::github {

// It starts nothing; opens only CAs' certificates and what the resolver reads; connects to the API's and the proxy's
// ports, and to name servers. The listener for webhooks has no network but the socket that it was given.
kit::Profile profileOf(const Job& job);

}  // namespace oc::github
