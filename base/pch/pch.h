// Precompiled: what nearly every file includes and what takes longest to parse.
#pragma once
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
