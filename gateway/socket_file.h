// Unix sockets by their path.
#pragma once

#include <kj/io.h>
#include <sys/un.h>

#include <string>

namespace oc::gateway {

// A stream socket that listens at `path`, in place of one that is there, and that everybody who reaches the path may
// connect to. Non-blocking. Throws, naming the path.
kj::AutoCloseFd listenAt(const std::string& path);

// Fills in `path`; throws when it is too long, saying so.
sockaddr_un unixAddress(const std::string& path);

}  // namespace oc::gateway
