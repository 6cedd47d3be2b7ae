// The operator's session bus: where it is, and a connection on which nothing has been said yet.
#pragma once

#include <kj/io.h>

#include <map>
#include <string>
#include <vector>

#include "refusal.h"

namespace oc {

// A socket by its path, or in the abstract namespace by its name.
struct BusSocket {
  std::string name;
  bool abstract = false;

  bool operator==(const BusSocket&) const = default;
};

// The Unix sockets in a D-Bus address list ("unix:path=/run/user/1000/bus,guid=…;unix:abstract=…"), in its order. Other
// transports and what is malformed are passed over. `runtimeDir` is for "unix:runtime=yes".
std::vector<BusSocket> busSockets(const std::string& addresses, const std::string& runtimeDir);

// Connects to the first of DBUS_SESSION_BUS_ADDRESS, else to XDG_RUNTIME_DIR/bus, that takes the connection. Never
// waits. Refuses
// (`secret_unavailable`) when there is none: only secrets need the session bus.
OrRefusal<kj::AutoCloseFd> dialSessionBus(const std::map<std::string, std::string>& environ);

}  // namespace oc
