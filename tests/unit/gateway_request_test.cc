#include "gateway/request.h"

#include "gateway/answer.h"
#include "tests/catch.h"

using namespace oc::gateway;
using oc::hasText;
using std::string_literals::operator""s;

namespace {

Request good(const std::string& head) {
  auto parsed = parseRequest(head);
  if (auto malformed = std::get_if<Malformed>(&parsed)) FAIL(head << " is refused: " << malformed->why);
  return std::get<Request>(parsed);
}

// The status that a bad head is answered with; 0 for a good one.
int bad(const std::string& head) {
  auto parsed = parseRequest(head);
  auto malformed = std::get_if<Malformed>(&parsed);
  if (malformed) CHECK(malformed->why.size() > 5);
  return malformed ? malformed->status : 0;
}

std::string plain(const std::string& headers, const std::string& line = "GET http://host.test/x HTTP/1.1") {
  return line + "\r\n" + headers + "\r\n";
}

}  // namespace

TEST_CASE("a CONNECT names a host and a port") {
  auto request = good("CONNECT host.test:443 HTTP/1.1\r\nHost: host.test:443\r\nUser-Agent: x\r\n\r\n");
  CHECK(request.connect);
  CHECK(request.target.host == "host.test");
  CHECK(request.target.port == 443);
  CHECK(good("CONNECT [2001:db8::1]:443 HTTP/1.0\r\n\r\n").target.host == "2001:db8::1");
  CHECK(good("CONNECT host.test:443 HTTP/1.1\r\nHost: other\r\nContent-Length: 0\r\n\r\n").target.host == "host.test");
  for (auto line : {"CONNECT host.test HTTP/1.1",
                    "CONNECT http://host.test:443 HTTP/1.1",
                    "CONNECT /x HTTP/1.1",
                    "CONNECT u@host.test:443 HTTP/1.1",
                    "CONNECT host.test:443 HTTP/2.0",
                    "CONNECT host.test:443 HTTP/1.2",
                    "CONNECT host.test:443",
                    "CONNECT  host.test:443 HTTP/1.1",
                    "CONNECT host.test:443  HTTP/1.1",
                    "CONNECT\thost.test:443 HTTP/1.1",
                    " CONNECT host.test:443 HTTP/1.1",
                    "connect host.test:443 HTTP/1.1",
                    "CONNECT host.test:443 HTTP/1.1 ",
                    "CONNECT host.test:443 http/1.1",
                    "CONNECT host.test:443\tHTTP/1.1",
                    "CONNECT  HTTP/1.1",
                    "CONNECT HTTP/1.1",
                    "CONNECT host.test:443 extra HTTP/1.1",
                    "PRI * HTTP/2.0",
                    "SSH-2.0-x"}) {
    INFO(line);
    CHECK(bad(std::string(line) + "\r\n\r\n") == 400);
  }
  CHECK(bad("CONNECT host.test:443 HTTP/1.1\r\n") == 400);
  CHECK(bad("CONNECT host.test:443 HTTP/1.1\r\nHost: x\r\n") == 400);
}

TEST_CASE("a plain request goes on with our request line and Host, and without what concerns its own connection") {
  auto request = good(
      "GET http://Host.Test:80/a?b=c HTTP/1.1\r\nHost: host.test\r\nProxy-Connection: keep-alive\r\n"
      "Proxy-Authorization: Basic x\r\nConnection: keep-alive, X-Hop\r\nKeep-Alive: 5\r\nX-Hop: 1\r\nTE: trailers\r\n"
      "X-Kept: 2\r\nCookie: a=b\r\n\r\n");
  CHECK_FALSE(request.connect);
  CHECK(request.head ==
        "GET /a?b=c HTTP/1.1\r\nHost: host.test\r\nX-Kept: 2\r\nCookie: a=b\r\nConnection: close\r\n\r\n");
  CHECK(good("GET http://host.test HTTP/1.1\r\n\r\n").head ==
        "GET / HTTP/1.1\r\nHost: host.test\r\nConnection: close\r\n\r\n");
  CHECK_THAT(good("GET http://host.test?q HTTP/1.1\r\n\r\n").head, hasText("GET /?q HTTP/1.1"));
  CHECK_THAT(good("GET HTTP://host.test:8080/ HTTP/1.0\r\n\r\n").head,
             hasText("GET / HTTP/1.0\r\nHost: host.test:8080\r\n"));
  CHECK_THAT(good("GET http://[2001:db8::1]/ HTTP/1.1\r\n\r\n").head, hasText("Host: [2001:db8::1]\r\n"));
  // Nothing that frames the message can be dropped by naming it a header of the connection.
  auto framed = good(plain("Connection: Content-Length, Host\r\nContent-Length: 3\r\nHost: host.test\r\n",
                           "POST http://host.test/ HTTP/1.1"));
  CHECK_THAT(framed.head, hasText("Content-Length: 3\r\n"));
  CHECK_THAT(framed.head, hasText("Host: host.test\r\n"));
  CHECK(framed.body == Body::Length);
  CHECK(framed.bodyLength == 3);
}

