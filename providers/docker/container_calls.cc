#include "container_calls.h"

#include <fmt/format.h>

#include "json_fields.h"
#include "names.h"
#include "refusals.h"

namespace oc::docker {

Step createContainer(Engine& engine, const Json& body, Making making, std::string& id) {
  auto path = "/containers/create?name=" + making.name;
  return engine.post(path, body).then([making = kj::mv(making), &id](Answer answer) -> std::optional<Refusal> {
    if (!answer.good()) return refusalOf(answer, "make " + making.what, making.context);
    auto told = textField(answer.body, "Id");
    if (!isContainerId(told)) return malformedAnswer("a container's id");
    id = told;
    // What was asked for and left out, such as a limit that this engine cannot keep.
    for (auto& warning : textsField(answer.body, "Warnings")) {
      return Refusal{
          "sandbox_unavailable", fmt::format("the engine would make the container otherwise than asked: {}", warning),
          "let the engine do it (limits need cgroups that it may use), or take the limit out of the binding"};
    }
    return std::nullopt;
  });
}

Step startContainer(Engine& engine, const std::string& id, Making making) {
  return engine.post(fmt::format("/containers/{}/start", id))
      .then([making = kj::mv(making)](Answer answer) -> std::optional<Refusal> {
        if (!answer.good()) return refusalOf(answer, "start " + making.what, making.context);
        return std::nullopt;
      });
}

}  // namespace oc::docker
