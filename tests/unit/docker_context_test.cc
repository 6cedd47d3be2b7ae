#include "base/docker_context.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "base/crypto.h"
#include "base/fd.h"
#include "base/json.h"
#include "tests/catch.h"

namespace oc {
namespace {

struct Home {
  std::string path;
  DockerPlaces places;

  Home() {
    char name[] = "/tmp/oc-context-XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    path = name;
    places.home = path;
    places.defaultSocket = path + "/var-run-docker.sock";
  }
  ~Home() { removeTree(path); }

  void write(const std::string& configDir, const std::string& name, const std::string& text) {
    auto directory = configDir + "/contexts/meta/" + sha256Hex(name);
    makeDirectories(directory);
    writeFileAtomically(directory + "/meta.json", text);
  }
  void context(const std::string& name, const std::string& host, const std::string& configDir = "") {
    Json meta = {{"Name", name}, {"Metadata", Json::object()}, {"Endpoints", {{"docker", {{"Host", host}}}}}};
    write(configDir.empty() ? path + "/.docker" : configDir, name, meta.dump());
  }
  OrRefusal<DockerEndpoint> find(const std::string& name) { return findDockerEndpoint(name, places); }
};

// A socket that somebody listens on.
kj::AutoCloseFd listenOn(const std::string& path) {
  kj::AutoCloseFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  struct sockaddr_un address {};
  address.sun_family = AF_UNIX;
  strcpy(address.sun_path, path.c_str());
  REQUIRE(bind(fd.get(), reinterpret_cast<struct sockaddr*>(&address), sizeof(address)) == 0);
  REQUIRE(listen(fd.get(), 1) == 0);
  return fd;
}

}  // namespace

TEST_CASE("B6 without a name it is the default context, whatever the command line's current one is") {
  Home home;
  makeDirectories(home.path + "/.docker");
  writeFileAtomically(home.path + "/.docker/config.json", R"({"currentContext":"other"})");
  home.context("other", "unix:///other.sock");
  setenv("DOCKER_HOST", "unix:///from-environment.sock", 1);
  setenv("DOCKER_CONTEXT", "other", 1);
  for (auto name : {"", "default"}) CHECK(home.find(name).value().socket == home.places.defaultSocket);
  CHECK(home.find("").value().context == "default");
  CHECK(home.find("other").value().socket == "/other.sock");
  unsetenv("DOCKER_HOST");
  unsetenv("DOCKER_CONTEXT");
  CHECK(DockerPlaces().defaultSocket == "/var/run/docker.sock");
}

TEST_CASE("B6 a context is found by its name, in the operator's own files") {
  Home home;
  home.context("lab", "unix:///run/lab/../docker.sock");
  auto found = home.find("lab");
  REQUIRE(found.ok());
  CHECK(found.value().context == "lab");
  CHECK(found.value().socket == "/run/docker.sock");
}

TEST_CASE("only a Unix socket's engine can be given a workspace: every other endpoint is refused, with why") {
  Home home;
  for (auto host : {"ssh://me@machine", "tcp://127.0.0.1:2375", "npipe:////./pipe/docker_engine", "http://x", "fd://",
                    "unix://", "unix://relative", "", "UNIX:///x"}) {
    home.context("far", host);
    auto found = home.find("far");
    INFO(host);
    REQUIRE_FALSE(found.ok());
    CHECK(found.refusal().reason == "sandbox_unavailable");
    CHECK_THAT(found.refusal().what, hasText("\"far\"") && hasText("unix://"));
    CHECK(found.refusal().fix != "");
  }
}

TEST_CASE("a context that is not there: those that are, are named") {
  Home home;
  home.context("lab", "unix:///l.sock");
  home.context("build", "unix:///b.sock");
  auto found = home.find("../lab\x1b[2J");
  REQUIRE_FALSE(found.ok());
  CHECK_THAT(found.refusal().what, hasText("default, build, lab"));
  CHECK(found.refusal().what.find('\x1b') == std::string::npos);
}

TEST_CASE("a context's file that is damaged, another's, deep or large is refused") {
  Home home;
  auto config = home.path + "/.docker";
  for (auto& text : {std::string("{"), std::string("[]"), std::string(R"({"Name":"other"})"), std::string(100000, '['),
                     std::string(R"({"Name":"lab","Endpoints":{"docker":{"Host":5}}})"),
                     "{\"Name\":\"lab\",\"x\":\"" + std::string(200000, 'x') + "\"}"}) {
    home.write(config, "lab", text);
    auto found = home.find("lab");
    INFO(text.substr(0, 50));
    REQUIRE_FALSE(found.ok());
    CHECK(found.refusal().reason == "sandbox_unavailable");
  }
}

TEST_CASE("a context's file that is no file holds nobody up, and the command that makes it anew is whole") {
  Home home;
  auto place = home.path + "/.docker/contexts/meta/" + sha256Hex("lab") + "/meta.json";
  makeDirectories(place.substr(0, place.rfind('/')));
  SECTION("a pipe") { REQUIRE(mkfifo(place.c_str(), 0600) == 0); }
  SECTION("a folder") { makeDirectories(place); }
  SECTION("50 MB") {
    writeFileAtomically(place, "");
    REQUIRE(truncate(place.c_str(), 50'000'000) == 0);
  }
  auto found = home.find("lab");
  REQUIRE_FALSE(found.ok());
  CHECK(found.refusal().reason == "sandbox_unavailable");
  CHECK_THAT(found.refusal().what, hasText("\"lab\" cannot be read"));
  CHECK_THAT(found.refusal().fix, hasText("docker context create 'lab' --docker host=unix://"));
}

TEST_CASE("what cannot be connected to is told by its reason") {
  Home home;
  auto refused = [](const std::string& socket) {
    auto dialed = dialDocker({"lab", socket});
    REQUIRE_FALSE(dialed.ok());
    CHECK(dialed.refusal().reason == "sandbox_unavailable");
    CHECK(dialed.refusal().fix != "");
    return dialed.refusal();
  };
  auto path = home.path + "/engine.sock";
  CHECK_THAT(refused(path).what, hasText(path) && hasText("lab") && hasText("No such file"));
  writeFileAtomically(path, "");
  CHECK_THAT(refused(path).what, hasText("Connection refused"));
  unlink(path.c_str());
  auto listener = listenOn(path);
  CHECK(dialDocker({"lab", path}).ok());  // control
  listener = nullptr;
  CHECK_THAT(refused(path).what, hasText("Connection refused"));
  CHECK_THAT(refused("/" + std::string(200, 'a')).what, hasText("107 is the most"));
}

TEST_CASE("B9 DOCKER_CONFIG and XDG_RUNTIME_DIR count when they are granted, and a missing grant is named") {
  Home home;
  auto elsewhere = home.path + "/elsewhere";
  home.context("lab", "unix:///lab.sock", elsewhere);
  CHECK_FALSE(home.find("lab").ok());
  home.places.configDirNotGranted = elsewhere;
  CHECK_THAT(home.find("lab").refusal().fix, hasText("DOCKER_CONFIG") && hasText("pass_env"));
  home.places.configDir = elsewhere;
  CHECK(home.find("lab").value().socket == "/lab.sock");

  makeDirectories(home.path + "/runtime");
  auto rootless = home.path + "/runtime/docker.sock";
  auto listener = listenOn(rootless);
  home.places.runtimeDirNotGranted = home.path + "/runtime";
  CHECK_THAT(home.find("default").refusal().fix, hasText("XDG_RUNTIME_DIR") && hasText("pass_env"));
  home.places.runtimeDir = home.path + "/runtime";
  CHECK(home.find("default").value().socket == rootless);
  // The system's engine comes first.
  auto system = listenOn(home.places.defaultSocket);
  CHECK(home.find("default").value().socket == home.places.defaultSocket);
}

TEST_CASE("dialing: an engine that hangs is told, and the daemon does not wait for it") {
  Home home;
  auto path = home.path + "/docker.sock";
  auto listener = listenOn(path);
  std::vector<kj::AutoCloseFd> waiting;
  for (int i = 0; i < 10'000; ++i) {
    auto dialed = dialDocker({"lab", path});
    if (!dialed.ok()) {
      CHECK_THAT(dialed.refusal().what, hasText("hangs"));
      CHECK_THAT(dialed.refusal().fix, hasText("restart"));
      return;
    }
    waiting.push_back(kj::mv(dialed.value()));
  }
  FAIL("its queue has no end");
}

TEST_CASE("dialing: an engine that listens, and what is said when none does") {
  Home home;
  auto path = home.path + "/docker.sock";
  auto dial = [&](const std::string& socket) { return dialDocker({"lab", socket}); };
  CHECK_THAT(dial(path).refusal().fix, hasText("install and start"));
  {
    auto listener = listenOn(path);
    CHECK(dial(path).ok());
  }
  CHECK_THAT(dial(path).refusal().fix, hasText("start the Docker Engine"));  // nobody listens any more
  CHECK_THAT(dial("/" + std::string(200, 'x')).refusal().what, hasText("107"));
  if (geteuid() != 0) {
    auto other = home.path + "/other.sock";
    auto listener = listenOn(other);
    REQUIRE(chmod(other.c_str(), 0) == 0);
    CHECK_THAT(dial(other).refusal().fix, hasText("usermod -aG docker"));
  }
}

}  // namespace oc
