// open-conduit-srt without srt: its job, what it refuses, its script, what it cleans up, and how it judges its canary.
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "providers/srt/canary_probe.h"
#include "providers/srt/machine.h"
#include "providers/srt/parts.h"
#include "providers/srt/placeholders.h"
#include "providers/srt/script.h"
#include "tests/agent_instance.h"
#include "tests/catch.h"

using namespace oc;
using namespace oc::srt;

namespace {

struct Directory {
  Directory() {
    char path[] = "/tmp/oc-srt-contract-XXXXXX";
    REQUIRE(mkdtemp(path) != nullptr);
    name = path;
  }
  ~Directory() { removeTree(name); }
  std::string name;
};

bool isThere(const std::string& path) {
  struct stat stats;
  return lstat(path.c_str(), &stats) == 0;
}

void put(const std::string& path, const std::string& text) { writeFileAtomically(path, text); }

Protections allNamespaces() {
  Protections protections;
  protections.userNamespace = protections.mountNamespace = protections.pidNamespace = protections.ipcNamespace = true;
  return protections;
}

// What bash makes of the script.
std::string runScript(const std::string& script) {
  Directory directory;
  put(directory.name + "/script", script);
  auto pipe = makePipe();
  SpawnSpec spec;
  spec.program = "/bin/bash";
  spec.arguments = {"-c", ". " + shellQuote(directory.name + "/script")};
  spec.environment = {{"PATH", "/usr/bin:/bin"}, {"OURS", "ours"}};
  spec.descriptors = {{pipe.second.get(), 1}, {2, 2}};
  auto spawned = spawn(spec);
  pipe.second = nullptr;
  auto output = readAll(pipe.first.get(), 1 << 20);
  waitpid(spawned.pid, nullptr, 0);
  return output;
}

const std::vector<std::string> job = {"--node", "/bin/true", "--cli", "/x/dist/cli.js", "--scratch", "/tmp"};

}  // namespace

TEST_CASE("a job is what its words say, and says what is missing or wrong in them") {
  auto words = job;
  words.insert(words.end(), {"--settings", "/s.json", "--bwrap", "/usr/bin/bwrap"});
  auto parsed = parseJob(words);
  CHECK(parsed.node == "/bin/true");
  CHECK(parsed.cli == "/x/dist/cli.js");
  CHECK(parsed.scratch == "/tmp");
  CHECK(parsed.settings == "/s.json");
  CHECK(parseJob(toWords(parsed)).bwrap == "/usr/bin/bwrap");

  for (auto& [extra, message] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--unknown", "/x"}, "unexpected word: --unknown"},
           {{"--settings"}, "--settings needs a path"},
           {{"--settings", "x"}, "--settings needs an absolute path"},
           {{"--node", "node"}, "--node needs an absolute path"},
           {{"--scratch", ""}, "--scratch is missing"}}) {
    auto wrong = job;
    wrong.insert(wrong.end(), extra.begin(), extra.end());
    try {
      parseJob(wrong);
      FAIL(message);
    } catch (const kit::UsageError& error) {
      CHECK(error.message == message);
    }
  }
}

TEST_CASE("an instance with a job that it cannot read says so in the handshake") {
  auto io = kj::setupAsyncIo();
  test::AgentInstance instance(io, "open-conduit-srt", {"--", "--unknown", "/x"}, false);
  CHECK_FALSE(instance.handshake.ready);
  CHECK(instance.handshake.failure == "unexpected word: --unknown");
}

TEST_CASE("an instance without a shim launches nothing") {
  auto io = kj::setupAsyncIo();
  std::vector<std::string> words = {"--"};
  words.insert(words.end(), job.begin(), job.end());
  test::AgentInstance instance(io, "open-conduit-srt", words, false);
  REQUIRE(instance.handshake.ready);
  CHECK_THROWS(instance.launch({"true"}, {}, "/"));
}

