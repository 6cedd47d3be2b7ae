// What is shown of a run's log.
#pragma once

#include <cstdint>
#include <string>

#include "log_file.h"

namespace oc::work {

// The piece without what has the form of a token or key, and without the values of secrets that are live
// (base/redact.h). `next` is where to go on. Where there is `more` behind the piece, it ends with a whole line, so that
// nothing is cut in two and overlooked. A key without an end costs at most 16 KiB.
LogBytes withoutSecrets(LogBytes piece, bool more);

}  // namespace oc::work
