#include "quick_reader.h"

#include <charconv>
#include <unordered_set>

namespace oc::config {

namespace {

// From here on keys are looked for by their hash.
constexpr size_t manyMembers = 16;
constexpr size_t longestInteger = 18;  // digits that always fit

bool isDigit(char c) { return c >= '0' && c <= '9'; }

class QuickReader {
 public:
  explicit QuickReader(std::string_view text) : at(text.data()), end(text.data() + text.size()) {}

  bool read(Node& root) {
    if (!value(root, 0)) return false;
    skipSpace();
    return at == end;
  }

 private:
  // ---- places

  Position here() const { return {line, column}; }

  // Over bytes of which each is a character.
  void step(size_t bytes) {
    at += bytes;
    column += bytes;
  }

  void skipSpace() {
    for (; at != end; ++at) {
      if (*at == '\n') {
        ++line;
        column = 1;
      } else if (*at == ' ' || *at == '\t' || *at == '\r') {
        ++column;
      } else {
        return;
      }
    }
  }

  bool take(char c) {
    if (at == end || *at != c) return false;
    step(1);
    return true;
  }

  // ---- values

  bool value(Node& node, size_t depth) {
    skipSpace();
    node.at = here();
    if (at == end || ++values > documentValueLimit) return false;
    switch (*at) {
      case '{': return object(node, depth);
      case '[': return array(node, depth);
      case '"': node.kind = Node::Kind::String; return string(node.text);
      case 't':
        node.kind = Node::Kind::Boolean;
        node.boolean = true;
        return word("true");
      case 'f': node.kind = Node::Kind::Boolean; return word("false");
      case 'n': return word("null");
      default: return number(node);
    }
  }

  bool word(std::string_view expected) {
    if (std::string_view(at, end - at).substr(0, expected.size()) != expected) return false;
    step(expected.size());
    return true;
  }

  bool array(Node& node, size_t depth) {
    if (depth >= documentDepthLimit) return false;
    node.kind = Node::Kind::Array;
    step(1);
    skipSpace();
    if (take(']')) return true;
    do {
      if (!value(node.items.emplace_back(), depth + 1)) return false;
      skipSpace();
    } while (take(','));
    return take(']');
  }

  bool object(Node& node, size_t depth) {
    if (depth >= documentDepthLimit) return false;
    node.kind = Node::Kind::Object;
    step(1);
    skipSpace();
    if (take('}')) return true;
    std::unordered_set<std::string> seen;
    do {
      Member member;
      if (!key(member) || isKnown(node, seen, member.key)) return false;
      node.members.push_back(std::move(member));
      if (!value(node.members.back().value, depth + 1)) return false;
      skipSpace();
    } while (take(','));
    return take('}');
  }

  bool key(Member& member) {
    skipSpace();
    member.at = here();
    if (at == end || *at != '"' || ++values > documentValueLimit || !string(member.key)) return false;
    skipSpace();
    return take(':');
  }

  static bool isKnown(const Node& node, std::unordered_set<std::string>& seen, const std::string& key) {
    if (node.members.size() < manyMembers) return node.find(key) != nullptr;
    if (seen.empty()) {
      for (auto& member : node.members) seen.insert(member.key);
    }
    return !seen.insert(key).second;
  }

  // ---- strings

  bool string(std::string& text) {
    step(1);
    while (at != end) {
      auto from = at;
      while (at != end && *at != '"' && *at != '\\' && static_cast<signed char>(*at) >= 0x20) ++at;
      text.append(from, at);
      column += at - from;
      if (at == end) return false;
      if (take('"')) return true;
      if (!(*at == '\\' ? escape(text) : character(text))) return false;
    }
    return false;
  }

  bool escape(std::string& text) {
    if (end - at < 2) return false;
    char c = at[1];
    if (c == 'u') return codePoint(text);
    constexpr std::string_view names = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
    auto found = names.find(c);
    if (found == names.npos) return false;
    text += meanings[found];
    step(2);
    return true;
  }

  // Two that make one character are left to the other reader.
  bool codePoint(std::string& text) {
    if (end - at < 6) return false;
    uint32_t code = 0;
    auto parsed = std::from_chars(at + 2, at + 6, code, 16);
    if (parsed.ptr != at + 6 || (code >= 0xD800 && code < 0xE000)) return false;
    if (code < 0x80) {
      text += static_cast<char>(code);
    } else if (code < 0x800) {
      text += static_cast<char>(0xC0 | code >> 6);
      text += static_cast<char>(0x80 | (code & 0x3F));
    } else {
      text += static_cast<char>(0xE0 | code >> 12);
      text += static_cast<char>(0x80 | (code >> 6 & 0x3F));
      text += static_cast<char>(0x80 | (code & 0x3F));
    }
    step(6);
    return true;
  }

  // One of more than a byte, as the Unicode Standard's table 3-7 has it. All else below a blank is no text.
  bool character(std::string& text) {
    auto byte = [this](ptrdiff_t i) { return i < end - at ? static_cast<unsigned char>(at[i]) : 0u; };
    auto first = byte(0), second = byte(1);
    ptrdiff_t length = first >= 0xC2 && first <= 0xDF   ? 2
                       : first >= 0xE0 && first <= 0xEF ? 3
                       : first >= 0xF0 && first <= 0xF4 ? 4
                                                        : 0;
    unsigned least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    unsigned most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    if (length == 0 || second < least || second > most) return false;
    for (ptrdiff_t i = 2; i < length; ++i) {
      if (byte(i) < 0x80 || byte(i) > 0xBF) return false;
    }
    text.append(at, length);
    at += length;
    ++column;
    return true;
  }

  // ---- numbers

  bool number(Node& node) {
    auto from = at, p = at;
    if (*p == '-') ++p;
    auto digits = p;
    while (p != end && isDigit(*p)) ++p;
    auto count = static_cast<size_t>(p - digits);
    if (count == 0 || count > longestInteger || (count > 1 && *digits == '0')) return false;
    bool whole = p == end || (*p != '.' && *p != 'e' && *p != 'E');
    if (whole) {
      node.kind = Node::Kind::Integer;
      std::from_chars(from, p, node.integer);
    } else if (!fraction(node, from, p)) {
      return false;
    }
    step(p - from);
    return true;
  }

  // Like 2.5; with an exponent it is rare.
  bool fraction(Node& node, const char* from, const char*& p) {
    if (*p != '.') return false;
    auto digits = ++p;
    while (p != end && isDigit(*p)) ++p;
    if (p == digits || (p != end && (*p == 'e' || *p == 'E'))) return false;
    node.kind = Node::Kind::Number;
    auto parsed = std::from_chars(from, p, node.number);
    return parsed.ec == std::errc() && parsed.ptr == p;
  }

  const char *at, *end;
  size_t line = 1, column = 1;
  size_t values = 0;
};

}  // namespace

std::optional<Node> readSound(std::string_view text) {
  Node root;
  if (!QuickReader(text).read(root)) return std::nullopt;
  return root;
}

}  // namespace oc::config
