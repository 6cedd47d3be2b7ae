// The one redactor: forms of tokens, and the exact values of secrets that are live.
#include "base/redact.h"
#include "daemon/work/log_redaction.h"

#include "base/crypto.h"
#include "base/log.h"
#include "tests/catch.h"

using namespace oc;

namespace {

std::string repeated(const std::string& text, size_t times) {
  std::string result;
  for (size_t i = 0; i < times; ++i) result += text;
  return result;
}

}  // namespace

TEST_CASE("D3 tokens and keys are taken out of text by their form") {
  auto rest = repeated("aB3", 12);
  struct Row {
    std::string text, expected;
  } rows[] = {
      {"a ghp_" + rest + " b", "a [redacted] b"},
      {"ghs_" + rest + ".with.dots_and_more", "[redacted]"},
      {"https://x-access-token:ghs_" + rest + "@github.com/o/r", "https://x-access-token:[redacted]@github.com/o/r"},
      {"github_pat_" + repeated("x", 22) + "_" + rest, "[redacted]"},
      {"key=sk-ant-api03-" + rest + "-_x!", "key=[redacted]!"},
      {"-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nafter", "[redacted]\nafter"},
      {"a -----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl and no end", "a [redacted]"},
      {"x ghp_" + rest + " ghp_" + rest, "x [redacted] [redacted]"},
      // Not of these forms:
      {"ghp_short gh_ ghP_" + rest, "ghp_short gh_ ghP_" + rest},
      {"github_pat_x sk-ant- -----BEGIN CERTIFICATE-----", "github_pat_x sk-ant- -----BEGIN CERTIFICATE-----"},
      {"", ""},
  };
  for (auto& row : rows) CHECK(withoutSecrets(row.text) == row.expected);
}

TEST_CASE("D3 the exact value of a secret is taken out while it is live, and not before or after") {
  std::string value = "correct horse battery staple";
  auto text = "it says: " + value + ", twice: " + value;
  CHECK(withoutSecrets(text) == text);
  {
    LiveSecret live(value);
    CHECK(withoutSecrets(text) == "it says: [redacted], twice: [redacted]");
    CHECK(withoutSecrets(value.substr(1)) == value.substr(1));
    CHECK(withoutSecrets(value) == "[redacted]");
    LiveSecret again(value), moved(std::move(again));
    CHECK(withoutSecrets(value) == "[redacted]");
  }
  CHECK(withoutSecrets(text) == text);
}

TEST_CASE("D3 the longest secret that begins somewhere is taken out, and each line of one with several") {
  LiveSecret shorter("0123456789"), longer("0123456789abcdef");
  CHECK(withoutSecrets("0123456789abcdefg") == "[redacted]g");
  CHECK(withoutSecrets("0123456789abcdeX") == "[redacted]abcdeX");
  LiveSecret lines("first line of the key\nsecond line of the key\nshort\n");
  CHECK(withoutSecrets("it printed: second line of the key.") == "it printed: [redacted].");
  CHECK(withoutSecrets("short") == "short");
}

TEST_CASE("D3 a value is known as a line of JSON has it, too") {
  std::string value = "pass\"word\\with\tall";
  LiveSecret live(value), lines("{\n  \"private\": \"key of several lines\"\n}\n");
  CHECK(withoutSecrets(R"({"text":"pass\"word\\with\tall"})") == R"({"text":"[redacted]"})");
  CHECK(withoutSecrets("it is " + value) == "it is [redacted]");
  CHECK(withoutSecrets(R"({"text":"it has   \"private\": \"key of several lines\"\n"})") ==
        R"({"text":"it has [redacted]\n"})");
}

TEST_CASE("D3 a value of less than eight bytes is in too many texts to be looked for") {
  LiveSecret live("the");
  CHECK(withoutSecrets("the text") == "the text");
}

TEST_CASE("D3 a text made to cost time is redacted whole instead") {
  // Begins and ends alike at every place, and is no secret: each place would have to be hashed.
  std::string value = repeated("a", 60'000) + "b" + repeated("a", 8);
  LiveSecret live(value);
  auto hostile = repeated("a", 400'000);
  auto result = withoutSecrets(hostile);
  CHECK(result.size() < hostile.size());
  CHECK(result.ends_with("[redacted]"));
}

TEST_CASE("D3 log lines pass the redactor before control characters are made visible") {
  LiveSecret live("a\tb\tc\td\te\tf");
  CHECK(redacted("x a\tb\tc\td\te\tf y\x1b[0m").find("a\tb") == std::string::npos);
  CHECK(redacted("x a\tb\tc\td\te\tf y").starts_with("x [redacted] y"));
}
// ---- a run's log

TEST_CASE("D3 a log is shown without tokens, and without the values of a live run's secrets") {
  std::string token = "ghs_" + std::string(40, 'a');
  LiveSecret live("correct horse battery");
  auto shown = work::withoutSecrets({"one " + token + " two\ncorrect horse battery\nthree", 100}, false);
  CHECK(shown.bytes == "one [redacted] two\n[redacted]\nthree");
  CHECK(shown.next == 100);
  // Any other bytes come through as they are.
  std::string bytes;
  for (int i = 0; i < 1024; ++i) bytes += static_cast<char>(i * 7);
  CHECK(work::withoutSecrets({bytes, 1024}, false).bytes == bytes);
  CHECK(work::withoutSecrets({bytes, 1024}, true).next <= 1024);
}

TEST_CASE("D3 a log that is read in pieces hides what lies across their borders") {
  std::string key = "-----BEGIN PRIVATE KEY-----\n";
  for (int i = 0; i < 30; ++i) key += std::string(64, static_cast<char>('A' + i % 26)) + "\n";
  key += "-----END PRIVATE KEY-----\n";
  std::string token = "github_pat_" + std::string(60, 'x');
  std::string log = "begin\n" + token + " and " + token + "\n" + key + "between " + token + "\n" + key + "end\n";
  // Wherever a piece ends.
  for (size_t size = key.size() + 100; size < log.size(); size += 13) {
    std::string all;
    for (size_t offset = 0; offset < log.size();) {
      auto piece = log.substr(offset, size);
      auto shown = work::withoutSecrets({piece, offset + piece.size()}, offset + piece.size() < log.size());
      REQUIRE(shown.next > offset);
      all += shown.bytes;
      offset = shown.next;
    }
    INFO(size);
    CHECK(all == "begin\n[redacted] and [redacted]\n[redacted]\nbetween [redacted]\n[redacted]\nend\n");
  }
}

TEST_CASE("D3 a key's beginning without an end does not hide the rest of a log") {
  std::string log = "grep: -----BEGIN RSA PRIVATE KEY-----\n" + std::string(20'000, 'x') + "\nthe end\n";
  auto shown = work::withoutSecrets({log, log.size()}, false);
  CHECK(shown.next == log.size());
  CHECK_THAT(shown.bytes, beginsWith("grep: [redacted]") && hasText("the end"));
}
