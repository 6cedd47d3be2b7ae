// Rows under headings, aligned.
#pragma once

#include <string>
#include <vector>

#include "look.h"

namespace oc::cli {

struct Cell {
  Cell(std::string text, Tint tint = Tint::Plain) : text(std::move(text)), tint(tint) {}
  Cell(const char* text) : text(text) {}
  std::string text;  // made one printable line when it is shown
  Tint tint = Tint::Plain;
};

class Table {
 public:
  explicit Table(std::vector<std::string> headings) : headings(std::move(headings)) {}
  void add(std::vector<Cell> cells) { rows.push_back(std::move(cells)); }
  bool empty() const { return rows.empty(); }
  // With the headings. On a terminal the last column is cut to its width. Each line is behind `indent` blanks.
  std::string render(const Look& look, size_t indent = 0) const;

 private:
  std::vector<std::string> headings;
  std::vector<std::vector<Cell>> rows;
};

}  // namespace oc::cli
