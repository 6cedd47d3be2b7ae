// One JSON value that comes in pieces and may be far larger than the memory that one would spend on it: its scalars are
// told as they pass, and nothing is kept.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace oc {

class JsonScanner {
 public:
  enum class Kind { Text, Number, True, False, Null };

  // Where a scalar stands: the keys on the way to it, "[]" for each list. Keys are cut at 64 bytes.
  using Path = std::vector<std::string>;

  class Handler {
   public:
    // Whether the text or number that begins here is to be kept. What is not, is not told.
    virtual bool wants(const Path& path) = 0;
    // A text's escapes are resolved (surrogates become UTF-8); it is cut at `mostBytes`, and a number at 64.
    virtual void scalar(const Path& path, Kind kind, std::string_view value) = 0;

   protected:
    ~Handler() = default;
  };

  static constexpr size_t mostBytes = 1024;
  // Deeper values are passed over: their scalars are not told.
  static constexpr size_t mostDepth = 32;

  explicit JsonScanner(Handler& handler) : handler(handler) {}

  // The next bytes of the value. White space is passed over, line ends too: the caller says where a value ends.
  void feed(std::string_view bytes);
  // The value is over: false when it was no JSON, or was cut off. A new one may begin then.
  bool finish();

 private:
  enum class State { Value, AfterValue, KeyOrEnd, Key, Colon, InText, Escape, Unicode, InWord, Broken, Done };

  void take(char c);
  void beginValue(char c);
  void beginText(bool key);
  void endText();
  void endWord();
  void escape(char c);
  void unicode(char c);
  void put(std::string_view bytes);
  void putCode(uint32_t code);
  void open(bool list);
  void close(bool list);
  void valueEnded();

  Handler& handler;
  State state = State::Value;
  std::vector<bool> lists;  // what is open, and whether it is a list; bounded, below
  Path path;
  std::string text;
  bool keep = false, isKey = false, begun = false;
  size_t limit = 0;
  uint32_t code = 0, high = 0;
  int digits = 0;
};

}  // namespace oc
