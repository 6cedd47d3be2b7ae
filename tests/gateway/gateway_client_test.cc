// The container's entry point, as the first process of a pid namespace of its own.
#include <fmt/format.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <thread>

#include "base/json.h"
#include "gateway/socket_file.h"
#include "tests/catch.h"
#include "tests/gateway_world.h"

using oc::hasText;

namespace {

struct Ended {
  int code = -1;  // 128 and a signal's number when it was killed
  std::string output, errors;
};

std::string toolbelt() { return std::string(getenv("OPEN_CONDUIT_PROGRAMS")) + "/open-conduit-toolbelt"; }

// A container's namespaces without its files: pid, mount, ipc and a network with a loopback alone.
class Container {
 public:
  Container() {
    char name[] = "/tmp/oc-enter-XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    directory = name;
  }
  ~Container() {
    if (pid > 0) kill(pid, SIGKILL), waitpid(pid, nullptr, 0);
    oc::removeTree(directory);
  }

  // `words`: of the entry point, which is the namespace's first process. Its standard input is a terminal of its own,
  // or ours.
  void start(std::vector<std::string> words, bool onTerminal = false) {
    auto out = oc::makePipe(), err = oc::makePipe();
    words.insert(words.begin(),
                 {"unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc", "--net",
                  "--ipc", "sh", "-c", "PATH=$PATH:/usr/sbin:/sbin ip link set lo up; exec \"$0\" \"$@\"", "setpriv",
                  "--bounding-set=-all", "--inh-caps=-all", toolbelt(), "enter"});
    std::vector<char*> arguments;
    for (auto& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    KJ_SYSCALL(pid = fork());
    if (pid == 0) {
      if (onTerminal) takeTerminal();
      dup2(out.second, 1);
      dup2(err.second, 2);
      setenv("INHERITED", "yes", 1);
      setenv("TOKEN", "to be replaced", 1);
      execvp(arguments[0], arguments.data());
      _exit(99);
    }
    // Owned by descriptor: a thread's state must not have a destructor that throws.
    for (auto [from, into] :
         {std::pair{out.first.release(), &ended.output}, std::pair{err.first.release(), &ended.errors}}) {
      reading.emplace_back([from = from, into = into]() { *into = oc::readAll(kj::AutoCloseFd(from), 1 << 20); });
    }
  }
  Ended wait() {
    int status;
    waitpid(pid, &status, 0);
    pid = -1;
    for (auto& thread : reading) thread.join();
    ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return ended;
  }
  Ended run(std::vector<std::string> words) {
    start(std::move(words));
    return wait();
  }
  // Signals the entry point itself, which is the child of unshare.
  void signalInside(int number) {
    auto children = oc::readFile(fmt::format("/proc/{0}/task/{0}/children", pid), 4096);
    REQUIRE(!children.empty());
    kill(std::stoi(children), number);
  }
  std::string write(const std::string& name, const std::string& text) {
    oc::writeFileAtomically(directory + "/" + name, text);
    return directory + "/" + name;
  }

  // Nobody reads what is typed there.
  static void takeTerminal() {
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0 || grantpt(terminal) < 0 || unlockpt(terminal) < 0 || setsid() < 0) _exit(98);
    dup2(open(ptsname(terminal), O_RDWR), 0);
  }

  std::string directory;
  pid_t pid = -1;
  Ended ended;
  std::vector<std::thread> reading;
};

bool isThere(const std::string& path) {
  struct stat status;
  return lstat(path.c_str(), &status) == 0;
}

void waitFor(const std::string& path) {
  for (int i = 0; i < 1000 && !isThere(path); ++i) usleep(10'000);
  REQUIRE(isThere(path));
}

std::string mountOf(const std::string& path) {
  struct stat status;
  REQUIRE(stat(path.c_str(), &status) == 0);
  return fmt::format("{}:{}:{}", status.st_dev, status.st_ino, path);
}

// A gateway that takes one port, and echoes on it.
class Echoing {
 public:
  explicit Echoing(const std::string& path) {
    int fd;
    KJ_SYSCALL(fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    listener = kj::AutoCloseFd(fd);
    auto address = oc::gateway::unixAddress(path);
    KJ_SYSCALL(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)));
    KJ_SYSCALL(listen(fd, 64));
    thread = std::thread([this]() { take(); });
  }
  ~Echoing() {
    shutdown(listener, SHUT_RDWR);
    thread.join();
  }

 private:
  void take() {
    kj::AutoCloseFd giver(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    if (giver.get() < 0) return;
    auto port = oc::test::receiveDescriptors(giver, 1);
    fcntl(port[0], F_SETFL, O_RDWR);
    server = std::make_unique<oc::test::TestServer>(kj::mv(port[0]), oc::test::echo);
    if (write(giver, "", 1) != 1) abort();
  }

  kj::AutoCloseFd listener;
  std::thread thread;
  std::unique_ptr<oc::test::TestServer> server;
};

}  // namespace

TEST_CASE("B13 secrets reach the agent's environment and the file is gone before the agent starts") {
  Container container;
  auto file = container.write("secrets", R"({"TOKEN": "s3cr\u00e9t \"quoted\"\n", "OTHER": ""})");
  auto result = container.run({"--secrets", file, "--", "sh", "-c",
                               "printf %s \"$TOKEN\"; echo \"[$OTHER]$INHERITED\"; ls -A " + container.directory});
  CHECK(result.errors == "");
  CHECK(result.output == "s3cr\u00e9t \"quoted\"\n[]yes\n");
  CHECK(result.code == 0);
  CHECK_FALSE(isThere(file));
}

