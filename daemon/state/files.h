// The files of the database as files: who may have them, and that one daemon has them at a time.
#pragma once

#include <kj/io.h>

#include <optional>
#include <string>

#include "base/refusal.h"

namespace oc::state {

// Held as long as the descriptor is open; the kernel lets go of it when the process ends, however it ends.
struct StateLock {
  kj::AutoCloseFd fd;
};

// Takes the lock in `database`.lock, and writes our process id in it for whoever is refused. Refuses:
// `state_locked`, `state_unwritable`.
OrRefusal<StateLock> lockState(const std::string& database);

// Makes sure that `database` is there, a regular file of ours, 0600 whatever the umask is, and can be
// written. To be called with the lock, before SQLite has it open: closing a descriptor of the file drops
// SQLite's own locks. Refuses: `state_damaged` (something else is in its place), `state_unwritable`.
std::optional<Refusal> prepareStateFile(const std::string& database);

}  // namespace oc::state
