// What the terminal UI shows and what its keys do, without a terminal: the command feeds it and carries its wishes out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "look.h"

namespace oc::cli {

enum class Key { None, Up, Down, PageUp, PageDown, First, Last, Enter, Back, Character };

struct RunLine {
  std::string id, work, binding, state, title;  // printable
  Tint tint = Tint::Plain;
  bool live = false;  // it can be stopped
};

struct ScreenLine {
  std::string text;  // printable, without escape sequences; not wider than was asked for
  Tint tint = Tint::Plain;
  bool marked = false;  // the chosen one
};

class Browser {
 public:
  enum class View { Runs, Run, Log };
  enum class Wish { Nothing, Quit, ShowRun, ShowLog, StopRun };

  // The runs, newest first. The chosen one stays chosen while it is there.
  void setRuns(std::vector<RunLine> runs);
  // What `runs get` says of the shown run.
  void setDetail(const std::string& text);
  // More of the shown run's log, filtered. At most the last 256 KiB are kept.
  void addLog(std::string_view text);
  // A line for the person, until the next key.
  void say(std::string text) { message = std::move(text); }
  // Why nothing new comes; empty: all is well.
  void setTrouble(std::string text) { trouble = std::move(text); }

  // `character` for Key::Character.
  Wish press(Key key, char character = 0);

  View view() const { return now; }
  // The chosen run's id, also of Run and Log; empty without one.
  std::string chosen() const;

  // Exactly `height` lines.
  std::vector<ScreenLine> render(size_t width, size_t height);

 private:
  Wish pressInRuns(Key key, char character);
  Wish pressInText(Key key, char character);
  Wish openLog();
  Wish askToStop();
  void move(long by);
  void scroll(long by);
  std::vector<ScreenLine> renderRuns(size_t width, size_t height);
  std::vector<ScreenLine> renderText(size_t width, size_t height);
  std::string footer() const;
  const RunLine* chosenRun() const;

  View now = View::Runs;
  std::vector<RunLine> runs;
  size_t index = 0, top = 0;
  size_t page = 10;  // lines of the list or text that were last shown
  std::string detail, log;
  long offset = 0;        // of the text's first line that is shown
  bool following = true;  // the log's end
  size_t textLines = 0;
  std::string stopping;  // the run that the person is asked about
  std::string message, trouble;
};

}  // namespace oc::cli