TEST_CASE(
    "B13 a secret file that can't be deleted, or is something else, starts nothing, and its content is never said") {
  Container container;
  SECTION("a directory that is read-only") {
    auto file = container.write("secrets", R"({"TOKEN": "planted"})");
    auto script = fmt::format(
        "mount --bind {0} {0} && mount -o remount,bind,ro {0} && exec {1} enter --secrets {2} -- echo started",
        container.directory, toolbelt(), file);
    auto inner = oc::makePipe();
    // The mount is made in the container's own namespace, by a shell that then becomes the entry point.
    auto errors = container.directory + "-errors";
    int status = system(
        fmt::format("unshare --user --map-root-user --pid --fork --mount sh -c '{}' >{} 2>&1", script, errors).c_str());
    auto text = oc::readFile(errors, 1 << 16);
    unlink(errors.c_str());
    CHECK(WEXITSTATUS(status) == 125);
    CHECK_THAT(text, hasText("can't be deleted"));
    CHECK_THAT(text, !hasText("planted"));
    CHECK_THAT(text, !hasText("started"));
  }
  SECTION("broken JSON") {
    for (auto text : {R"({"TOKEN": "planted")", R"({"TOKEN": 17})", R"(["planted"])", R"({"TO KEN": "planted"})",
                      R"({"T": "planted"} x)", R"({"T": "plan\u0000ted"})", "", R"({"T": "\ud800planted"})"}) {
      auto file = container.write("secrets", text);
      Container each;
      auto result = each.run({"--secrets", file, "--", "echo", "started"});
      CHECK(result.code == 125);
      CHECK(result.output == "");
      CHECK_THAT(result.errors, hasText("secret file"));
      CHECK_THAT(result.errors, !hasText("planted"));
      CHECK_FALSE(isThere(file));
    }
  }
  SECTION("a link to one") {
    auto file = container.write("secrets", R"({"TOKEN": "planted"})");
    REQUIRE(symlink(file.c_str(), (container.directory + "/link").c_str()) == 0);
    auto result = container.run({"--secrets", container.directory + "/link", "--", "echo", "started"});
    CHECK(result.code == 125);
    CHECK(result.output == "");
  }
  SECTION("one with a second name") {
    auto file = container.write("secrets", R"({"TOKEN": "planted"})");
    REQUIRE(link(file.c_str(), (container.directory + "/second").c_str()) == 0);
    auto result = container.run({"--secrets", file, "--", "echo", "started"});
    CHECK(result.code == 125);
    CHECK_THAT(result.errors, hasText("another name"));
    CHECK(result.output == "");
  }
}

TEST_CASE("B13 the entry point's memory and environment can't be read by the agent") {
  Container container;
  auto file = container.write("secrets", R"({"TOKEN": "planted"})");
  auto result = container.run({"--secrets", file, "--", "sh", "-c",
                               "for f in environ mem maps; do cat /proc/1/$f 2>&1; done; "
                               // The control: the agent's own can be read.
                               "tr '\\0' '\\n' </proc/$$/environ | grep -c planted"});
  std::string denied = "Permission denied\n";
  CHECK(result.output ==
        fmt::format("cat: /proc/1/environ: {0}cat: /proc/1/mem: {0}cat: /proc/1/maps: {0}1\n", denied));
}

TEST_CASE("B7 a mount that is not the planned file or directory starts nothing and is named") {
  Container container;
  auto planned = container.write("planned", ""), other = container.write("other", "");
  auto link = container.directory + "/link";
  REQUIRE(symlink(planned.c_str(), link.c_str()) == 0);
  auto mount = mountOf(planned);
  auto numbers = mount.substr(0, mount.find('/'));

  auto good = container.run({"--mount", mount, "--mount", mountOf(container.directory), "--", "echo", "started"});
  CHECK(good.output == "started\n");
  CHECK(good.code == 0);
  for (auto& path : {other, link, container.directory + "/missing"}) {
    Container each;
    auto result = each.run({"--mount", mount, "--mount", numbers + path, "--", "echo", "started"});
    CHECK(result.code == 125);
    CHECK(result.output == "");
    CHECK_THAT(result.errors, hasText("the mount " + path));
  }
}

