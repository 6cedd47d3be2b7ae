// What the proxy itself says to a client, and what it makes of a server's head.
#pragma once

#include <string>
#include <string_view>

#include "policy.h"

namespace oc::gateway {

// A whole answer that ends the connection: a status, and a text in which a person reads what was refused, why, and what
// to do about it.
std::string refusalAnswer(int status, std::string_view reason, std::string_view what, std::string_view why,
                          std::string_view fix);

// To a CONNECT whose connection stands.
extern const std::string_view connectedAnswer;

// Reads a server's heads of a plain request's answer, as they come.
class AnswerReader {
 public:
  explicit AnswerReader(bool upgradeAsked) : upgradeAsked(upgradeAsked) {}

  enum class State {
    More,      // the head isn't complete yet
    Plain,     // the rest is the body, up to the end of the stream
    Switched,  // 101: the rest is the other protocol, both ways
    Unasked,   // 101 that nobody asked for
  };
  // Takes what came. What is to be sent to the client is appended to `out`: 1xx as they are, the last head with
  // "Connection: close", since that is what will happen, and all that came after it.
  State take(std::string_view bytes, std::string& out);
  // The stream has ended within a head: what there is goes out as it is.
  void end(std::string& out);

 private:
  bool upgradeAsked;
  std::string waiting;
  size_t said = 0;  // by the server so far
};

}  // namespace oc::gateway
