@0xc47a19e3b05d8f26;
# The run's toolbelt: what the daemon lets one run's agent do through its shim.
#
# The shim speaks MCP with the agent, checks arguments against each operation's JSON Schema, and calls this. The
# capability contains exactly the run's operations; the daemon checks the operation's name all the same.

using Cxx = import "/capnp/c++.capnp";
using Common = import "common.capnp";
$Cxx.namespace("oc::proto");

interface Toolbelt {
  call @0 (operation :Text, arguments :Data, id :Text, again :Bool) -> (refusal :Common.Refusal, result :Data, isError :Bool);
  # Any operation that a provider owns (github.…). `arguments` is a JSON object of at most 256 KiB that the shim has
  # validated; the daemon passes it on unread. `result` is JSON of at most 256 KiB. `isError`: the operation
  # failed, and `result` says why to the agent. Refused (`operation_denied`): not one of the run's operations.
  # `id`: at most 32 letters and digits, the shim's own for this call. With `again` the call was made before, under the same id, and
  # its answer was lost with an earlier daemon: a write is done only where it was not done then.

  getWork @1 () -> (refusal :Common.Refusal, work :ToolbeltWork);
  # conduit.work.get

  addNote @2 (text :Text) -> (refusal :Common.Refusal);
  # conduit.work.note: kept with the Work, at most 4 KiB; at most 100 a run (`too_many_notes`).

  finishWork @3 (summary :Text) -> (refusal :Common.Refusal);
  # conduit.work.finish: the Work is finished when this run has ended. `summary` is kept as a note.

  gitCredential @4 (protocol :Text, host :Text, path :Text)
      -> (refusal :Common.Refusal, username :Text, password :Text);
  # github.git.credential. No tool: only the credential channel reaches it. Refused (`operation_denied`,
  # `credential_refused`) for anything but the Work's own repository on its host.
}

struct ToolbeltWork {
  id @0 :Text;
  title @1 :Text;
  body @2 :Data;
  # At most 512 KiB of it; `bodyCut` when there is more.
  bodyCut @3 :Bool;
  branch @4 :Text;
  base @5 :Text;
  runs @6 :List(ToolbeltRun);
  # The latest 20, oldest first.
  notes @7 :List(Text);
  # The latest 20, oldest first.
}

struct ToolbeltRun {
  id @0 :Text;
  outcome @1 :Text;
  message @2 :Text;
  endedAt @3 :Int64;
}

struct ToolbeltOperation {
  name @0 :Text;
  description @1 :Text;
  inputSchema @2 :Text;
  # JSON Schema 2020-12 of its arguments, as JSON.
  hidden @3 :Bool;
  # Not listed as a tool and not callable as one: github.git.credential.
}
