// Texts that no parser may take, beyond those of config_document_test: by RFC 8259's grammar, and by their size.
#include <chrono>

#include "config_support.h"
#include "daemon/config/document.h"

using namespace oc;
using namespace oc::config;
using namespace oc::config::testing;

namespace {

std::string repeated(const std::string& text, size_t times) {
  std::string result;
  result.reserve(text.size() * times);
  for (size_t i = 0; i < times; ++i) result += text;
  return result;
}

bool isRefused(std::string_view text) {
  auto document = readDocument(text);
  return !document.complete && !document.problems.empty() && !document.problems.back().message.empty();
}

}  // namespace

TEST_CASE("D2 what RFC 8259's grammar does not have is refused") {
  using namespace std::string_view_literals;
  std::string_view texts[] = {
      // whitespace and structure
      ""sv,
      " "sv,
      "\f1"sv,
      "\v1"sv,
      "\xC2\xA0"
      "1"sv,
      "\xE2\x80\x8B"
      "1"sv,
      "\xE2\x81\xA0[]"sv,
      "[\f]"sv,
      "[1\v]"sv,
      "1 2"sv,
      "[] []"sv,
      "[]]"sv,
      "[[]"sv,
      "]"sv,
      "}"sv,
      "{"sv,
      "["sv,
      ","sv,
      ":"sv,
      "[,"sv,
      "[1,"sv,
      "[1,]"sv,
      "[,1]"sv,
      "[1,,2]"sv,
      "[1 true]"sv,
      "[1:2]"sv,
      "[\"a\" 1]"sv,
      "{,}"sv,
      "{1:1}"sv,
      "{a:1}"sv,
      "{'a':1}"sv,
      "{\"a\"}"sv,
      "{\"a\":}"sv,
      "{\"a\" 1}"sv,
      "{\"a\",1}"sv,
      "{\"a\":1,}"sv,
      "{\"a\":1,,\"b\":2}"sv,
      "{\"a\":1;\"b\":2}"sv,
      "{:1}"sv,
      "{null:1}"sv,
      "{\"a\"::1}"sv,
      "{\"a\":1:2}"sv,
      "{[]:1}"sv,
      "{\"a\":1 \"b\":2}"sv,
      "[{]}"sv,
      "[}"sv,
      "{]"sv,
      "{}{}"sv,
      "<null>"sv,
      "[<null>]"sv,
      "*"sv,
      "[*]"sv,
      "\\u0020[]"sv,
      "[]\0"sv,
      "\0"sv,
      "[\0]"sv,
      "[1]\0[2]"sv,
      // words
      "nul"sv,
      "nulll"sv,
      "NULL"sv,
      "Null"sv,
      "tru"sv,
      "TRUE"sv,
      "truE"sv,
      "fals"sv,
      "FALSE"sv,
      "undefined"sv,
      "nil"sv,
      "None"sv,
      "yes"sv,
      "NaN"sv,
      "-NaN"sv,
      "Infinity"sv,
      "+Infinity"sv,
      "-Infinity"sv,
      "inf"sv,
      "[nan]"sv,
      "[Inf]"sv,
      "[-Infinity]"sv,
      "[tRue]"sv,
      "[n]"sv,
      "[t]"sv,
      "[f]"sv,
      // numbers
      "-"sv,
      "+"sv,
      "+1"sv,
      "--1"sv,
      "-+1"sv,
      "-a"sv,
      "01"sv,
      "-01"sv,
      "00"sv,
      "0x1"sv,
      "0X1"sv,
      "0b1"sv,
      "0o1"sv,
      "1_000"sv,
      "1."sv,
      ".1"sv,
      "-.1"sv,
      "1.e1"sv,
      "1e"sv,
      "1e+"sv,
      "1E-"sv,
      "1e1.5"sv,
      "1e1e1"sv,
      "1.2.3"sv,
      "1..2"sv,
      "0.e1"sv,
      "0e"sv,
      "0e+"sv,
      "1a"sv,
      "1 000"sv,
      "1,5"sv,
      "1e1000"sv,
      "-1e1000"sv,
      "[0.1.2]"sv,
      "[2.e3]"sv,
      "[2.e+3]"sv,
      "[9.e+]"sv,
      "[1e+-2]"sv,
      "[- 1]"sv,
      "[1\xEF\xBC\x91]"sv,
      "[\xEF\xBC\x91]"sv,
      "\xE2\x88\x92"
      "1"sv,
      "[-2.]"sv,
      "[1ea]"sv,
      "[1e1\xE5]"sv,
      "[0\xE5]"sv,
      "[123\xE5]"sv,
      "[-1x]"sv,
      "[1.8011670033376514H-308]"sv,
      "[0e+-1]"sv,
      "[-foo]"sv,
      "[1+2]"sv,
      "[.2e-3]"sv,
      "[-012]"sv,
      // strings
      "\""sv,
      "\"a"sv,
      "'a'"sv,
      "`a`"sv,
      "\"a\nb\""sv,
      "\"a\tb\""sv,
      "\"a\0b\""sv,
      "\"\x01\""sv,
      "\"\x1f\""sv,
      "\"\\\""sv,
      "\"\\a\""sv,
      "\"\\x00\""sv,
      "\"\\0\""sv,
      "\"\\'\""sv,
      "\"\\u\""sv,
      "\"\\u1\""sv,
      "\"\\u12\""sv,
      "\"\\u123\""sv,
      "\"\\u123g\""sv,
      "\"\\U0041\""sv,
      "\"\\u00A\""sv,
      "\"\\uD800\""sv,
      "\"\\uDC00\""sv,
      "\"\\uD800\\u0041\""sv,
      "\"\\uD800\\\""sv,
      "\"\\uD800\\u\""sv,
      "\"\\uD800\\uD800\""sv,
      "\"\\\xF0\x9F\x98\x80\""sv,
      "\"\\\n\""sv,
      "[\"a\", \"b]"sv,
      "\"a\" \"b\""sv,
      "\"\\u{41}\""sv,
      "\"\\e\""sv,
      "[\\n]"sv,
      "[\"\\"sv,
      "[\"\\u"sv,
      "[\"\\uD834\\uD"sv,
      "abc"sv,
      "\xC3\xA9"sv,
      // UTF-8
      "\"\x80\""sv,
      "\"\xBF\""sv,
      "\"\xC0\xAF\""sv,
      "\"\xC1\x81\""sv,
      "\"\xC3\""sv,
      "\"\xE0\x80\x80\""sv,
      "\"\xE2\x82\""sv,
      "\"\xED\xA0\x80\""sv,
      "\"\xED\xBF\xBF\""sv,
      "\"\xF0\x80\x80\x80\""sv,
      "\"\xF4\x90\x80\x80\""sv,
      "\"\xF5\x80\x80\x80\""sv,
      "\"\xF8\x88\x80\x80\x80\""sv,
      "\"\xFC\x84\x80\x80\x80\x80\""sv,
      "\"\xFE\""sv,
      "\"\xFF\""sv,
      "[\xFF]"sv,
      "{\"\xE9\": 1}"sv,
      "\xFF\xFE[\0]\0"sv,
      "\xFE\xFF\0[\0]"sv,
      "\xEF\xBB"sv,
      "\xEF\xBB\xBF\xEF\xBB\xBF[]"sv,
      "[]\xEF\xBB\xBF"sv,
      "[\xEF\xBB\xBF]"sv,
      "\xEF\xBB\xBF"sv,
      // comments
      "// c\n[]"sv,
      "/* c */[]"sv,
      "[] // c"sv,
      "[]/**/"sv,
      "[/* c */]"sv,
      "# c\n[]"sv,
      "[]#"sv,
      "{\"a\":/*c*/1}"sv,
      "{\"a\":1} /"sv,
      "{\"a\":1} --"sv,
      "<!-- -->[]"sv,
  };
  for (auto text : texts) {
    INFO(text << " (" << text.size() << " bytes)");
    CHECK(isRefused(text));
  }
}

