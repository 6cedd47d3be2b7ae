@0x9d6e2b85c3f1704a;
# open-conduit-github: one connection to one GitHub. It reads GitHub's answers, and holds that connection's key.
#
# Two jobs:
#
#   connection --api URL [--ca FILE] [--proxy HOST:PORT]   3 the RPC connection: serves GitHub. It lives as long as the daemon.
#   webhook                                                3 the RPC connection, 4 a listening socket: serves GitHubWebhook.
#                                                          It has no network of its own and no key of GitHub's.
#
# Refusals' reasons: `github_credentials` (a key or token that GitHub does not take, or that is no key), `github_denied`
# (401, 403, or a 404 that may mean the same: the words say what is missing), `github_invalid` (422: with GitHub's errors),
# `github_conflict` (409), `github_gone` (410), `github_limited` (a rate limit; `retryAfter` says for how long),
# `github_unavailable` (unreachable, 5xx, a time-out, or an answer that is no answer), `github_refused` (asked for something
# outside of what the call is bound to). Texts of GitHub's in them are bounded and printable. No token and no key is ever in one.

using Cxx = import "/capnp/c++.capnp";
using Common = import "common.capnp";
$Cxx.namespace("oc::proto");

interface GitHub extends(Common.Instance) {
  signIn @0 (credentials :GitHubCredentials) -> (refusal :Common.Refusal);
  # Once, before anything else; looks at the key and asks nobody. Refuses `github_credentials`: no PEM, not RSA, encrypted.

  repository @1 (repo :Text) -> (refusal :Common.Refusal, retryAfter :UInt32, repository :GitHubRepository);
  # By "owner/name"; a renamed one is followed.

  mint @2 (repo :Text, repositoryId :UInt64) -> (refusal :Common.Refusal, token :Data, expiresAt :Int64);
  # A new installation token for that repository alone with `contents: write` alone, from the bot's App where there is one.
  # `expiresAt` in milliseconds since 1970 by this machine's clock. With `auth: token` and no bot's App: refused
  # `github_refused`, since a personal token cannot be narrowed.

  revoke @3 (token :Data) -> (refusal :Common.Refusal);
  # The token is dead when this returns without a refusal; one that was dead already is no error.

  identity @4 (repo :Text) -> (refusal :Common.Refusal, git :GitHubIdentity, speaker :GitHubIdentity);
  # `git`: who commits and pushes, the bot of the App that mints; `speaker`: who comments. Alike, unless the bot has an App
  # of its own. With `auth: token` they are the token's user. `repo`: any repository that the connection is for.

  call @5 (bound :GitHubBinding, operation :Text, arguments :Data)
      -> (refusal :Common.Refusal, result :Data, isError :Bool);
  # An operation of `proto/github_operations.h`. `arguments` is JSON of at most 256 KiB, checked here again. `result` is JSON
  # of at most 256 KiB; with `isError` an object {"error": reason, "message": …}. Nothing outside of `bound` is touched,
  # whatever `arguments` say. A write is done at most once, whatever is retried.

  sweep @6 (repo :Text, kind :GitHubEventKind, since :Int64, page :UInt32, etag :Text)
      -> (refusal :Common.Refusal, retryAfter :UInt32, notModified :Bool, events :List(GitHubEvent), etag :Text,
          next :UInt32);
  # Issues or comments that changed at `since` or later (milliseconds since 1970), in order of their last change, one page of 100
  # from page 1. `next` is 0 after the last. `etag` comes only with a page that is the first and the last, and stands for the same
  # `since` alone.

  event @7 (repo :Text, kind :GitHubEventKind, number :UInt64) -> (refusal :Common.Refusal, event :GitHubEvent);
  # One issue by its number, or one comment by its id, with its body whole.

  permission @8 (repo :Text, login :Text, userId :UInt64)
      -> (refusal :Common.Refusal, retryAfter :UInt32, maySteer :Bool);
  # Has this user `admin` or `write` (or `maintain`) in the repository? False when the login belongs to another user id by now.

