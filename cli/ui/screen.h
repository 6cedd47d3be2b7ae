// The terminal, full screen, by ncurses: which is compiled in one file and knows nothing of what it shows.
#pragma once

#include <vector>

#include "browser.h"

namespace oc::cli {

// While it lives, the terminal is ours; it is as before when it goes, also on a signal that ends the program.
class Screen {
 public:
  // `colour` as the person wants it.
  explicit Screen(bool colour);
  ~Screen();
  Screen(const Screen&) = delete;

  size_t width() const;
  size_t height() const;
  void show(const std::vector<ScreenLine>& lines);

  struct Pressed {
    Key key = Key::None;
    char character = 0;
  };
  // The next key that is waiting; Key::None when none is.
  Pressed read();

 private:
  bool colour;
};

}  // namespace oc::cli
