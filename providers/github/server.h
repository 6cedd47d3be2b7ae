#pragma once

#include "api.h"
#include "events.h"
#include "github.capnp.h"
#include "job.h"
#include "operations.h"
#include "providers/kit/kit.h"
#include "session.h"

namespace oc::github {

class GitHubServer final : public proto::GitHub::Server {
 public:
  GitHubServer(kit::Context& context, Job job);

  kj::Promise<void> protections(ProtectionsContext call) override;
  kj::Promise<void> signIn(SignInContext call) override;
  kj::Promise<void> repository(RepositoryContext call) override;
  kj::Promise<void> mint(MintContext call) override;
  kj::Promise<void> revoke(RevokeContext call) override;
  kj::Promise<void> identity(IdentityContext call) override;
  kj::Promise<void> call(CallContext call) override;
  kj::Promise<void> sweep(SweepContext call) override;
  kj::Promise<void> event(EventContext call) override;
  kj::Promise<void> permission(PermissionContext call) override;
  kj::Promise<void> attention(AttentionContext call) override;
  kj::Promise<void> setStatus(SetStatusContext call) override;
  kj::Promise<void> examine(ExamineContext call) override;
  kj::Promise<void> signOut(SignOutContext call) override;

 private:
  void requireSignedIn();

  kit::Context& context;
  Job job;
  Api api;
  Session session;
  Operations operations;
  Events events;
};

// Also for the webhook's instance.
void write(proto::GitHubEvent::Builder to, const Event& from);

}  // namespace oc::github
