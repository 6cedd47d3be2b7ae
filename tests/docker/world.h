// A real engine and instances of open-conduit-docker on it, as the daemon and the shim have them. What the tests look
// at the engine with is curl, so that nothing of ours is between.
#pragma once

#include <stdio.h>

#include <functional>
#include <string>
#include <vector>

#include "base/docker_context.h"
#include "base/json.h"
#include "base/text.h"
#include "tests/catch.h"
#include "tests/docker_instance.h"

namespace oc::test {

// What tests/run docker sets up.
inline std::string engineSocket() { return variable("OPEN_CONDUIT_TEST_ENGINE"); }

// What a command prints; its standard error is ours.
inline std::string outputOf(const std::string& command) {
  auto pipe = popen(command.c_str(), "re");
  KJ_REQUIRE(pipe != nullptr);
  std::string text;
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) text.append(buffer, n);
  pclose(pipe);
  return text;
}

inline std::string api(const std::string& path, const std::string& options = "") {
  return outputOf("curl -s -g --max-time 60 " + options + " --unix-socket " + engineSocket() + " 'http://engine/v1.48" +
                  path + "'");
}
inline Json ask(const std::string& path) { return parseJson(api(path)); }

// Containers, volumes and networks with an owner's label, by their names.
inline std::vector<std::string> thingsOf(const std::string& owner) {
  std::vector<std::string> names;
  auto filter = "filters={\"label\":[\"io.openconduit.owner=" + owner + "\"]}";
  for (auto& item : ask("/containers/json?all=1&" + filter))
    names.push_back("container " + item["Names"][0].get<std::string>());
  auto volumes = ask("/volumes?" + filter)["Volumes"];
  for (auto& item : volumes) names.push_back("volume " + item["Name"].get<std::string>());
  for (auto& item : ask("/networks?" + filter)) names.push_back("network " + item["Name"].get<std::string>());
  return names;
}

// The id of an image by its reference.
inline std::string imageId(const std::string& reference) {
  auto id = ask("/images/" + reference + "/json")["Id"];
  KJ_REQUIRE(id.is_string(), "the test image is not there", reference.c_str());
  return id.get<std::string>();
}

inline kj::AutoCloseFd dialEngine() {
  auto dialed = dialDocker({"test", engineSocket()});
  KJ_REQUIRE(dialed.ok(), dialed.ok() ? "" : dialed.refusal().what.c_str());
  return kj::mv(dialed).value();
}

// An owner of the test's own; nothing of it is left on the engine when the test ends.
struct World {
  World() : ownIo(kj::heap<kj::AsyncIoContext>(kj::setupAsyncIo())), io(*ownIo) {}
  // Another owner, in the same thread.
  explicit World(World& neighbour) : io(neighbour.io) {}

  kj::Own<kj::AsyncIoContext> ownIo;
  kj::AsyncIoContext& io;
  std::string owner = "test-" + std::to_string(getpid()) + "-" + std::to_string(++count());
  std::string probe = imageId(variable("OPEN_CONDUIT_TEST_PROBE_IMAGE"));
  std::string gateway = imageId(variable("OPEN_CONDUIT_TEST_SHELL_IMAGE"));

  ~World() {
    auto filter = "filters={\"label\":[\"io.openconduit.owner=" + owner + "\"]}";
    for (auto& item : ask("/containers/json?all=1&" + filter)) {
      api("/containers/" + item["Id"].get<std::string>() + "?force=1&v=1", "-X DELETE");
    }
    auto volumes = ask("/volumes?" + filter)["Volumes"];
    for (auto& item : volumes) api("/volumes/" + item["Name"].get<std::string>(), "-X DELETE");
    for (auto& item : ask("/networks?" + filter)) api("/networks/" + item["Id"].get<std::string>(), "-X DELETE");
  }

  static int& count() {
    static int count = 0;
    return count;
  }

  DockerInstance run(const std::string& name = "r-1", const Connect& connect = dialEngine) {
    return DockerInstance(io, {"run", "--owner", owner, "--run", name}, 5, connect);
  }
  DockerInstance task(unsigned connections = 1, const Connect& connect = dialEngine) {
    return DockerInstance(io, {"task", "--connections", std::to_string(connections), "--owner", owner}, connections,
                          connect);
  }

