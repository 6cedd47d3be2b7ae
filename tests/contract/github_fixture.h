// The fake GitHub of tests/fakes/github, an App with its key on it, and instances of open-conduit-github that talk to
// it.
#pragma once

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/json.h"
#include "base/spawn.h"
#include "daemon/supervisor/supervisor.h"
#include "github.capnp.h"
#include "proto/convert.h"
#include "tests/catch.h"

namespace oc::test {

struct Ran {
  int code;
  std::string output;  // of both streams
};

inline Ran shell(const std::string& command) {
  FILE* pipe = popen(("( " + command + "\n) 2>&1").c_str(), "re");
  REQUIRE(pipe != nullptr);
  Ran ran{};
  char buffer[4096];
  while (size_t n = fread(buffer, 1, sizeof(buffer), pipe)) ran.output.append(buffer, n);
  int status = pclose(pipe);
  ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  while (!ran.output.empty() && ran.output.back() == '\n') ran.output.pop_back();
  return ran;
}

inline std::string sourceFolder() {
  if (auto given = getenv("OPEN_CONDUIT_SOURCE")) return given;
  std::string path = ".";
  while (access((path + "/tests/fakes").c_str(), F_OK) != 0 && path.size() < 60) path += "/..";
  return path;
}

inline bool hasNode() { return shell("node --version").code == 0 && shell("openssl version").code == 0; }

// One POST of JSON to a port of this machine's; the answer's body.
inline std::string post(uint16_t port, const std::string& body, const std::string& headers = "",
                        int* status = nullptr) {
  kj::AutoCloseFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  struct sockaddr_in address {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(connect(fd.get(), reinterpret_cast<struct sockaddr*>(&address), sizeof(address)) == 0);
  writeAll(fd.get(), "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: " +
                         std::to_string(body.size()) + "\r\n" + headers + "\r\n" + body);
  std::string answer;
  char buffer[65536];
  // Servers may keep the connection: the length says where the answer ends.
  auto whole = [&answer]() {
    auto end = answer.find("\r\n\r\n");
    auto length = answer.find("ontent-Length: ");
    return end != std::string::npos && length < end &&
           answer.size() >= end + 4 + strtoul(answer.c_str() + length + 15, nullptr, 10);
  };
  for (ssize_t n; !whole() && (n = ::read(fd.get(), buffer, sizeof(buffer))) > 0;)
    answer.append(buffer, static_cast<size_t>(n));
  if (status != nullptr) *status = answer.size() > 12 ? atoi(answer.c_str() + 9) : 0;
  auto end = answer.find("\r\n\r\n");
  auto text = end == std::string::npos ? std::string() : answer.substr(end + 4);
  // Node sends what it does not know the length of in chunks.
  if (answer.find("chunked") != std::string::npos && answer.find("chunked") < end) {
    std::string whole;
    for (size_t at = 0; at < text.size();) {
      size_t size = strtoul(text.c_str() + at, nullptr, 16);
      at = text.find("\r\n", at) + 2;
      if (size == 0) break;
      whole += text.substr(at, size);
      at += size + 2;
    }
    return whole;
  }
  return text;
}

class FakeGitHub {
 public:
  FakeGitHub() {
    char path[] = "/tmp/oc-gh-XXXXXX";
    REQUIRE(mkdtemp(path) != nullptr);
    directory = path;
    auto in = makePipe(), out = makePipe();
    SpawnSpec spec;
    spec.program = shell("command -v node").output;
    spec.arguments = {sourceFolder() + "/tests/fakes/github/server.mjs", directory + "/fake"};
    if (spec.arguments[0][0] != '/') spec.arguments[0] = std::string(get_current_dir_name()) + "/" + spec.arguments[0];
    spec.environment = {{"PATH", "/usr/local/bin:/usr/bin:/bin"}};
    spec.descriptors = {{in.first.get(), 0}, {out.second.get(), 1}, {2, 2}};
    process = spawn(spec);
    input = kj::mv(in.second);
    out.second = nullptr;
    std::string line;
    char c;
    while (::read(out.first.get(), &c, 1) == 1 && c != '\n') line += c;
    facts = parseJson(line);
    REQUIRE(facts.is_object());
    output = kj::mv(out.first);
    auto url = facts.at("control").get<std::string>();
    controlPort = static_cast<uint16_t>(atoi(url.substr(url.rfind(':') + 1).c_str()));
    REQUIRE(shell("openssl genrsa -out " + directory + "/app.pem 2048 && openssl rsa -in " + directory +
                  "/app.pem -pubout -out " + directory + "/app.pub")
                .code == 0);
  }
  ~FakeGitHub() noexcept(false) {
    input = nullptr;
    kill(process.pid, SIGKILL);
    waitpid(process.pid, nullptr, 0);
    removeTree(directory);
  }

  Json control(Json order) {
    auto text = post(controlPort, order.dump());
    auto value = parseJson(text);
    INFO(order.dump() << " → " << text.substr(0, 2000));
    REQUIRE_FALSE(value.is_discarded());
    REQUIRE_FALSE((value.is_object() && value.contains("error")));
    return value;
  }
  std::string api() const { return facts.at("api"); }
  std::string git() const { return facts.at("git"); }
  std::string ca() const { return facts.at("ca"); }
  std::string host() const { return git().substr(8); }
  std::string pem(const std::string& name = "app.pem") const { return readFile(directory + "/" + name, 1 << 20); }

  // An organization with a repository, an App that is installed there, and somebody who may steer.
  void furnish() {
    control({{"op", "addUser"}, {"login", "alice"}});
    control({{"op", "addUser"}, {"login", "mallory"}});
    repoId = control({{"op", "addRepo"}, {"fullName", "acme/web"}}).at("id");
    otherId = control({{"op", "addRepo"}, {"fullName", "acme/secret"}}).at("id");
    control({{"op", "collaborator"}, {"repo", "acme/web"}, {"login", "alice"}, {"permission", "write"}});
    botId =
        control({{"op", "addApp"}, {"id", 4711}, {"slug", "conduit"}, {"owner", "acme"}, {"publicKey", pem("app.pub")}})
            .at("botId");
    installation =
        control({{"op", "install"},
                 {"appId", 4711},
                 {"repos", {"acme/web", "acme/secret"}},
                 {"permissions",
                  {{"contents", "write"}, {"issues", "write"}, {"pull_requests", "write"}, {"checks", "read"}}}})
            .at("id");
  }
  uint64_t issue(const std::string& title = "A bug", const std::string& user = "alice",
                 const Json& more = Json::object()) {
    Json order = {{"op", "issue"}, {"repo", "acme/web"}, {"title", title}, {"body", "It breaks."}, {"user", user}};
    order.update(more);
    return control(order).at("number");
  }
  Json world(const std::string& repo = "acme/web") { return control({{"op", "get"}, {"repo", repo}}); }
  void fault(Json fault) { control({{"op", "fault"}, {"fault", fault}}); }
  // How a token stands.
  Json token(const std::string& text) {
    for (auto& one : control({{"op", "tokens"}})) {
      if (one.at("token") == text) return one;
    }
    return nullptr;
  }
  size_t countRequests(const std::string& method, const std::string& part) {
    size_t count = 0;
    for (auto& one : control({{"op", "requests"}})) {
      if (one.at("method") == method && one.at("path").get<std::string>().find(part) != std::string::npos) ++count;
    }
    return count;
  }

  std::string directory;
  Json facts;
  uint64_t repoId = 0, otherId = 0, botId = 0, installation = 0;

 private:
  Spawned process{0, nullptr};
  kj::AutoCloseFd input, output;
  uint16_t controlPort = 0;
};

// A signed-in instance, as the daemon has it.
class GitHubInstance {
 public:
  GitHubInstance(kj::AsyncIoContext& io, FakeGitHub& fake, std::vector<std::string> more = {},
                 std::vector<std::string> passEnv = {})
      : io(io), supervisor(io, getenv("OPEN_CONDUIT_PROGRAMS")) {
    supervisor.setPassEnv({{"github", passEnv}});
    supervisor::LaunchSpec spec;
    spec.provider = "github";
    spec.label = "github";
    spec.job = {"connection", "--api", fake.api(), "--ca", fake.ca()};
    spec.job.insert(spec.job.end(), more.begin(), more.end());
    instance = supervisor.start(spec).wait(io.waitScope);
  }

  proto::GitHub::Client client() { return instance->as<proto::GitHub>(); }

  Refusal signIn(const std::string& pem, const std::string& app = "4711") {
    auto request = client().signInRequest();
    auto to = request.initCredentials().initApp();
    to.setId(toText(app));
    to.setPrivateKey(toData(pem));
    return read(request.send().wait(io.waitScope).getRefusal());
  }
  Refusal signInToken(const std::string& token) {
    auto request = client().signInRequest();
    request.initCredentials().setToken(toData(token));
    return read(request.send().wait(io.waitScope).getRefusal());
  }

  struct Token {
    Refusal refusal;
    std::string text;
    int64_t expiresAt = 0;
  };
  Token mint(uint64_t id, const std::string& repo = "acme/web") {
    auto request = client().mintRequest();
    request.setRepo(toText(repo));
    request.setRepositoryId(id);
    auto answer = request.send().wait(io.waitScope);
    return {read(answer.getRefusal()), toString(answer.getToken()), answer.getExpiresAt()};
  }
  Refusal revoke(const std::string& token) {
    auto request = client().revokeRequest();
    request.setToken(toData(token));
    return read(request.send().wait(io.waitScope).getRefusal());
  }

  struct Called {
    Json value;
    bool isError = false;
    std::string error() const { return value.value("error", std::string()); }
    std::string message() const { return value.value("message", std::string()); }
  };
  kj::Promise<Called> start(const std::string& operation, const Json& arguments, uint64_t issue, uint64_t repositoryId,
                            const std::string& branch = "agent/issue-1", const std::string& id = "",
                            bool again = false) {
    auto request = client().callRequest();
    auto bound = request.initBound();
    bound.setRepo("acme/web");
    bound.setRepositoryId(repositoryId);
    bound.setIssue(issue);
    bound.setBranch(toText(branch));
    bound.setWork("w-1");
    bound.setRun("r-1");
    bound.setCall(toText(id));
    bound.setAgain(again);
    request.setOperation(toText(operation));
    request.setArguments(toData(arguments.dump()));
    return request.send().then([](auto&& answer) {
      REQUIRE(read(answer.getRefusal()).reason.empty());
      return Called{parseJson(toString(answer.getResult())), answer.getIsError()};
    });
  }
  Called call(const std::string& operation, const Json& arguments, uint64_t issue, uint64_t repositoryId,
              const std::string& branch = "agent/issue-1") {
    return start(operation, arguments, issue, repositoryId, branch).wait(io.waitScope);
  }

  kj::AsyncIoContext& io;
  supervisor::Supervisor supervisor;
  kj::Own<supervisor::Instance> instance;
};

}  // namespace oc::test