  attention @9 (repo :Text, issue :UInt64)
      -> (refusal :Common.Refusal, retryAfter :UInt32, marks :List(GitHubMark));
  # Who labelled and assigned the issue, of what is on it now; the latest 100, oldest first.

  setStatus @10 (bound :GitHubBinding, comment :UInt64, text :Text) -> (refusal :Common.Refusal, comment :UInt64);
  # The one status comment of a Work on its issue: edits `comment`, or the one that has this Work's mark, or makes it.
  # `text` has at most 16 KiB.

  examine @11 (repos :List(Text), needs :List(Text)) -> (checks :List(GitHubCheck));
  # Doctor's: the key, the clock, each repository's installation and its permissions against `needs` ("issues=write"), the rate
  # limit. At most 64 repositories.

  signOut @12 () -> ();
  # Revokes the tokens that this instance keeps for its own use. Call before ending it.

}

struct GitHubCredentials {
  # Wiped by the reader when it has what it needs.
  union {
    app :group {
      id @0 :Text;
      # App id or client id.
      privateKey @1 :Data;
      # PEM.
    }
    token @2 :Data;
    # A personal access token.
  }
  botAppId @3 :Text;
  # Empty: no App of the bot's own.
  botPrivateKey @4 :Data;
}

struct GitHubRepository {
  id @0 :UInt64;
  fullName @1 :Text;
  # As GitHub has it now.
  defaultBranch @2 :Text;
}

struct GitHubIdentity {
  login @0 :Text;
  # "slug[bot]", or the user's.
  id @1 :UInt64;
  # Of the account, not of the App.
  name @2 :Text;
  email @3 :Text;
}

struct GitHubBinding {
  # What one run's operations are bound to.
  repo @0 :Text;
  repositoryId @1 :UInt64;
  issue @2 :UInt64;
  # 0: none; operations on the issue are then refused.
  branch @3 :Text;
  base @4 :Text;
  # What a pull request is opened against; empty: the repository's default branch.
  work @5 :Text;
  run @6 :Text;
  call @7 :Text;
  # The call's id, at most 32 letters and digits; what is written is known by it. Empty: one is made up.
  again @8 :Bool;
  # The same call was made before, and its answer was lost with the instance or the daemon. A write is looked for first.
}

enum GitHubEventKind {
  issue @0;
  comment @1;
}

struct GitHubEvent {
  kind @0 :GitHubEventKind;
  id @1 :UInt64;
  issue @2 :UInt64;
  # The issue's number.
  createdAt @3 :Int64;
  updatedAt @4 :Int64;
  # Milliseconds since 1970; GitHub has whole seconds.
  title @5 :Text;
  # Of an issue.
  body @6 :Data;
  # At most 256 KiB; UTF-8.
  bodyCut @7 :Bool;
  # Ask for it by `event`.
  bodyHash @8 :Text;
  # SHA-256, in hex, of the whole body (and of an issue's title, state, labels and assignees).
  authorId @9 :UInt64;
  authorLogin @10 :Text;
  open @11 :Bool;
  pullRequest @12 :Bool;
  labels @13 :List(Text);
  assignees @14 :List(Text);
}

struct GitHubMark {
  union {
    label @0 :Text;
    assignee @1 :Text;
  }
  actorId @2 :UInt64;
  actorLogin @3 :Text;
}

struct GitHubCheck {
  what @0 :Text;
  fix @1 :Text;
  ok @2 :Bool;
  wanted @3 :Bool;
  # False: what fails here keeps bindings from working.
}

interface GitHubWebhook extends(Common.Instance) {
  listen @0 (secret :Data, sink :GitHubSink) -> ();
  # Once. From here requests on descriptor 4 are answered. A body of more than 25 MiB, without a signature or with a wrong one,
  # is answered without having been parsed.
}

interface GitHubSink {
  event @0 (delivery :Text, repo :Text, event :GitHubEvent) -> ();
  # The answer says that the event is in the database; only then does GitHub get its 2xx. An event that the database has already
  # changes nothing. A broken answer: GitHub gets a 503, and may deliver again.
}
