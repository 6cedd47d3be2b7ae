#include "browser.h"

#include <fmt/format.h>

#include <algorithm>

namespace oc::cli {

namespace {

constexpr size_t mostLog = 256u << 10;

std::vector<std::string> linesOf(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    auto end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

// A log's lines are longer than a terminal is wide: none of it is left out.
std::vector<std::string> folded(const std::string& text, size_t width) {
  std::vector<std::string> result;
  for (auto& whole : linesOf(text)) {
    auto rest = whole;
    while (width > 0 && columnsOf(rest) > width) {
      size_t take = 0;
      // By characters: a byte that continues one is not a place to cut.
      for (size_t next = 1; next <= rest.size(); ++next) {
        bool boundary = next == rest.size() || (rest[next] & 0xc0) != 0x80;
        if (!boundary) continue;
        if (columnsOf(std::string_view(rest).substr(0, next)) > width) break;
        take = next;
      }
      if (take == 0) break;
      result.push_back(rest.substr(0, take));
      rest = rest.substr(take);
    }
    result.push_back(rest);
  }
  return result;
}

}  // namespace

void Browser::setRuns(std::vector<RunLine> newRuns) {
  auto keep = chosen();
  runs = std::move(newRuns);
  auto found = std::find_if(runs.begin(), runs.end(), [&keep](auto& run) { return run.id == keep; });
  if (found != runs.end()) index = found - runs.begin();
  if (index >= runs.size()) index = runs.empty() ? 0 : runs.size() - 1;
}

void Browser::setDetail(const std::string& text) { detail = text; }

void Browser::addLog(std::string_view text) {
  log += text;
  if (log.size() <= mostLog) return;
  auto cut = log.find('\n', log.size() - mostLog);
  log.erase(0, cut == std::string::npos ? log.size() - mostLog : cut + 1);
}

std::string Browser::chosen() const { return index < runs.size() ? runs[index].id : ""; }

const RunLine* Browser::chosenRun() const { return index < runs.size() ? &runs[index] : nullptr; }

// ---- keys

Browser::Wish Browser::press(Key key, char character) {
  message.clear();
  if (!stopping.empty()) {
    bool yes = key == Key::Character && (character == 'y' || character == 'Y') && stopping == chosen();
    stopping.clear();
    return yes ? Wish::StopRun : Wish::Nothing;
  }
  return now == View::Runs ? pressInRuns(key, character) : pressInText(key, character);
}

Browser::Wish Browser::pressInRuns(Key key, char character) {
  switch (key) {
    case Key::Up: move(-1); break;
    case Key::Down: move(1); break;
    case Key::PageUp: move(-static_cast<long>(page)); break;
    case Key::PageDown: move(static_cast<long>(page)); break;
    case Key::First: index = 0; break;
    case Key::Last: index = runs.empty() ? 0 : runs.size() - 1; break;
    case Key::Enter:
      if (runs.empty()) break;
      now = View::Run;
      detail.clear();
      offset = 0;
      return Wish::ShowRun;
    case Key::Back: return Wish::Nothing;
    case Key::Character:
      if (character == 'q') return Wish::Quit;
      if (character == 'k') move(-1);
      if (character == 'j') move(1);
      if (character == 's') return askToStop();
      if (character == 'l' && !runs.empty()) return openLog();
      break;
    case Key::None: break;
  }
  return Wish::Nothing;
}

Browser::Wish Browser::pressInText(Key key, char character) {
  switch (key) {
    case Key::Up: scroll(-1); break;
    case Key::Down: scroll(1); break;
    case Key::PageUp: scroll(-static_cast<long>(page)); break;
    case Key::PageDown: scroll(static_cast<long>(page)); break;
    case Key::First: scroll(-static_cast<long>(textLines)); break;
    case Key::Last: scroll(static_cast<long>(textLines)); break;
    case Key::Back: now = View::Runs; break;
    case Key::Character:
      if (character == 'q' || character == 'h') now = View::Runs;
      if (character == 'k') scroll(-1);
      if (character == 'j') scroll(1);
      if (character == 's') return askToStop();
      if (character == 'l' && now == View::Run) return openLog();
      break;
    case Key::Enter:
    case Key::None: break;
  }
  return Wish::Nothing;
}

Browser::Wish Browser::openLog() {
  now = View::Log;
  log.clear();
  offset = 0;
  following = true;
  return Wish::ShowLog;
}

Browser::Wish Browser::askToStop() {
  auto* run = chosenRun();
  if (run == nullptr) return Wish::Nothing;
  if (!run->live) {
    message = run->id + " has ended";
    return Wish::Nothing;
  }
  stopping = run->id;
  return Wish::Nothing;
}

void Browser::move(long by) {
  if (runs.empty()) return;
  long last = static_cast<long>(runs.size()) - 1;
  index = std::clamp(static_cast<long>(index) + by, 0l, last);
}

void Browser::scroll(long by) {
  long last = std::max(0l, static_cast<long>(textLines) - static_cast<long>(page));
  offset = std::clamp(offset + by, 0l, last);
  following = offset == last;
}

// ---- what is seen

std::vector<ScreenLine> Browser::render(size_t width, size_t height) {
  if (height < 3) return std::vector<ScreenLine>(height, ScreenLine{fitted("too small", width)});
  page = height - 2;
  auto lines = now == View::Runs ? renderRuns(width, page) : renderText(width, page);
  lines.resize(page);
  auto title = now == View::Runs ? fmt::format(" open-conduit   {} {}", runs.size(), runs.size() == 1 ? "run" : "runs")
                                 : fmt::format(" {}   {}", chosen(), now == View::Run ? "run" : "log");
  if (!trouble.empty()) title += "   " + trouble;
  lines.insert(lines.begin(), {fitted(title, width), trouble.empty() ? Tint::Bold : Tint::Bad});
  lines.push_back({fitted(" " + footer(), width), stopping.empty() ? Tint::Dim : Tint::Caution});
  return lines;
}

std::string Browser::footer() const {
  if (!stopping.empty()) return "stop " + stopping + "? y stops it, any other key does not";
  if (!message.empty()) return message;
  if (now == View::Runs) return "↑↓ choose   enter details   l log   s stop   q quit";
  return now == View::Run ? "↑↓ scroll   l log   s stop   esc back" : "↑↓ scroll   end follows   s stop   esc back";
}

std::vector<ScreenLine> Browser::renderRuns(size_t width, size_t height) {
  if (runs.empty()) {
    return {{fitted(" no runs yet; make one: open-conduit work new --binding SCOPE/BINDING", width), Tint::Dim}};
  }
  if (index < top) top = index;
  if (index >= top + height) top = index - height + 1;
  size_t ids = 0, bindings = 0, states = 0;
  for (size_t i = top; i < runs.size() && i < top + height; ++i) {
    ids = std::max(ids, columnsOf(runs[i].id));
    bindings = std::max(bindings, columnsOf(runs[i].binding));
    states = std::max(states, columnsOf(runs[i].state));
  }
  std::vector<ScreenLine> lines;
  for (size_t i = top; i < runs.size() && i < top + height; ++i) {
    auto& run = runs[i];
    auto text = " " + padded(run.id, ids) + "  " + padded(run.binding, bindings) + "  " + padded(run.state, states) +
                "  " + run.title;
    lines.push_back({padded(fitted(text, width), width), run.tint, i == index});
  }
  return lines;
}

std::vector<ScreenLine> Browser::renderText(size_t width, size_t height) {
  auto lines = folded(now == View::Run ? detail : log, width > 1 ? width - 1 : width);
  textLines = lines.size();
  long last = std::max(0l, static_cast<long>(lines.size()) - static_cast<long>(height));
  if (now == View::Log && following) offset = last;
  offset = std::clamp(offset, 0l, last);
  std::vector<ScreenLine> shown;
  for (size_t i = offset; i < lines.size() && shown.size() < height; ++i) shown.push_back({" " + lines[i]});
  return shown;
}

}  // namespace oc::cli
