#include "canary_probe.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "base/fd.h"
#include "base/places.h"
#include "base/text.h"

namespace oc::srt {

namespace {

void putFile(const std::string& path, const std::string& text) {
  auto fd = openFile(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  writeAll(fd.get(), text);
}

kj::AutoCloseFd newSocket(int family) {
  int fd;
  KJ_SYSCALL(fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return kj::AutoCloseFd(fd);
}

// Listening, and shown to be reachable from here.
kj::AutoCloseFd listenOnLoopback(uint16_t& port) {
  auto fd = newSocket(AF_INET);
  struct sockaddr_in address {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto any = reinterpret_cast<struct sockaddr*>(&address);
  socklen_t size = sizeof(address);
  KJ_SYSCALL(bind(fd.get(), any, size));
  KJ_SYSCALL(::listen(fd.get(), 8));
  KJ_SYSCALL(getsockname(fd.get(), any, &size));
  port = ntohs(address.sin_port);
  KJ_SYSCALL(connect(newSocket(AF_INET).get(), any, size), "the canary's own listener");
  return fd;
}

kj::AutoCloseFd listenAt(const std::string& path) {
  requireSocketPathFits(path);
  auto fd = newSocket(AF_UNIX);
  struct sockaddr_un address {};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, path.c_str(), path.size());
  auto any = reinterpret_cast<struct sockaddr*>(&address);
  KJ_SYSCALL(bind(fd.get(), any, sizeof(address)), path);
  KJ_SYSCALL(::listen(fd.get(), 8));
  KJ_SYSCALL(connect(newSocket(AF_UNIX).get(), any, sizeof(address)), "the canary's own socket");
  return fd;
}

struct Expectation {
  const char* name;
  const char* granted;              // the probe that must succeed; null: none
  std::vector<const char*> denied;  // those that must not
  const char* what;
};

const Expectation expectations[] = {
    {"write", "write-granted", {"write-outside"}, "canary: files outside of what is granted cannot be written"},
    {"read", "read-granted", {"read-directory", "read-file"}, "canary: what is denied cannot be read"},
    {"network",
     "proxy-granted",
     {"network-direct", "proxy-refused"},
     "canary: hosts that are not allowed cannot be reached"},
    {"unix sockets", nullptr, {"unix-socket"}, "canary: Unix sockets are denied"},
    {"namespaces within", nullptr, {"user-namespace"}, "canary: no user namespace can be made inside"},
};

std::map<std::string, std::string> readResults(const std::string& output) {
  std::map<std::string, std::string> results;
  for (size_t at = 0; at < output.size();) {
    auto end = std::min(output.find('\n', at), output.size());
    auto line = output.substr(at, end - at);
    auto space = line.find(' ');
    if (space != std::string::npos) results[line.substr(0, space)] = line.substr(space + 1);
    at = end + 1;
  }
  return results;
}

}  // namespace

CanarySurroundings::CanarySurroundings(const Job& job)
    : job(job),
      root(job.scratch + "/canary"),
      settings(job.scratch + "/canary.json"),
      script(job.scratch + "/canary.sh") {
  makeFiles();
  listen();
  putFile(settings, settingsJson().dump());
  putFile(script, scriptText());
}

void CanarySurroundings::makeFiles() {
  removeTree(root);
  for (auto name : {"granted", "outside", "hidden"}) makeDirectories(root + "/" + name);
  putFile(root + "/outside/readable", "readable\n");
  putFile(root + "/hidden/secret", "secret\n");
  putFile(root + "/outside/secret", "secret\n");
}

void CanarySurroundings::listen() {
  refusedListener = listenOnLoopback(refusedPort);
  allowedListener = listenOnLoopback(allowedPort);
  unixListener = listenAt(root + "/outside/socket");
}

Json CanarySurroundings::settingsJson() const {
  return {{"network",
           {{"allowedDomains", {fmt::format("127.0.0.1:{}", allowedPort)}},
            {"deniedDomains", Json::array()},
            {"strictAllowlist", true},
            {"allowAllUnixSockets", false}}},
          {"filesystem",
           {{"denyRead", {root + "/hidden", root + "/outside/secret"}},
            {"allowRead", Json::array()},
            {"allowWrite", {root + "/granted"}},
            {"denyWrite", {"/tmp/claude"}}}},
          {"bwrapPath", job.bwrap},
          {"socatPath", job.socat},
          {"ripgrep", {{"command", job.ripgrep}}},
          {"seccomp", {{"applyPath", job.seccompHelper}}}};
}

std::string CanarySurroundings::scriptText() const {
  return fmt::format(R"sh(root={root}
probe() {{ if ( "${{@:2}}" ) >/dev/null 2>&1; then echo "$1 open"; else echo "$1 shut"; fi; }}
put() {{ echo x > "$1"; }}
get() {{ local line; read -r line < "$1" && [ -n "$line" ]; }}
dial() {{ exec 3<> "/dev/tcp/127.0.0.1/$1"; }}
ask() {{
  local proxy=${{HTTP_PROXY#http://}} line
  exec 3<> /dev/tcp/127.0.0.1/3128 || return 1
  printf 'CONNECT 127.0.0.1:%s HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nProxy-Authorization: Basic %s\r\n\r\n' \
    "$1" "$1" "$(printf '%s' "${{proxy%@*}}" | base64 -w 0)" >&3
  read -r -t 10 line <&3
  case $line in *' 200 '*) return 0;; *' 403 '*) return 1;; esac
  return 2
}}
probe write-granted put $root/granted/file
probe write-outside put $root/outside/file
probe read-granted get $root/outside/readable
probe read-directory get $root/hidden/secret
probe read-file get $root/outside/secret
probe network-direct dial {refused}
probe proxy-granted ask {allowed}
probe proxy-refused ask {refused}
probe unix-socket {socat} -u OPEN:/dev/null UNIX-CONNECT:$root/outside/socket
probe user-namespace unshare --user true
echo end reached
)sh",
                     fmt::arg("root", shellQuote(root)), fmt::arg("refused", refusedPort),
                     fmt::arg("allowed", allowedPort), fmt::arg("socat", shellQuote(job.socat)));
}

std::vector<kit::Check> judgeCanary(const std::string& output, const std::string& complaint) {
  std::vector<kit::Check> checks;
  auto results = readResults(output);
  bool ran = results["end"] == "reached";
  kit::Check canary{"canary", ran, "canary: a command ran under srt, started as an agent is", "", false};
  if (!ran) {
    canary.what = "srt did not run a command: " + shortened(printable(complaint), 600);
    canary.fix = "see what srt says; then: open-conduit doctor";
  }
  checks.push_back(canary);
  if (!ran) return checks;
  for (auto& expected : expectations) {
    kit::Check check{expected.name, true, expected.what, "", false};
    if (expected.granted != nullptr && results[expected.granted] != "open") {
      check = {expected.name, false, fmt::format("canary: {} did not work, though it is granted", expected.granted),
               "srt behaves otherwise than its version that we know: install that one (open-conduit doctor names it)",
               false};
    }
    for (auto name : expected.denied) {
      if (results[name] == "shut") continue;
      check = {expected.name, false, fmt::format("canary: {} was possible inside the sandbox", name),
               "run nothing under srt on this machine, and report this", false};
    }
    checks.push_back(check);
  }
  return checks;
}

}  // namespace oc::srt
