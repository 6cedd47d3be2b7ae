#include "gateway_container.h"

#include <fmt/format.h>

#include "attach.h"
#include "json_fields.h"
#include "names.h"
#include "refusals.h"

namespace oc::docker {

GatewayContainer::GatewayContainer(Engine& first, Engine& second, GatewaySpec spec, std::string context)
    : first(first), second(second), spec(kj::mv(spec)), context(kj::mv(context)) {}

Making GatewayContainer::making() const {
  return {containerName(spec.owner, spec.name, "gateway"), "the gateway's container", context};
}

Step GatewayContainer::makePlaces() { return both(makeVolume(), requireEgress(1)); }

Step GatewayContainer::makeVolume() {
  return first.post("/volumes/create", gatewayVolume(spec)).then([this](Answer answer) -> std::optional<Refusal> {
    if (!answer.good()) return refusalOf(answer, "make the gateway's volume", context);
    return std::nullopt;
  });
}

// Looks first: it is there but for the first run.
Step GatewayContainer::requireEgress(int attempt) {
  return second.get("/networks/" + egressName(spec.owner)).then([this, attempt](Answer answer) -> Step {
    if (answer.good()) return refuseEgress(answer.body, spec.owner);
    if (answer.status != 404 || attempt == 3)
      return std::optional<Refusal>(refusalOf(answer, "make the gateways' network", context));
    return inOrder(makeEgress(), [this, attempt]() { return requireEgress(attempt + 1); });
  });
}

Step GatewayContainer::makeEgress() {
  return second.post("/networks/create", egressNetwork(spec.owner))
      .then([this](Answer answer) -> std::optional<Refusal> {
        // 409: another run has made it in between.
        if (answer.good() || answer.status == 409) return std::nullopt;
        return refusalOf(answer, "make the gateways' network", context);
      });
}

Step GatewayContainer::make() { return createContainer(second, gatewayContainer(spec), making(), container); }

Step GatewayContainer::attachTo(kj::AsyncIoStream& stream) { return attach(stream, container, context); }

Step GatewayContainer::start() { return startContainer(second, container, making()); }

Step GatewayContainer::findPrepared() {
  return first.get("/containers/" + making().name + "/json").then([this](Answer answer) -> std::optional<Refusal> {
    if (!answer.good()) return refusalOf(answer, "find the gateway that was made ahead", context);
    return refusePrepared(answer.body);
  });
}

std::optional<Refusal> GatewayContainer::refusePrepared(const Json& inspected) {
  auto& config = objectField(inspected, "Config");
  auto& labels = objectField(config, "Labels");
  auto& mounts = arrayField(inspected, "Mounts");
  auto told = textField(inspected, "Id");
  bool right = isContainerId(told) && textField(labels, ownerLabel) == spec.owner &&
               textField(labels, runLabel) == spec.name && textField(labels, roleLabel) == "gateway" &&
               textField(labels, planLabel).empty() && textField(inspected, "Image") == spec.image &&
               textField(config, "User") == spec.user && mounts.size() == 1 &&
               textField(mounts[0], "Name") == volumeName(spec.owner, spec.name);
  if (right && boolField(objectField(inspected, "State"), "Running")) {
    container = told;
    return std::nullopt;
  }
  return Refusal{"sandbox_unavailable",
                 right ? "the gateway that was made ahead has ended" : "the gateway that was made ahead is another one",
                 "try again: another one is made"};
}

}  // namespace oc::docker
