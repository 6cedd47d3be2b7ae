#include "screen.h"

#include <curses.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>

#include <string>
#include <string_view>

#include "cli/failure.h"

namespace oc::cli {

namespace {

short pairOf(Tint tint) {
  switch (tint) {
    case Tint::Good: return 1;
    case Tint::Bad: return 2;
    case Tint::Caution: return 3;
    default: return 0;
  }
}

attr_t attributesOf(Tint tint) {
  if (tint == Tint::Bold) return A_BOLD;
  if (tint == Tint::Dim) return A_DIM;
  return A_NORMAL;
}

// Not by initscr, which prints words of its own and ends the program.
void openTerminal() {
  bool opened = newterm(nullptr, stdout, stdin) != nullptr;
  if (opened && tigetstr("cup") != nullptr) return;
  if (opened) endwin();
  const char* name = getenv("TERM");
  auto kind = name == nullptr || *name == 0 ? std::string("TERM is not set") : std::string("TERM is ") + name;
  throw wrongUsage("this terminal cannot be drawn on: " + kind,
                   "set TERM to what it is, such as xterm-256color; or: open-conduit runs list");
}

}  // namespace

Screen::Screen(bool colour) : colour(colour) {
  setlocale(LC_ALL, "");
  // What we draw is UTF-8, as all else that we print, and is told to ncurses alone.
  if (std::string_view(nl_langinfo(CODESET)) != "UTF-8") setlocale(LC_CTYPE, "C.UTF-8");
  openTerminal();
  cbreak();
  noecho();
  nonl();
  keypad(stdscr, TRUE);
  nodelay(stdscr, TRUE);
  set_escdelay(50);
  curs_set(0);
  if (!colour || !has_colors()) {
    this->colour = false;
    return;
  }
  start_color();
  use_default_colors();
  init_pair(1, COLOR_GREEN, -1);
  init_pair(2, COLOR_RED, -1);
  init_pair(3, COLOR_YELLOW, -1);
}

Screen::~Screen() { endwin(); }

size_t Screen::width() const { return getmaxx(stdscr); }
size_t Screen::height() const { return getmaxy(stdscr); }

void Screen::show(const std::vector<ScreenLine>& lines) {
  erase();
  for (size_t i = 0; i < lines.size(); ++i) {
    auto attributes = attributesOf(lines[i].tint) | (lines[i].marked ? A_REVERSE : A_NORMAL);
    if (colour) attributes |= COLOR_PAIR(pairOf(lines[i].tint));
    attrset(attributes);
    mvaddstr(static_cast<int>(i), 0, lines[i].text.c_str());
  }
  attrset(A_NORMAL);
  refresh();
}

Screen::Pressed Screen::read() {
  int code = getch();
  switch (code) {
    case ERR:
    case KEY_RESIZE: return {};
    case KEY_UP: return {Key::Up};
    case KEY_DOWN: return {Key::Down};
    case KEY_PPAGE: return {Key::PageUp};
    case KEY_NPAGE: return {Key::PageDown};
    case KEY_HOME: return {Key::First};
    case KEY_END: return {Key::Last};
    case KEY_ENTER:
    case '\r':
    case '\n': return {Key::Enter};
    case 27:
    case KEY_LEFT:
    case KEY_BACKSPACE: return {Key::Back};
    default: break;
  }
  if (code >= 32 && code < 127) return {Key::Character, static_cast<char>(code)};
  return {Key::Character, 0};  // a key that means nothing here
}

}  // namespace oc::cli
