#include "probe.h"

#include <errno.h>
#include <fmt/format.h>
#include <kj/io.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>

#include <charconv>
#include <cstring>

#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "gateway/policy.h"
#include "gateway/resolver.h"

namespace oc::gateway {

namespace {

constexpr const char* help =
    "open-conduit-toolbelt probe [--host ADDRESS:PORT]… [--name NAME]… [--proxy PORT=HOST:PORT]… [--timeout-ms N]\n"
    "                            [--judge closed]\n"
    "\n"
    "Tries a TCP connection to each ADDRESS, looks each NAME up with the container's own name servers, and asks the proxy\n"
    "at 127.0.0.1:PORT for each HOST:PORT. Prints what came of it as one line of JSON. Each has N milliseconds (3000).\n"
    "\n"
    "With --judge closed the exit code says whether the container is closed: 0, or 64 and 1 for an ADDRESS that could be\n"
    "reached, 2 for a NAME that was found, 4 for a HOST:PORT that the proxy did not refuse with 403.\n"
    "\n"
    "Exit codes: 0 everything was tried, whatever came of it; 125 wrong arguments or an error of our own.\n";

// The gateway says less.
constexpr size_t mostHead = 16 << 10;

struct ProxyQuestion {
  uint16_t port;
  std::string target;
};

struct Options {
  std::vector<Target> hosts;
  std::vector<std::string> names;
  std::vector<ProxyQuestion> proxies;
  int timeout = 3000;
  bool judge = false;
  bool help = false;
};

template <typename Number>
Number readNumber(std::string_view text, const std::string& whole) {
  Number number = 0;
  auto end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || number == 0)
    fail(fmt::format("probe: {} has no number where one is needed", whole));
  return number;
}

Options readOptions(const Arguments& arguments) {
  Options options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    auto& word = arguments[i];
    if (word == "--help") return options.help = true, options;
    if (i + 1 == arguments.size()) fail(fmt::format("probe: {} is no option with a value; see probe --help", word));
    auto& value = arguments[++i];
    if (word == "--host") {
      std::string why;
      auto target = parseTarget(value, 0, why);
      if (!target || !target->literal) fail(fmt::format("probe: --host {} is not ADDRESS:PORT", value));
      options.hosts.push_back(*target);
    } else if (word == "--name") {
      options.names.push_back(value);
    } else if (word == "--proxy") {
      auto equals = value.find('=');
      if (equals == std::string::npos) fail(fmt::format("probe: --proxy {} is not PORT=HOST:PORT", value));
      options.proxies.push_back(
          {readNumber<uint16_t>(std::string_view(value).substr(0, equals), value), value.substr(equals + 1)});
    } else if (word == "--judge") {
      if (value != "closed") fail("probe: --judge knows closed only; see probe --help");
      options.judge = true;
    } else if (word == "--timeout-ms") {
      options.timeout = readNumber<int>(value, value);
    } else {
      fail(fmt::format("probe: there is no option {}; see probe --help", word));
    }
  }
  return options;
}

// A connected socket, or why there is none.
kj::AutoCloseFd dial(const Address& address, uint16_t port, int timeout, std::string& error) {
  kj::AutoCloseFd fd(socket(address.v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_storage to;
  auto size = toSocketAddress(address, port, to);
  int result = fd.get() < 0 ? -1 : connect(fd, reinterpret_cast<sockaddr*>(&to), size);
  if (result < 0 && fd.get() >= 0 && errno == EINPROGRESS) {
    pollfd asked{fd, POLLOUT, 0};
    int code = ETIMEDOUT;
    socklen_t length = sizeof(code);
    if (poll(&asked, 1, timeout) == 1) getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &length);
    errno = code;
    result = code == 0 ? 0 : -1;
  }
  if (result == 0) return fd;
  error = strerror(errno);
  return kj::AutoCloseFd();
}

Json tryHost(const Target& target, int timeout) {
  std::string error;
  bool connected = dial(*target.literal, target.port, timeout, error).get() >= 0;
  return {{"host", target.toString()}, {"connected", connected}, {"error", error}};
}

// The answer's head, as far as it came in time.
std::string readHead(int fd, int timeout, std::string& error) {
  std::string head;
  while (head.find("\r\n\r\n") == std::string::npos && head.size() < mostHead) {
    pollfd asked{fd, POLLIN, 0};
    if (poll(&asked, 1, timeout) != 1) return error = "no answer in time", head;
    char buffer[2048];
    auto n = recv(fd, buffer, sizeof(buffer), 0);
    if (n < 0) return error = strerror(errno), head;
    if (n == 0) return head.empty() ? (error = "the proxy closed the connection", head) : head;
    head.append(buffer, n);
  }
  return head;
}

std::string headerOf(std::string_view head, std::string_view name) {
  auto at = head.find(fmt::format("\r\n{}: ", name));
  if (at == std::string_view::npos) return "";
  at += name.size() + 4;
  return std::string(head.substr(at, head.find("\r\n", at) - at));
}

Json tryProxy(const ProxyQuestion& question, int timeout) {
  std::string error, head;
  auto fd = dial(*parseAddress("127.0.0.1"), question.port, timeout, error);
  if (fd.get() >= 0) {
    writeAll(fd, fmt::format("CONNECT {0} HTTP/1.1\r\nHost: {0}\r\n\r\n", question.target));
    head = readHead(fd, timeout, error);
  }
  int status = 0;
  if (head.starts_with("HTTP/1.") && head.size() > 12) std::from_chars(head.data() + 9, head.data() + 12, status);
  return {{"proxy", fmt::format("127.0.0.1:{}", question.port)},
          {"target", question.target},
          {"status", status},
          {"reason", printable(headerOf(head, "X-Open-Conduit-Reason"))},
          {"error", error}};
}

Json tryName(const std::string& name, int timeout) {
  Loop loop;
  Resolver resolver(loop);
  Json result = {{"name", name}, {"resolved", false}, {"addresses", Json::array()}, {"error", "no answer in time"}};
  bool over = false;
  Timer limit(loop, [&]() { over = true; });
  limit.start(timeout);
  auto question = resolver.ask(name, [&](const Resolver::Answer& answer) {
    over = true;
    result["resolved"] = !answer.addresses.empty();
    result["error"] = answer.error;
    for (auto& address : answer.addresses) result["addresses"].push_back(address.toString());
  });
  while (!over) loop.turn(-1);
  return result;
}

// What of the container is open that should not be, or does not answer; see the help.
int verdict(const Json& result) {
  int open = 0;
  for (auto& host : result["hosts"]) open |= host["connected"] == true ? 1 : 0;
  for (auto& name : result["names"]) open |= name["resolved"] == true ? 2 : 0;
  for (auto& proxy : result["proxies"]) open |= proxy["status"] != 403 ? 4 : 0;
  return open == 0 ? 0 : 64 + open;
}

}  // namespace

int probe(const Arguments& arguments) {
  auto options = readOptions(arguments);
  if (options.help) return fputs(help, stdout), 0;
  signal(SIGPIPE, SIG_IGN);
  Json result = {{"hosts", Json::array()}, {"names", Json::array()}, {"proxies", Json::array()}};
  for (auto& host : options.hosts) result["hosts"].push_back(tryHost(host, options.timeout));
  for (auto& name : options.names) result["names"].push_back(tryName(name, options.timeout));
  for (auto& proxy : options.proxies) result["proxies"].push_back(tryProxy(proxy, options.timeout));
  puts(canonicalJson(result).c_str());
  return options.judge ? verdict(result) : 0;
}

}  // namespace oc::gateway
