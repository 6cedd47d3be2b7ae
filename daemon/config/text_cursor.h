// Walks over a JSON text token by token, in step with a parser that has already accepted the tokens, to know where
// each begins. A parser with look-ahead can't say.
#pragma once

#include <string_view>

#include "document.h"

namespace oc::config {

class TextCursor {
 public:
  explicit TextCursor(std::string_view text) : text(text) {}

  // To the next token, over white space and the separators between values.
  Position nextToken();
  // Over the token that begins here, which is a sound one.
  void skipToken();
  // Over everything up to the next white space, bracket, quote, comma or colon.
  void skipWord();

  void skipSpace();
  void advance(size_t bytes);
  bool atEnd() const { return offset >= text.size(); }
  char peek(size_t ahead = 0) const { return offset + ahead < text.size() ? text[offset + ahead] : '\0'; }
  std::string_view rest() const { return text.substr(offset); }
  Position position() const { return here; }

 private:
  size_t wordLength() const;
  size_t stringLength() const;
  size_t numberLength() const;

  std::string_view text;
  size_t offset = 0;
  Position here{1, 1};
};

}  // namespace oc::config
