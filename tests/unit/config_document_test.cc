// Reading JSON: places, and what is wrong with a text that is none.
#include "daemon/config/document.h"

#include <functional>

#include "config_support.h"
#include "daemon/config/quick_reader.h"

using namespace oc;
using namespace oc::config;
using namespace oc::config::testing;

namespace {

std::string place(Position at) { return std::to_string(at.line) + ":" + std::to_string(at.column); }

}  // namespace

TEST_CASE("D2 every value and every field's name has its place") {
  auto document = readDocument("{\n  \"a\": [1, -2.5e3 ,\"x\\\"y\",\n true],\"büch\": {\"é\":null } }\n");
  REQUIRE(document.complete);
  REQUIRE(document.problems.empty());
  auto& root = document.root;
  CHECK(place(root.at) == "1:1");
  auto& a = *root.find("a");
  CHECK(place(a.at) == "2:3");
  CHECK(place(a.value.at) == "2:8");
  REQUIRE(a.value.items.size() == 4);
  CHECK(place(a.value.items[0].at) == "2:9");
  CHECK(place(a.value.items[1].at) == "2:12");
  CHECK(place(a.value.items[2].at) == "2:20");
  CHECK(place(a.value.items[3].at) == "3:2");
  CHECK(a.value.items[1].number == -2500);
  CHECK(a.value.items[2].text == "x\"y");
  auto& umlaut = *root.find("büch");
  CHECK(place(umlaut.at) == "3:8");
  CHECK(place(umlaut.value.at) == "3:16");
  CHECK(place(umlaut.value.find("é")->at) == "3:17");
  CHECK(place(umlaut.value.find("é")->value.at) == "3:21");
  CHECK(root.find("b") == nullptr);
}

TEST_CASE("D2 a document is the JSON that another parser reads") {
  for (auto name : {"container.json", "srt.json", "shell.json"}) {
    auto text = fixture(name);
    CHECK(readDocument(text).root.toJson() == parseJson(text));
  }
  CHECK(readDocument("18446744073709551615").root.number == 18446744073709551615.0);
}

// Sound texts are read in one pass; any other by a parser that tells what is wrong. Both have to see the same.
TEST_CASE("D2 the quick reader sees the same values at the same places as the thorough one, and no more than that") {
  std::vector<std::string> texts = {
      fixture("container.json"), fixture("srt.json"), fixture("shell.json"),
      R"({"é": ["\u00e9\u20ac\"\\\/\b\f\n\r\t", -0, 12, -2.5, true, false, null, [], {}, ""]})",
      "{\"a\":\r\n\t[1 ,2\n,\"\xF0\x9F\x98\x80\",\"é\" , 3]\n, \"b\" : {\"c\":\"\x7f\"}}"};
  std::string many = "{";
  for (int i = 0; i < 100; ++i) many += "\"k" + std::to_string(i) + "\": " + std::to_string(i) + ", ";
  texts.push_back(many + "\"last\": 0}");
  std::function<void(const Node&, const Node&)> same = [&same](const Node& a, const Node& b) {
    CHECK(place(a.at) == place(b.at));
    CHECK(a.kind == b.kind);
    REQUIRE(a.items.size() == b.items.size());
    for (size_t i = 0; i < a.items.size(); ++i) same(a.items[i], b.items[i]);
    for (auto& member : a.members) {
      auto other = b.find(member.key);
      REQUIRE(other != nullptr);
      CHECK(place(member.at) == place(other->at));
      same(member.value, other->value);
    }
  };
  for (auto& text : texts) {
    INFO(text);
    auto quick = readSound(text);
    REQUIRE(quick);
    CHECK(quick->toJson() == parseJson(text));
    // A field that is there twice sends it to the thorough one.
    auto end = text.rfind('}');
    auto other = text.substr(0, end) + ", \"zz\": 1, \"zz\": 2}";
    CHECK_FALSE(readSound(other));
    auto thorough = readDocument(other);
    REQUIRE(thorough.problems.size() == 1);
    same(*quick, thorough.root);
  }
  for (auto text : {"",
                    " ",
                    "[1,]",
                    "{\"a\":1,}",
                    "01",
                    "-",
                    "1.",
                    ".5",
                    "+1",
                    "1 2",
                    "[1] x",
                    "\"\x01\"",
                    "\"\xC0\x80\"",
                    "\"\xED\xA0\x80\"",
                    "\"\xF4\x90\x80\x80\"",
                    "\"\xE2\x82\"",
                    "\"\\x\"",
                    "\"\\ud800\"",
                    "\"\\u12\"",
                    "tru",
                    "nul",
                    "[",
                    "{",
                    "{\"a\"",
                    "{\"a\":",
                    "\"",
                    "{1:2}",
                    "[1}",
                    "{\"a\":1]",
                    "{\"a\":1,\"a\":2}",
                    "NaN",
                    "//x\n1"}) {
    INFO(text);
    CHECK_FALSE(readSound(text));
  }
  CHECK_FALSE(readSound(std::string_view("1\0", 2)));
  CHECK_FALSE(readSound(std::string(65, '[') + std::string(65, ']')));
  CHECK(readSound(std::string(64, '[') + std::string(64, ']')));
}

