// Requests that a proxy could read otherwise than whoever wrote its rules. Outside there is no proxy, and the machine's
// server is asked directly.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools.h"

namespace oc::battery {

namespace {

struct Proxy {
  std::string host, credentials;  // base64, or none
  long port = 0;
};

std::string base64(const std::string& text) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string result;
  for (size_t i = 0; i < text.size(); i += 3) {
    unsigned bits = 0;
    for (size_t k = 0; k < 3; ++k)
      bits = bits << 8 | (i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0);
    for (size_t k = 0; k < 4; ++k) result += i + k > text.size() ? '=' : digits[bits >> (18 - 6 * k) & 63];
  }
  return result;
}

// "http://user:password@host:port"; nothing where there is none.
bool findProxy(const char* variable, Proxy& proxy) {
  auto value = getenv(variable);
  if (value == nullptr) return false;
  std::string text = value;
  if (auto scheme = text.find("://"); scheme != std::string::npos) text = text.substr(scheme + 3);
  if (auto at = text.rfind('@'); at != std::string::npos) {
    proxy.credentials = text.substr(0, at);
    text = text.substr(at + 1);
  }
  auto colon = text.rfind(':');
  if (colon == std::string::npos) return false;
  proxy.host = text.substr(0, colon) == "localhost" ? "127.0.0.1" : text.substr(0, colon);
  proxy.port = strtol(text.c_str() + colon + 1, nullptr, 10);
  return true;
}

int dial(const std::string& host, long port) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  struct timeval limit = {1, 0};
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  if (fd >= 0 && connect(fd, reinterpret_cast<struct sockaddr*>(&address), sizeof(address)) == 0) return fd;
  int error = errno;
  if (fd >= 0) close(fd);
  errno = error;
  return -1;
}

