#include "cli/ui/browser.h"

#include "tests/catch.h"

using namespace oc::cli;

namespace {

RunLine entry(const std::string& id, bool live = false) {
  return {id, "w-1", "demo/agent", live ? "running for 3 s" : "succeeded in 1 s", "A title", Tint::Good, live};
}

std::string text(Browser& browser, size_t width = 60, size_t height = 8) {
  std::string all;
  for (auto& line : browser.render(width, height)) all += line.text + "\n";
  return all;
}

std::string marked(Browser& browser) {
  for (auto& line : browser.render(60, 8)) {
    if (line.marked) return line.text;
  }
  return "";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("G1 the UI shows runs, and the chosen one stays chosen when others come", "[browser]") {
  Browser browser;
  CHECK(has(text(browser), "no runs yet"));
  browser.setRuns({entry("r-3"), entry("r-2"), entry("r-1")});
  CHECK(has(marked(browser), "r-3"));
  browser.press(Key::Down);
  CHECK(browser.chosen() == "r-2");
  browser.setRuns({entry("r-4"), entry("r-3"), entry("r-2"), entry("r-1")});
  CHECK(browser.chosen() == "r-2");
  CHECK(has(marked(browser), "r-2"));
  browser.press(Key::Last);
  browser.press(Key::Down);
  CHECK(browser.chosen() == "r-1");
  browser.setRuns({});
  CHECK(browser.chosen().empty());
}

TEST_CASE("G1 a run is stopped from the UI after a yes, and by no other key", "[browser]") {
  Browser browser;
  browser.setRuns({entry("r-1", true), entry("r-0")});
  CHECK(browser.press(Key::Character, 's') == Browser::Wish::Nothing);
  CHECK(has(text(browser), "stop r-1?"));
  CHECK(browser.press(Key::Character, 'n') == Browser::Wish::Nothing);
  CHECK(browser.press(Key::Character, 'y') == Browser::Wish::Nothing);
  browser.press(Key::Character, 's');
  CHECK(browser.press(Key::Enter) == Browser::Wish::Nothing);
  CHECK(browser.view() == Browser::View::Runs);
  browser.press(Key::Character, 's');
  CHECK(browser.press(Key::Character, 'y') == Browser::Wish::StopRun);
  CHECK(browser.chosen() == "r-1");

  browser.press(Key::Down);
  browser.press(Key::Character, 's');
  CHECK(has(text(browser), "r-0 has ended"));
}

TEST_CASE("a yes stops the run that was asked about, and not one that took its place", "[browser]") {
  Browser browser;
  browser.setRuns({entry("r-1", true)});
  browser.press(Key::Character, 's');
  browser.setRuns({entry("r-2", true)});
  CHECK(browser.press(Key::Character, 'y') == Browser::Wish::Nothing);
}

TEST_CASE("the UI's log follows its end until somebody scrolls, and again at the end", "[browser]") {
  Browser browser;
  browser.setRuns({entry("r-1", true)});
  CHECK(browser.press(Key::Character, 'l') == Browser::Wish::ShowLog);
  for (int i = 0; i < 50; ++i) browser.addLog("line " + std::to_string(i) + "\n");
  CHECK(has(text(browser), "line 49"));
  browser.press(Key::PageUp);
  CHECK_FALSE(has(text(browser), "line 49"));
  browser.addLog("line 50\n");
  CHECK_FALSE(has(text(browser), "line 50"));
  browser.press(Key::Last);
  CHECK(has(text(browser), "line 50"));
  CHECK(browser.press(Key::Back) == Browser::Wish::Nothing);
  CHECK(browser.view() == Browser::View::Runs);
  CHECK(browser.press(Key::Character, 'q') == Browser::Wish::Quit);
}

TEST_CASE("no line of the UI is wider than the terminal, and a log's long ones are folded", "[browser]") {
  Browser browser;
  browser.setRuns({entry("r-1")});
  browser.press(Key::Character, 'l');
  browser.addLog(std::string(100, 'a') + "\näöüäöüäöüäöüäöüäöüäöüäöü\n日本語日本語日本語\n");
  std::string letters;
  for (auto& line : browser.render(20, 30)) {
    CHECK(columnsOf(line.text) <= 20);
    for (char c : line.text) letters += c == 'a' ? "a" : "";
  }
  CHECK(letters == std::string(100, 'a'));
  for (size_t height : {0, 1, 2, 3, 5}) CHECK(browser.render(5, height).size() == height);
}

TEST_CASE("a log that goes on for ever costs the UI a bounded amount", "[browser]") {
  Browser browser;
  browser.setRuns({entry("r-1")});
  browser.press(Key::Character, 'l');
  for (int i = 0; i < 2000; ++i) browser.addLog(std::string(999, 'x') + "\n");
  browser.addLog("the end\n");
  CHECK(has(text(browser), "the end"));
}

TEST_CASE("what keeps the UI from the daemon is said above", "[browser]") {
  Browser browser;
  browser.setTrouble("the daemon went away");
  CHECK(has(text(browser), "the daemon went away"));
  browser.setTrouble("");
  CHECK_FALSE(has(text(browser), "went away"));
}
