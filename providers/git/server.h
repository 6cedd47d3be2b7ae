// The Git interface for one job.
#pragma once

#include <kj/io.h>

#include "git.capnp.h"
#include "git_command.h"
#include "job.h"
#include "providers/kit/kit.h"

namespace oc::git {

class GitServer final : public proto::Git::Server {
 public:
  // `input` is where `receive` reads its pack, `output` where `pack` writes it.
  GitServer(kit::Context& context, Job job, kj::AutoCloseFd input, kj::AutoCloseFd output);
  ~GitServer() noexcept(false);

 protected:
  kj::Promise<void> protections(ProtectionsContext context) override;
  kj::Promise<void> inspect(InspectContext context) override;
  kj::Promise<void> missing(MissingContext context) override;
  kj::Promise<void> clone(CloneContext context) override;
  kj::Promise<void> worktree(WorktreeContext context) override;
  kj::Promise<void> tip(TipContext context) override;
  kj::Promise<void> pack(PackContext context) override;
  kj::Promise<void> uncommitted(UncommittedContext context) override;
  kj::Promise<void> receive(ReceiveContext context) override;
  kj::Promise<void> remove(RemoveContext context) override;
  kj::Promise<void> check(CheckContext context) override;
  kj::Promise<void> scan(ScanContext context) override;

 private:
  void requireRole(Role role);

  kit::Context& context;
  Loop loop;
  Job job;
  kj::AutoCloseFd input, output;
};

}  // namespace oc::git