TEST_CASE("the entry point exits as the agent does") {
  struct Case {
    std::vector<std::string> command;
    int code;
  };
  for (auto& [command, code] : std::vector<Case>{{{"true"}, 0},
                                                 {{"sh", "-c", "exit 7"}, 7},
                                                 {{"sh", "-c", "kill -9 $$"}, 137},
                                                 {{"sh", "-c", "kill -TERM $$"}, 143},
                                                 {{"/no/such/program"}, 127},
                                                 {{"/etc/passwd"}, 126}}) {
    Container container;
    std::vector<std::string> words = {"--"};
    words.insert(words.end(), command.begin(), command.end());
    CHECK(container.run(words).code == code);
  }
}

TEST_CASE("signals reach the agent's whole group") {
  for (int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGWINCH}) {
    Container container;
    auto mark = container.directory + "/ready";
    // The shell waits for a child that ignores nothing: a signal to the shell alone would come when it has ended.
    container.start(
        {"--", "sh", "-c",
         fmt::format("trap 'echo got; exit 3' {0}; (trap 'exit 0' {0}; touch {1}; while :; do sleep 0.05; done) & wait",
                     number, mark)});
    waitFor(mark);
    container.signalInside(number);
    auto result = container.wait();
    CHECK(result.output == "got\n");
    CHECK(result.code == 3);
  }
}

TEST_CASE("B17 what stops on its terminal goes on, since there is no shell above it to bring it back") {
  for (auto number : {"STOP", "TSTP"}) {
    Container container;
    container.start(
        {"--", "sh", "-c", fmt::format("(sleep 30; kill -KILL $$) & test -t 0 && kill -{} $$ && echo went on", number)},
        true);
    CHECK(container.wait().output == "went on\n");
  }
}

TEST_CASE("orphans are reaped while the agent lives, and nothing outlives it") {
  Container container;
  auto result = container.run(
      {"--", "sh", "-c",
       "for i in 1 2 3 4 5 6 7 8; do (sh -c 'exit 0' &) ; done; sleep 0.3; grep -l '^State:.Z' /proc/[0-9]*/status | wc -l; "
       // Sessions of their own, that ignore what can be ignored, and hold our pipe: we would wait for them for ever.
       "for i in 1 2 3; do setsid sh -c 'trap \"\" TERM HUP INT; while :; do sleep 1000; done' & done; exit 5"});
  CHECK(result.output == "0\n");
  CHECK(result.code == 5);
}

TEST_CASE("the entry point is for a container's first process alone") {
  auto text = toolbelt() + " enter -- echo started 2>&1";
  auto pipe = popen(text.c_str(), "r");
  char buffer[512] = {};
  size_t n = fread(buffer, 1, sizeof(buffer) - 1, pipe);
  CHECK(WEXITSTATUS(pclose(pipe)) == 125);
  CHECK_THAT(std::string(buffer, n), hasText("first process"));
}

TEST_CASE("B2 loopback ports are the gateway's, both ways and with each side's end") {
  Container container;
  auto first = container.directory + "/proxy.port", second = container.directory + "/toolbelt.port";
  Echoing proxy(first), toolbelt(second);
  auto result = container.run({"--port", "3128:" + first, "--port", "3129:" + second, "--", "bash", "-c",
                               "exec 3<>/dev/tcp/127.0.0.1/3128; echo through >&3; head -1 <&3; "
                               "head -c 3000000 /dev/zero | tr '\\0' x | nc -N 127.0.0.1 3129 | wc -c; "
                               // The control of what is below: another port is refused.
                               "(exec 4<>/dev/tcp/127.0.0.1/3130) 2>/dev/null || echo refused"});
  CHECK(result.errors == "");
  CHECK(result.output == "through\n3000000\nrefused\n");
}

