#include "operations.h"

#include <kj/debug.h>

#include "proto/convert.h"

namespace oc::run {

namespace {
constexpr size_t mostOperations = 256;
}

Operations::Operations(capnp::List<proto::ToolbeltOperation>::Reader list) {
  KJ_REQUIRE(list.size() <= mostOperations, "a run has at most 256 operations");
  for (auto one : list) {
    auto schema = parseJson(toString(one.getInputSchema()));
    KJ_REQUIRE(schema.is_object(), "an operation's schema is a JSON object", one.getName());
    Operation operation{toString(one.getName()), toString(one.getDescription()), schema, one.getHidden(),
                        ArgumentSchema(schema)};
    auto name = operation.name;
    KJ_REQUIRE(operations.emplace(name, std::move(operation)).second, "two operations have one name", name.c_str());
  }
  for (auto& [name, operation] : operations) {
    if (operation.hidden) continue;
    toolList.push_back(
        {{"name", name}, {"description", operation.description}, {"inputSchema", operation.inputSchema}});
  }
}

const Operation* Operations::tool(const std::string& name) const {
  auto found = operations.find(name);
  return found == operations.end() || found->second.hidden ? nullptr : &found->second;
}

bool Operations::has(const std::string& name) const { return operations.count(name) != 0; }

}  // namespace oc::run
