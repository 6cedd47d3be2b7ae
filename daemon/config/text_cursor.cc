#include "text_cursor.h"

namespace oc::config {

namespace {

bool isSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

bool endsBareToken(char c) {
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

void TextCursor::skipToken() {
  if (atEnd()) return;
  size_t length = 1;
  if (peek() == '"') {
    while (offset + length < text.size() && peek(length) != '"') length += peek(length) == '\\' ? 2 : 1;
    ++length;
  } else if (!endsBareToken(peek())) {
    while (offset + length < text.size() && !endsBareToken(peek(length))) ++length;
  }
  advance(length);
}

}  // namespace oc::config
