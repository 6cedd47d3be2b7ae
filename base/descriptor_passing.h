// A descriptor over a Unix socket, with one byte (SCM_RIGHTS).
#pragma once

#include <kj/io.h>

namespace oc {

// False with an errno when it could not be sent. The other side gets a duplicate, and ours stays open.
bool sendDescriptor(int socket, int descriptor);

// The one that comes, closed on exec; none with an errno: EAGAIN of a socket that does not block, EINVAL for an end, or
// a message without a descriptor. What came beside it is closed by the kernel.
kj::AutoCloseFd receiveDescriptor(int socket);

}  // namespace oc
