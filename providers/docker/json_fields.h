// Fields of the Engine's answers: bounded, printable, and of the type that is asked for, or the default.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace oc::docker {

std::string textField(const Json& object, const char* name, size_t limit = 256);
bool boolField(const Json& object, const char* name);
// 0 for what is no integer.
int64_t numberField(const Json& object, const char* name);
// An object, an empty one when there is none.
const Json& objectField(const Json& object, const char* name);
// An array, an empty one when there is none.
const Json& arrayField(const Json& object, const char* name);
// The texts in an array, at most `most` of them.
std::vector<std::string> textsField(const Json& object, const char* name, size_t most = 64);

}  // namespace oc::docker
