#include "text_cursor.h"

namespace oc::config {

namespace {

bool isSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

bool isDigit(char c) { return c >= '0' && c <= '9'; }

bool endsWord(char c) {
  return isSpace(c) || c == ',' || c == ':' || c == ']' || c == '}' || c == '[' || c == '{' || c == '"';
}

}  // namespace

void TextCursor::advance(size_t bytes) {
  for (; bytes > 0 && !atEnd(); --bytes, ++offset) {
    if (text[offset] == '\n') {
      here = {here.line + 1, 1};
    } else if ((static_cast<unsigned char>(text[offset]) & 0xC0) != 0x80) {
      ++here.column;  // a character is counted at its first byte
    }
  }
}

void TextCursor::skipSpace() {
  while (!atEnd() && isSpace(peek())) advance(1);
}

Position TextCursor::nextToken() {
  while (!atEnd() && (isSpace(peek()) || peek() == ',' || peek() == ':')) advance(1);
  return here;
}

size_t TextCursor::stringLength() const {
  size_t length = 1;
  while (offset + length < text.size() && peek(length) != '"') length += peek(length) == '\\' ? 2 : 1;
  return length + 1;
}

// RFC 8259, 6. Whatever is right behind a number is another token to the parser: "01" is 0 and 1.
size_t TextCursor::numberLength() const {
  size_t length = peek() == '-' ? 1 : 0;
  auto digits = [this, &length]() {
    while (isDigit(peek(length))) ++length;
  };
  if (peek(length) == '0') {
    ++length;
  } else {
    digits();
  }
  if (peek(length) == '.' && isDigit(peek(length + 1))) {
    ++length;
    digits();
  }
  size_t sign = peek(length + 1) == '-' || peek(length + 1) == '+' ? 1 : 0;
  if ((peek(length) == 'e' || peek(length) == 'E') && isDigit(peek(length + 1 + sign))) {
    length += 1 + sign;
    digits();
  }
  return length;
}

size_t TextCursor::wordLength() const {
  size_t length = 0;
  while (offset + length < text.size() && !endsWord(peek(length))) ++length;
  return length;
}

void TextCursor::skipToken() {
  if (atEnd()) return;
  char c = peek();
  if (c == '"') return advance(stringLength());
  if (c == '-' || isDigit(c)) return advance(numberLength());
  for (std::string_view word : {"true", "false", "null"}) {
    if (rest().starts_with(word)) return advance(word.size());
  }
  advance(1);
}

void TextCursor::skipWord() { advance(wordLength()); }

}  // namespace oc::config
