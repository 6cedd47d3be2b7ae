#include "refusals.h"

#include <fmt/format.h>

#include "base/text.h"
#include "json_fields.h"
#include "proto/rpc.h"

namespace oc::docker {

namespace {

constexpr const char* unavailable = "sandbox_unavailable";

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// "1.51" → {1, 51}; {0, 0} for anything else.
std::pair<int, int> readApiVersion(const std::string& text) {
  int major = 0, minor = 0;
  char rest;
  if (sscanf(text.c_str(), "%5d.%5d%c", &major, &minor, &rest) != 2) return {0, 0};
  return {major, minor};
}

bool isFullDisk(const std::string& message) {
  return has(message, "no space left on device") || has(message, "No space left on device") ||
         has(message, "disk quota exceeded");
}

constexpr const char* notAnEngine =
    "is it a Docker Engine that listens there? open-conduit doctor tries it; docker context ls shows the others";
constexpr const char* otherArchitecture = "use an image for this engine's architecture";

std::string command(const std::string& words, const std::string& context) {
  if (context.empty() || context == "default") return "docker " + words;
  return fmt::format("docker --context {} {}", shellQuote(context), words);
}

std::string freeSpace(const std::string& context) {
  return fmt::format("free space on the engine's disk: {}", command("system df", context));
}

}  // namespace

std::string pullCommand(const std::string& reference, const std::string& context) {
  return command("pull " + shellQuote(reference), context);
}

std::string imagesCommand(const std::string& context) { return command("image ls --no-trunc", context); }

Refusal pullRefusal(const std::string& reference, const std::string& message, const std::string& context) {
  Refusal refusal = {unavailable,
                     fmt::format("the image {} is not there and could not be pulled: {}", reference, message),
                     pullCommand(reference, context)};
  if (isFullDisk(message)) refusal.fix = freeSpace(context);
  if (has(message, "no matching manifest") || has(message, "no match for platform")) refusal.fix = otherArchitecture;
  return refusal;
}

Refusal refusalOf(const Answer& answer, const std::string& doing, const std::string& context) {
  auto& message = answer.message;
  auto what = fmt::format("the engine could not {}: {}", doing, message);
  if (has(message, "bind source path does not exist")) {
    return {"sandbox_denied", what,
            "a granted path must exist when the run starts: make it, or take it out of the policy"};
  }
  if (isFullDisk(message)) return {unavailable, what, freeSpace(context)};
  if (has(message, "No such image") || has(message, "no such image")) {
    return {unavailable, what, "pull the image again: open-conduit doctor has the command"};
  }
  if (has(message, "exec format error") || has(message, "does not match the specified platform") ||
      has(message, "cannot execute binary file")) {
    return {unavailable, what, otherArchitecture};
  }
  // A run's container always has a command, a gateway's that of its image.
  if (has(message, "no command specified")) {
    return {
        unavailable, what,
        "the gateway image is another one: make gateway-image, and set OPEN_CONDUIT_GATEWAY_IMAGE to the id that it "
        "prints"};
  }
  // "range of CPUs is from 0.01 to 2.00, as there are only 2 CPUs available"
  if (has(message, "ange of CPUs")) {
    return {unavailable, what, "lower the binding's container.config.limits.cpus, or leave it out"};
  }
  if (has(message, "inimum memory limit")) {
    return {unavailable, what, "raise the binding's container.config.limits.memory"};
  }
  if (has(message, "all predefined address pools have been fully subnetted")) {
    return {unavailable, what, fmt::format("remove networks that nothing uses: {}", command("network prune", context))};
  }
  if (answer.status == 403 || has(message, "authorization denied")) {
    return {unavailable, what, "the engine's own policy forbids it: ask who runs this engine"};
  }
  return {unavailable, what, "open-conduit doctor"};
}

std::optional<Refusal> refuseVersion(const Answer& answer) {
  if (!answer.good()) {
    auto refusal = refusalOf(answer, "tell its version", "");
    if (answer.status != 403) refusal.fix = notAnEngine;
    return refusal;
  }
  auto version = textField(answer.body, "Version", 64);
  auto api = textField(answer.body, "ApiVersion", 16);
  auto [major, minor] = readApiVersion(api);
  if (major == 0) return malformedAnswer("its version");
  if (std::pair(major, minor) < std::pair(leastApiMajor, leastApiMinor)) {
    return Refusal{
        unavailable,
        fmt::format("the engine is {} (API {}), which is too old: container runs need Docker Engine 28 or later "
                    "(API {}.{})",
                    version, api, leastApiMajor, leastApiMinor),
        "install Docker Engine 28 or later; until then container bindings run nothing"};
  }
  auto os = textField(answer.body, "Os", 32);
  if (os != "linux") {
    return Refusal{unavailable, fmt::format("the engine runs {} containers, and runs need Linux ones", os),
                   "switch the engine to Linux containers"};
  }
  return std::nullopt;
}

Refusal engineGone(const kj::Exception& exception) {
  return {unavailable, "the engine went away, or answered what makes no sense: " + describe(exception),
          "start the Docker Engine, then: open-conduit doctor"};
}

Refusal malformedAnswer(const std::string& what) {
  return {unavailable, fmt::format("the engine's answer makes no sense: {} is missing or of another kind", what),
          notAnEngine};
}

}  // namespace oc::docker
