// What config check says of sandboxes and containers.
#include <stdlib.h>
#include <unistd.h>

#include "config_support.h"

using namespace oc::config;
using namespace oc::config::testing;

namespace {

const std::string digest = "sha256:" + std::string(64, 'a');
const std::string atBinding = "scopes[0].bindings[0].";

std::string withImage(const std::string& image) {
  return withShell("\"container\": {\"provider\": \"docker\", \"config\": {\"image\": " + image + "}}");
}

// A Claude Code binding in srt with this environment and these writable paths, and `more` bindings.
std::string claude(const std::string& env, const std::string& write, const std::string& more = "") {
  return withBinding(R"("executor": "claude-code", "config": {)" + env +
                     R"(}, "resource": {"provider": "git", "config": {"checkout": "/srv/demo"}},
    "sandbox": {"provider": "srt", "config": {"write": [)" +
                     write + "]}}}" + more +
                     R"(, {"name": "last", "executor": "shell", "config": {"command": ["true"]})");
}

std::string claudeDirectory(const std::string& path, const std::string& more = "") {
  return claude("\"env\": {\"CLAUDE_CONFIG_DIR\": " + path + "}", "\"{workspace}\", \"/srv/claude\"", more);
}

}  // namespace

TEST_CASE("A5 F4 sandbox and container together are refused") {
  std::string sandbox = R"("sandbox": {"provider": "srt", "config": {}}, )";
  std::string container = R"({"provider": "docker", "config": {"image": "a@)" + digest + "\"}}";
  checkError(withShell(sandbox + "\"container\": §" + container), atBinding + "container", "never both", "delete one",
             "sandbox_conflict");
  checkClean(withShell("\"container\": " + container));
  checkClean(withSrt(""));
}

TEST_CASE("A6 F4 both kinds need a git resource in clone mode and without setup") {
  const std::string kinds[] = {R"("sandbox": {"provider": "srt", "config": {}})",
                               R"("container": {"provider": "docker", "config": {"image": "a@)" + digest + "\"}}"};
  for (auto& kind : kinds) {
    auto with = [&kind](const std::string& resource, const std::string& config) {
      return withBinding("\"executor\": \"shell\", \"config\": {\"command\": [\"true\"]" + config +
                         "}, \"resource\": {\"provider\": \"git\", \"config\": {\"checkout\": \"/srv/demo\"" +
                         resource + "}}, " + kind);
    };
    checkClean(with("", ""));
    checkClean(with(", \"mode\": \"clone\", \"setup\": []", ", \"workspace_mode\": \"clone\""));
    checkError(with(", \"mode\": §\"worktree\"", ""), atBinding + "resource.config.mode", "worktree", "\"clone\"",
               "sandbox_workspace");
    checkError(with("", ", \"workspace_mode\": §\"worktree\""), atBinding + "config.workspace_mode", "worktree", "",
               "sandbox_workspace");
    checkError(with(", \"setup\": §[\"make\"]", ""), atBinding + "resource.config.setup", "your machine", "",
               "sandbox_workspace");
    auto bare = withBinding("\"executor\": \"shell\", \"config\": {\"command\": [\"true\"]}, " + kind);
    auto at = bare.find("{\"name\"");
    checkError(bare.insert(at, "§"), "scopes[0].bindings[0]", "needs a git resource", "checkout", "sandbox_workspace");
  }
  checkClean(withBinding(R"("executor": "shell", "config": {"command": ["true"]}, "resource": {"provider": "git",
    "config": {"checkout": "/srv/demo", "mode": "worktree", "setup": ["make"]}})"));
}

