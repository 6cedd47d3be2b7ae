#include "bridge.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>

#include "base/json.h"
#include "git_attributes.h"
#include "toolbelt_socket.h"

namespace oc::client {

namespace {

constexpr size_t mostInput = 1u << 20;
constexpr size_t mostArguments = 256u << 10;

int complain(const std::string& what) {
  fprintf(stderr, "open-conduit-toolbelt: %s\n", what.c_str());
  return 1;
}

// What is ready of `from`; empty at its end.
std::string readSome(int from) {
  char buffer[65536];
  ssize_t n;
  do {
    n = read(from, buffer, sizeof(buffer));
  } while (n < 0 && errno == EINTR);
  return n <= 0 ? std::string() : std::string(buffer, n);
}

std::string readInput() {
  std::string all;
  for (auto some = readSome(STDIN_FILENO); !some.empty(); some = readSome(STDIN_FILENO)) {
    all += some;
    if (all.size() > mostInput) throw Trouble("more than 1 MiB came in");
  }
  return all;
}

// The toolbelt speaks first only to refuse.
class Bridge {
 public:
  explicit Bridge(ToolbeltSocket& toolbelt) : toolbelt(toolbelt) {}

  int run() {
    struct pollfd ends[] = {{STDIN_FILENO, POLLIN, 0}, {toolbelt.fd(), POLLIN, 0}};
    while (true) {
      if (poll(ends, 2, -1) < 0 && errno != EINTR) return complain(std::string("poll: ") + strerror(errno));
      if (ends[1].revents != 0 && !toAgent()) return refusal.empty() ? 0 : complain(refusal);
      if (ends[0].revents != 0 && !toToolbelt()) ends[0].fd = -1;
    }
  }

 private:
  bool toAgent() {
    auto some = readSome(toolbelt.fd());
    if (some.empty()) {
      refusal = refusalIn(first.substr(0, first.find('\n')));
      if (refusal.empty()) writeAll(STDOUT_FILENO, first);
      return false;
    }
    if (told) return writeAll(STDOUT_FILENO, some);
    // The first line is held back until it is known to be none of a refusal.
    first += some;
    auto end = first.find('\n');
    if (end == std::string::npos) return true;
    if (!refusalIn(first.substr(0, end)).empty()) return true;
    told = true;
    return writeAll(STDOUT_FILENO, std::exchange(first, ""));
  }

  bool toToolbelt() {
    auto some = readSome(STDIN_FILENO);
    if (!some.empty() && writeAll(toolbelt.fd(), some)) return true;
    shutdown(toolbelt.fd(), SHUT_WR);  // the answers to what was asked still come
    return false;
  }

  ToolbeltSocket& toolbelt;
  bool told = false;
  std::string first, refusal;
};

template <typename Do>
int orComplain(Do&& act) {
  try {
    return act();
  } catch (const Trouble& trouble) {
    return complain(trouble.what());
  }
}

Json readArguments(const std::string& text) {
  if (text.size() > mostArguments) throw Trouble("the arguments have more than 256 KiB");
  auto arguments = parseJson(text);
  if (!arguments.is_object()) throw Trouble("the arguments are no JSON object: " + text.substr(0, 200));
  return arguments;
}

int giveUp(const std::string& why) {
  fprintf(stderr, "open-conduit-toolbelt: no credential: %s\n", why.c_str());
  printf("quit=1\n");
  return 0;
}

// One question and its answer.
std::string askForCredential(bool rejected) {
  auto asked = gitAttributes(readInput());
  ToolbeltSocket toolbelt("git-credential");
  Json question = {{"protocol", asked["protocol"]}, {"host", asked["host"]}, {"path", asked["path"]}};
  if (rejected) question["rejected"] = true;
  toolbelt.writeLine(question.dump(-1, ' ', false, Json::error_handler_t::replace));
  return toolbelt.readLine();
}

// git says so when a server has refused the credential, and then fails by itself.
int tellRejected() {
  try {
    if (auto why = refusalIn(askForCredential(true)); !why.empty()) return complain(why), 0;
    complain(
        "the server refused the credential that git was given: it may have run out or been revoked. Try again in half a minute: git is given another one then");
  } catch (const Trouble& trouble) {
    complain(trouble.what());
  }
  return 0;
}

int giveCredential() {
  try {
    auto line = askForCredential(false);
    if (auto why = refusalIn(line); !why.empty()) return giveUp(why);
    auto answer = parseJson(line);
    auto username = answer.is_object() ? answer.value("username", std::string()) : "";
    auto password = answer.is_object() ? answer.value("password", std::string()) : "";
    auto lines = gitCredentialLines(username, password);
    if (!lines) return giveUp("the toolbelt's answer has none");
    printf("%s", lines->c_str());
    return 0;
  } catch (const Trouble& trouble) {
    return giveUp(trouble.what());
  }
}

}  // namespace

int bridgeMcp() {
  return orComplain([]() {
    ToolbeltSocket toolbelt("mcp");
    return Bridge(toolbelt).run();
  });
}

int callOperation(const std::vector<std::string>& words) {
  if (words.empty() || words.size() > 2) {
    fprintf(stderr, "usage: open-conduit-toolbelt call OPERATION [JSON]\n");
    return 2;
  }
  return orComplain([&words]() {
    auto arguments = words.size() == 2 ? readArguments(words[1]) : Json::object();
    ToolbeltSocket toolbelt("call");
    toolbelt.writeLine(
        Json{{"operation", words[0]}, {"arguments", arguments}}.dump(-1, ' ', false, Json::error_handler_t::replace));
    auto line = toolbelt.readLine();
    if (auto why = refusalIn(line); !why.empty()) return complain(why);
    auto answer = parseJson(line);
    if (!answer.is_object() || !answer.contains("result")) throw Trouble("the toolbelt's answer cannot be read");
    auto& result = answer["result"];
    auto text =
        result.is_string() ? result.get<std::string>() : result.dump(2, ' ', false, Json::error_handler_t::replace);
    printf("%s\n", text.c_str());
    return answer.value("isError", false) ? 1 : 0;
  });
}

int gitCredential(const std::vector<std::string>& words) {
  if (words.size() != 1) {
    fprintf(stderr, "usage: open-conduit-toolbelt git-credential get|store|erase\n");
    return 2;
  }
  if (words[0] == "get") return giveCredential();
  if (words[0] == "erase") return tellRejected();
  try {
    readInput();  // git would get a signal if nobody did
  } catch (const Trouble&) {
  }
  return 0;
}

}  // namespace oc::client
