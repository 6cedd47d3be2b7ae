#include "syntax_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/text.h"

namespace oc::config {

namespace {

class Explainer {
 public:
  Explainer(TextCursor cursor, const SyntaxContext& context) : cursor(cursor), context(context) {}

  SyntaxError explain() {
    if (auto error = gluedWord()) return *error;
    cursor.skipSpace();
    if (cursor.atEnd()) return atEnd();
    if (isComment()) return here("comments are not part of JSON", "delete the comment");
    if (context.afterEnd) return here("something follows the end of the config", "delete what is behind the last }");
    switch (context.inside) {
      case SyntaxContext::Inside::Nothing: return value();
      case SyntaxContext::Inside::Array: return inArray();
      case SyntaxContext::Inside::Object: return context.afterKey ? afterKey() : inObject();
    }
    return value();
  }

 private:
  SyntaxError here(std::string message, std::string fix) {
    return {cursor.position(), std::move(message), std::move(fix)};
  }

  bool isComment() const {
    return cursor.peek() == '#' || (cursor.peek() == '/' && (cursor.peek(1) == '/' || cursor.peek(1) == '*'));
  }

  // "01" and "truex" are two tokens to the parser, and one mistake to whoever wrote them.
  std::optional<SyntaxError> gluedWord() {
    auto last = context.lastScalar;
    if (last.atEnd()) return std::nullopt;
    auto token = last, word = last;
    token.skipToken();
    word.skipWord();
    if (token.rest().size() != cursor.rest().size() || word.rest().size() == token.rest().size()) return std::nullopt;
    cursor = last;
    return value();
  }

  std::string shownCharacter() const {
    auto rest = cursor.rest();
    size_t length = 1;
    while (length < rest.size() && (static_cast<unsigned char>(rest[length]) & 0xC0) == 0x80) ++length;
    return printable(rest.substr(0, length));
  }

  SyntaxError atEnd() {
    switch (context.inside) {
      case SyntaxContext::Inside::Nothing: return here("the file is empty", "write a config: {\"version\": 1}");
      case SyntaxContext::Inside::Object: return unclosed("object", '}');
      case SyntaxContext::Inside::Array: return unclosed("array", ']');
    }
    return here("the file ends too early", "");
  }

  SyntaxError unclosed(std::string_view what, char bracket) {
    return here(fmt::format("the file ends inside the {} that begins at {}:{}", what, context.openedAt.line,
                            context.openedAt.column),
                fmt::format("close it with {}", bracket));
  }

  SyntaxError inArray() {
    if (!context.first) {
      if (cursor.peek() != ',') return missingComma("values", ']');
      auto comma = cursor;
      step();
      if (cursor.peek() == ']') return trailingComma(comma, ']');
    }
    return cursor.atEnd() ? atEnd() : value();
  }

  SyntaxError inObject() {
    if (!context.first) {
      if (cursor.peek() != ',') return missingComma("fields", '}');
      auto comma = cursor;
      step();
      if (cursor.peek() == '}') return trailingComma(comma, '}');
      if (cursor.atEnd()) return atEnd();
    }
    if (isComment()) return here("comments are not part of JSON", "delete the comment");
    if (cursor.peek() == '"') return string();
    if (cursor.peek() == ',') return here("there is a comma too many", "delete it");
    return here("a field's name is expected here, in double quotes", "write it as \"name\": …");
  }

  SyntaxError afterKey() {
    if (cursor.peek() != ':')
      return here("a ':' is missing between the field's name and its value", "write \"name\": value");
    step();
    return cursor.atEnd() ? atEnd() : value();
  }

  void step() {
    cursor.advance(1);
    cursor.skipSpace();
  }

  SyntaxError trailingComma(const TextCursor& comma, char bracket) {
    return {comma.position(), fmt::format("there is a comma before the closing {}", bracket), "delete the comma"};
  }

  SyntaxError missingComma(std::string_view between, char bracket) {
    char c = cursor.peek();
    bool otherBracket = (c == ']' || c == '}') && c != bracket;
    if (otherBracket) {
      return here(fmt::format("a {} stands here, but what is open is closed with {} (it begins at {}:{})", c, bracket,
                              context.openedAt.line, context.openedAt.column),
                  "check the brackets");
    }
    return here(
        fmt::format("a ',' between two {}, or a {}, is expected here, not '{}'", between, bracket, shownCharacter()),
        "if something is missing, it may be at the end of the line before");
  }