TEST_CASE("D2 workspace_mode and resource.config.mode can't disagree") {
  auto with = [](const std::string& here, const std::string& there) {
    return withBinding(
        "\"executor\": \"shell\", \"config\": {\"command\": [\"true\"], \"workspace_mode\": " + here +
        "}, \"resource\": {\"provider\": \"git\", \"config\": {\"checkout\": \"/srv/demo\", \"mode\": " + there + "}}");
  };
  checkError(with("§\"clone\"", "\"worktree\""), atBinding + "config.workspace_mode",
             "\"worktree\" in resource.config.mode", "the same");
  checkClean(with("\"worktree\"", "\"worktree\""));
  checkError(
      withBinding("\"executor\": \"shell\", \"config\": {\"command\": [\"true\"], \"workspace_mode\": §\"clone\"}"),
      atBinding + "config.workspace_mode", "no resource");
}

TEST_CASE("B1 an image is pinned by its digest") {
  for (auto name : {"agent", "acme/agent", "registry.example.com/acme/agent", "localhost:5000/agent", "agent:v1",
                    "localhost:5000/a/b:v1", "Registry.Example.com/x"}) {
    checkClean(withImage("\"" + std::string(name) + "@" + digest + "\""));
  }
  std::string field = atBinding + "container.config.image";
  checkError(withImage("§\"acme/agent:latest\""), field, "is a tag, which can change", "name@sha256:…");
  checkError(withImage("§\"localhost:5000/agent\""), field, "has no digest");
  checkError(withImage("§\"agent@sha256:abc\""), field, "no digest", "64 hexadecimal");
  checkError(withImage("§\"agent@sha512:" + std::string(64, 'a') + "\""), field, "no digest");
  checkError(withImage("§\"agent@sha256:" + std::string(64, 'A') + "\""), field, "no digest");
  for (auto name :
       {"", "Agent", "a//b", "/a", "a b", "-a", "https://example.com/a", "a/B", "a..b/c", "a___b", "a._b", "a-",
        ":5000/x", "[::1]:5000/x", "localhost:/x", "localhost:123456/x", "a\\u001b[2J", "a\\u0000", "b\u00fc"}) {
    checkError(withImage("§\"" + std::string(name) + "@" + digest + "\""), field, "");
  }
  for (auto& name :
       {std::string("a--b"), std::string("a__b/c.d"), std::string("10.0.0.1:5000/x"), std::string(255, 'a')})
    checkClean(withImage("\"" + name + "@" + digest + "\""));
  for (auto tag : {"", "-x", "\u00e9", ".1", "a+b"})
    checkError(withImage("§\"agent:" + std::string(tag) + "@" + digest + "\""), field, "is no image's tag",
               "leave it out");
  checkClean(withImage("\"" + digest + "\""));
  checkError(withImage("§\"\""), field, "is empty", "name@sha256:…");
  checkError(withImage("§\"" + std::string(10240, 'a') + "@" + digest + "\""), field, "longer than 255 bytes");
  checkError(withImage("§\"" + std::string(64, 'a') + "\""), field, "has no digest", "{{.Id}}");
}