TEST_CASE("1 uid 0 is refused, and any other is not") {
  CHECK((geteuid() == 0) == refuseMachine(allNamespaces()).has_value());
  // As root of a user namespace of its own, where this test is no root itself.
  pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    auto uid = geteuid();
    if (uid != 0) {
      if (unshare(CLONE_NEWUSER) < 0) _exit(10);
      auto map = openFile("/proc/self/uid_map", O_WRONLY);
      writeAll(map.get(), fmt::format("0 {} 1", uid));
    }
    auto refusal = refuseMachine(allNamespaces());
    _exit(refusal && refusal->reason == "sandbox_unavailable" && !refusal->fix.empty() ? 0 : 1);
  }
  int status;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("a kernel that grants no namespaces is refused, each named") {
  if (geteuid() == 0) return;  // refused for that already
  for (auto& [member, name] :
       {std::pair(&Protections::userNamespace, "user"), std::pair(&Protections::mountNamespace, "mount"),
        std::pair(&Protections::pidNamespace, "pid"), std::pair(&Protections::ipcNamespace, "ipc")}) {
    auto protections = allNamespaces();
    protections.*member = false;
    auto refusal = refuseMachine(protections);
    REQUIRE(refusal);
    CHECK(refusal->reason == "sandbox_unavailable");
    CHECK(refusal->what.find(std::string("(") + name + ")") != std::string::npos);
    CHECK_FALSE(refusal->fix.empty());
  }
}

TEST_CASE("C10 AppArmor's restriction is recognised, and both fixes are named") {
  Directory directory;
  auto file = directory.name + "/restrict";
  CHECK_FALSE(appArmorRestricts(file.c_str()));
  put(file, "0\n");
  CHECK_FALSE(appArmorRestricts(file.c_str()));
  put(file, "1\n");
  CHECK(appArmorRestricts(file.c_str()));
  auto fix = namespacesFix(true);
  CHECK(fix.find("sysctl kernel.apparmor_restrict_unprivileged_userns=0") != std::string::npos);
  CHECK(fix.find("AppArmor profile") != std::string::npos);
  CHECK(namespacesFix(false).find("apparmor") == std::string::npos);
}

TEST_CASE("2 15 the script gives the agent exactly its environment and words") {
  kit::AgentCommand command{{"/usr/bin/env"}, {{"A", "it's $HOME `x` \"y\"\n\\"}, {"PATH", "/usr/bin"}}, "/tmp"};
  auto output = runScript(agentScript(command, {"OURS", "PATH"}));
  CHECK(output.find("A=it's $HOME `x` \"y\"\n\\\n") != std::string::npos);
  CHECK(output.find("PATH=/usr/bin\n") != std::string::npos);
  CHECK(output.find("OURS") == std::string::npos);
  CHECK(output.find("OLDPWD") == std::string::npos);

  command.command = {"printf", "%s|", "a b", "'", "$(id)", "", "-n", "\n"};
  CHECK(runScript(agentScript(command, {})) == "a b|'|$(id)||-n|\n|");
  command.command = {"pwd"};
  CHECK(runScript(agentScript(command, {})) == "/tmp\n");
  command.directory = "/no/such/directory";
  CHECK(runScript(agentScript(command, {})).empty());
}

TEST_CASE("2 variables that no shell sets, and srt's own, are refused by name") {
  auto check = [](const std::string& name) { return checkCommand({{"true"}, {{name, "x"}}, "/"}); };
  for (auto name : {"GOOD", "_x1", "NODE_OPTIONS", "LD_LIBRARY_PATH", "NO_PROXY", "no_proxy", "proxy"})
    CHECK_FALSE(check(name));
  for (auto name : {"", "1A", "A.B", "A-B", "A B", "A\nB", "ä", "A;id", "BASHOPTS", "UID", "SHELLOPTS", "HTTP_PROXY",
                    "http_proxy", "All_Proxy", "GRPC_PROXY"}) {
    auto refusal = check(name);
    REQUIRE(refusal);
    CHECK(refusal->reason == "sandbox_denied");
    CHECK_FALSE(hasControlCharacters(refusal->what));
  }
}

TEST_CASE("15 what execve would not take is refused before") {
  kit::AgentCommand command{{"true", std::string((128u << 10) - 1, 'x')}, {}, "/"};
  CHECK_FALSE(checkCommand(command));
  command.command[1] += 'x';
  CHECK(checkCommand(command));
  command = {{"true"}, {{"A", std::string((128u << 10) - 3, 'x')}}, "/"};
  CHECK_FALSE(checkCommand(command));
  command.environment[0].second += 'x';
  auto refusal = checkCommand(command);
  REQUIRE(refusal);
  CHECK(refusal->what.size() < 200);  // names the variable, and is not its value
  command = {{"true"}, {}, "/"};
  for (int i = 0; i < 20; ++i) command.command.emplace_back(100u << 10, 'x');
  CHECK(checkCommand(command));
}

