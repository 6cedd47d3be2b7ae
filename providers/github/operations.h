// The operations that agents call, each bound to one Work's repository, issue and branch.
#pragma once

#include <kj/async.h>

#include <string>

#include "session.h"

namespace oc::github {

struct Binding {
  std::string repo;
  uint64_t repositoryId = 0, issue = 0;
  std::string branch, base, work, run;
  std::string call;    // the call's id; empty: one is made up
  bool again = false;  // it was made before, and its answer was lost
};

class Operations {
 public:
  explicit Operations(Session& session) : session(session) {}

  // The operation's result, or why not. `arguments` is JSON as the agent sent it.
  kj::Promise<OrRefusal<Json>> call(Binding bound, std::string operation, std::string arguments);

  // Makes, or edits, the one status comment of the Work; its id.
  kj::Promise<OrRefusal<uint64_t>> setStatus(Binding bound, uint64_t comment, std::string text);

 private:
  struct Context;
  using Result = OrRefusal<Json>;
  using Perform = kj::Promise<Result> (Operations::*)(Context&);

  kj::Promise<OrRefusal<Repository>> boundRepository(const Binding& bound);
  kj::Promise<ApiAnswer> ask(Context& context, ApiCall call);
  kj::Promise<ApiAnswer> askOnce(Context& context, ApiCall call);
  kj::Promise<Result> shape(kj::Promise<ApiAnswer> answer, Json (*of)(const Json&));
  kj::Promise<kj::Maybe<Json>> findMarked(Repository repository, std::string path, std::string mark);
  kj::Promise<OrRefusal<uint64_t>> ownPull(Context& context, bool openOnly);

  kj::Promise<Result> getIssue(Context& context);
  kj::Promise<Result> issueComments(Context& context);
  kj::Promise<Result> comment(Context& context);
  kj::Promise<Result> updateComment(Context& context);
  kj::Promise<Result> label(Context& context);
  kj::Promise<Result> unlabel(Context& context, size_t index);
  kj::Promise<Result> openPull(Context& context);
  kj::Promise<Result> updatePull(Context& context);
  kj::Promise<Result> getPull(Context& context);
  kj::Promise<Result> pullChecks(Context& context);
  kj::Promise<Result> pullComments(Context& context);
  kj::Promise<Result> replyToReview(Context& context);

  struct Entry {
    const char* name;
    Perform perform;
    bool needsIssue;
  };
  static const Entry entries[];

  Session& session;
};

}  // namespace oc::github