TEST_CASE("B3 hosts in network.allow have one of three forms") {
  for (auto kind : {withSrt, withDocker}) {
    bool srt = kind == withSrt;
    std::string field = atBinding + (srt ? "sandbox" : "container") + ".config.network.allow[0]";
    auto allow = [kind](const std::string& host) { return kind("\"network\": {\"allow\": [" + host + "]}", ""); };
    for (auto host : {"example.org", "example.org:443", "*.example.org", "192.0.2.1", "[2001:db8::1]:443"})
      checkClean(allow("\"" + std::string(host) + "\""));
    checkError(allow("§\"https://example.org\""), field, "without the scheme", "host, host:port or *.domain");
    checkError(allow("§\"*\""), field, "every host");
    checkError(allow("§\"user@example.org\""), field, "user name");
    checkError(allow("§\"example.org/x\""), field, "path");
    struct Row {
      const char *text, *message;
    };
    for (auto& row : {Row{"user:password@example.org", "user name"},
                      {"a.*.org", "only at the beginning"},
                      {"*.", "no domain"},
                      {"*:443", "every host"},
                      {"example.org:0", "no port"},
                      {"example.org:70000", "no port"},
                      {"example.org:-1", "no port"},
                      {"example.org:080", "no port"},
                      {"example.org:", "no port"},
                      {"2001:db8::1", "in brackets: [2001:db8::1]"},
                      {"0x7f.1", "a number"},
                      {"127.1", "a number"},
                      {"2130706433", "a number"},
                      {"b\u00fccher.example", "ASCII form (xn--…)"},
                      {"example.org..", "empty part"},
                      {"1.1.1.1.", "no dot behind it"},
                      {"", "is empty"},
                      {"example.org\\n", "control character"}}) {
      checkError(allow("§\"" + std::string(row.text) + "\""), field, row.message, "write host, host:port or *.domain");
    }
    checkError(allow("§\"" + std::string(300, 'a') + "\""), field, "too long");
    checkError(allow("§\"" + std::string(64, 'a') + ".example\""), field, "longer than 63");
    for (auto host : {"EXAMPLE.org.", "xn--bcher-kva.example", "[2001:db8::1]"})
      checkClean(allow("\"" + std::string(host) + "\""));
  }
}

TEST_CASE("B4 B6 limits and context are what Docker takes") {
  std::string field = atBinding + "container.config.";
  checkClean(
      withDocker(R"("limits": {"cpus": 0.5, "memory": "512m", "pids": 100}, "provider": {"context": "my-context.1"})"));
  for (auto memory : {"", "8gb", "g", "-1g", "08g", "8 g", "1.5g"}) {
    checkError(withDocker("\"limits\": {\"memory\": §\"" + std::string(memory) + "\"}"), field + "limits.memory",
               "amount of memory", "8g");
  }
  for (auto memory : {"NaN", "8GiB", "1e9", "0", "0m", "0x10m", "8t", "inf"}) {
    checkError(withDocker("\"limits\": {\"memory\": §\"" + std::string(memory) + "\"}"), field + "limits.memory",
               "amount of memory");
  }
  for (auto memory : {"1", "1b", "6143k", "5m"}) {
    checkError(withDocker("\"limits\": {\"memory\": §\"" + std::string(memory) + "\"}"), field + "limits.memory",
               "too little", "\"6m\" or more");
  }
  // The third and the fourth are 0 and 1 GiB, where 64 bits are all that is looked at.
  for (auto memory :
       {"1073741824g", "8388609g", "17179869184g", "17179869185g", "999999999999999g", "999999999999999m"}) {
    checkError(withDocker("\"limits\": {\"memory\": §\"" + std::string(memory) + "\"}"), field + "limits.memory",
               "more than any machine");
  }
  for (auto memory : {"6m", "6291456", "6291456B", "6144K", "8388608g"})
    checkClean(withDocker("\"limits\": {\"memory\": \"" + std::string(memory) + "\"}"));
  for (auto cpus : {"0", "-1", "0.001", "1e9", "4097", "1e308", "1e-300"})
    checkError(withDocker("\"limits\": {\"cpus\": §" + std::string(cpus) + "}"), field + "limits.cpus", "out of range");
  for (auto pids : {"0", "-1", "15", "4194305", "1e300"})
    checkError(withDocker("\"limits\": {\"pids\": §" + std::string(pids) + "}"), field + "limits.pids", "out of range");
  checkError(withDocker("\"provider\": {\"context\": §\"../x\"}"), field + "provider.context", "Docker context",
             "docker context ls");
}