TEST_CASE("7 only placeholders are removed: empty, and absent before") {
  Directory directory;
  auto git = directory.name + "/.git";
  makeDirectories(git + "/hooks");
  put(git + "/empty-before", "");
  Settings settings;
  settings.allowWrite = {directory.name, git};
  settings.denyWrite = {git + "/hooks",
                        git + "/empty-before",
                        git + "/file",
                        git + "/directory/x",
                        git + "/full-file",
                        git + "/full/x",
                        directory.name + "/never",
                        "/tmp/oc-not-granted-" + std::to_string(getpid())};
  Placeholders placeholders(settings);
  put(git + "/file", "");
  makeDirectories(git + "/directory");
  put(git + "/full-file", "x");
  makeDirectories(git + "/full/inner");
  put(settings.denyWrite.back(), "");  // not srt's: nothing beneath what may be written
  put(git + "/commondir", "../evil");
  placeholders.remove();
  for (auto name : {"/file", "/directory", "/commondir"}) CHECK_FALSE(isThere(git + name));
  for (auto name : {"/hooks", "/empty-before", "/full-file", "/full"}) CHECK(isThere(git + name));
  CHECK(isThere(settings.denyWrite.back()));
  unlink(settings.denyWrite.back().c_str());
}

TEST_CASE("10 a commondir that was there before stays, and a link in its place is not followed") {
  Directory directory;
  auto git = directory.name + "/.git";
  makeDirectories(git);
  Settings settings;
  settings.allowWrite = {git};
  Placeholders absent(settings);
  put(directory.name + "/valuable", "x");
  REQUIRE(symlink("../valuable", (git + "/commondir").c_str()) == 0);
  Placeholders present(settings);
  present.remove();
  CHECK(isThere(git + "/commondir"));
  absent.remove();
  CHECK_FALSE(isThere(git + "/commondir"));
  CHECK(isThere(directory.name + "/valuable"));
}

TEST_CASE("5 a canary that got where it must not fails the check, and so does one that got nowhere") {
  const std::string good =
      "write-granted open\nwrite-outside shut\nread-granted open\nread-directory shut\nread-file shut\n"
      "network-direct shut\nproxy-granted open\nproxy-refused shut\nunix-socket shut\nuser-namespace shut\nend reached\n";
  auto failures = [](const std::string& output) {
    std::vector<std::string> names;
    for (auto& check : judgeCanary(output, "srt: trouble\x1b[31m")) {
      if (!check.ok) names.push_back(check.name);
      CHECK(check.ok == check.fix.empty());
      CHECK_FALSE(hasControlCharacters(check.what));
    }
    return names;
  };
  auto with = [&good](const std::string& from, const std::string& to) {
    auto changed = good;
    auto at = changed.find(from);
    REQUIRE(at != std::string::npos);
    return changed.replace(at, from.size(), to);
  };
  using Names = std::vector<std::string>;
  CHECK(failures(good).empty());
  CHECK(failures(with("write-outside shut", "write-outside open")) == Names{"write"});
  CHECK(failures(with("write-granted open", "write-granted shut")) == Names{"write"});
  CHECK(failures(with("read-file shut", "read-file open")) == Names{"read"});
  CHECK(failures(with("read-directory shut\n", "")) == Names{"read"});
  CHECK(failures(with("network-direct shut", "network-direct open")) == Names{"network"});
  CHECK(failures(with("proxy-refused shut", "proxy-refused open")) == Names{"network"});
  CHECK(failures(with("proxy-granted open", "proxy-granted shut")) == Names{"network"});
  CHECK(failures(with("unix-socket shut", "unix-socket open")) == Names{"unix sockets"});
  CHECK(failures(with("user-namespace shut", "user-namespace open")) == Names{"namespaces within"});
  CHECK(failures(with("end reached\n", "")) == Names{"canary"});
  CHECK(failures("") == Names{"canary"});
}

TEST_CASE("settings that are none stop the launch with their name") {
  Directory directory;
  auto file = directory.name + "/settings.json";
  CHECK_THROWS(readSettings(file));
  for (auto text : {"", "{", "[]", "{}", R"({"filesystem": 1})", R"({"filesystem": {"denyRead": [1]}})",
                    R"({"filesystem": {"denyRead": [{}]}})"}) {
    put(file, text);
    CHECK_THROWS(readSettings(file));
  }
  put(file, R"({"filesystem": {"denyRead": ["/a", {"path": "/b[x]", "literal": true}], "allowWrite": ["/c"]}})");
  auto settings = readSettings(file);
  CHECK(settings.denyRead == std::vector<std::string>{"/a", "/b[x]"});
  CHECK(settings.allowWrite == std::vector<std::string>{"/c"});
  CHECK(settings.denyWrite.empty());
}
