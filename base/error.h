// Failing with a sentence for a person: KJ's macros print the expressions beside the values.
#pragma once

#include <kj/exception.h>
#include <kj/string.h>

#include <string>

namespace oc {

// Throws a kj::Exception of type FAILED whose description is just `text`.
[[noreturn]] inline void fail(const std::string& text) {
  kj::throwFatalException(kj::Exception(kj::Exception::Type::FAILED, __FILE__, __LINE__, kj::heapString(text.c_str())));
}

}  // namespace oc