TEST_CASE("B2 private ranges are networks") {
  std::string field = atBinding + "container.config.network.private[0]";
  auto ranges = [](const std::string& text) { return withDocker("\"network\": {\"private\": [" + text + "]}"); };
  for (auto text : {"10.1.0.0/16", "192.168.1.1/32", "fd00:1::/32", "FD00::/8"})
    checkClean(ranges("\"" + std::string(text) + "\""));
  checkError(ranges("§\"10.1.2.0/16\""), field, "bits of a host", "write 10.1.0.0/16");
  checkError(ranges("§\"fd00:1::1/32\""), field, "bits of a host", "write fd00:1::/32");
  for (auto text : {"10.1.0.0",
                    "10.1.0.0/33",
                    "10.1/16",
                    "x/8",
                    "10.0.0.0/",
                    "10.0.0.0/+8",
                    "fd00::/129",
                    "",
                    "*",
                    "*.com",
                    "https://10.0.0.0/8",
                    "10.0.0.0/8/x",
                    "u@10.0.0.0/8",
                    "10.0.0.0/-1",
                    "10.0.0.0/8:80",
                    "[fd00::]/8",
                    "fd00::%eth0/8",
                    "0x0a.0.0.0/8",
                    "167772160/8",
                    "010.0.0.0/8",
                    "10.0.0.0/8 ",
                    "10.0.0.0/8\\n"}) {
    checkError(ranges("§\"" + std::string(text) + "\""), field, "no network", "10.1.0.0/16");
  }
}

TEST_CASE("B4 no engine's socket and no whole machine is mounted") {
  for (std::string list : {"write", "read"}) {
    auto field = atBinding + "container.config." + list + "[0]";
    auto mount = [&list](const std::string& path) { return withDocker("\"" + list + "\": [" + path + "]"); };
    checkError(mount("§\"/var/run/docker.sock\""), field, "the whole machine");
    checkError(mount("§\"/run//docker.sock\""), field, "the whole machine");
    checkError(mount("§\"/\""), field, "whole machine");
    for (auto path : {"/proc/1", "//proc//1", "/proc/", "/./sys", "/dev/shm", "/dev/null"})
      checkError(mount("§\"" + std::string(path) + "\""), field, "its own /proc, /sys and /dev", "delete it");
    for (auto path : {"/run", "/run/", "//var//run/."})
      checkError(mount("§\"" + std::string(path) + "\""), field, "the machine's services", "list what is needed");
    for (auto path : {"/srv/cache", "/run/postgresql", "/srv/a:b,c", "/srv/\\\"q'\\\\"})
      checkClean(mount("\"" + std::string(path) + "\""));
    checkError(mount("§\"/srv/../proc\""), field, "\"..\"");
    checkError(mount("§\"/srv/a\\nb\""), field, "control characters");
    checkError(mount("§\"/" + std::string(5000, 'a') + "\""), field, "longer than 4095");
  }
}

TEST_CASE("A8 a container that is to get what is Open Conduit's own is refused before there is one") {
  for (std::string list : {"write", "read"}) {
    auto field = atBinding + "container.config." + list + "[0]";
    auto mount = [&list](const std::string& path) { return withDocker("\"" + list + "\": [" + path + "]"); };
    for (auto path :
         {"~/.local/state/open-conduit", "/home/op//.config/open-conduit/config.json", "/run/user/1000/open-conduit"})
      checkError(mount("§\"" + std::string(path) + "\""), field, "it lies in", "delete it", "sandbox_denied");
    for (auto path : {"~", "/home", "~/.local/state", "/run/user/1000"})
      checkError(mount("§\"" + std::string(path) + "\""), field, "it holds", "beneath it", "sandbox_denied");
    checkClean(mount("\"~/.local/state/open\""));
  }
  for (auto path : {"~/.claude", "~/.claude/hooks", "/home/op//.claude.json"}) {
    checkError(withDocker("\"write\": [§\"" + std::string(path) + "\"]"), atBinding + "container.config.write[0]",
               "your own claude's", "a home of its own", "sandbox_denied");
    checkClean(withDocker("\"read\": [\"" + std::string(path) + "\"]"));
  }
  // Where they lie elsewhere, all of a home is a warning.
  auto loaded = loadText(withDocker("\"read\": [\"~\"]"), "config.json", {"/home/op"});
  REQUIRE(loaded.diagnostics.size() == 1);
  CHECK(loaded.diagnostics[0].message == "runs can read all of your home, your credentials included");
  detail::collect(loaded.diagnostics[0].message);
  auto seed = [](const std::string& path) {
    return withBinding(
        R"("executor": "shell", "config": {"command": ["true"], "home_seed": )" + path +
        R"(}, "resource": {"provider": "git", "config": {"checkout": "/srv/demo"}}, "container": {"provider": "docker", "config": {"image": "a@)" +
        digest + "\"}}");
  };
  auto field = atBinding + "config.home_seed";
  for (auto path : {"~/.ssh", "~/.docker", "/home/op/.aws/"})
    checkWarning(seed("§\"" + std::string(path) + "\""), field, "runs can read ~/.");
  checkClean(seed("\"~/seeds/agent\""));
  checkError(seed("§\"~/.config/open-conduit\""), field, "it lies in", "a folder of its own", "sandbox_denied");
  checkError(seed("§\"/\""), field, "it holds", "a folder of its own", "sandbox_denied");
  checkError(seed("§\"/proc/self\""), field, "/proc, /sys and /dev", "a folder of its own", "sandbox_denied");
}

