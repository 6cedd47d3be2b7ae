// An agent's output on a person's terminal.
#pragma once

#include <string>
#include <string_view>

namespace oc::cli {

// Takes a log in pieces, wherever they were cut, and gives text that cannot drive a terminal: colour sequences are left
// out, carriage returns become line ends, and everything else that is not text is made visible.
class LogFilter {
 public:
  std::string feed(std::string_view bytes);
  // What was held back because more might have come.
  std::string finish();

 private:
  std::string convert(bool last);

  std::string pending;
};

}  // namespace oc::cli
