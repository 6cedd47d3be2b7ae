#include "json_scanner.h"

#include <cstring>

namespace oc {

namespace {

constexpr size_t mostKey = 64;
// Beyond this nothing is JSON to us: a line of brackets must not cost a bit each.
constexpr size_t mostNesting = 4096;

bool isBlank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

bool isOfWord(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == 'E' || c == '-' || c == '+' || c == '.';
}

int hexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

void JsonScanner::feed(std::string_view bytes) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (state == State::Broken) return;
    if (state == State::InText) {
      // Most bytes are inside texts: on to what ends one.
      size_t end = bytes.find_first_of("\"\\", i);
      if (end == std::string_view::npos) end = bytes.size();
      put(bytes.substr(i, end - i));
      i = end;
      if (i == bytes.size()) return;
    }
    take(bytes[i]);
  }
}

bool JsonScanner::finish() {
  if (state == State::InWord && lists.empty()) endWord();
  bool whole = state == State::Done;
  state = State::Value;
  lists.clear();
  path.clear();
  text.clear();
  high = 0;
  return whole;
}

void JsonScanner::take(char c) {
  if (state == State::InWord) {
    if (isOfWord(c)) return put({&c, 1});
    endWord();
  }
  switch (state) {
    case State::InText:
      if (c == '"') endText();
      if (c == '\\') state = State::Escape;
      return;
    case State::Escape: return escape(c);
    case State::Unicode: return unicode(c);
    default: break;
  }
  if (isBlank(c)) return;
  switch (state) {
    case State::Value:
      // Also the end of an empty list.
      if (c == ']' && begun && !lists.empty() && lists.back()) return close(true);
      return beginValue(c);
    case State::KeyOrEnd:
      if (c == '}') return close(false);
      [[fallthrough]];
    case State::Key:
      if (c == '"') return beginText(true);
      break;
    case State::Colon:
      if (c != ':') break;
      state = State::Value;
      begun = false;
      return;
    case State::AfterValue:
      if (c == ',') {
        state = lists.back() ? State::Value : State::Key;
        begun = false;
        return;
      }
      if (c == (lists.back() ? ']' : '}')) return close(lists.back());
      break;
    default: break;
  }
  state = State::Broken;
}

void JsonScanner::beginValue(char c) {
  if (c == '{' || c == '[') return open(c == '[');
  if (c == '"') return beginText(false);
  if (!isOfWord(c)) {
    state = State::Broken;
    return;
  }
  text.clear();
  limit = 64;
  keep = true;
  state = State::InWord;
  put({&c, 1});
}

void JsonScanner::beginText(bool key) {
  isKey = key;
  text.clear();
  limit = key ? mostKey : mostBytes;
  keep = key || (lists.size() <= mostDepth && handler.wants(path));
  state = State::InText;
  high = 0;
}

void JsonScanner::endText() {
  if (isKey) {
    if (lists.size() <= mostDepth) path.back() = text;
    state = State::Colon;
    return;
  }
  if (keep) handler.scalar(path, Kind::Text, text);
  valueEnded();
}

void JsonScanner::endWord() {
  Kind kind = Kind::Number;
  if (text == "true") {
    kind = Kind::True;
  } else if (text == "false") {
    kind = Kind::False;
  } else if (text == "null") {
    kind = Kind::Null;
  } else if (text.find_first_not_of("0123456789+-.eE") != std::string::npos) {
    state = State::Broken;
    return;
  }
  if (lists.size() <= mostDepth && handler.wants(path)) handler.scalar(path, kind, text);
  valueEnded();
}

void JsonScanner::escape(char c) {
  static constexpr char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  state = State::InText;
  if (c == 'u') {
    state = State::Unicode;
    code = 0;
    digits = 0;
    return;
  }
  auto* found = c == '\0' ? nullptr : strchr(from, c);
  if (found == nullptr) {
    state = State::Broken;
    return;
  }
  put({&to[found - from], 1});
}

void JsonScanner::unicode(char c) {
  int digit = hexDigit(c);
  if (digit < 0) {
    state = State::Broken;
    return;
  }
  code = code * 16 + digit;
  if (++digits < 4) return;
  state = State::InText;
  if (code >= 0xD800 && code < 0xDC00) {
    high = code;
    return;
  }
  if (code >= 0xDC00 && code < 0xE000) {
    code = high == 0 ? 0xFFFD : 0x10000 + ((high - 0xD800) << 10) + (code - 0xDC00);
  }
  high = 0;
  putCode(code);
}

void JsonScanner::putCode(uint32_t c) {
  char bytes[4];
  size_t n = 0;
  if (c < 0x80) {
    bytes[n++] = static_cast<char>(c);
  } else if (c < 0x800) {
    bytes[n++] = static_cast<char>(0xC0 | (c >> 6));
  } else if (c < 0x10000) {
    bytes[n++] = static_cast<char>(0xE0 | (c >> 12));
    bytes[n++] = static_cast<char>(0x80 | ((c >> 6) & 0x3F));
  } else {
    bytes[n++] = static_cast<char>(0xF0 | (c >> 18));
    bytes[n++] = static_cast<char>(0x80 | ((c >> 12) & 0x3F));
    bytes[n++] = static_cast<char>(0x80 | ((c >> 6) & 0x3F));
  }
  if (c >= 0x80) bytes[n++] = static_cast<char>(0x80 | (c & 0x3F));
  put({bytes, n});
}

void JsonScanner::put(std::string_view bytes) {
  if (!keep || text.size() >= limit) return;
  text += bytes.substr(0, limit - text.size());
}

void JsonScanner::open(bool list) {
  if (lists.size() >= mostNesting) {
    state = State::Broken;
    return;
  }
  lists.push_back(list);
  if (lists.size() <= mostDepth) path.push_back(list ? "[]" : "");
  state = list ? State::Value : State::KeyOrEnd;
  begun = list;
}

void JsonScanner::close(bool list) {
  if (lists.empty() || lists.back() != list) {
    state = State::Broken;
    return;
  }
  if (lists.size() <= mostDepth) path.pop_back();
  lists.pop_back();
  valueEnded();
}

void JsonScanner::valueEnded() { state = lists.empty() ? State::Done : State::AfterValue; }

}  // namespace oc