TEST_CASE("B2 a gateway that does not come is waited for, and then named") {
  Container container;
  auto path = container.directory + "/proxy.port";
  SECTION("it never comes") {
    auto result = container.run({"--port", "3128:" + path, "--wait-ms", "200", "--", "echo", "started"});
    CHECK(result.code == 125);
    CHECK(result.output == "");
    CHECK_THAT(result.errors, hasText("did not take the listening socket at " + path + " in time"));
  }
  SECTION("it comes late") {
    container.start({"--port", "3128:" + path, "--", "echo", "started"});
    usleep(300'000);
    Echoing gateway(path);
    CHECK(container.wait().output == "started\n");
  }
  SECTION("it is told to end meanwhile") {
    container.start({"--port", "3128:" + path, "--", "echo", "started"});
    usleep(500'000);
    container.signalInside(SIGTERM);
    auto result = container.wait();
    CHECK(result.code == 143);
    CHECK(result.output == "");
  }
}

// As the daemon writes it.
std::string startText(std::initializer_list<std::string> texts) {
  std::string result;
  for (auto& text : texts) result.append(text).push_back('\0');
  return result;
}

TEST_CASE("A8 a container that was started ahead starts nothing before its gateway has its policy") {
  Container container;
  auto path = container.directory + "/proxy.port", secrets = container.directory + "/secrets";
  auto start = container.directory + "/start", mark = container.directory + "/started";
  container.start({"--port", "3128:" + path, "--wait-ms", "0", "--secrets", secrets, "--start", start});
  // Everything may be there long before.
  container.write("secrets", R"({"TOKEN": "s3cret"})");
  container.write("start", startText({"TOKEN=not this", "INHERITED=replaced", "EMPTY=", "LINES=a\nb", "", "sh", "-c",
                                      "echo \"$TOKEN $INHERITED [$EMPTY] $LINES [$1]\"; touch " + mark, "sh", ""}));
  usleep(300'000);
  CHECK_FALSE(isThere(mark));
  CHECK(isThere(start));
  CHECK(isThere(secrets));
  Echoing proxy(path);
  auto result = container.wait();
  CHECK(result.errors == "");
  CHECK(result.output == "s3cret replaced [] a\nb []\n");
  CHECK(isThere(mark));
  CHECK_FALSE(isThere(start));
  CHECK_FALSE(isThere(secrets));
}

TEST_CASE("a start file that is not as it has to be starts nothing, and is named") {
  Container container;
  std::string file;
  SECTION("none") { file = container.directory + "/missing"; }
  SECTION("without a command") { file = container.write("start", startText({"A=b", ""})); }
  SECTION("without the empty text") { file = container.write("start", startText({"A=b"})); }
  SECTION("empty") { file = container.write("start", ""); }
  SECTION("cut off") { file = container.write("start", startText({"", "echo"}) + "started"); }
  SECTION("a variable without a value") { file = container.write("start", startText({"echo", "", "echo", "started"})); }
  SECTION("larger than it may be") {
    file = container.write("start", startText({"", "echo", std::string(9 << 20, 'x')}));
  }
  SECTION("a link to one") {
    file = container.directory + "/link";
    REQUIRE(symlink(container.write("start", startText({"", "echo", "started"})).c_str(), file.c_str()) == 0);
  }
  SECTION("a pipe") {
    file = container.directory + "/pipe";
    REQUIRE(mkfifo(file.c_str(), 0600) == 0);
  }
  auto result = container.run({"--start", file});
  CHECK(result.code == 125);
  CHECK(result.output == "");
  CHECK_THAT(result.errors, hasText("the start file " + file));
}

TEST_CASE("wrong words are named, with where to read on") {
  for (auto& words : std::vector<std::vector<std::string>>{{"--mount", "1:2", "--", "true"},
                                                           {"--mount", "a:2:/x", "--", "true"},
                                                           {"--port", "0:/x", "--", "true"},
                                                           {"--port", "70000:/x", "--", "true"},
                                                           {"--port", "1:x", "--", "true"},
                                                           {"--port", "1:/" + std::string(120, 'x'), "--", "true"},
                                                           {"--wait-ms", "-1", "--", "true"},
                                                           {"--nothing", "1", "--", "true"},
                                                           {"--secrets"},
                                                           {"--start", "/x", "--", "true"},
                                                           {"--"}}) {
    Container container;
    auto result = container.run(words);
    CHECK(result.code == 125);
    CHECK(result.errors.size() > 30);
  }
}

TEST_CASE("B18 the probe says what is reached and what is not, and why") {
  oc::test::GatewayWorld world;
  world.names->set("allowed.test", {"198.51.100.10"});
  world.configure({.allow = {"allowed.test:443"}});
  Container container;
  auto result = container.run({"--port", "3128:" + world.directory + "/proxy.port", "--", toolbelt(), "probe", "--host",
                               "198.51.100.10:443", "--host", "127.0.0.1:3128", "--name", "allowed.test", "--proxy",
                               "3128=allowed.test:443", "--proxy", "3128=denied.test:443", "--timeout-ms", "2000"});
  INFO(result.errors);
  auto json = oc::parseJson(result.output);
  REQUIRE(json.is_object());
  CHECK(json["hosts"][0]["connected"] == false);
  CHECK(json["hosts"][0]["error"] == "Network is unreachable");
  // The control: what is there is reached.
  CHECK(json["hosts"][1]["connected"] == true);
  CHECK(json["names"][0]["resolved"] == false);
  CHECK(json["proxies"][0]["status"] == 200);
  CHECK(json["proxies"][1]["status"] == 403);
  CHECK(json["proxies"][1]["reason"] == "not_allowed");
}
