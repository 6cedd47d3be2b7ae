#include "reasons.h"

#include <fmt/format.h>

namespace oc {

namespace {

constexpr const char* introduction =
    "# Reasons, word by word\n"
    "\n"
    "Each refusal and each end of a run has a word that scripts can rely on, beside a sentence that names the thing and, where\n"
    "there is one, a fix. This page is made from the table that the program itself has. More about sandboxes is in\n"
    "[sandboxes.md](sandboxes.md), about secrets in [secrets.md](secrets.md).\n";

std::vector<ReasonGroup> makeGroups() {
  return {
      {"A run that was refused",
       "Nothing of the job ran, as far as can be told from outside of the sandbox.",
       "",
       {
           {"sandbox_denied",
            "the run needs a path, host or socket that its policy does not grant, the policy reaches into Open Conduit's own "
            "places or your claude, or the workspace has a hard link to a file outside of it; the message names the thing",
            "grant what it names, if you mean to; Open Conduit's own state can't be granted; copy instead of linking"},
           {"sandbox_unavailable",
            "the sandbox can't be set up: a part is missing or too old, the kernel won't isolate, the engine can't be reached, an "
            "image is missing, a check of doctor's fails; without a sandbox, the program or its directory is not there",
            "`open-conduit doctor`, and the fix that it names"},
           {"container_running", "a container of an earlier attempt of this run is still there",
            "it is stopped before the run is tried again; else `open-conduit runs stop`"},
           {"sandbox_config", "sandboxed Claude Code without a `CLAUDE_CONFIG_DIR` of its own (`config check`)",
            "a directory that no other claude uses, in the binding's `env` and in `write`"},
           {"sandbox_workspace",
            "a sandboxed binding without a git resource, with a worktree, or with `setup` (`config check`)",
            "clone mode, without `setup`"},
           {"sandbox_conflict", "`sandbox` and `container` in one binding (`config check`)", "delete one"},
           {"checkout_invalid",
            "the binding's checkout is not there, not yours, bare, without a commit, a linked worktree, a submodule or a partial "
            "clone, or borrows objects that can't be read",
            "the message names which; give the top of a full checkout of your own"},
           {"branch_invalid", "git refuses the branch's name, or, for a worktree, the branch exists",
            "another `branch`; `{work}` in it makes it unique"},
           {"workspace_failed",
            "the workspace could not be made or removed: disk full, git's own failure, a provider that did not start",
            "make room; the run's log has git's words"},
           {"secret_unavailable",
            "a secret can't be read: the keyring is locked, missing or does not have it, the file is not there or others can read "
            "it, the variable isn't set",
            "`open-conduit secret list` says which; `open-conduit secret set NAME`; `chmod 600`; [secrets.md](secrets.md) for a "
            "machine without a desktop"},
           {"secret_denied",
            "the binding selects a secret that its scope does not define, or uses one that it does not select",
            "the message says which of the two is missing: `secret_refs` of the scope, or `secret_names` of the binding"},
           {"toolbelt_empty", "the binding requires a toolbelt, and none of its operations can be offered",
            "list operations, as `@conduit.work`, in the binding's `operations` and in the scope's authorization"},
           {"binding_missing", "the config has no such binding, or no more", "put it back, or cancel the Work"},
           {"executor_unavailable", "there is no program `claude`",
            "install Claude Code, or name its program in `settings.extensions.claude.program`"},
           {"playbook_unknown", "the binding's playbook is not there", "`open-conduit playbook list`"},
           {"playbook_invalid", "the binding's playbook cannot be read, or has a variable that there is not",
            "the message names the file, the line and the variable"},
           {"github_credentials", "the connection's key or token can't be used", "`open-conduit doctor` says why"},
           {"home_failed", "the Work's home could not be made of `home_seed`", "the message says at which file"},
       }},
      {"A run that ended otherwise",
       "",
       "The commits of a run that had begun are saved in all of these cases, as far as the workspace has them. If saving fails,\n"
       "the run's notes say so, and they are saved when the Work is finished. Finishing and cancelling are refused as long as that\n"
       "fails, so that nothing is lost; `work cancel --discard` gives up what cannot be saved. It fails when the run deleted its\n"
       "branch or put something else in the place of `.git` or of an object, when an object is broken, beyond 4 GiB, or when a lock\n"
       "of your own git's is in the way. `runs stop` ends a save that takes too long, after the grace that agents have, too.",
       {
           {"exit_status", "the command ended with another code than 0", ""},
           {"signal", "a signal killed it; often memory", ""},
           {"timeout", "it ran longer than the binding's `timeout`", ""},
           {"stalled", "it printed nothing for the binding's `stall_timeout`", ""},
           {"agent_error", "Claude Code ended its turn with an error, or without a result", "`open-conduit runs logs`"},
           {"api_error", "the model's API failed, after retries; the message has its status",
            "the token, the network policy, or the service"},
           {"retry_storm", "more than 40 calls of the API in a row failed, and the agent would have gone on", ""},
           {"max_turns", "the binding's `max_turns`; never tried again by itself",
            "`open-conduit work say` begins another turn"},
           {"budget", "the binding's `max_budget_usd`; never tried again by itself",
            "`open-conduit work say` begins another turn"},
           {"mcp_failed", "the toolbelt that the binding requires did not start in the agent",
            "`open-conduit runs logs --raw`"},
           {"session_lost",
            "the session that the run was to resume is gone; a run that begins a new one is queued by itself", ""},
           {"agent_missing", "there is no `claude` that can be started, in a container's image for one",
            "an image that has it"},
           {"agent_unsuited", "`claude` is another program there, or a version that lacks an option",
            "another version of Claude Code"},
           {"save_failed",
            "the command succeeded, and its commits could not be brought to the checkout; they are in the workspace",
            "mend what the message names, then `open-conduit work finish`"},
           {"receiver_gone", "the side of git that writes to the checkout ended while commits were being saved",
            "the run's log has git's words"},
           {"save_stopped", "its commits were being saved when it was stopped; they are in the workspace",
            "`open-conduit work finish`"},
           {"stopped", "you asked for it", ""},
           {"drained", "`open-conduit drain --stop`", ""},
           {"interrupted", "the daemon was restarted and nobody was left of the run, or nobody learned how it ended",
            ""},
           {"orphaned", "ten minutes without a daemon, or one that speaks another version", ""},
           {"provider_failed", "a part of the run ended or was cut off for sending too much; the message says which",
            "the daemon's log has more"},
           {"policy_changed",
            "the daemon was restarted, and the policy that the run went on with is not known to be the one it was pinned to: its "
            "plan or settings on the disk were changed, or its container is another one; the message says which",
            "see who can write the state directory or use the Docker Engine; then let the Work have another run"},
           {"internal_error", "a step of ours failed", "the daemon's log has more"},
       }},
      {"A request that was refused",
       "",
       "",
       {
           {"request_invalid", "no such binding; a title over 1 KiB or with control characters; a body over 16 MiB",
            "the message says which"},
           {"run_unknown", "there is no such run", "`open-conduit runs list`"},
           {"work_unknown", "there is no such Work", "`open-conduit work list`"},
           {"not_found", "there is no such thing any more", "`open-conduit work list`"},
           {"id_ambiguous", "more than one id begins so", "write more of it"},
           {"run_ended", "the run has ended already", ""},
           {"work_ended", "the Work has ended already", ""},
           {"work_busy",
            "a run of it lives (or waits, for attaching), somebody is attached to it, or it is being ended",
            "wait, or `open-conduit work cancel`"},
           {"attach_sandboxed",
            "attaching to Work that ran in a process sandbox, or a command of yours in Work that ran in any",
            "`open-conduit work attach`, which works for Work that ran in a container"},
           {"no_plan",
            "the run ended before its policy was decided; or no run of the Work got so far, to attach to what it ran in",
            "`open-conduit runs get`"},
           {"draining", "the daemon takes no new work", "restart it"},
       }},
      {"A call of the toolbelt that was refused",
       "The agent reads these. [toolbelt.md](toolbelt.md) has the bounds.",
       "",
       {
           {"operation_denied",
            "the run has no such operation: the binding or the scope's authorization does not list it",
            "list it in both"},
           {"operation_unknown", "this version has no such operation", ""},
           {"github_unavailable",
            "GitHub, or what speaks with it here, could not be reached or did not answer as it should", "try again"},
           {"github_refused", "GitHub refused the call; the message has its words", "the message says what is missing"},
           {"github_denied", "the Work has nothing on GitHub that this operation could be about", ""},
           {"operation_unavailable", "what carries the operation out is not there right now",
            "try again; `open-conduit doctor`"},
           {"operation_failed", "the operation failed in Open Conduit", "the daemon's log has more"},
           {"arguments_invalid", "the arguments do not keep to the operation's schema", "the message says which"},
           {"result_too_large", "the operation's answer has more than 256 KiB", "ask for less"},
           {"credential_refused", "git asked for the credential of something else than the Work's own repository", ""},
           {"hello_invalid", "the first line of a connection is not one that this version knows",
            "connect by `open-conduit-toolbelt`"},
           {"token_invalid", "that is not this run's token", ""},
           {"too_many_calls", "the run waits for too many answers already", "wait for them"},
           {"too_many_connections", "the run's toolbelt has sixteen connections already", "close one"},
           {"too_many_notes", "the run has left as many notes as are kept", ""},
           {"try_again", "the daemon is not there right now: it is being restarted", "try again in a few seconds"},
       }},
      {"A daemon that does not start",
       "",
       "",
       {
           {"state_locked", "another daemon, or a program such as an sqlite3 shell, has the database",
            "end that one; the message has the daemon's pid"},
           {"state_newer", "a newer version made it; nothing was changed", "install that version"},
           {"state_damaged", "it is damaged, another program's, or something else is in its place",
            "restore a copy, or move it away with its `-wal` and `-shm`"},
           {"state_unwritable", "disk full, read-only, not yours", "make room, on a local disk"},
       }},
      {"The command line",
       "",
       "",
       {
           {"no_terminal", "`work attach` needs a terminal", "`open-conduit work say` tells the agent something"},
           {"binding_unsandboxed", "the run's binding has no sandbox by now, so there is no policy to change", ""},
           {"no_daemon", "no daemon is there (exit code 3)",
            "`open-conduit daemon`, or `systemctl --user start open-conduit`"},
           {"no_answer", "the daemon does not answer (exit code 3)", "`open-conduit status`; see the daemon's log"},
           {"token_wrong", "the daemon was started with another `XDG_STATE_HOME`", "use the same"},
           {"token_unreadable",
            "the operator token can't be read: the daemon was started with another `XDG_STATE_HOME`", "use the same"},
           {"not_ours", "another user serves that socket", "an `XDG_RUNTIME_DIR` of your own"},
           {"version_mismatch", "daemon and command line are of two versions", "restart the daemon; runs go on"},
           {"usage", "the words are not understood (exit code 2)", "`open-conduit --help`"},
           {"program_missing", "a program of Open Conduit's is not beside the others", "install all of them together"},
           {"config_invalid", "the config has errors", "`open-conduit config check`"},
           {"path_invalid", "what was asked about is no path of a policy",
            "write `/…`, `~/…`, `{workspace}…` or `{run}…`"},
           {"host_invalid", "what was asked about is no host", "write `host` or `host:port`"},
           {"secret_unknown", "the keyring has no such secret", "`open-conduit secret list`"},
           {"secret_invalid", "what was given can't be a secret: nothing, over 64 KiB, or with a NUL",
            "a token or a key"},
           {"connect_failed", "the daemon's socket can't be connected to; the message has what the system said",
            "`open-conduit doctor`"},
           {"attack_unsandboxed", "the binding has no sandbox, so there is nothing to attack",
            "name a binding with `sandbox` or `container`"},
           {"doctor_failed", "doctor ended without a report", "see what it printed"},
           {"output_failed", "standard output can't be written to", ""},
           {"failed", "what the system said", ""},
       }},
  };
}

}  // namespace

const std::vector<ReasonGroup>& reasonGroups() {
  static const auto groups = makeGroups();
  return groups;
}

const Reason* findReason(std::string_view word) {
  for (auto& group : reasonGroups()) {
    for (auto& reason : group.reasons) {
      if (reason.word == word) return &reason;
    }
  }
  return nullptr;
}

std::string fixFor(std::string_view reason, const std::string& fix) {
  if (!fix.empty()) return fix;
  auto* known = findReason(reason);
  if (known == nullptr) return "";
  std::string general(known->fix);
  std::erase(general, '`');  // which mark a command on the page, and nothing on a terminal or in JSON
  return general;
}

std::string reasonsPage() {
  std::string page = introduction;
  for (auto& group : reasonGroups()) {
    page += fmt::format("\n## {}\n", group.title);
    if (!group.before.empty()) page += fmt::format("\n{}\n", group.before);
    page += "\n| reason | meaning | what to do |\n|---|---|---|\n";
    for (auto& reason : group.reasons)
      page += fmt::format("| `{}` | {} | {} |\n", reason.word, reason.meaning, reason.fix);
    if (!group.after.empty()) page += fmt::format("\n{}\n", group.after);
  }
  return page;
}

}  // namespace oc
