#include "facts.h"

#include <kj/debug.h>
#include <time.h>

#include "json_fields.h"
#include "proto/convert.h"
#include "refusals.h"

namespace oc::docker {

namespace {

bool hasOption(const Json& info, std::string_view name) {
  for (auto& option : textsField(info, "SecurityOptions")) {
    if (option == name || option.starts_with(std::string(name) + ",")) return true;
  }
  return false;
}

void write(proto::Engine::Builder to, const Json& version, const Json& info) {
  to.setId(toText(textField(info, "ID")));
  to.setVersion(toText(textField(version, "Version", 64)));
  to.setApiVersion(toText(textField(version, "ApiVersion", 16)));
  to.setOs(toText(textField(version, "Os", 32)));
  to.setArchitecture(toText(textField(version, "Arch", 32)));
  to.setOperatingSystem(toText(textField(info, "OperatingSystem")));
  to.setRootless(hasOption(info, "name=rootless"));
  to.setRemapsUsers(hasOption(info, "name=userns"));
  to.setCgroupVersion(toText(textField(info, "CgroupVersion", 16)));
  to.setStorageDriver(toText(textField(info, "Driver", 64)));
  to.setCanLimitMemory(boolField(info, "MemoryLimit") && boolField(info, "SwapLimit"));
  to.setCanLimitCpus(boolField(info, "CpuCfsQuota"));
  to.setCanLimitPids(boolField(info, "PidsLimit"));
}

// "2025-05-30T12:07:14.123Z" → seconds since 1970; 0 for the Engine's "0001-01-01…", its "never".
int64_t readTime(const std::string& text) {
  struct tm parts {};
  if (strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts) == nullptr || parts.tm_year < 70) return 0;
  return timegm(&parts);
}

struct Looking {
  Engine& engine;
  std::vector<FoundContainer> found;
  std::vector<Json> told;
  std::string context;

  Step look(size_t i) {
    if (i == found.size()) return done();
    return engine.get("/containers/" + found[i].id + "/json").then([this, i](Answer answer) -> Step {
      if (!answer.good() && answer.status != 404)
        return std::optional<Refusal>(refusalOf(answer, "inspect a container", context));
      told.push_back(answer.good() ? objectField(answer.body, "State") : Json());
      return look(i + 1);
    });
  }

  void write(proto::Docker::InspectResults::Builder results) {
    size_t count = 0;
    for (auto& state : told) count += state.is_object();
    auto list = results.initContainers(count);
    for (size_t i = 0, next = 0; i < found.size(); ++i) {
      auto& state = told[i];
      if (!state.is_object()) continue;
      auto to = list[next++];
      to.setId(toText(found[i].id));
      to.setName(toText(found[i].name));
      to.setRole(toText(found[i].role));
      to.setImageId(toText(found[i].imageId));
      to.setPlanSha256(toText(found[i].planSha256));
      to.setRunning(boolField(state, "Running"));
      to.setStartedAt(readTime(textField(state, "StartedAt")));
      to.setExitCode(static_cast<int32_t>(numberField(state, "ExitCode")));
      to.setOutOfMemory(boolField(state, "OOMKilled"));
      to.setError(toText(textField(state, "Error", 600)));
    }
  }
};

}  // namespace

Step tellEngine(Engine& engine, proto::Engine::Builder to, const std::string& context) {
  return engine.version().then([&engine, to, context](Answer version) -> Step {
    if (auto refusal = refuseVersion(version)) return refusal;
    return engine.info().then([to, context, version = kj::mv(version)](Answer info) mutable -> std::optional<Refusal> {
      if (!info.good()) return refusalOf(info, "tell of itself", context);
      if (textField(info.body, "ID").empty()) return malformedAnswer("the engine's id");
      write(to, version.body, info.body);
      return std::nullopt;
    });
  });
}

Step tellContainers(Engine& engine, std::vector<FoundContainer> found, proto::Docker::InspectResults::Builder results,
                    const std::string& context) {
  auto looking = kj::heap<Looking>(Looking{engine, kj::mv(found), {}, context});
  auto& state = *looking;
  return state.look(0).then([results, looking = kj::mv(looking)](std::optional<Refusal> refusal) mutable {
    if (!refusal) looking->write(results);
    return refusal;
  });
}

}  // namespace oc::docker
