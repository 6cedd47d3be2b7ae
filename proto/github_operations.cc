#include "github_operations.h"

namespace oc {

namespace {

constexpr const char* none = R"({"type":"object","properties":{},"additionalProperties":false})";
constexpr const char* page = R"({"type":"object","properties":{"page":{"type":"integer","minimum":1,"maximum":1000,
"description":"From 1; each has up to 30."}},"additionalProperties":false})";

// No operation has a field for a repository, an issue or a branch: these are the Work's.
constexpr GitHubOperation operations[] = {
    {"github.issue.get", "@github.author",
     "Reads the issue that this work is about: title, text, state, labels, assignees.", none, false, "issues=read"},
    {"github.issue.comments", "@github.author",
     "Reads the comments on the issue that this work is about, oldest first.", page, false, "issues=read"},
    {"github.issue.comment", "@github.author", "Comments on the issue that this work is about. Markdown.",
     R"({"type":"object","properties":{"body":{"type":"string","minLength":1,"maxLength":60000}},"required":["body"],
"additionalProperties":false})",
     false, "issues=write"},
    {"github.issue.comment.update", "@github.author",
     "Replaces the text of a comment that this work has made on its issue.",
     R"({"type":"object","properties":{"comment":{"type":"integer","minimum":1,"description":"Its id, as github.issue.comment gave it."},
"body":{"type":"string","minLength":1,"maxLength":60000}},"required":["comment","body"],"additionalProperties":false})",
     false, "issues=write"},
    {"github.issue.label", "@github.author", "Adds labels to the issue that this work is about, and removes others.",
     R"({"type":"object","properties":{"add":{"type":"array","maxItems":20,"items":{"type":"string","minLength":1,"maxLength":50}},
"remove":{"type":"array","maxItems":20,"items":{"type":"string","minLength":1,"maxLength":50}}},"additionalProperties":false})",
     false, "issues=write"},
    {"github.pull.open", "@github.author",
     "Opens the pull request of this work's branch, which has to be pushed before. One that is open already is answered instead.",
     R"({"type":"object","properties":{"title":{"type":"string","minLength":1,"maxLength":256},
"body":{"type":"string","maxLength":60000},"draft":{"type":"boolean"}},"required":["title"],"additionalProperties":false})",
     false, "pull_requests=write"},
    {"github.pull.update", "@github.author", "Changes the title or the text of this work's pull request.",
     R"({"type":"object","properties":{"title":{"type":"string","minLength":1,"maxLength":256},
"body":{"type":"string","maxLength":60000}},"minProperties":1,"additionalProperties":false})",
     false, "pull_requests=write"},
    {"github.pull.get", "@github.author", "Reads the pull request of this work's branch.", none, false,
     "pull_requests=read"},
    {"github.pull.checks", "@github.author", "Reads the checks on the latest commit of this work's pull request.", none,
     false, "checks=read"},
    {"github.pull.comments", "@github.author", "Reads the review comments on this work's pull request, oldest first.",
     page, false, "pull_requests=read"},
    {"github.pull.reply", "@github.author", "Replies to a review comment on this work's pull request.",
     R"({"type":"object","properties":{"comment":{"type":"integer","minimum":1,"description":"Its id, as github.pull.comments gave it."},
"body":{"type":"string","minLength":1,"maxLength":60000}},"required":["comment","body"],"additionalProperties":false})",
     false, "pull_requests=write"},
    {"github.git.credential", "@github.workspace",
     "Signs git in to the Work's repository. Called by git's credential helper alone.",
     R"({"type":"object","properties":{"protocol":{"type":"string"},"host":{"type":"string"},"path":{"type":"string"}},
"required":["protocol","host","path"],"additionalProperties":false})",
     true, "contents=write"},
};

}  // namespace

kj::ArrayPtr<const GitHubOperation> gitHubOperations() { return kj::arrayPtr(operations, kj::size(operations)); }

const GitHubOperation* findGitHubOperation(std::string_view name) {
  for (auto& operation : operations) {
    if (name == operation.name) return &operation;
  }
  return nullptr;
}

}  // namespace oc