bool say(int fd, const std::string& text) {
  return send(fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

class Conversation {
 public:
  explicit Conversation(const Targets& t) : t(t) {
    proxied = findProxy("HTTP_PROXY", proxy) || findProxy("http_proxy", proxy);
    fd = proxied ? dial(proxy.host, proxy.port) : dial("127.0.0.1", t.number("tcp"));
    error = fd < 0 ? errno : 0;
  }
  ~Conversation() {
    if (fd >= 0) close(fd);
  }

  // "\n" ends a line; the line of credentials comes behind the first.
  Result ask(const std::string& first, const std::string& more = "") {
    if (fd < 0) return held(error);
    auto login = proxy.credentials.empty() ? "" : "Proxy-Authorization: Basic " + base64(proxy.credentials) + "\r\n";
    if (!say(fd, first + "\r\n" + login + more + "\r\n")) return held(errno);
    return judgeAnswer(answerOf(fd, t, 1500));
  }
  Result askOnly(const std::string& bytes) {
    if (fd < 0) return held(error);
    if (!say(fd, bytes)) return held(errno);
    return judgeAnswer(answerOf(fd, t, 700));
  }
  Result judgeAnswer(const std::string& text) const {
    return text.find(t.marker()) != std::string::npos ? through() : held();
  }

  std::string login() const {
    return proxy.credentials.empty() ? "" : "Proxy-Authorization: Basic " + base64(proxy.credentials) + "\r\n";
  }
  int fd;

 private:
  const Targets& t;
  Proxy proxy;
  bool proxied = false;
  int error = 0;
};

std::string port(const Targets& t) { return t["tcp"]; }
std::string allowed(const Targets& t) { return t.has("allowed") ? t["allowed"] : "allowed.example.org"; }

Result plainTo(const Targets& t, const std::string& authority, const std::string& host = "") {
  Conversation with(t);
  return with.ask("GET http://" + authority + "/ HTTP/1.1",
                  "Host: " + (host.empty() ? authority : host) + "\r\nConnection: close\r\n");
}
Result tunnelTo(const Targets& t, const std::string& authority) {
  Conversation with(t);
  auto result = with.ask("CONNECT " + authority + " HTTP/1.1", "Host: " + authority + "\r\n");
  if (result.kind == Result::Kind::Through || with.fd < 0) return result;
  return with.askOnly("GET / HTTP/1.0\r\n\r\n");
}

Result plain(const Targets& t) { return plainTo(t, "127.0.0.1:" + port(t)); }
Result tunnel(const Targets& t) { return tunnelTo(t, "127.0.0.1:" + port(t)); }
Result tunnelToMachine(const Targets& t) {
  return t.has("address4") ? tunnelTo(t, t["address4"] + ":" + port(t)) : absent();
}
Result name(const Targets& t) { return tunnelTo(t, "localhost:" + port(t)); }
Result nameWithDot(const Targets& t) { return tunnelTo(t, "localhost.:" + port(t)); }
Result mapped(const Targets& t) { return tunnelTo(t, "[::ffff:127.0.0.1]:" + port(t)); }
Result loopback6(const Targets& t) { return t.has("tcp6") ? tunnelTo(t, "[::1]:" + t["tcp6"]) : absent(); }
Result anyAddress(const Targets& t) { return tunnelTo(t, "0.0.0.0:" + port(t)); }

Result firstOf(const Targets& t, const std::vector<std::string>& authorities) {
  Result last = held();
  for (auto& authority : authorities) {
    last = tunnelTo(t, authority + ":" + port(t));
    if (last.kind == Result::Kind::Through) return last;
  }
  return last;
}
Result asNumber(const Targets& t) { return firstOf(t, {"2130706433"}); }
Result asHexOrOctal(const Targets& t) { return firstOf(t, {"0x7f000001", "0177.0.0.1", "0x7f.0.0.1"}); }
Result asShort(const Targets& t) { return firstOf(t, {"127.1", "127.0.1"}); }
Result percent(const Targets& t) { return firstOf(t, {"127%2e0%2e0%2e1", "%31%32%37.0.0.1"}); }

Result userinfo(const Targets& t) { return plainTo(t, allowed(t) + "@127.0.0.1:" + port(t), allowed(t)); }
Result backslash(const Targets& t) { return plainTo(t, "127.0.0.1:" + port(t) + "\\@" + allowed(t), allowed(t)); }
Result fragment(const Targets& t) { return plainTo(t, "127.0.0.1:" + port(t) + "#@" + allowed(t), allowed(t)); }
Result otherHost(const Targets& t) { return plainTo(t, "127.0.0.1:" + port(t), allowed(t)); }
Result twoHosts(const Targets& t) {
  Conversation with(t);
  return with.ask("GET / HTTP/1.1", "Host: " + allowed(t) + "\r\nHost: 127.0.0.1:" + port(t) + "\r\n");
}
Result originForm(const Targets& t) {
  Conversation with(t);
  return with.ask("GET / HTTP/1.1", "Host: 127.0.0.1:" + port(t) + "\r\nConnection: close\r\n");
}
Result secondRequest(const Targets& t) {
  Conversation with(t);
  if (with.fd < 0) return with.askOnly("");
  auto target = "127.0.0.1:" + port(t);
  return with.askOnly("GET http://" + allowed(t) + "/ HTTP/1.1\r\nHost: " + allowed(t) + "\r\n" + with.login() +
                      "\r\nGET http://" + target + "/ HTTP/1.1\r\nHost: " + target + "\r\n" + with.login() + "\r\n");
}
Result twoLengths(const Targets& t) {
  Conversation with(t);
  auto target = "127.0.0.1:" + port(t);
  auto inner = "GET http://" + target + "/ HTTP/1.1\r\nHost: " + target + "\r\n" + with.login() + "\r\n";
  return with.ask("POST http://" + allowed(t) + "/ HTTP/1.1",
                  "Host: " + allowed(t) + "\r\nContent-Length: " + std::to_string(inner.size() + 5) +
                      "\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + inner);
}
Result behindRefusal(const Targets& t) {
  Conversation with(t);
  auto target = "127.0.0.1:" + port(t);
  return with.askOnly("CONNECT refused.example.org:443 HTTP/1.1\r\nHost: refused.example.org:443\r\n" + with.login() +
                      "\r\nCONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n" + with.login() +
                      "\r\nGET / HTTP/1.0\r\n\r\n");
}
Result lineInTarget(const Targets& t) {
  Conversation with(t);
  auto target = "127.0.0.1:" + port(t);
  return with.ask("CONNECT " + allowed(t) + ":443\r\nHost: x\r\n\r\nCONNECT " + target + " HTTP/1.1",
                  "Host: " + target + "\r\n");
}
Result bareLines(const Targets& t) {
  Conversation with(t);
  auto target = "127.0.0.1:" + port(t);
  return with.askOnly("GET http://" + target + "/ HTTP/1.1\nHost: " + target + "\n" + with.login() + "\n");
}
Result foldedHost(const Targets& t) {
  Conversation with(t);
  return with.ask("GET / HTTP/1.1", "Host: " + allowed(t) + "\r\n 127.0.0.1:" + port(t) + "\r\n");
}
Result upgrade(const Targets& t) {
  Conversation with(t);
  auto target = "127.0.0.1:" + port(t);
  return with.ask(
      "GET http://" + target + "/ HTTP/1.1",
      "Host: " + target +
          "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "
          "AAAAAAAAAAAAAAAAAAAAAA==\r\n");
}
Result secureScheme(const Targets& t) {
  Conversation with(t);
  auto target = "127.0.0.1:" + port(t);
  return with.ask("GET https://" + target + "/ HTTP/1.1", "Host: " + target + "\r\n");
}
Result nul(const Targets& t) {
  Conversation with(t);
  auto target = "127.0.0.1" + std::string(1, '\0') + "." + allowed(t) + ":" + port(t);
  return with.ask("CONNECT " + target + " HTTP/1.1", "Host: " + target + "\r\n");
}

// ---- SOCKS, where srt offers it

Result socks(const Targets& t, const std::string& greeting, const std::string& request) {
  Proxy proxy;
  bool proxied = findProxy("ALL_PROXY", proxy) || findProxy("all_proxy", proxy);
  bool outside = getenv("HTTP_PROXY") == nullptr && getenv("http_proxy") == nullptr;
  if (!proxied && !outside) return absent();
  File socket(proxied ? dial(proxy.host, proxy.port) : dial("127.0.0.1", t.number("tcp")));
  if (!socket) return held(errno);
  if (!greeting.empty()) {
    if (!say(socket.get(), greeting)) return held(errno);
    auto answer = answerOf(socket.get(), t, 500);
    if (answer.find(t.marker()) != std::string::npos) return through();
    if (answer.size() == 2 && answer[1] == 2) {
      auto colon = proxy.credentials.find(':');
      auto user = proxy.credentials.substr(0, colon), password = proxy.credentials.substr(colon + 1);
      say(socket.get(),
          std::string(1, 1) + static_cast<char>(user.size()) + user + static_cast<char>(password.size()) + password);
      answerOf(socket.get(), t, 500);
    }
  }
  say(socket.get(), request);
  auto answer = answerOf(socket.get(), t, 500);
  say(socket.get(), "GET / HTTP/1.0\r\n\r\n");
  answer += answerOf(socket.get(), t, 500);
  return answer.find(t.marker()) != std::string::npos ? through() : held();
}

std::string twoBytes(long value) { return {static_cast<char>(value >> 8), static_cast<char>(value & 255)}; }
const std::string greeting("\5\2\0\2", 4);

Result socksAddress(const Targets& t) {
  return socks(t, greeting, std::string("\5\1\0\1\x7f\0\0\1", 8) + twoBytes(t.number("tcp")));
}
Result socksName(const Targets& t) {
  return socks(t, greeting, std::string("\5\1\0\3\x9", 5) + "localhost" + twoBytes(t.number("tcp")));
}
Result socksDatagrams(const Targets& t) {
  return socks(t, greeting, std::string("\5\3\0\1\x7f\0\0\1", 8) + twoBytes(t.number("udp")));
}
Result olderSocks(const Targets& t) {
  return socks(t, "", std::string("\4\1", 2) + twoBytes(t.number("tcp")) + std::string("\x7f\0\0\1\0", 5));
}

}  // namespace

std::vector<Attack> proxyAttacks() {
  return {
      {"ask the proxy for an address", "proxy", plain},
      {"a tunnel to an address", "proxy", tunnel},
      {"a tunnel to the machine's own address", "proxy", tunnelToMachine},
      {"a tunnel to localhost", "proxy", name},
      {"a tunnel to localhost with a dot", "proxy", nameWithDot},
      {"a tunnel to a mapped address", "proxy", mapped},
      {"a tunnel to ::1", "proxy", loopback6},
      {"a tunnel to 0.0.0.0", "proxy", anyAddress},
      {"an address as one number", "proxy", asNumber},
      {"an address in hexadecimal or octal", "proxy", asHexOrOctal},
      {"an address with parts left out", "proxy", asShort},
      {"an address in percent signs", "proxy", percent},
      {"an allowed name as user", "proxy", userinfo},
      {"a backslash before an allowed name", "proxy", backslash},
      {"an allowed name behind a fragment", "proxy", fragment},
      {"an allowed name as Host", "proxy", otherHost},
      {"two Hosts", "proxy", twoHosts},
      {"a folded Host", "proxy", foldedHost},
      {"a request in origin form", "proxy", originForm},
      {"a second request on the connection", "proxy", secondRequest},
      {"a request within two lengths", "proxy", twoLengths},
      {"a tunnel behind a refused one", "proxy", behindRefusal},
      {"lines in the target", "proxy", lineInTarget},
      {"bare line feeds", "proxy", bareLines},
      {"a NUL in the target", "proxy", nul},
      {"a WebSocket", "proxy", upgrade},
      {"https in a plain request", "proxy", secureScheme},
      {"SOCKS to an address", "proxy", socksAddress},
      {"SOCKS to a name", "proxy", socksName},
      {"SOCKS for datagrams", "proxy", socksDatagrams},
      {"SOCKS 4", "proxy", olderSocks},
  };
}

}  // namespace oc::battery
