#include "operations.h"

namespace oc::config {

const std::vector<std::string>& knownOperations() {
  static const std::vector<std::string> operations = {
      "conduit.work.get",     "conduit.work.note",     "conduit.work.finish",  "github.git.credential",
      "github.issue.get",     "github.issue.comments", "github.issue.comment", "github.issue.comment.update",
      "github.issue.label",   "github.pull.get",       "github.pull.open",     "github.pull.update",
      "github.pull.comments", "github.pull.reply",     "github.pull.checks"};
  return operations;
}

const std::vector<std::string>& knownToolsets() {
  static const std::vector<std::string> toolsets = {"@conduit.work", "@github.author", "@github.workspace"};
  return toolsets;
}

std::string toolsetOf(const std::string& operation) {
  if (operation.starts_with("conduit.work.")) return "@conduit.work";
  return operation == "github.git.credential" ? "@github.workspace" : "@github.author";
}

}  // namespace oc::config