TEST_CASE("the gateway is a proxy and nothing else") {
  for (auto line :
       {"GET / HTTP/1.1", "GET * HTTP/1.1", "OPTIONS * HTTP/1.1", "GET https://host.test/ HTTP/1.1",
        "GET ftp://host.test/ HTTP/1.1", "GET host.test/ HTTP/1.1", "GET //host.test/ HTTP/1.1",
        "GET http:/host.test/ HTTP/1.1", "GET http:///x HTTP/1.1", "GET http://u:p@host.test/ HTTP/1.1",
        "GET http://host.test@evil/ HTTP/1.1", "GET http://host.test#@evil/ HTTP/1.1",
        "GET http://evil\\@host.test/ HTTP/1.1", "GET http://host.test:0/ HTTP/1.1", "GET http://host.test:/ HTTP/1.1",
        "GET http://host.test/a b HTTP/1.1", "G@T http://host.test/ HTTP/1.1", "GET http://host.test/x#f HTTP/1.1",
        "GET http://*.test/ HTTP/1.1"}) {
    INFO(line);
    CHECK(bad(plain("", line)) == 400);
  }
}

TEST_CASE("a request that two readers could read differently is refused") {
  CHECK(bad(plain("Host: host.test\r\n")) == 0);
  CHECK(bad(plain("Host: HOST.test.:80\r\n")) == 0);
  for (auto& headers : {"Host: evil.test\r\n"s,
                        "Host: host.test:8080\r\n"s,
                        "Host: host.test\r\nHost: host.test\r\n"s,
                        "Host: \r\n"s,
                        "Host: host.test, evil.test\r\n"s,
                        "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"s,
                        "Content-Length: 3\r\nContent-Length: 3\r\n"s,
                        "Content-Length: 3\r\nContent-Length: 4\r\n"s,
                        "Content-Length: 3, 3\r\n"s,
                        "Content-Length: +3\r\n"s,
                        "Content-Length: -1\r\n"s,
                        "Content-Length: 0x3\r\n"s,
                        "Content-Length: 3 3\r\n"s,
                        "Content-Length:\r\n"s,
                        "Content-Length: 9999999999999999999\r\n"s,
                        "Transfer-Encoding: gzip, chunked\r\n"s,
                        "Transfer-Encoding: identity\r\n"s,
                        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"s,
                        "Transfer-Encoding: chunked, identity\r\n"s,
                        "Transfer-Encoding: xchunked\r\n"s,
                        "Transfer-Encoding: \x0b"
                        "chunked\r\n"s,
                        "Transfer-Encoding : chunked\r\n"s,
                        "X: a\r\n b\r\n"s,
                        " X: a\r\n"s,
                        "X: a\r\n\tb\r\n"s,
                        "X : a\r\n"s,
                        ": a\r\n"s,
                        "X\r\n"s,
                        "X: a\rb\r\n"s,
                        "X: a\nY: b\r\n"s,
                        "X: a\n\r\n"s,
                        "X: \0\r\n"s,
                        "X\0: a\r\n"s,
                        "X\x80: a\r\n"s,
                        "X: \x7F\r\n"s,
                        "(X): a\r\n"s,
                        "X: a\r\r\n"s}) {
    INFO(headers);
    CHECK(bad(plain(headers)) == 400);
  }
  CHECK(bad(plain("Transfer-Encoding: chunked\r\n", "POST http://host.test/ HTTP/1.0")) == 400);
  CHECK(bad(plain("Transfer-Encoding: Chunked\r\n", "POST http://host.test/ HTTP/1.1")) == 0);
  for (auto headers :
       {"Content-Length: 3\r\n", "Transfer-Encoding: chunked\r\n", "Content-Length: 0\r\nContent-Length: 0\r\n"}) {
    CHECK(bad(plain(headers, "CONNECT host.test:443 HTTP/1.1")) == 400);
  }
}

