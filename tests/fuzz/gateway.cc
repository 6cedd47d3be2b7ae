// What an agent may send to the gateway, and what a policy may hold: whatever the bytes are, what comes out has to keep
// to the rules below. Built with clang's libFuzzer by tests/fuzz/run.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "base/host_pattern.h"
#include "gateway/answer.h"
#include "gateway/policy.h"
#include "gateway/request.h"

using namespace oc::gateway;

namespace {

void require(bool holds, const char* rule) {
  if (holds) return;
  fprintf(stderr, "broken: %s\n", rule);
  abort();
}

const Policy& policy() {
  static const Policy made = [] {
    Policy::Parts parts;
    std::string why;
    for (auto text : {"allowed.test", "port.test:443", "*.under.test", "198.51.100.10", "[2001:db8::1]:443"}) {
      parts.allow.push_back(*oc::parseHostPattern(text, why));
    }
    return Policy(std::move(parts));
  }();
  return made;
}

size_t count(std::string_view text, std::string_view part) {
  size_t found = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// By other means than the policy's: what may be dialed is one of these.
void checkTarget(const Target& target) {
  auto& host = target.host;
  require(target.port != 0, "a target has a port");
  require(!host.empty() && host.size() <= 253, "a target's host is bounded");
  require(host.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_.:") == host.npos,
          "a target's host is a name or an address");
  std::string why;
  auto again = parseTarget(target.toString(), 0, why);
  require(again && again->host == host && again->port == target.port, "a target reads the same when it is read again");
  if (!policy().decide(target).allowed) return;
  bool known = host == "allowed.test" || (host == "port.test" && target.port == 443) || host.ends_with(".under.test") ||
               host == "198.51.100.10" || (host == "2001:db8::1" && target.port == 443);
  require(known, "what is allowed is listed");
}

void checkRequest(std::string_view text) {
  auto size = headSize(text);
  auto parsed = parseRequest(size ? text.substr(0, size) : text);
  auto request = std::get_if<Request>(&parsed);
  if (request == nullptr) return;
  require(size != 0, "what has no end is no request");
  checkTarget(request->target);
  if (request->connect) return require(request->head.empty(), "a CONNECT goes nowhere");
  auto& head = request->head;
  require(head.ends_with("\r\n\r\n") && count(head, "\r\n\r\n") == 1, "one head comes out");
  require(count(head, "\n") == count(head, "\r\n") && count(head, "\r") == count(head, "\r\n"),
          "its lines end with CR LF");
  require(head.find('\0') == head.npos, "it has no NUL");
  auto lower = head;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; });
  require(count(lower, "\r\nhost:") == 1, "it has one Host");
  require(count(lower, "\r\ncontent-length:") + count(lower, "\r\ntransfer-encoding:") <= 1,
          "it gives its length once");
  require(count(lower, "\r\nconnection:") == 1, "it says one thing of its connection");
  require(head.find(' ') < head.find("\r\n") && head[head.find(' ') + 1] == '/', "it asks for a path");
}

void checkPattern(std::string_view text) {
  std::string why;
  auto pattern = oc::parseHostPattern(text, why);
  if (!pattern) return require(!why.empty(), "a refusal says why");
  auto again = oc::parseHostPattern(pattern->toString(), why);
  require(again && *again == *pattern, "a pattern reads the same when it is read again");
  uint16_t port = pattern->port.value_or(443);
  require(pattern->matches(pattern->host, port) == !pattern->subdomains,
          "a pattern matches its host, or what is under it");
  require(pattern->matches("a." + pattern->host, port) <= pattern->subdomains,
          "only *.domain matches what is under it");
}

void checkChunks(std::string_view text) {
  ChunkedBody whole, pieces;
  auto taken = whole.take(text);
  size_t inPieces = 0;
  for (size_t i = 0; i < text.size() && !pieces.ended() && !pieces.broken(); ++i)
    inPieces += pieces.take(text.substr(i, 1));
  require(taken == inPieces && whole.ended() == pieces.ended() && whole.broken() == pieces.broken(),
          "a body reads the same in pieces");
}

void checkAnswer(std::string_view text) {
  AnswerReader whole(true), pieces(true);
  std::string one, many;
  auto state = whole.take(text, one);
  auto other = AnswerReader::State::More;
  size_t i = 0;
  for (; i < text.size() && other == AnswerReader::State::More; ++i) other = pieces.take(text.substr(i, 1), many);
  many += text.substr(i);
  if (state == other && state != AnswerReader::State::More) require(one == many, "an answer reads the same in pieces");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  checkRequest(text);
  checkPattern(text);
  checkChunks(text);
  checkAnswer(text);
  std::string why;
  if (auto target = parseTarget(text, 80, why)) checkTarget(*target);
  return 0;
}