  SyntaxError value() {
    if (isComment()) return here("comments are not part of JSON", "delete the comment");
    char c = cursor.peek();
    if (c == '"') return string();
    if (c == '\'') return here("strings are written in double quotes", "write \" instead of '");
    if (c == ',') return here("a value is expected here, not a comma", "write the value, or delete the comma");
    if (c == ']' || c == '}') return here(fmt::format("a value is expected here, not '{}'", c), "write the value");
    if (std::isdigit(static_cast<unsigned char>(c)) || c == '-' || c == '+' || c == '.') return number();
    if (std::isalpha(static_cast<unsigned char>(c))) return word();
    return here(fmt::format("a value is expected here, not '{}'", shownCharacter()), "");
  }

  std::string bareToken() {
    auto end = cursor;
    end.skipWord();
    return printable(cursor.rest().substr(0, cursor.rest().size() - end.rest().size()));
  }

  SyntaxError number() {
    auto token = shortened(bareToken(), 40);
    bool infinite = token == "-Infinity" || token == "+Infinity";
    if (infinite) return here(fmt::format("{} is not part of JSON", token), "write a number");
    bool exponent = token.find_first_of("eE") != std::string::npos;
    bool wellFormed =
        std::isdigit(static_cast<unsigned char>(token.back())) && token[0] != '+' && token[0] != '.' && exponent;
    if (wellFormed) return here(fmt::format("the number {} is too large", token), "");
    return here(fmt::format("\"{}\" is no number as JSON writes them", token),
                "no leading zeros or plus, digits on both sides of the point; if it is text, quote it");
  }

  SyntaxError word() {
    auto token = shortened(bareToken(), 40);
    std::string lower = token;
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
    if (lower == "nan" || lower == "infinity")
      return here(fmt::format("{} is not part of JSON", token), "write a number");
    if (lower == "true" || lower == "false" || lower == "null") {
      return here(fmt::format("{} is written in small letters", lower), fmt::format("write {}", lower));
    }
    if (lower == "none") return here("None is not part of JSON", "write null, or leave the field out");
    return here(fmt::format("\"{}\" is no value", token), "quote it, if it is text");
  }

  // The cursor is at the opening quote of a string that can't be read.
  SyntaxError string() {
    auto opened = cursor.position();
    cursor.advance(1);
    while (!cursor.atEnd() && cursor.peek() != '"') {
      auto c = static_cast<unsigned char>(cursor.peek());
      if (c == '\n' || c == '\r')
        return {opened, "this string isn't closed at the end of its line", "close it with \""};
      if (c < 0x20) {
        return here(fmt::format("a control character (0x{:02x}) stands in a string", c),
                    fmt::format("delete it, or write it as \\u{:04x}", c));
      }
      if (c == '\\') {
        if (!isEscape()) return badEscape();
        cursor.advance(cursor.peek(1) == 'u' ? 6 : 2);
        continue;
      }
      size_t length = c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
      if (!isUtf8(cursor.rest().substr(0, length))) {
        return here(fmt::format("the byte 0x{:02x} here is not UTF-8", c), "save the file as UTF-8");
      }
      cursor.advance(length);
    }
    if (cursor.atEnd()) return {opened, "the file ends inside this string", "close it with \""};
    // Each character is fine by itself, so it is half of a surrogate pair.
    return {opened, "a \\u escape in this string is half of a character", "write the character itself"};
  }

  bool isEscape() const {
    if (cursor.peek(1) != 'u')
      return cursor.peek(1) != '\0' && std::string_view("\"\\/bfnrt").find(cursor.peek(1)) != std::string_view::npos;
    for (size_t i = 2; i < 6; ++i) {
      if (!std::isxdigit(static_cast<unsigned char>(cursor.peek(i)))) return false;
    }
    return true;
  }

  SyntaxError badEscape() {
    auto shown = printable(cursor.rest().substr(0, 2));
    return here(fmt::format("\"{}\" is no escape that JSON knows", shown), "a backslash itself is written \\\\");
  }

  TextCursor cursor;
  const SyntaxContext& context;
};

}  // namespace

SyntaxError explainSyntaxError(TextCursor cursor, const SyntaxContext& context) {
  return Explainer(cursor, context).explain();
}

}  // namespace oc::config
