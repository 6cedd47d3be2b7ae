// What a run's container can reach, tried from inside of it. Doctor's.
#pragma once

#include "command.h"

namespace oc::gateway {

// probe [--host ADDRESS:PORT]… [--name NAME]… [--proxy PORT=HOST:PORT]… [--timeout-ms N]
//
// Tries each, one after the other: a TCP connection, a name by the container's own name servers, and a CONNECT through
// the proxy at 127.0.0.1:PORT. Prints one line of JSON:
//
//   {"hosts":[{"host":…,"connected":false,"error":…}],
//    "names":[{"name":…,"resolved":false,"addresses":[],"error":…}],
//    "proxies":[{"proxy":"127.0.0.1:PORT","target":…,"status":403,"reason":"not_allowed","error":""}]}
//
// A status of 0: there was no answer, and `error` says why. Returns 0 when everything was tried, whatever came of it.
int probe(const Arguments& arguments);

}  // namespace oc::gateway