TEST_CASE("D2 a field that is there twice is named, with the line of the first") {
  checkError("{\"version\": 1,\n \"settings\": {},\n §\"settings\": {}}", "settings", "first one is in line 2",
             "keep one");
  checkError("{\"version\": 1, \"settings\": {\"grace\": 1, §\"gr\\u0061ce\": 2}}", "settings.grace", "twice");
}

TEST_CASE("D2 text that is no JSON is refused with its place and in plain words") {
  struct Row {
    const char *text, *message;
  } rows[] = {
      {"§", "the file is empty"},
      {"  \n §", "the file is empty"},
      {"§hello", "\"hello\" is no value"},
      {"{\"version\": 1§", "ends inside the object that begins at 1:1"},
      {"{\"version\": §", "ends inside the object"},
      {"{\"version\":\n [1, 2§", "ends inside the array that begins at 2:2"},
      {"{\"version\": 1} §x", "follows the end"},
      {"{\"version\": 1}\n§{}", "follows the end"},
      {"{\"version\": 1§,}", "comma before the closing }"},
      {"{\"scopes\": [1§, ]}", "comma before the closing ]"},
      {"{\"version\": 1 §\"scopes\": []}", "between two fields"},
      {"{\"scopes\": [1 §2]}", "between two values"},
      {"{\"scopes\": [1§}", "what is open is closed with ]"},
      {"{\"a\": 1§]", "what is open is closed with }"},
      {"{\"version\" §1}", "':' is missing"},
      {"{§version: 1}", "in double quotes"},
      {"{\"a\": 1,§, \"b\": 2}", "a comma too many"},
      {"[§, 1]", "not a comma"},
      {"{\"a\": §}", "a value is expected here"},
      {"{\"a\": §'x'}", "double quotes"},
      {"{\"a\": §NaN}", "NaN is not part of JSON"},
      {"{\"a\": §Infinity}", "Infinity is not part of JSON"},
      {"{\"a\": §-Infinity}", "-Infinity is not part of JSON"},
      {"{\"a\": §True}", "true is written in small letters"},
      {"{\"a\": §None}", "write"},
      {"{\"a\": §01}", "no number"},
      {"{\"a\": §+1}", "no number"},
      {"{\"a\": §.5}", "no number"},
      {"{\"a\": §1.}", "no number"},
      {"{\"a\": §0x1F}", "no number"},
      {"{\"a\": §1e999}", "too large"},
      {"{\"a\": §1.5.2}", "no number"},
      {"[1, §-1x]", "no number"},
      {"{\"a\": §truely}", "\"truely\" is no value"},
      {"[1 §2]", "between two values"},
      {"§// a comment\n{}", "comments"},
      {"{ §/* c */ \"a\": 1}", "comments"},
      {"{\"a\": 1, §# c\n \"b\": 2}", "comments"},
      {"{\"a\": §\"x\n\"}", "isn't closed at the end of its line"},
      {"{\"a\": §\"x", "the file ends inside this string"},
      {"{\"a\": \"x§\tb\"}", "control character (0x09)"},
      {"{\"a\": \"x§\\q\"}", "no escape"},
      {"{\"a\": \"x§\\u12\"}", "no escape"},
      {"{\"a\": §\"\\ud800\"}", "half of a character"},
      {"{\"a\": \"é§\xFF\"}", "0xff here is not UTF-8"},
      {"{\"a\": \"§\xC0\x80\"}", "not UTF-8"},
      {"{\"a\": \"§\xED\xA0\x80\"}", "not UTF-8"},
      {"{\"a\xC3§\": 1}", ""},
  };
  for (auto& row : rows) {
    std::string marked = row.text;
    auto at = marked.find("§");
    INFO(row.text);
    auto text = marked.substr(0, at) + marked.substr(at + std::string("§").size());
    auto document = readDocument(text);
    CHECK_FALSE(document.complete);
    REQUIRE(document.problems.size() == 1);
    auto& problem = document.problems[0];
    INFO(place(problem.at) << " " << problem.message << " / " << problem.fix);
    CHECK((problem.message + problem.fix).find(row.message) != std::string::npos);
    CHECK(problem.message.find("json.exception") == std::string::npos);
    if (*row.message != '\0') {
      size_t line = 1, column = 1;
      for (auto c : marked.substr(0, at)) {
        if (c == '\n') {
          ++line;
          column = 1;
        } else if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) {
          ++column;
        }
      }
      CHECK(place(problem.at) == place({line, column}));
      detail::collect(problem.message);
    }
  }
}

