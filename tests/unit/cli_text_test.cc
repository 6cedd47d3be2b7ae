// What the command line shows, by its parts.
#include <string>

#include "cli/ui/log_filter.h"
#include "cli/ui/look.h"
#include "cli/ui/table.h"
#include "cli/ui/times.h"
#include "tests/catch.h"

using namespace oc::cli;

TEST_CASE("a log that is cut anywhere shows as if it had not been cut") {
  std::string whole = "a\x1b[1;31mred\x1b[0m é 語 \r\nprogress 1\rprogress 2\n\x1b]0;t\x07 \x1b[2J \xff end\r";
  LogFilter at_once;
  auto expected = at_once.feed(whole);
  expected += at_once.finish();
  CHECK(expected == "ared é 語 \nprogress 1\nprogress 2\n\\x1b]0;t\\x07 \\x1b[2J \\xff end\n");
  for (size_t size = 1; size < whole.size(); ++size) {
    LogFilter filter;
    std::string shown;
    for (size_t i = 0; i < whole.size(); i += size) shown += filter.feed(std::string_view(whole).substr(i, size));
    CHECK(shown + filter.finish() == expected);
  }
}

TEST_CASE("a colour sequence without an end is not waited for") {
  LogFilter filter;
  auto shown = filter.feed("\x1b[" + std::string(100, '1'));
  CHECK(shown.size() > 90);
  LogFilter unfinished;
  CHECK(unfinished.feed("x\x1b[3") == "x");
  CHECK(unfinished.finish() == "\\x1b[3");
}

TEST_CASE("a table's columns line up, and its last one fits the terminal") {
  Table table({"A", "TITLE"});
  table.add({"語語", "one"});
  table.add({"x", "a title that is longer than the terminal"});
  table.add({"y", ""});
  Look look;
  CHECK(table.render(look) == "A     TITLE\n語語  one\nx     a title that is longer than the terminal\ny\n");
  look.terminal = true;
  look.width = 20;
  CHECK(table.render(look) == "A     TITLE\n語語  one\nx     a title that …\ny\n");
}

TEST_CASE("spans and times") {
  CHECK(span(0) == "0.0 s");
  CHECK(span(1949) == "1.9 s");
  CHECK(span(42'000) == "42 s");
  CHECK(span(192'000) == "3 min 12 s");
  CHECK(span(7'500'000) == "2 h 5 min");
  CHECK(span(273'600'000) == "3 d 4 h");
  CHECK(span(-5) == "0.0 s");
  CHECK(timestamp(0) == "1970-01-01T00:00:00.000Z");
}