TEST_CASE("B11 a container's home is the Work's own") {
  auto with = [](const std::string& config) {
    return withBinding(
        R"("executor": "shell", "config": {"command": ["true"], )" + config +
        R"(}, "resource": {"provider": "git", "config": {"checkout": "/srv/demo"}}, "container": {"provider": "docker", "config": {"image": "a@)" +
        digest + "\"}}");
  };
  checkError(with("\"env\": {\"HOME\": §\"/x\"}"), atBinding + "config.env.HOME", "Work's own home");
  checkError(with("\"env\": {\"CLAUDE_CONFIG_DIR\": §\"/x\"}"), atBinding + "config.env.CLAUDE_CONFIG_DIR",
             "Work's own home");
  checkClean(with("\"home_seed\": \"~/seed\""));
  checkError(withBinding("\"executor\": \"shell\", \"config\": {\"command\": [\"true\"], \"home_seed\": §\"/x\"}"),
             atBinding + "config.home_seed", "only runs in a container");
}

#ifdef __linux__
TEST_CASE("C3 on Linux, sockets need unix_sockets all") {
  checkError(withSrt("\"sockets\": §[\"{toolbelt}\"]"), atBinding + "sandbox.config.sockets",
             "can't allow a socket by its path", "\"unix_sockets\": \"all\"");
  checkClean(withSrt("\"sockets\": [\"{toolbelt}\"], \"unix_sockets\": \"all\""));
  checkClean(withSrt("\"sockets\": []"));
}
#endif

TEST_CASE("C2 read.only stands alone, and is not everything") {
  checkClean(withSrt(R"("read": {"only": ["~/data", "/opt/tool"]})"));
  checkClean(withSrt(R"("read": {"only": []})"));
  for (std::string other : {"deny", "allow"}) {
    checkError(withSrt("\"read\": {\"only\": [\"~/data\"], \"" + other + "\": §[]}"),
               atBinding + "sandbox.config.read." + other, "only lists all that is readable", "delete this list");
  }
  checkError(withSrt(R"("read": {"only": ["/usr", §"/"]})"), atBinding + "sandbox.config.read.only[1]", "everything",
             "list what is needed");
  checkWarning(withSrt(R"("read": {"only": [§"~"]})"), atBinding + "sandbox.config.read.only[0]", "all of your home");
  checkWarning(withSrt(R"("read": {"only": [§"~/.ssh"]})"), atBinding + "sandbox.config.read.only[0]",
               "runs can read ~/.ssh");
}

