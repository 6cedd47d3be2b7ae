@0xd2f0a41b7c9e5503;
# open-conduit-git: one task on one repository, then gone.
#
# An instance gets its role and the paths that it may see on its command line, before lockdown:
#
#   inspect  --checkout P                 reads the operator's checkout
#   clone    --checkout P --workspace W   reads the checkout, writes the workspace
#   worktree --checkout P --workspace W   writes both (unsandboxed bindings only)
#   pack     --workspace W                reads the workspace; the pack goes to its standard output
#   receive  --checkout P                 writes the checkout's objects and one branch;
#                                         the pack comes from its standard input
#   scan     --workspace W                reads the workspace
#   check                                 sees only the system
#   remove   --workspace W                deletes the workspace (and, with --checkout P, its
#                                         worktree entry there)
#
# A method that its role does not have throws. Progress goes to the instance's standard error as
# git prints it, which the daemon points at the run's log. Every git runs with hooks, gc, fsmonitor,
# submodule recursion, prompts and the user's config off, unless a method says otherwise.

using Cxx = import "/capnp/c++.capnp";
using Common = import "common.capnp";
$Cxx.namespace("oc::proto");

interface Git extends(Common.Instance) {
  inspect @0 () -> (refusal :Common.Refusal, checkout :Checkout);
  # Is this something that Work can be made from? Refuses (`checkout_invalid`, naming the path): one
  # that does not exist, is not the caller's, is bare, has no commit, is a linked worktree or a
  # submodule, or sits under an alternate that cannot be read.

  clone @1 (branch :Text, startPoint :Text, laidOut :Bool) -> (refusal :Common.Refusal, workspace :Workspace);
  # Makes the workspace: a clone that shares nothing with the checkout (no hard links, no alternates),
  # with the checkout's remotes (not the checkout itself as one) and its user.name and user.email,
  # on a new branch `branch` at `startPoint` (empty: the checkout's HEAD), tracking the branch
  # of that name on `origin` where there is an origin. Refuses a branch name that git refuses
  # (`branch_invalid`) and a full disk (`workspace_failed`). On any failure nothing half-made is left.
  # `laidOut`: the workspace has been laid out for a container that has parts of it open: its folders and empty files, .git's among
  # them, are filled and stay the same ones.

  worktree @2 (branch :Text, startPoint :Text, again :Bool) -> (refusal :Common.Refusal, workspace :Workspace);
  # The same as a linked worktree of the checkout. With `again` an earlier instance may have been killed while it did this: a branch
  # of that name is taken for its, and made anew, as long as it is where it would have made it.

  tip @3 (branch :Text, base :Text) -> (refusal :Common.Refusal, tip :Text, commits :UInt32);
  # (pack role) What `branch` of the workspace points at, and how many commits it has that `base` (a commit id) has
  # not; 0 when `tip` equals `base`. Validated: a commit that is there.

  pack @7 (tip :Text, base :Text) -> (refusal :Common.Refusal);
  # Writes the objects that `tip` needs and `base` has not to standard output, as one pack, and closes it. Runs
  # while a second instance receives: the pipe between them holds little, so the caller calls both at once. Refused as
  # `receiver_gone` when the pipe's other end was closed: that side knows why.

  uncommitted @9 (tip :Text) -> (refusal :Common.Refusal, count :UInt32, names :List(Text));
  # (pack role) How many of the workspace's files are changed, removed or new against the commit `tip`, without those that
  # its .gitignore names (a folder of new files counts once), and the names of the first five: printable, up to 200 bytes.
  # Reads every file. Nothing of the workspace's config or index is used.

  receive @4 (branch :Text, old :Text, tip :Text, otherwise :Text, interrupted :Bool)
      -> (refusal :Common.Refusal, savedAs :Text);
  # Takes a pack from standard input into quarantine, checks it (fsck, size, connectivity of `tip`),
  # and moves `branch` from `old` (40 zeros: it must not exist) to `tip`. A branch that is elsewhere by
  # now, or checked out in any worktree, is left alone: the commits are then kept as the branch
  # `otherwise` (a number is added if that is taken, too). `savedAs` says which branch has them.
  # With `tip` equal to `old` it reads nothing. git waits two seconds for a lock on a branch. `interrupted`: an earlier receiver
  # of this branch may have been killed, with its git; a lock that is there before these two seconds and untouched after
  # them is then taken for that git's, and removed.

  remove @5 () -> (refusal :Common.Refusal);
  # Removes the workspace. One that is not there is no error.

  check @8 () -> (refusal :Common.Refusal, version :Text);
  # Doctor's check: git is there, is not too old (2.39 or later), and runs under the lockdown. `version` is its own line.

  missing @10 (branch :Text, tip :Text) -> (refusal :Common.Refusal, commits :UInt32);
  # (inspect role) How many commits the checkout's `branch` has that `tip`, a commit of the checkout's, has not; at most
  # 1000. 0 when there is no such branch or no such commit any more.

  scan @6 (clonedAt :Int64) -> (refusal :Common.Refusal, warnings :List(Text));
  # Looks at the workspace's files without running anything. Refuses (`sandbox_denied`, naming the file, and
  # pnpm's package-import-method=copy) a file with a hard link outside the workspace: one whose link count is
  # higher than the links counted inside. `warnings` (at most 100) are what a person would run there by accident:
  # .git/commondir, config.worktree, nested .git, hooks directories, .envrc, .vscode, .idea. Of what a repository may have
  # itself (.envrc, .vscode, .idea, .husky, .githooks), only what has changed (ctime) after `clonedAt`, in nanoseconds since
  # 1970 as the workspace's file system tells them; 0: all.
}

struct Checkout {
  head @0 :Text;
  # The commit of HEAD, as 40 (or 64) hex digits.
  branch @1 :Text;
  # The branch that HEAD is on; empty when detached.
  origin @2 :Text;
  # The URL of `origin`, without any credentials in it; empty without one.
}

struct Workspace {
  base @0 :Text;
  # The commit that the branch starts at.
  branch @1 :Text;
  from @2 :Text;
  # The branch of the checkout that this is: the one that HEAD is on; empty when detached, and with a start point.
}