  // A gateway ahead of its run. Its stream is in the instance.
  Refusal prepareGateway(DockerInstance& task, const std::string& name) {
    auto request = task.docker().prepareGatewayRequest();
    auto spec = request.initSpec();
    spec.setOwner(toText(owner));
    spec.setName(toText(name));
    spec.setImage(toText(gateway));
    spec.setUser(toText(user()));
    return read(request.send().wait(io.waitScope).getRefusal());
  }
  DockerInstance preparer(const Connect& connect = dialEngine) {
    return DockerInstance(io, {"task", "--connections", "2", "--owner", owner}, 2, connect, true);
  }
  static std::string user() { return std::to_string(getuid()) + ":" + std::to_string(getgid()); }

  // A container like a run's: the operator's user, and no more than the shell that runs `script`.
  void fill(proto::RunSpec::Builder spec, const std::string& script, const std::string& run = "r-1") {
    spec.setOwner(toText(owner));
    spec.setRun(toText(run));
    spec.setRole("agent");
    spec.setPlanSha256(toText(std::string(64, 'a')));
    spec.setImage(toText(probe));
    spec.setGatewayImage(toText(gateway));
    auto command = spec.initCommand(3);
    command.set(0, "/bin/sh");
    command.set(1, "-c");
    command.set(2, toText(script));
    spec.setDirectory("/");
    spec.setUser(toText(user()));
    spec.setStdin(true);
    spec.setHostname("agent");
  }

  using Change = std::function<void(proto::RunSpec::Builder)>;
  Refusal create(DockerInstance& instance, const std::string& script, const Change& change = nullptr) {
    auto request = instance.docker().createRequest();
    auto spec = request.initSpec();
    fill(spec, script);
    if (change) change(spec);
    auto answer = request.send().wait(io.waitScope);
    agentId = toString(answer.getAgent());
    gatewayId = toString(answer.getGateway());
    return read(answer.getRefusal());
  }
  Refusal start(DockerInstance& instance) {
    return read(instance.docker().startRequest().send().wait(io.waitScope).getRefusal());
  }

  struct Ran {
    Refusal refusal;
    ProcessEnd end;
    Streams streams;
  };
  // From the making to the removal.
  Ran runToEnd(const std::string& script, const Change& change = nullptr) {
    auto instance = run();
    Ran ran;
    ran.refusal = create(instance, script, change);
    if (!ran.refusal.reason.empty()) return ran;
    AttachedStream agent(io, kj::mv(instance.agentFd));
    ran.refusal = start(instance);
    if (!ran.refusal.reason.empty()) return ran;
    agent.end();
    ran.end = instance.wait();
    ran.streams = agent.readToEnd();
    remove(instance);
    return ran;
  }

  struct Removal {
    Refusal refusal;
    uint32_t removed;
    std::vector<std::string> left;
  };
  Removal remove(DockerInstance& instance, const std::string& run = "r-1", const std::string& gateway = "") {
    auto request = instance.docker().removeRequest();
    request.setOwner(toText(owner));
    request.setRun(toText(run));
    request.setGateway(toText(gateway));
    return told(request.send().wait(io.waitScope));
  }
  Removal sweep(DockerInstance& instance, const std::vector<std::string>& keep = {}) {
    auto request = instance.docker().sweepRequest();
    request.setOwner(toText(owner));
    auto list = request.initKeep(keep.size());
    for (size_t i = 0; i < keep.size(); ++i) list.set(i, toText(keep[i]));
    return told(request.send().wait(io.waitScope));
  }

  template <typename Answer>
  static Removal told(Answer answer) {
    Removal removal{read(answer.getRefusal()), answer.getRemoved(), {}};
    for (auto text : answer.getLeft()) removal.left.push_back(toString(text));
    return removal;
  }

  void pause(kj::Duration duration) { io.provider->getTimer().afterDelay(duration).wait(io.waitScope); }

  std::string agentId, gatewayId;
};

}  // namespace oc::test
