@0xf6a2903c4e7db815;
# The control socket: what the CLI and the terminal UI may ask of the daemon.

using Cxx = import "/capnp/c++.capnp";
using Common = import "common.capnp";
using Gateway = import "gateway.capnp";
using Shim = import "run.capnp";
$Cxx.namespace("oc::proto");

interface Front {
  # What a connection gets before it has shown the operator token.

  login @0 (token :Data, version :UInt32) -> (control :Control, daemonVersion :Text);
  # The token is the 32 bytes of the state directory's `operator-token`. A wrong one throws, after a
  # second's delay.
}

interface Control {
  status @0 () -> (status :Status);

  newWork @1 (request :NewWork) -> (refusal :Common.Refusal, id :Text, run :Text);
  # Makes Work and queues its first run. Refuses (`request_invalid`): a binding that does not exist, a
  # title over 1 KiB or with control characters, a body over 16 MiB.

  listWork @2 (limit :UInt32) -> (work :List(Work), older :UInt64);
  # As listRuns.
  getWork @3 (id :Text) -> (refusal :Common.Refusal, work :Work);
  finishWork @4 (id :Text) -> (refusal :Common.Refusal);
  # Saves its commits once more, removes its workspace and home. Refused (`work_busy`) while a run lives, and when the
  # commits cannot be saved.
  cancelWork @5 (id :Text, discard :Bool) -> (refusal :Common.Refusal);
  # Stops the live run first, then as finish. With `discard`, commits that cannot be saved are given up; without, they stop it.

  listRuns @6 (work :Text, limit :UInt32) -> (runs :List(Run), refusal :Common.Refusal, older :UInt64);
  # Newest first; `work` empty: of all Work. At most `limit` (0: 10,000) and what fits into 32 MiB; `older` is how many more there
  # are. Refuses Work that is not there.
  getRun @7 (id :Text) -> (refusal :Common.Refusal, run :Run);
  waitRun @8 (id :Text) -> (refusal :Common.Refusal, run :Run);
  # Returns when the run has ended.
  readLog @9 (id :Text, offset :UInt64, follow :Bool) -> (refusal :Common.Refusal, bytes :Data, next :UInt64, end :Bool);
  # Up to 256 KiB from `offset`, as the shim wrote them: what the agent said, with its run's secrets blotted out. With
  # `follow` an empty answer is held back until there is more or the run has ended; `end` says that no more will come.
  getPolicy @10 (id :Text) -> (refusal :Common.Refusal, plan :Text, sha256 :Text);
  # The run's pinned plan, as canonical JSON.
  stopRun @11 (id :Text) -> (refusal :Common.Refusal);
  # Answers when the stop is under way; a run that has ended is refused (`run_ended`).

  drain @12 (stop :Bool) -> ();
  # No new runs from now on; with `stop` the live ones are stopped. Answers when none is left. The daemon
  # goes on, refusing new runs, until it is stopped.

  reload @13 () -> (diagnostics :Text);
  # As SIGHUP. Empty diagnostics: the new config is in force from the next run; else the old one stays.

  doctor @14 () -> (checks :List(DoctorCheck));

  sayWork @15 (id :Text, text :Text) -> (refusal :Common.Refusal, run :Text, delivered :Bool);
  # A message to the Work's agent: into its live run where its executor takes one and acknowledges it (`delivered`), else a
  # new run is queued that begins with it. `run` is the one that has or will have it. At most 1 MiB of text.

  readNetwork @16 (id :Text, offset :UInt64, follow :Bool)
      -> (refusal :Common.Refusal, bytes :Data, next :UInt64, end :Bool);
  # The run's network log, one JSON object a line, as readLog.

  execPlace @17 (id :Text) -> (refusal :Common.Refusal, directory :Text, environment :List(Common.EnvVar));
  # Where `work exec` runs: refused (`attach_sandboxed`) for Work that ran in a sandbox.

  attachWork @18 (id :Text, terminal :Terminal) -> (refusal :Common.Refusal, host :HostAttachment, session :AttachSession);
  # Opens the Work for a person. What it ran in decides: a container of its own is made and started (which takes a second, and a
  # minute with an image that is pulled first), or, for Work that ran without a sandbox, `host` says what the caller is to run.
  # Refuses (`attach_sandboxed`, `work_busy` while a run of it lives or waits, `work_ended`, `no_plan`, and what a run in a container
  # is refused for). No run of the Work begins while the session is held; dropping it, or the connection, ends the attachment and
  # removes its container.
}

