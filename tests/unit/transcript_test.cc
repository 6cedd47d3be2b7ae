#include "cli/ui/transcript.h"

#include "tests/catch.h"

namespace oc::cli {
namespace {

const std::string log =
    "Cloning\n"
    R"({"type":"system","subtype":"init","session_id":"s-1","model":"m","claude_code_version":"2.1"})"
    "\n"
    R"({"type":"assistant","session_id":"s-1","message":{"content":[{"type":"text","text":"I look\nat it"},)"
    R"({"type":"tool_use","name":"Bash","input":{"command":"ls -l"}}]}})"
    "\n"
    R"({"type":"user","session_id":"s-1","message":{"content":[{"type":"tool_result","content":"a\nb\nc","is_error":false}]}})"
    "\n"
    R"({"type":"result","session_id":"s-1","subtype":"success","is_error":false,"num_turns":2,"total_cost_usd":0.0412,"duration_ms":2000})"
    "\n";

std::string shown(const std::string& bytes, size_t pieces, bool terminal = false) {
  Look look;
  look.terminal = terminal;
  LogView view(look);
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += pieces) text += view.feed(std::string_view(bytes).substr(at, pieces));
  return text + view.finish();
}

TEST_CASE("a transcript is readable: text, tools and results folded, and the cost at its end") {
  auto text = shown(log, log.size());
  CHECK_THAT(text, hasText("Cloning\n"));
  CHECK_THAT(text, hasText("I look\nat it\n"));
  CHECK_THAT(text, hasText("→ Bash  ls -l\n"));
  CHECK_THAT(text, hasText("← a   (3 lines)\n"));
  CHECK_THAT(text, hasText("$0.0412"));
  CHECK(text.find("\"type\"") == std::string::npos);
  for (size_t pieces : {1, 2, 3, 64}) CHECK(shown(log, pieces) == text);
}

TEST_CASE("a transcript shows how a tool failed, by its first lines") {
  auto failed = [](const std::string& content) {
    return shown(
        log +
            R"({"type":"user","session_id":"s-1","message":{"content":[{"type":"tool_result","is_error":true,"content":")" +
            content + "\"}]}}\n",
        64);
  };
  CHECK_THAT(failed(R"(Exit code 2\nmake: no rule\n\n)"), hasText("  ✗ Exit code 2\n    make: no rule\n"));
  CHECK_THAT(failed(R"(1\n2\n3\n4\n5\n6\n7\n8)"), hasText("    6\n    (2 more lines)\n"));
  CHECK_THAT(failed("<tool_use_error>No such tool</tool_use_error>"), hasText("  ✗ No such tool\n"));
  CHECK_THAT(failed("<tool_use_error>"), hasText("  ✗ <tool_use_error>\n"));
}

TEST_CASE("a transcript cannot drive a terminal, and survives lines that are broken or of another shape") {
  auto text = shown(
      log + R"({"type":"assistant","message":{"content":[{"type":"text","text":"\u001b]0;x\u0007\u202e"}]}})"
            "\n"
            "{\"type\":\"assistant\",\"message\":7}\n{\"type\":\"assistant\",\"message\":{\"content\":[3,null]}}\n"
            "\x1b[2J no json\xff\n{\"type\":\"result\"}\n{\"type\": \"assist",
      5, true);
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.find('\x07') == std::string::npos);
  CHECK_THAT(text, hasText("no json"));
  CHECK_THAT(text, hasText("{\"type\": \"assist"));
}

TEST_CASE("a cost that is none is shown as one that could be") {
  auto shownCost = [](const std::string& cost) {
    return shown(log + R"({"type":"result","subtype":"success","session_id":"s-1","total_cost_usd":)" + cost + "}\n",
                 64);
  };
  CHECK_THAT(shownCost("1e300"), hasText("$1000000000.0000\n"));
  CHECK_THAT(shownCost("-1e300"), hasText("$0.0000\n"));
}

TEST_CASE("a text that was cut in the midst of a character is shown, and the whole ones of it") {
  auto said = [](const std::string& text) {
    return shown(log + R"({"type":"assistant","session_id":"s-1","message":{"content":[{"type":"text","text":")" +
                     text + "\"}]}}\n",
                 64);
  };
  for (auto* half : {R"(\ud83d)", R"(\ude00)", R"(\uD83D\u0041)", R"(\ud83d\ud83d)", R"(\ude00\ud83d)"}) {
    auto text = said(std::string("before ") + half + " after");
    CHECK_THAT(text, hasText("before \xef\xbf\xbd"));
    CHECK_THAT(text, hasText(" after\n"));
    CHECK(text.find("\"type\"") == std::string::npos);
  }
  CHECK_THAT(said(R"(\ud83d\ude00\ud83d)"), hasText("\xf0\x9f\x98\x80\xef\xbf\xbd\n"));
  CHECK_THAT(said(R"(\\ud83d \ud83d)"), hasText("\\ud83d \xef\xbf\xbd\n"));
}

TEST_CASE("a failure of the API is not shown as a success, nor an API that is silent as one that answered") {
  auto text = shown(
      log +
          R"({"type":"system","subtype":"api_retry","session_id":"s-1","attempt":1,"error_status":null,"error":"unknown"})" +
          "\n" +
          R"({"type":"result","subtype":"success","is_error":true,"session_id":"s-1","result":"API Error: lost"})" +
          "\n",
      64);
  CHECK_THAT(text, hasText("the API answered nothing (unknown), try 1\n"));
  CHECK_THAT(text, hasText("$0.0000   API Error: lost\n"));
}

TEST_CASE("a line beyond 1 MiB is not looked into") {
  auto text = shown(log + "{\"type\":\"assistant\",\"x\":\"" + std::string(2 << 20, 'x') + "\"}\n", 65536);
  CHECK_THAT(text, hasText("--raw shows it"));
  CHECK(text.size() < 4096);
}

TEST_CASE("a log that is no transcript stays as it is") {
  std::string other =
      "{\"some\": \"json\"}\nplain\x1b[1m\xff\n{\"type\":\"x\",\"session_id\":\"y\"}\nhalf";  // not the first
  for (size_t pieces : {1, 7, 1000}) CHECK(shown(other, pieces) == other);
  CHECK(shown("prompt> ", 3) == "prompt> ");
}

}  // namespace
}  // namespace oc::cli
