#include "spec.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/paths.h"
#include "base/text.h"
#include "json_fields.h"
#include "names.h"
#include "proto/convert.h"

namespace oc::docker {

namespace {

constexpr uint64_t defaultPids = 4096;

Refusal malformed(const std::string& what) { return {"sandbox_denied", what, ""}; }

bool isImageId(std::string_view id) {
  auto hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return id.size() == 71 && id.starts_with("sha256:") && std::all_of(id.begin() + 7, id.end(), hex);
}

bool isUser(std::string_view user) {
  auto isNumber = [](std::string_view text) {
    return !text.empty() && text.size() <= 10 &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  auto colon = user.find(':');
  return colon != std::string_view::npos && isNumber(user.substr(0, colon)) && isNumber(user.substr(colon + 1));
}

bool isPath(const std::string& path) {
  return path.starts_with('/') && path.find('\0') == std::string::npos && normalizePath(path) == path;
}

std::optional<Refusal> refuseMount(const Mount& mount) {
  for (auto path : {&mount.source, &mount.target}) {
    if (!isPath(*path)) return malformed(fmt::format("a mount has no proper path: \"{}\"", printable(*path)));
  }
  if (mount.target == "/" || isAtOrUnder(mount.target, gatewayDirectory) ||
      isAtOrUnder(gatewayDirectory, mount.target)) {
    return malformed(fmt::format("nothing may be mounted at {}", printable(mount.target)));
  }
  return std::nullopt;
}

std::optional<Refusal> refuseSpec(const RunSpec& spec) {
  auto hasNul = [](const std::string& text) { return text.find('\0') != std::string::npos; };
  if (!isProperName(spec.owner) || !isProperName(spec.run)) return malformed("an owner or a run has no proper name");
  if (spec.role != "agent" && spec.role != "check" && spec.role != "attach") {
    return malformed(fmt::format("there is no role \"{}\" for a container", printable(spec.role)));
  }
  if (!isImageId(spec.image)) return malformed("the image is not named by its id");
  if (spec.network && !isImageId(spec.gatewayImage)) return malformed("the gateway's image is not named by its id");
  if (!spec.preparedGateway.empty() && !isPreparedName(spec.preparedGateway)) {
    return malformed("the gateway that was made ahead has no proper name");
  }
  if (!isUser(spec.user)) return malformed("the user is no pair of numbers");
  if (spec.command.empty() || std::any_of(spec.command.begin(), spec.command.end(), hasNul)) {
    return malformed("there is no proper command");
  }
  if (!isPath(spec.directory)) return malformed("the working directory is no proper path");
  for (auto& [name, value] : spec.environment) {
    if (name.empty() || name.find('=') != std::string::npos || hasNul(name) || hasNul(value)) {
      return malformed("a variable of the environment has no proper name or value");
    }
  }
  for (auto& mount : spec.mounts) {
    if (auto refusal = refuseMount(mount)) return refusal;
  }
  return std::nullopt;
}

Json labels(const std::string& owner, const std::string& run, const std::string& role, const std::string& plan) {
  return {{ownerLabel, owner}, {runLabel, run}, {roleLabel, role}, {planLabel, plan}};
}

Json bindMount(const Mount& mount) {
  Json options = {{"Propagation", "rprivate"}, {"NonRecursive", true}};
  if (!mount.writable) options["ReadOnlyForceRecursive"] = true;
  return {{"Type", "bind"},
          {"Source", mount.source},
          {"Target", mount.target},
          {"ReadOnly", !mount.writable},
          {"BindOptions", options}};
}

Json gatewayMount(const GatewaySpec& spec, bool readOnly) {
  return {{"Type", "volume"},
          {"Source", volumeName(spec.owner, spec.name)},
          {"Target", gatewayDirectory},
          {"ReadOnly", readOnly},
          {"VolumeOptions", {{"NoCopy", true}}}};
}

// What every container of ours has, the gateway's as well as the agent's.
Json lockedDown() {
  return {
      {"AutoRemove", false},  // it would lose the exit status
      {"CapDrop", {"ALL"}},
      {"CgroupnsMode", "private"},
      {"Init", false},
      {"IpcMode", "private"},
      {"LogConfig", {{"Type", "none"}}},
      {"Privileged", false},
      {"ReadonlyRootfs", true},
      {"RestartPolicy", {{"Name", "no"}}},
      // Said, since an engine can be configured to have another default.
      {"SecurityOpt", {"no-new-privileges=true", "seccomp=builtin"}},
  };
}

Json limit(const char* name, int value) { return {{"Name", name}, {"Soft", value}, {"Hard", value}}; }

// Streams that we attach to. StdinOnce: the container's input ends with its client.
void addStreams(Json& body, bool tty, bool input) {
  body["AttachStdin"] = input;
  body["AttachStdout"] = true;
  body["AttachStderr"] = true;
  body["OpenStdin"] = input;
  body["StdinOnce"] = input;
  body["Tty"] = tty;
}

Json temporaryDirectory(uint64_t memoryBytes) {
  // In memory, so it counts against the memory limit as well; without one, this bounds it.
  constexpr uint64_t otherwise = 4ull << 30;
  return {{"/tmp", fmt::format("rw,exec,nosuid,nodev,mode=1777,size={}", memoryBytes != 0 ? memoryBytes : otherwise)}};
}

}  // namespace

OrRefusal<RunSpec> readSpec(proto::RunSpec::Reader reader) {
  RunSpec spec;
  spec.owner = toString(reader.getOwner());
  spec.run = toString(reader.getRun());
  spec.role = toString(reader.getRole());
  spec.planSha256 = toString(reader.getPlanSha256());
  spec.image = toString(reader.getImage());
  spec.gatewayImage = toString(reader.getGatewayImage());
  for (auto word : reader.getCommand()) spec.command.push_back(toString(word));
  for (auto variable : reader.getEnvironment()) {
    spec.environment.emplace_back(toString(variable.getName()), toString(variable.getValue()));
  }
  spec.directory = toString(reader.getDirectory());
  spec.user = toString(reader.getUser());
  spec.hostname = toString(reader.getHostname());
  for (auto mount : reader.getMounts()) {
    spec.mounts.push_back({toString(mount.getSource()), toString(mount.getTarget()), mount.getWritable()});
  }
  spec.unlimited = reader.getUnlimited();
  if (!spec.unlimited) {
    spec.memoryBytes = reader.getMemoryBytes();
    spec.nanoCpus = reader.getNanoCpus();
    spec.pids = reader.getPids() == 0 ? defaultPids : reader.getPids();
  }
  spec.tty = reader.getTty();
  spec.input = reader.getStdin();
  spec.network = reader.getNetwork();
  spec.preparedGateway = toString(reader.getPreparedGateway());
  spec.columns = reader.getColumns();
  spec.rows = reader.getRows();
  if (auto refusal = refuseSpec(spec)) return *refusal;
  return spec;
}

OrRefusal<GatewaySpec> readSpec(proto::GatewaySpec::Reader reader) {
  GatewaySpec spec;
  spec.owner = toString(reader.getOwner());
  spec.name = toString(reader.getName());
  spec.image = toString(reader.getImage());
  spec.user = toString(reader.getUser());
  spec.unlimited = reader.getUnlimited();
  if (!isProperName(spec.owner) || !isPreparedName(spec.name))
    return malformed("an owner or a gateway has no proper name");
  if (!isImageId(spec.image)) return malformed("the gateway's image is not named by its id");
  if (!isUser(spec.user)) return malformed("the user is no pair of numbers");
  return spec;
}

GatewaySpec gatewayOf(const RunSpec& spec) {
  auto& name = spec.preparedGateway.empty() ? spec.run : spec.preparedGateway;
  return {spec.owner, name, spec.gatewayImage, spec.user, spec.planSha256, spec.unlimited};
}

Json agentContainer(const RunSpec& spec) {
  auto host = lockedDown();
  host["NetworkMode"] = "none";  // named: the engine's own choice would be a bridge
  // An engine without CAP_SYS_RESOURCE can lower limits alone, and a login's is often 20,000.
  host["Ulimits"] = {limit("nofile", 16384), limit("core", 0)};
  host["Tmpfs"] = temporaryDirectory(spec.memoryBytes);
  if (spec.pids != 0) host["PidsLimit"] = spec.pids;
  if (spec.memoryBytes != 0) {
    host["Memory"] = spec.memoryBytes;
    host["MemorySwap"] = spec.memoryBytes;  // of both together: no swap
  }
  if (spec.nanoCpus != 0) host["NanoCpus"] = spec.nanoCpus;
  if (spec.tty && spec.rows != 0 && spec.columns != 0) host["ConsoleSize"] = {spec.rows, spec.columns};
  host["Mounts"] = Json::array();
  for (auto& mount : spec.mounts) host["Mounts"].push_back(bindMount(mount));
  if (spec.network) host["Mounts"].push_back(gatewayMount(gatewayOf(spec), true));

  auto environment = Json::array();
  for (auto& [name, value] : spec.environment) environment.push_back(name + "=" + value);
  Json body = {
      {"Cmd", Json::array()},
      {"Entrypoint", spec.command},
      {"Env", environment},
      {"Healthcheck", {{"Test", {"NONE"}}}},  // the image's would be run beside the agent
      {"HostConfig", host},
      {"Hostname", spec.hostname},
      {"Image", spec.image},
      {"Labels", labels(spec.owner, spec.run, spec.role, spec.planSha256)},
      {"StopSignal", "SIGTERM"},
      {"User", spec.user},
      {"WorkingDir", spec.directory},
  };
  if (!spec.preparedGateway.empty()) body["Labels"][gatewayLabel] = spec.preparedGateway;
  addStreams(body, spec.tty, spec.input);
  return body;
}

Json gatewayContainer(const GatewaySpec& spec) {
  auto host = lockedDown();
  host["NetworkMode"] = egressName(spec.owner);
  // Ten thousand tunnels need more descriptors than every engine may grant: it takes what it gets, and no more than it
  // needs.
  host["Ulimits"] = {limit("core", 0)};
  if (!spec.unlimited) {
    host["PidsLimit"] = 64;
    host["Memory"] = 256u << 20;
    host["MemorySwap"] = 256u << 20;
  }
  host["Sysctls"] = {{"net.ipv4.ip_forward", "0"}};
  host["Mounts"] = Json::array({gatewayMount(spec, false)});
  Json body = {
      {"HostConfig", host},
      {"Image", spec.image},
      {"Labels", labels(spec.owner, spec.name, "gateway", spec.planSha256)},
      {"User", spec.user},
  };
  addStreams(body, false, true);
  return body;
}

Json gatewayVolume(const GatewaySpec& spec) {
  auto colon = spec.user.find(':');
  // Of the gateway's user alone, who is the agent's as well; in the agent's container it is read-only.
  auto options = fmt::format("size=256k,nr_inodes=64,nosuid,nodev,noexec,mode=0700,uid={},gid={}",
                             spec.user.substr(0, colon), spec.user.substr(colon + 1));
  return {{"Name", volumeName(spec.owner, spec.name)},
          {"Driver", "local"},
          {"DriverOpts", {{"type", "tmpfs"}, {"device", "tmpfs"}, {"o", options}}},
          {"Labels", labels(spec.owner, spec.name, "volume", spec.planSha256)}};
}

Json egressNetwork(const std::string& owner) {
  return {{"Name", egressName(owner)},
          {"Driver", "bridge"},
          {"EnableIPv4", true},
          {"EnableIPv6", false},
          {"Internal", false},
          {"Attachable", false},
          {"Options", {{"com.docker.network.bridge.enable_icc", "false"}}},
          {"Labels", {{ownerLabel, owner}, {roleLabel, "egress"}}}};
}

std::optional<Refusal> refuseEgress(const Json& network, const std::string& owner) {
  auto name = egressName(owner);
  auto& options = objectField(network, "Options");
  bool ours = textField(objectField(network, "Labels"), ownerLabel) == owner;
  bool right = textField(network, "Driver") == "bridge" && textField(network, "Scope") == "local" &&
               !boolField(network, "EnableIPv6") && !boolField(network, "Internal") && !boolField(network, "Ingress") &&
               textField(options, "com.docker.network.bridge.enable_icc") == "false";
  if (ours && right) return std::nullopt;
  return Refusal{"sandbox_unavailable",
                 fmt::format("the engine has a network {} that is not as Open Conduit makes it ({})", name,
                             ours ? "containers on it could reach each other" : "it is not Open Conduit's"),
                 fmt::format("remove it: docker network rm {}", name)};
}

}  // namespace oc::docker