struct Terminal {
  columns @0 :UInt16;
  rows @1 :UInt16;
  kind @2 :Text;            # TERM, at most 64 letters, digits, `.`, `+`, `-` and `_`; else xterm-256color is taken
  colours @3 :Text;         # COLORTERM, likewise; else nothing
}

struct HostAttachment {
  command @0 :List(Text);   # empty: it is a container
  directory @1 :Text;
  environment @2 :List(Common.EnvVar);
}

interface AttachSession {
  terminal @0 () -> (path :Text);
  # A Unix socket for one connection of the same user, within 30 seconds: it brings one byte and, with it, a descriptor (SCM_RIGHTS).
  # That is the container's terminal itself: what is written is typed, what is read is to be shown, and its end is the
  # container's. Not for `host`.
  resize @1 (columns :UInt16, rows :UInt16) -> ();
  wait @2 () -> (status :Common.ExitStatus);
  # Returns when the container has ended and was removed.
}

struct NewWork {
  scope @0 :Text;
  binding @1 :Text;
  title @2 :Text;
  body @3 :Data;
}

struct Work {
  id @0 :Text;
  scope @1 :Text;
  binding @2 :Text;
  title @3 :Text;
  state @4 :Text;           # open, finished, cancelled
  createdAt @5 :Int64;      # milliseconds since 1970, here and below; 0: not yet
  endedAt @6 :Int64;
  branch @7 :Text;
  workspace @8 :Text;       # its directory; empty when gone
  checkout @9 :Text;
  runs @10 :List(Text);     # ids, oldest first
  warnings @11 :List(Text);
  # What in its workspace a person would run by accident, reported when the workspace ends.
  notes @12 :List(WorkNote);
  session @13 :Text;        # the agent's own, that the next run resumes
  usage @14 :Shim.RunEvent.Usage;  # of all its runs
}

struct WorkNote {
  run @0 :Text;
  at @1 :Int64;
  text @2 :Text;
}

struct Run {
  id @0 :Text;
  work @1 :Text;
  scope @2 :Text;
  binding @3 :Text;
  state @4 :Text;           # queued, preparing, running, saving, cleaning, ended
  outcome @5 :Text;         # empty until ended: succeeded, failed, refused, stopped, interrupted
  reason @6 :Text;          # for refused: the documented word; else a word on what ended it
  message @7 :Text;
  fix @8 :Text;
  exitCode @9 :Int32;       # -1: none
  createdAt @10 :Int64;
  startedAt @11 :Int64;
  endedAt @12 :Int64;
  attempt @13 :UInt32;
  policyKind @14 :Text;     # none, srt
  policySha256 @15 :Text;
  branch @16 :Text;
  savedAs @17 :Text;        # the branch in the checkout that has the commits; may differ from `branch`
  commits @18 :UInt32;
  title @19 :Text;
  checkout @20 :Text;
  notes @21 :List(Text);
  denied @22 :List(Denial);
  session @23 :Text;
  usage @24 :Shim.RunEvent.Usage;
  network @25 :Gateway.NetworkTotals;
}

struct Denial {
  kind @0 :Text;            # read, write, host, socket
  what @1 :Text;
  why @2 :Text;
}

struct Status {
  version @0 :Text;
  pid @1 :Int32;
  startedAt @2 :Int64;
  configPath @3 :Text;
  configLoadedAt @4 :Int64;
  configProblem @5 :Text;   # why the file on disk is not the config in force; empty when it is
  draining @6 :Bool;
  liveRuns @7 :List(Run);
  queued @8 :UInt32;
  instances @9 :List(InstanceStatus);
  lacks @10 :List(Text);    # wanted protections that this machine does not have
  leftovers @11 :List(Text);
  # What of ended runs could not be removed from a Docker Engine yet; it is tried again.
  preparedGateways @12 :UInt32;
  # Gateways that were made ahead of container runs and wait for theirs.
  preparedContainers @13 :UInt32;
  # Containers that were started ahead of their bindings' next Work, and wait for it.
}

struct InstanceStatus {
  provider @0 :Text;
  job @1 :Text;
  pid @2 :Int32;
  state @3 :Text;
  protections @4 :Common.Protections;
  startedAt @5 :Int64;
}

struct DoctorCheck {
  name @0 :Text;            # srt, git, providers, kernel, …
  level @1 :Text;           # ok, FAIL, warn
  what @2 :Text;
  fix @3 :Text;
}
