// What is wrong with a text that is no JSON, in words for the person who wrote it.
#pragma once

#include <string>

#include "text_cursor.h"

namespace oc::config {

// Where reading stopped: behind the last token that was understood.
struct SyntaxContext {
  enum class Inside { Nothing, Object, Array } inside = Inside::Nothing;
  Position openedAt;          // of the object or array
  bool first = true;          // nothing in it yet
  bool afterKey = false;      // object: a key was read, its value not yet
  bool afterEnd = false;      // the whole value was read
  TextCursor lastScalar{""};  // at the beginning of the last number, true, false or null
};

struct SyntaxError {
  Position at;
  std::string message, fix;
};

SyntaxError explainSyntaxError(TextCursor cursor, const SyntaxContext& context);

}  // namespace oc::config
