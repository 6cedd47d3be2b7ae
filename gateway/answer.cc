#include "answer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace oc::gateway {

namespace {

// A server that says more than this before its body, 1xx included, is passed through as it is: until then what it says
// is read without asking whether the client takes it.
constexpr size_t mostAnswerHead = 64 << 10;

std::string_view phraseOf(int status) {
  switch (status) {
    case 400: return "Bad Request";
    case 403: return "Forbidden by Open Conduit's network policy";
    case 408: return "Request Timeout";
    case 431: return "Request Header Fields Too Large";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
  }
  return "Refused";
}

bool sameWord(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return (x | 0x20) == (y | 0x20); });
}

// Where a head ends: servers that end their lines with LF alone are understood, too. 0: not yet.
size_t answerHeadSize(std::string_view text) {
  auto crlf = text.find("\n\r\n"), lf = text.find("\n\n");
  if (crlf == std::string_view::npos && lf == std::string_view::npos) return 0;
  return lf < crlf ? lf + 2 : crlf + 3;
}

// Of "HTTP/1.x NNN …"; 0 when it isn't that.
int statusOf(std::string_view head) {
  if (head.size() < 12 || !head.starts_with("HTTP/1.") || head[8] != ' ') return 0;
  int status = 0;
  for (char c : head.substr(9, 3)) {
    if (c < '0' || c > '9') return 0;
    status = status * 10 + (c - '0');
  }
  return status;
}

// Without what concerns the server's connection, which isn't the client's.
std::string withClose(std::string_view head) {
  std::string result;
  bool dropped = false;
  while (!head.empty()) {
    auto line = head.substr(0, std::min(head.find('\n') + 1, head.size()));
    head.remove_prefix(line.size());
    if (line == "\r\n" || line == "\n") break;
    auto name = line.substr(0, std::min(line.find(':'), line.size()));
    bool goesOn = line.front() == ' ' || line.front() == '\t';
    dropped = goesOn
                  ? dropped
                  : sameWord(name, "connection") || sameWord(name, "keep-alive") || sameWord(name, "proxy-connection");
    if (!dropped) result += line;
  }
  return result + "Connection: close\r\n\r\n";
}

}  // namespace

const std::string_view connectedAnswer = "HTTP/1.1 200 Connection established\r\n\r\n";

std::string refusalAnswer(int status, std::string_view reason, std::string_view what, std::string_view why,
                          std::string_view fix) {
  auto body = fmt::format("Open Conduit's gateway refused {}.\n\nWhy: {}\n", printable(what), printable(why));
  if (!fix.empty()) body += fmt::format("Fix: {}\n", printable(fix));
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n"
      "X-Open-Conduit-Reason: {}\r\nConnection: close\r\n\r\n{}",
      status, phraseOf(status), body.size(), reason, body);
}

AnswerReader::State AnswerReader::take(std::string_view bytes, std::string& out) {
  waiting += bytes;
  said += bytes.size();
  for (;;) {
    auto size = answerHeadSize(waiting);
    bool odd = (size != 0 || waiting.size() >= 12) && statusOf(waiting) == 0;
    if (size == 0 && !odd && said <= mostAnswerHead) return State::More;
    if (size == 0 || odd) {
      end(out);
      return State::Plain;
    }
    int status = statusOf(waiting);
    if (status == 101 && !upgradeAsked) return State::Unasked;
    bool last = status >= 200 || status == 101;
    out += status >= 200 ? withClose(std::string_view(waiting).substr(0, size)) : waiting.substr(0, size);
    waiting.erase(0, size);
    if (!last) continue;
    end(out);
    return status == 101 ? State::Switched : State::Plain;
  }
}

void AnswerReader::end(std::string& out) {
  out += waiting;
  waiting = std::string();
}

}  // namespace oc::gateway