TEST_CASE("C1 hosts that srt itself refuses are refused before") {
  std::string field = atBinding + "sandbox.config.network.allow[0]";
  checkError(withSrt("\"network\": {\"allow\": [§\"*.com\"]}"), field, "domain of a single word", "*.example.com");
  checkError(withSrt("\"network\": {\"allow\": [§\"intranet\"]}"), field, "host of a single word");
  checkAccepted(withSrt("\"network\": {\"allow\": [\"localhost:8080\"]}"));
}

TEST_CASE("C5 Claude Code in a process sandbox needs a config directory of its own") {
  auto field = atBinding + "config";
  checkClean(claudeDirectory("\"/srv/claude\""));
  checkClean(claudeDirectory("\"/srv/claude/one\""));
  auto refused = [](const std::string& marked, const std::string& field, const std::string& message) {
    checkError(marked, field, message, "", "sandbox_config");
  };
  auto without = claude("", "\"{workspace}\"");
  refused(without.insert(without.find("{}"), "§"), field, "needs a config directory of its own");
  refused(claude("\"env\": §{\"A\": \"b\"}", "\"{workspace}\""), field + ".env", "needs a config directory of its own");
  field += ".env.CLAUDE_CONFIG_DIR";
  for (auto path : {"claude", "~/sandboxed", "", "$HOME/x"})
    refused(claudeDirectory("§\"" + std::string(path) + "\""), field, "absolute path");
  for (auto path : {"/home/op/.claude", "/home/op/.claude/", "/home/op/x/../.claude", "/home/op/.claude/inside",
                    "/home/op", "/home", "/", "/home/op/.claude.json"}) {
    refused(claudeDirectory("§\"" + std::string(path) + "\""), field, "another claude");
  }
  checkAccepted(claudeDirectory("\"/home/op/.claude-sandboxed\""));
}

TEST_CASE("C5 no other claude of the operator's uses that directory") {
  auto field = atBinding + "config.env.CLAUDE_CONFIG_DIR";
  std::string other =
      R"(, {"name": "free", "executor": "claude-code", "config": {"env": {"CLAUDE_CONFIG_DIR": "/srv/claude"}}})";
  checkError(claudeDirectory("§\"/srv/claude\"", other), field, "the unsandboxed binding s/free", "", "sandbox_config");
  checkError(claudeDirectory("§\"/srv/claude/x\"", other), field, "s/free", "", "sandbox_config");
  other.replace(other.find("/srv/claude"), 11, "/srv/other");
  checkClean(claudeDirectory("\"/srv/claude\"", other));

  auto loaded = loadText(claudeDirectory("\"/srv/claude\""), "config.json", {"/home/op", "/srv/claude"});
  CHECK(rendered(loaded).find("your $CLAUDE_CONFIG_DIR (sandbox_config)") != std::string::npos);
  CHECK(loadText(claudeDirectory("\"/srv/claude\""), "config.json", {"/home/op", "/srv/other"}).config);
}

TEST_CASE("C5 a link to the operator's config directory is that directory") {
  char name[] = "/tmp/oc-config-XXXXXX";
  REQUIRE(mkdtemp(name) != nullptr);
  std::string home = name;
  oc::makeDirectories(home + "/.claude");
  oc::makeDirectories(home + "/own");
  REQUIRE(symlink((home + "/.claude").c_str(), (home + "/link").c_str()) == 0);
  CHECK(loadText(claudeDirectory("\"" + home + "/own\""), "config.json", {home}).config);
  auto loaded = loadText(claudeDirectory("\"" + home + "/link\""), "config.json", {home});
  CHECK_FALSE(loaded.config);
  CHECK(rendered(loaded).find("sandbox_config") != std::string::npos);
  oc::removeTree(home);
}

TEST_CASE("C5 a config directory that isn't granted in write is pointed out") {
  checkWarning(claude("\"env\": {\"CLAUDE_CONFIG_DIR\": §\"/srv/claude\"}", "\"{workspace}\""),
               atBinding + "config.env.CLAUDE_CONFIG_DIR", "can't write");
}