TEST_CASE("D2 a NUL doesn't end the text") {
  std::string text = "{\"version\": 1}";
  CHECK(load(text).config);
  for (auto behind : {std::string("\0", 1), std::string(" \0{}", 4)}) CHECK_FALSE(load(text + behind).config);
  CHECK_FALSE(load(std::string_view("{\0\"version\": 1}", 15)).config);
}

TEST_CASE("D2 a syntax error says which object it is in") {
  checkError("{\"version\": 1, \"scopes\": [{\"id\": \"a\"}, {\"id\": §}]}", "scopes[1]", "value is expected");
}

TEST_CASE("D2 a byte order mark is passed over, with a warning") {
  auto loaded = load("\xEF\xBB\xBF{\"version\": 1}");
  CHECK(loaded.config);
  REQUIRE(loaded.diagnostics.size() == 1);
  CHECK(loaded.diagnostics[0].message.find("byte order mark") != std::string::npos);
  CHECK_FALSE(load(std::string_view("\xFF\xFE{\0}\0", 6)).config);
}

TEST_CASE("D2 what is too deep, too large or too much is refused, and quickly") {
  auto deep = [](size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  CHECK(readDocument(deep(documentDepthLimit)).complete);
  for (auto levels : {documentDepthLimit + 1, size_t{10'000}, size_t{1'000'000}}) {
    auto document = readDocument(deep(levels));
    CHECK_FALSE(document.complete);
    REQUIRE(document.problems.size() == 1);
    CHECK(document.problems[0].message.find("nested") != std::string::npos);
    CHECK(place(document.problems[0].at) == place({1, documentDepthLimit + 1}));
  }
  CHECK(readDocument(std::string(documentSizeLimit - 2, ' ') + "{}").complete);
  auto large = readDocument(std::string(documentSizeLimit - 1, ' ') + "{}");
  REQUIRE(large.problems.size() == 1);
  CHECK(large.problems[0].message == "the file is larger than 4 MiB");
  std::string many = "[0";
  while (many.size() < documentSizeLimit - 10) many += ",0";
  auto tooMany = readDocument(many + "]");
  CHECK_FALSE(tooMany.complete);
  REQUIRE(tooMany.problems.size() == 1);
  CHECK(tooMany.problems[0].message.find("values") != std::string::npos);
}

TEST_CASE("D2 the problems of a config of garbage have an end") {
  std::string garbage = "{\"version\": 1";
  for (int i = 0; i < 20'000; ++i) garbage += ", \"x" + std::to_string(i) + "\": 1";
  auto loaded = load(garbage + "}");
  CHECK_FALSE(loaded.config);
  CHECK(loaded.diagnostics.size() == 1001);
  CHECK(loaded.diagnostics.back().message == "19000 more problems are not shown");
}

TEST_CASE("D2 names of fields are shown in a path as they can be found again") {
  CHECK(memberPath("", "a") == "a");
  CHECK(memberPath("a", "b-c") == "a.b-c");
  CHECK(memberPath("a", "b c") == "a[\"b c\"]");
  CHECK(memberPath("a", "") == "a[\"\"]");
  CHECK(memberPath("", std::string(500, 'x')).size() < 80);
  CHECK(itemPath("a", 3) == "a[3]");
}
