#include "operations.h"

#include <fmt/format.h>
#include <kj/debug.h>

#include <algorithm>
#include <set>

#include "base/text.h"

namespace oc::toolbelt {

namespace {

const Operation builtIn[] = {
    {"conduit.work.get",
     "Tells what this piece of work is: its title, the whole request, the branch, how earlier runs on it ended, and the notes "
     "that they left. Call it first.",
     R"({"type":"object","properties":{},"additionalProperties":false})",
     {"@conduit.work"}},
    {"conduit.work.note",
     "Leaves a note on this piece of work, for the person who gave it to you and for later runs. Plain text, at most 4096 bytes.",
     R"({"type":"object","properties":{"text":{"type":"string","minLength":1,"maxLength":4096,"description":"The note."}},)"
     R"("required":["text"],"additionalProperties":false})",
     {"@conduit.work"}},
    {"conduit.work.finish",
     "Says that this piece of work is done. When the run has ended, its commits are saved and its workspace is removed; no later "
     "run will follow. Commit first.",
     R"({"type":"object","properties":{"summary":{"type":"string","maxLength":4096,"description":)"
     R"("What was done, in a few sentences; it is kept as a note."}},"additionalProperties":false})",
     {"@conduit.work"}},
};

bool has(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

}  // namespace

Catalogue::Catalogue() {
  for (auto& operation : builtIn) add(operation);
}

void Catalogue::add(Operation operation) {
  auto name = operation.name;
  KJ_REQUIRE(operations.emplace(name, std::move(operation)).second, "an operation of this name is there already",
             name.c_str());
}

const Operation* Catalogue::find(const std::string& name) const {
  auto found = operations.find(name);
  return found == operations.end() ? nullptr : &found->second;
}

std::vector<std::string> Catalogue::expanded(const std::vector<std::string>& list) const {
  std::set<std::string> names;
  for (auto& entry : list) {
    if (!entry.starts_with('@')) {
      names.insert(entry);
      continue;
    }
    for (auto& [name, operation] : operations) {
      if (has(operation.toolsets, entry)) names.insert(name);
    }
  }
  return {names.begin(), names.end()};
}

Refusal whyNot(const Catalogue& catalogue, const Grant& grant, const std::string& operation) {
  auto* known = catalogue.find(operation);
  auto listing = [&]() {
    std::string text = operation;
    if (known == nullptr) return text;
    for (auto& toolset : known->toolsets) text += " or " + toolset;
    return text;
  };
  bool binding = has(catalogue.expanded(grant.binding), operation),
       scope = has(catalogue.expanded(grant.scope), operation);
  auto shown = shortened(printable(operation), 128);
  if (!binding || !scope) {
    auto missing = binding ? "its scope's authorization does not list it"
                   : scope ? "the binding does not list it"
                           : "neither the binding nor its scope's authorization lists it";
    auto where = binding ? "the scope's authorization.operations"
                 : scope ? "the binding's operations"
                         : "both the binding's operations and the scope's authorization.operations";
    return {"operation_denied", fmt::format("this run may not call {}: {}", shown, missing),
            known == nullptr ? "" : fmt::format("the operator adds {} to {}", listing(), where)};
  }
  if (known == nullptr) {
    return {"operation_unknown", fmt::format("this version has no operation {}", shown),
            "open-conduit config reference lists them"};
  }
  return {};
}

Authorized authorize(const Catalogue& catalogue, const Grant& grant) {
  Authorized result;
  std::set<std::string> all;
  for (auto* list : {&grant.binding, &grant.scope}) {
    for (auto& name : catalogue.expanded(*list)) all.insert(name);
  }
  for (auto& name : all) {
    auto refusal = whyNot(catalogue, grant, name);
    if (refusal.reason.empty()) {
      result.offered.push_back(*catalogue.find(name));
    } else if (has(catalogue.expanded(grant.binding), name)) {
      // What only the scope allows, another of its bindings has.
      result.denied.push_back(refusal.what);
    }
  }
  return result;
}

}  // namespace oc::toolbelt