TEST_CASE("D2 dangerous hosts are pointed out") {
  std::string field = atBinding + "container.config.network.allow[0]";
  auto allow = [](const std::string& host) { return withDocker("\"network\": {\"allow\": [" + host + "]}"); };
  checkWarning(allow("§\"*.com\""), field, "every host under .com");
  checkWarning(allow("§\"*.amazonaws.com\""), field, "anyone can have a host");
  checkWarning(allow("§\"*.co.uk\""), field, "anyone can have a host");
  checkWarning(allow("§\"webhook.site\""), field, "uploads");
  checkWarning(allow("§\"169.254.169.254\""), field, "metadata");
  checkWarning(allow("\"example.org\", §\"Example.org.\""), atBinding + "container.config.network.allow[1]", "twice");
  for (auto host : {"localhost", "127.0.0.1:80", "[::1]"})
    checkWarning(allow("§\"" + std::string(host) + "\""), field, "loopback of its own");
  checkWarning(withSrt("\"network\": {\"allow\": [§\"localhost\"]}"), atBinding + "sandbox.config.network.allow[0]",
               "your own machine");
  checkWarning(withSrt("\"network\": {\"allow\": [§\"127.0.0.1:18080\"]}"),
               atBinding + "sandbox.config.network.allow[0]", "port 18080 of your own machine");
  checkWarning(withDocker("\"network\": {\"private\": [§\"0.0.0.0/0\"]}"),
               atBinding + "container.config.network.private[0]", "every address");
  checkWarning(withDocker("\"network\": {\"private\": [§\"169.254.0.0/16\"]}"),
               atBinding + "container.config.network.private[0]", "metadata");
}

TEST_CASE("D2 dangerous paths are pointed out") {
  for (auto kind : {withSrt, withDocker}) {
    std::string field = atBinding + (kind == withSrt ? "sandbox" : "container") + ".config.write[0]";
    auto write = [kind](const std::string& path) { return kind("\"write\": [" + path + "]", ""); };
    checkError(write("§\"~\""), field, "all of your home", "grant", "sandbox_denied");
    checkError(write("§\"/home\""), field, "beyond it", "grant", "sandbox_denied");
    checkError(write("§\"~/.bashrc\""), field, "runs as you later: ~/.bashrc", "grant", "sandbox_denied");
    checkError(write("§\"~/.config\""), field, "runs as you later", "grant", "sandbox_denied");
    checkError(write("§\"~/.config/fish/functions\""), field, "~/.config/fish", "grant", "sandbox_denied");
    for (auto path :
         {"~/.docker", "~/.docker/config.json", "~/.docker/cli-plugins/docker-x", "~/.docker/contexts/meta"})
      checkError(write("§\"" + std::string(path) + "\""), field, "runs as you later: ~/.docker/", "grant",
                 "sandbox_denied");
    checkClean(write("\"~/.docker/buildx\""));
    checkWarning(write("§\"~/.ssh\""), field, "~/.ssh");
    for (auto path : {"/etc", "/usr/bin", "/etc/ld.so.conf.d", "/usr/local", "/var"})
      checkWarning(write("§\"" + std::string(path) + "\""), field, "belongs to the system");
    for (auto path : {"/usr/local/share/models", "/var/cache/models", "/opt/models"})
      checkClean(write("\"" + std::string(path) + "\""));
    checkWarning(write("§\"/srv\""), field, "your own checkout");
    checkWarning(write("§\"/srv/demo/.git/hooks\""), field, "your own checkout");
    checkClean(write("\"/srv/demo/cache\""));
    checkClean(write("\"~/.npm\""));
    checkClean(write("\"{workspace}\""));
  }
  std::string field = atBinding + "sandbox.config.read.allow[0]";
  auto allow = [](const std::string& path, const std::string& deny = "") {
    return withSrt("\"read\": {\"allow\": [" + path + "], \"deny\": [" + deny + "]}");
  };
  checkWarning(allow("§\"~/.ssh\""), field, "runs can read ~/.ssh");
  checkWarning(allow("§\"~/.config\""), field, "lifts nothing");
  checkClean(allow("\"~/.ssh/known_hosts\""));
  checkClean(allow("\"/srv/secret/public\"", "\"/srv/secret\""));
  checkWarning(withDocker("\"read\": [§\"~/.aws\"]"), atBinding + "container.config.read[0]", "~/.aws");
  checkClean(withDocker("\"read\": [\"~/.gitconfig\"]"));
}

