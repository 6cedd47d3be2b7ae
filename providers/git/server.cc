#include "server.h"

#include <kj/debug.h>
#include <unistd.h>

#include "check.h"
#include "checkout.h"
#include "proto/convert.h"
#include "save.h"
#include "scan.h"
#include "workspace.h"

namespace oc::git {

namespace {

// The refusal, when there is one; else `fill` is called with the value.
template <typename Results, typename T, typename Fill>
void answer(Results results, OrRefusal<T> from, Fill fill) {
  if (from.ok()) {
    fill(results, from.value());
  } else {
    write(results.initRefusal(), from.refusal());
  }
}

template <typename Context>
kj::Promise<void> answerWorkspace(Context context, kj::Promise<OrRefusal<WorkspaceFacts>> made) {
  return made.then([context](OrRefusal<WorkspaceFacts> from) mutable {
    answer(context.getResults(), kj::mv(from), [](auto results, WorkspaceFacts& facts) {
      auto workspace = results.initWorkspace();
      workspace.setBase(toText(facts.base));
      workspace.setBranch(toText(facts.branch));
      workspace.setFrom(toText(facts.from));
    });
  });
}

}  // namespace

GitServer::GitServer(kit::Context& context, Job job, kj::AutoCloseFd input, kj::AutoCloseFd output)
    : context(context), loop(loopOf(context.io)), job(std::move(job)), input(kj::mv(input)), output(kj::mv(output)) {}

GitServer::~GitServer() noexcept(false) {
  // Empty by now, unless a git is just being killed: then the next one or `remove` sees to it.
  if (job.role == Role::Pack) rmdir(viewOf(job).c_str());
}

void GitServer::requireRole(Role role) {
  KJ_REQUIRE(job.role == role, "this instance has another role", roleName(job.role), roleName(role));
}

kj::Promise<void> GitServer::protections(ProtectionsContext call) {
  kit::answerProtections(context, call.getResults());
  return kj::READY_NOW;
}

kj::Promise<void> GitServer::check(CheckContext call) {
  requireRole(Role::Check);
  return checkGit(loop).then([call](OrRefusal<std::string> from) mutable {
    answer(call.getResults(), kj::mv(from), [](auto results, std::string& line) { results.setVersion(toText(line)); });
  });
}

kj::Promise<void> GitServer::inspect(InspectContext call) {
  requireRole(Role::Inspect);
  return inspectCheckout(loop, job.checkout).then([call](OrRefusal<CheckoutFacts> from) mutable {
    answer(call.getResults(), kj::mv(from), [](auto results, CheckoutFacts& facts) {
      auto checkout = results.initCheckout();
      checkout.setHead(toText(facts.head));
      checkout.setBranch(toText(facts.branch));
      checkout.setOrigin(toText(withoutCredentials(facts.setting("remote.origin.url").value_or(""))));
    });
  });
}

kj::Promise<void> GitServer::missing(MissingContext call) {
  requireRole(Role::Inspect);
  auto params = call.getParams();
  return countMissing(loop, job.checkout, toString(params.getBranch()), toString(params.getTip()))
      .then([call](OrRefusal<uint32_t> from) mutable {
        answer(call.getResults(), kj::mv(from), [](auto results, uint32_t commits) { results.setCommits(commits); });
      });
}

kj::Promise<void> GitServer::clone(CloneContext call) {
  requireRole(Role::Clone);
  auto params = call.getParams();
  return answerWorkspace(call, cloneWorkspace(loop, {job.checkout, job.workspace, toString(params.getBranch()),
                                                     toString(params.getStartPoint()), params.getLaidOut()}));
}

kj::Promise<void> GitServer::worktree(WorktreeContext call) {
  requireRole(Role::Worktree);
  auto params = call.getParams();
  return answerWorkspace(call, addWorktree(loop, {job.checkout, job.workspace, toString(params.getBranch()),
                                                  toString(params.getStartPoint()), false, params.getAgain()}));
}

kj::Promise<void> GitServer::tip(TipContext call) {
  requireRole(Role::Pack);
  auto params = call.getParams();
  return findTip(loop, job.workspace, viewOf(job), toString(params.getBranch()), toString(params.getBase()))
      .then([call](OrRefusal<TipFacts> from) mutable {
        answer(call.getResults(), kj::mv(from), [](auto results, TipFacts& facts) {
          results.setTip(toText(facts.tip));
          results.setCommits(facts.commits);
        });
      });
}

kj::Promise<void> GitServer::pack(PackContext call) {
  requireRole(Role::Pack);
  KJ_REQUIRE(output.get() >= 0, "this instance has packed already");
  auto params = call.getParams();
  return writePack(loop, job.workspace, viewOf(job), toString(params.getTip()), toString(params.getBase()),
                   kj::mv(output))
      .then([call](OrRefusal<bool> from) mutable { answer(call.getResults(), kj::mv(from), [](auto, bool) {}); });
}

kj::Promise<void> GitServer::uncommitted(UncommittedContext call) {
  requireRole(Role::Pack);
  return findUncommitted(loop, job.workspace, viewOf(job), toString(call.getParams().getTip()))
      .then([call](OrRefusal<Uncommitted> from) mutable {
        answer(call.getResults(), kj::mv(from), [](auto results, Uncommitted& found) {
          results.setCount(found.count);
          auto names = results.initNames(found.names.size());
          for (size_t i = 0; i < found.names.size(); ++i) names.set(i, toText(found.names[i]));
        });
      });
}

kj::Promise<void> GitServer::receive(ReceiveContext call) {
  requireRole(Role::Receive);
  KJ_REQUIRE(input.get() >= 0, "this instance has received already");
  auto params = call.getParams();
  ReceiveOrder order{job.checkout,
                     toString(params.getBranch()),
                     toString(params.getOld()),
                     toString(params.getTip()),
                     toString(params.getOtherwise()),
                     job.maxSize,
                     params.getInterrupted()};
  return receivePack(loop, std::move(order), kj::mv(input)).then([call](OrRefusal<std::string> from) mutable {
    answer(call.getResults(), kj::mv(from),
           [](auto results, std::string& branch) { results.setSavedAs(toText(branch)); });
  });
}

kj::Promise<void> GitServer::remove(RemoveContext call) {
  requireRole(Role::Remove);
  return removeWorkspace(loop, job.workspace, job.checkout).then([call](OrRefusal<bool> from) mutable {
    answer(call.getResults(), kj::mv(from), [](auto, bool) {});
  });
}

kj::Promise<void> GitServer::scan(ScanContext call) {
  requireRole(Role::Scan);
  auto clonedAt = call.getParams().getClonedAt();
  return scanWorkspace(loop, job.workspace, clonedAt).then([call](OrRefusal<ScanFacts> from) mutable {
    answer(call.getResults(), kj::mv(from), [](auto results, ScanFacts& facts) {
      auto warnings = results.initWarnings(facts.warnings.size());
      for (size_t i = 0; i < facts.warnings.size(); ++i) warnings.set(i, toText(facts.warnings[i]));
    });
  });
}

}  // namespace oc::git
