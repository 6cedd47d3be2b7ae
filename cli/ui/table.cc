#include "table.h"

#include <algorithm>

namespace oc::cli {

namespace {

constexpr size_t gap = 2;
// A terminal may be so narrow that nothing would be left for the last column.
constexpr size_t leastForLast = 8;

}  // namespace

std::string Table::render(const Look& look, size_t indent) const {
  std::vector<std::vector<Cell>> lines;
  lines.emplace_back();
  for (auto& heading : headings) lines.back().emplace_back(heading, Tint::Dim);
  for (auto& row : rows) {
    lines.push_back(row);
    for (auto& cell : lines.back()) cell.text = line(cell.text);
  }

  size_t last = headings.size() - 1;
  std::vector<size_t> widths(headings.size(), 0);
  for (auto& cells : lines) {
    for (size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], columnsOf(cells[i].text));
  }
  size_t before = indent;
  for (size_t i = 0; i < last; ++i) before += widths[i] + gap;
  size_t room = look.terminal ? std::max(look.width > before ? look.width - before : 0, leastForLast) : SIZE_MAX;

  std::string result;
  for (auto& cells : lines) {
    std::string text(indent, ' ');
    size_t pending = 0;  // blanks, written only before something: no line ends with them
    for (size_t i = 0; i < cells.size(); ++i) {
      auto shown = i == last ? fitted(cells[i].text, room) : cells[i].text;
      if (!shown.empty()) text += std::string(pending, ' ') + tinted(look, cells[i].tint, shown);
      if (!shown.empty()) pending = 0;
      pending += widths[i] + gap - std::min(widths[i], columnsOf(shown));
    }
    result += text + "\n";
  }
  return result;
}

}  // namespace oc::cli