TEST_CASE("D2 dangerous variables and tokens are pointed out") {
  auto with = [](const std::string& config, const std::string& kind) {
    std::string names = config.find("secret_env") == std::string::npos ? "" : "\"key\"";
    return withBinding(R"("executor": "shell", "secret_names": [)" + names + R"(], "config": {"command": ["true"], )" +
                       config + R"(}, "resource": {"provider": "git", "config": {"checkout": "/srv/demo"}}, )" + kind);
  };
  std::string srt = R"("sandbox": {"provider": "srt", "config": {}})";
  std::string docker = R"("container": {"provider": "docker", "config": {"image": "a@)" + digest + "\"}}";
  checkWarning(with("\"env\": {\"NODE_OPTIONS\": §\"--x\"}", srt), atBinding + "config.env.NODE_OPTIONS",
               "how programs start");
  checkWarning(with("\"env\": {\"LD_PRELOAD\": §\"/x\"}", srt), atBinding + "config.env.LD_PRELOAD",
               "how programs start");
  checkClean(with("\"env\": {\"NODE_OPTIONS\": \"--x\"}", docker));
  checkWarning(with("\"secret_env\": {\"key\": §\"GH_TOKEN\"}", docker), atBinding + "config.secret_env.key",
               "goes into the container");
  checkClean(with("\"secret_env\": {\"key\": \"GH_TOKEN\"}", srt));
  checkWarning(with("\"env\": {\"NPM_TOKEN\": §\"abc\"}", srt), atBinding + "config.env.NPM_TOKEN", "plain text");
  checkWarning(with("\"branch\": §\"agent\"", srt), atBinding + "config.branch", "same branch");
}

TEST_CASE("D2 what can't have an effect is pointed out") {
  checkWarning(withShell("\"timeout\": \"1m\", \"stall_timeout\": §60"), atBinding + "stall_timeout",
               "always comes first");
  checkClean(withShell("\"timeout\": \"1m\", \"stall_timeout\": 59"));
  checkWarning(withShell("\"operations\": [§\"@github.author\"]"), atBinding + "operations[0]",
               "authorization doesn't have this");
  auto text = withShell("\"max_runs\": §9");
  checkWarning(text.insert(1, "\"settings\": {\"max_runs\": 8}, "), atBinding + "max_runs", "only 8");
}

TEST_CASE("B14 C9 a git that could not sign in is pointed out") {
  auto container = fixture("container.json");
  auto replaced = [](std::string text, const std::string& from, const std::string& to) {
    auto at = text.rfind(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
  };
  auto inBinding = load(replaced(container, "[\"@github.author\", \"@github.workspace\"]", "[\"@github.author\"]"));
  CHECK(rendered(inBinding).find("isn't among the binding's operations") != std::string::npos);
  auto srt = replaced(fixture("srt.json"), "\"app_id\": \"123456\"", "\"app_id\": \"123456\", \"git\": \"bot\"");
  CHECK_FALSE(load(srt).hasErrors());
  CHECK(rendered(load(srt)).find("does not list github.git.credential") != std::string::npos);
  auto without = load(replaced(srt, "\"github.com\", ", ""));
  CHECK(without.config);
  CHECK(rendered(without).find("runs cannot reach github.com") != std::string::npos);
}
