// The operations that the github provider has: what toolbelts offer, and what the provider carries out.
#pragma once

#include <string_view>

#include <kj/common.h>

namespace oc {

struct GitHubOperation {
  const char* name;         // "github.issue.comment"
  const char* toolset;      // "@github.author", "@github.workspace"
  const char* description;  // for the agent that calls it
  const char* schema;       // JSON Schema 2020-12 of its arguments
  bool hidden;              // no tool: only the credential channel reaches it
  const char* permission;   // what the App needs for it, as GitHub names it: "issues=write"
};

kj::ArrayPtr<const GitHubOperation> gitHubOperations();
// Null when there is none of this name.
const GitHubOperation* findGitHubOperation(std::string_view name);

}  // namespace oc
