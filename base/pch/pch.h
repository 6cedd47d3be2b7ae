// Precompiled: what nearly every file includes and what takes longest to parse.
// A guard and no pragma: the compiler sees this as a main file.
#ifndef OPEN_CONDUIT_PCH
#define OPEN_CONDUIT_PCH
#include <capnp/capability.h>
#include <capnp/message.h>
#include <fmt/format.h>
#include <kj/async-io.h>
#include <kj/async-unix.h>
#include <kj/debug.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#endif
