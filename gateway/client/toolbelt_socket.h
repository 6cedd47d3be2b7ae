// The connection to a run's toolbelt, for programs without an event loop.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace oc::client {

// For a person, in a sentence.
struct Trouble : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class ToolbeltSocket {
 public:
  // Connects and says hello. Throws Trouble.
  explicit ToolbeltSocket(const std::string& channel);
  ~ToolbeltSocket();
  ToolbeltSocket(const ToolbeltSocket&) = delete;
  ToolbeltSocket& operator=(const ToolbeltSocket&) = delete;

  int fd() const { return socket; }
  void writeLine(const std::string& line);
  // Without its end; throws Trouble when the other side is gone before, or for a line of more than 8 MiB.
  std::string readLine();

 private:
  int socket;
};

// All of it, whatever a signal does. False when the other side is gone.
bool writeAll(int fd, std::string_view bytes);

// What a line {"error": {"reason", "what", "fix"}} says, as a sentence; empty for any other line.
std::string refusalIn(const std::string& line);

}  // namespace oc::client
