// The operations of one run, as its toolbelt offers them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "argument_schema.h"
#include "toolbelt.capnp.h"

namespace oc::run {

struct Operation {
  std::string name, description;
  Json inputSchema;
  bool hidden = false;  // no tool: neither listed nor callable as one
  ArgumentSchema arguments;
};

class Operations {
 public:
  // Throws for a schema that cannot be checked, for two of one name, and for more than 256.
  explicit Operations(capnp::List<proto::ToolbeltOperation>::Reader list);

  // The one with exactly this name, byte by byte, unless it is hidden; else null.
  const Operation* tool(const std::string& name) const;
  // A hidden one counts, too.
  bool has(const std::string& name) const;
  // MCP's list of tools, by name.
  const Json& tools() const { return toolList; }

 private:
  std::map<std::string, Operation> operations;
  Json toolList = Json::array();
};

}  // namespace oc::run
