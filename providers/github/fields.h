// Reading GitHub's JSON, which may be anything: a missing field or one of another type gives an empty value, never an
// exception.
#pragma once

#include <cstdint>
#include <string>

#include "base/json.h"

namespace oc::github {

const Json& fieldOf(const Json& from, const char* name);                     // null when it is not there
std::string textOf(const Json& from, const char* name, size_t limit = 512);  // printable, one line
std::string wholeText(const Json& from, const char* name, size_t limit);     // as it is, valid UTF-8
uint64_t numberOf(const Json& from, const char* name);
bool flagOf(const Json& from, const char* name);

// "2026-11-29T21:53:57Z" to milliseconds since 1970, and back; 0 for what is no such time.
int64_t timeOf(const std::string& iso);
std::string isoOf(int64_t milliseconds);
// "Sun, 29 Nov 2026 21:53:57 GMT" to seconds since 1970; 0 for what is no such time.
int64_t dateOf(const std::string& http);

}  // namespace oc::github