TEST_CASE("heads are bounded") {
  CHECK(bad(plain("X: " + std::string(8000, 'x') + "\r\n")) == 0);
  CHECK(bad(plain("X: " + std::string(mostHeadBytes, 'x') + "\r\n")) == 431);
  std::string many;
  for (size_t i = 0; i < mostHeaders; ++i) many += "X: y\r\n";
  CHECK(bad(plain(many)) == 0);
  CHECK(bad(plain(many + "X: y\r\n")) == 431);
  CHECK(isHopeless(std::string(mostHeadBytes + 1, 'x')));
}

TEST_CASE("a head that can't become good is not waited for") {
  for (auto& text : {"GET / HTTP/1.1\nHost"s, "\n"s, "\r\n"s, "CONNECT a\0b"s, "GET x\r\nA: b\n"s})
    CHECK(isHopeless(text));
  for (auto text : {"", "G", "CONNECT host.test:443 HTTP/1.1\r", "CONNECT host.test:443 HTTP/1.1\r\n",
                    "CONNECT host.test:443 HTTP/1.1\r\nA: b\r\n\r"}) {
    CHECK_FALSE(isHopeless(text));
    CHECK(headSize(text) == 0);
  }
  CHECK(headSize("A\r\n\r\nmore") == 5);
}

TEST_CASE("chunked bodies are followed to their very end, however they come apart") {
  std::string body = "5\r\nhello\r\nA\r\n0123456789\r\n0\r\n\r\n";
  for (size_t step : {1, 2, 3, 7, 100}) {
    ChunkedBody chunks;
    std::string stream = body + "GET http://evil/ HTTP/1.1\r\n\r\n", taken;
    for (size_t at = 0; at < stream.size(); at += step) {
      auto piece = stream.substr(at, step);
      auto n = chunks.take(piece);
      taken += piece.substr(0, n);
      if (n < piece.size()) break;
    }
    CHECK(chunks.ended());
    CHECK(taken == body);
  }
  for (auto text :
       {"5;ext=1\r\nhello\r\n", "5 \r\nhello", " 5\r\n", "0x5\r\nhello", "\r\n", "5\nhello", "5\r\nhelloX",
        "5\r\nhello\n", "g\r\n", "123456789\r\n", "0\r\nTrailer: x\r\n\r\n", "-1\r\n", "+5\r\n", "5\rhello"}) {
    INFO(text);
    ChunkedBody chunks;
    chunks.take(text);
    CHECK(chunks.broken());
  }
}

TEST_CASE("answers to plain requests say that the connection ends, and are otherwise the server's") {
  auto read = [](const std::string& stream, bool upgrade, size_t step, AnswerReader::State& state) {
    AnswerReader reader(upgrade);
    std::string out;
    state = AnswerReader::State::More;
    for (size_t at = 0; at < stream.size(); at += step) {
      if (state == AnswerReader::State::More) {
        state = reader.take(stream.substr(at, step), out);
      } else {
        out += stream.substr(at, step);
      }
    }
    return out;
  };
  AnswerReader::State state;
  for (size_t step : {1, 5, 1000}) {
    CHECK(read("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\nContent-Length: 2\r\n\r\nhi",
               false, step, state) == "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi");
    CHECK(state == AnswerReader::State::Plain);
    CHECK(
        read("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 204 No\r\n\r\n", false, step,
             state) ==
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 204 No\r\nConnection: close\r\n\r\n");
    CHECK(read("HTTP/1.0 200 OK\nA: b\n\nbody", false, step, state) ==
          "HTTP/1.0 200 OK\nA: b\nConnection: close\r\n\r\nbody");
    CHECK(read("no HTTP at all, but long enough\n\nmore", false, step, state) ==
          "no HTTP at all, but long enough\n\nmore");
    std::string switched =
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x05hello";
    CHECK(read(switched, true, step, state) == switched);
    CHECK(state == AnswerReader::State::Switched);
    read(switched, false, 1000, state);
    CHECK(state == AnswerReader::State::Unasked);
  }
}

TEST_CASE("a refusal is read by a person: what, why, and what to do") {
  auto text = refusalAnswer(403, "not_allowed", "host\x1b[31m.test:443", "Nothing allows it.", "Add it.");
  CHECK_THAT(text, hasText("HTTP/1.1 403 "));
  CHECK_THAT(text, hasText("X-Open-Conduit-Reason: not_allowed\r\n"));
  CHECK_THAT(text, hasText("Connection: close\r\n"));
  CHECK_THAT(text, hasText("Why: Nothing allows it."));
  CHECK_THAT(text, hasText("Fix: Add it."));
  CHECK_THAT(text, !hasText("\x1b"));
}