TEST_CASE("D2 what RFC 8259's grammar has is read") {
  for (auto text : {"0",
                    "-0",
                    "-0.0",
                    "0e1",
                    "0E+1",
                    "1e-1",
                    "1.5e+10",
                    "123456789012345678901234567890",
                    "1e-400",
                    "[]",
                    "{}",
                    "[[]]",
                    "{\"\":0}",
                    "\"\"",
                    "\"\\u0000\"",
                    "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
                    "\"\\uD83D\\uDE00\"",
                    "\"\\u00e9\\uABCD\"",
                    "\"\x7f\"",
                    "\"\xF4\x8F\xBF\xBF\"",
                    "\"\xEF\xBF\xBE\"",
                    " \t\r\n[ \t\r\n1 ,\r\n2 ] \n",
                    "true",
                    "false",
                    "null",
                    "[null, 1, \"1\", {}]",
                    "{\"a\":[]}",
                    "{\"a\":{\"b\":null}}",
                    "[1,2,3]",
                    "\"\xE2\x80\xA8\xE2\x80\xA9\"",
                    "\"/*\"",
                    "\"//\""}) {
    auto document = readDocument(text);
    INFO(text);
    CHECK(document.complete);
    CHECK(document.problems.empty());
  }
}

TEST_CASE("D2 depth is bounded, and said so where it is passed") {
  for (auto open : {"[", "{\"a\":", "[{\"a\":"}) {
    for (size_t depth : {200u, 10'000u, 1'000'000u}) {
      auto text = repeated(open, depth);
      auto document = readDocument(text.substr(0, 4u << 20));
      CHECK_FALSE(document.complete);
      REQUIRE(document.problems.size() == 1);
      CHECK(document.problems[0].message.find("deep") != std::string::npos);
    }
  }
  CHECK(isRefused(repeated("[", 10'000) + repeated("]", 10'000)));
  // Control: what is allowed is read.
  CHECK(readDocument(repeated("[", documentDepthLimit) + repeated("]", documentDepthLimit)).complete);
}

TEST_CASE("D2 50 MB are not read, however they are made") {
  auto name = std::string("/tmp/oc-config-large-") + std::to_string(getpid());
  for (auto& piece : {std::string("[1],"), std::string(" "), std::string("\"x\","), std::string("{\"a\":1},")}) {
    auto text = "[" + repeated(piece, (50u << 20) / piece.size()) + "1]";
    CHECK(isRefused(text));
    writeFileAtomically(name, text);
    auto loaded = loadFile(name, {"/home/op"});
    CHECK_FALSE(loaded.config);
    REQUIRE(loaded.diagnostics.size() == 1);
    CHECK(loaded.diagnostics[0].message.find("4 MiB") != std::string::npos);
  }
  unlink(name.c_str());
}

TEST_CASE("D2 many problems are told without end, but not all of them") {
  // Each field unknown, each twice.
  std::string fields;
  for (size_t i = 0; i < 20'000; ++i) fields += ", \"x" + std::to_string(i % 9'000) + "\": 1";
  auto loaded = load("{\"version\": 1" + fields + "}");
  CHECK_FALSE(loaded.config);
  CHECK(loaded.diagnostics.size() < 2'000);
  CHECK(loaded.diagnostics.size() > 50);
}
