#include "base/json_scanner.h"

#include <fmt/format.h>

#include "tests/catch.h"

namespace oc {
namespace {

class Heard final : public JsonScanner::Handler {
 public:
  std::string all;
  bool wants(const JsonScanner::Path& path) override { return path.empty() || path.back() != "not"; }
  void scalar(const JsonScanner::Path& path, JsonScanner::Kind kind, std::string_view value) override {
    for (auto& part : path) all += "/" + part;
    all += fmt::format("={}:{}\n", static_cast<int>(kind), value);
  }
};

// In pieces of every size, since a pipe cuts where it likes.
std::string heard(const std::string& json, bool whole = true) {
  std::string first;
  for (size_t size : {size_t(1), size_t(2), size_t(3), size_t(7), json.size() + 1}) {
    Heard handler;
    JsonScanner scanner(handler);
    for (size_t at = 0; at < json.size(); at += size) scanner.feed(std::string_view(json).substr(at, size));
    CHECK(scanner.finish() == whole);
    if (first.empty()) first = handler.all;
    CHECK(handler.all == first);
  }
  return first;
}

TEST_CASE("a scanner tells each scalar with its place, however the value is cut") {
  CHECK(heard(R"({"a": "x", "b": [1, -2.5e3, true, false, null], "c": {"d": ["e"]}, "f": [], "g": {}})") ==
        "/a=0:x\n/b/[]=1:1\n/b/[]=1:-2.5e3\n/b/[]=2:true\n/b/[]=3:false\n/b/[]=4:null\n/c/d/[]=0:e\n");
  CHECK(heard("17") == "=1:17\n");
  CHECK(heard(R"({"not": "told", "told": 1})") == "/told=1:1\n");
}

TEST_CASE("a scanner resolves escapes") {
  CHECK(heard(R"({"a": "\"\\\/\n\t"})") == "/a=0:\"\\/\n\t\n");
  CHECK(heard("{\"a\": \"\\u00e9\\u20AC\\ud83d\\ude00\"}") == "/a=0:\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\n");
}

TEST_CASE("a scanner says what is no JSON, and begins anew afterwards") {
  for (auto text :
       {"", "hello", "{\"a\": 1", "{\"a\" 1}", "[1,]x", "{]", "}", "{\"a\": \"\\x\"}", "1 2", "Usage: claude"}) {
    INFO(text);
    Heard handler;
    JsonScanner scanner(handler);
    scanner.feed(text);
    CHECK_FALSE(scanner.finish());
    scanner.feed("{\"b\": 2}");
    CHECK(scanner.finish());
  }
}

TEST_CASE("a scanner keeps little of a value of any size and depth") {
  Heard handler;
  JsonScanner scanner(handler);
  scanner.feed("{\"long\": \"");
  std::string piece(1 << 16, 'x');
  for (int i = 0; i < 320; ++i) scanner.feed(piece);
  scanner.feed("\", \"after\": 1}");
  CHECK(scanner.finish());
  CHECK(handler.all.size() < 2 * JsonScanner::mostBytes);
  CHECK_THAT(handler.all, hasText("/after=1:1\n"));
  scanner.feed(std::string(1 << 20, '['));
  CHECK_FALSE(scanner.finish());
}

}  // namespace
}  // namespace oc
