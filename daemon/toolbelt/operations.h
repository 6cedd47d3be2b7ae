// Which operations there are, as data, and which of them a run gets.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/refusal.h"

namespace oc::toolbelt {

struct Operation {
  std::string name;         // "conduit.work.get": its owner's prefix comes first
  std::string description;  // for the agent: what it does, and when to use it
  std::string
      inputSchema;  // JSON Schema of its arguments; see providers/run/toolbelt/argument_schema.h for what it may say
  std::vector<std::string> toolsets;  // that it belongs to: "@conduit.work"
  bool hidden = false;                // no tool: github.git.credential
};

// All that this daemon knows: our own, and what providers' parts add when the daemon starts.
class Catalogue {
 public:
  Catalogue();  // has conduit.work.*

  // Throws for a name that is there already.
  void add(Operation operation);
  const Operation* find(const std::string& name) const;
  // Of a list as a config has it: the names in it, and those of its toolsets, each once and in order. A name that is
  // not known is kept: whoever allows it today may have it tomorrow.
  std::vector<std::string> expanded(const std::vector<std::string>& list) const;

 private:
  std::map<std::string, Operation> operations;
};

// What a binding lists, and what its scope's authorization lists; an operation is offered when both have it.
struct Grant {
  std::vector<std::string> binding, scope;
};

struct Authorized {
  std::vector<Operation> offered;  // by name
  // What one side lists and a run does not get, each a sentence that says what is missing.
  std::vector<std::string> denied;
};

Authorized authorize(const Catalogue& catalogue, const Grant& grant);

// Nothing, or why a run with this grant does not get `operation`: `operation_denied`, saying which of the two does not
// list it, or `operation_unknown`.
Refusal whyNot(const Catalogue& catalogue, const Grant& grant, const std::string& operation);

}  // namespace oc::toolbelt
