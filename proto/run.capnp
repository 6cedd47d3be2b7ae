@0xe18f4b6d20c5a793;
# open-conduit-run, the shim: one run's streams and nothing else. It outlives the daemon.
#
# At spawn it gets as descriptors: 3 the RPC connection to the daemon that spawned it, 4 the Process
# connection to the sandbox's instance, 5, 6, 7 our ends of the agent's standard input, output and
# error, 8 the listening socket in the run's private directory, 9 the run's log (append), 10 the listening
# toolbelt socket (`--toolbelt`), 11 the run's network log (append, `--network-log`).
#
# For a container (`--container`): 5 is the Engine's attach stream of the agent, 6 that of the gateway (only with
# `--gateway`), both after the Engine's answer: standard output and error come in the Engine's frames. 7 is not there.

using Cxx = import "/capnp/c++.capnp";
using Common = import "common.capnp";
using Toolbelt = import "toolbelt.capnp";
using Gateway = import "gateway.capnp";
$Cxx.namespace("oc::proto");

interface Shim extends(Common.Instance) {
  # What the connection on descriptor 3 serves: only the daemon that spawned it has this.

  begin @0 (setup :RunSetup, key :Data, host :RunHost, toolbelt :Toolbelt.Toolbelt) -> (session :RunSession);
  # Once, before the agent is launched. From then on the shim listens on 8 as well. `key` is 32 bytes
  # that the database holds too; with it the shim knows a later daemon, and that daemon the shim.
  # A second call throws.
}

interface Lobby {
  # What a connection to the run's socket gets: nothing, until both sides have proved the key.

  hello @0 (version :UInt32, nonce :Data) -> (version :UInt32, nonce :Data, proof :Data);
  # `nonce`s are 32 random bytes. `proof` is HMAC-SHA-256(key, "shim" ‖ caller's nonce ‖ own nonce).
  # A protocol version that the shim does not know makes it stop its run and exit.

  adopt @1 (proof :Data, host :RunHost, lastSeq :UInt64, toolbelt :Toolbelt.Toolbelt)
      -> (session :RunSession);
  # `proof` is HMAC-SHA-256(key, "daemon" ‖ shim's nonce ‖ caller's nonce); a wrong one closes the
  # connection. The shim then sends every event after `lastSeq` that is not acknowledged yet. Whoever
  # had the session before loses it.
}

struct RunSetup {
  executor @0 :Text;
  # "shell", "claude-code".
  config @1 :Text;
  # The executor's own settings as JSON, at most 64 KiB.
  logLimit @2 :UInt64;
  # Bytes that the run's log may grow to; what comes after is counted and dropped, and the log says so.
  timeoutSeconds @3 :UInt64;
  # 0: none. The clock starts at `begin`; the shim keeps it, so it holds without a daemon.
  stallSeconds @4 :UInt64;
  # Stop a run that prints nothing for so long. 0: never.
  graceSeconds @5 :UInt64;
  # Between TERM and KILL when the run is stopped.
  stdin @6 :Data;
  # What the agent is told first, at most 7 MiB. The executor puts it into the agent's own form on its standard input, which is
  # then closed, unless the executor keeps it open.
  toolbelt @7 :ToolbeltSetup;
  # With no operations there is no toolbelt.
  gatewayPolicy @8 :Gateway.GatewayPolicy;
  # For `--gateway`.
}

struct ToolbeltSetup {
  token @0 :Data;
  # 32 random bytes; the agent's side shows them as hex.
  operations @1 :List(Toolbelt.ToolbeltOperation);
}

interface RunSession {
  launched @0 () -> ();
  # The daemon says that the sandbox has started the agent: from here its end is the run's end.

  stop @1 (why :StopReason) -> ();
  # TERM, then KILL of the whole tree after the grace. The outcome comes as an event. Idempotent.

  state @2 () -> (bytesOut :UInt64, bytesDropped :UInt64, running :Bool);

  finish @3 () -> ();
  # The daemon has the outcome in its database: the shim may go. It exits after answering.

  inject @4 (id :Text, text :Text) -> (delivered :Bool, why :Text);
  # Gives a message to the live agent, if its executor can take one. Answers when the agent has acknowledged it, or when it is
  # clear that it will not (the turn ends, the run ends). The same `id` twice is one message. `text` has at most
  # 1 MiB. `why` says why it was not delivered.

  revokeToolbelt @5 () -> ();
  # From here every call of the toolbelt fails, and its connections are closed. First thing when a run ends.
}

enum StopReason {
  none @0;
  asked @1;      # by a person
  timeout @2;
  stalled @3;
  drain @4;
  orphaned @5;   # ten minutes without a daemon, or one that speaks another version
  failed @6;     # the run's own parts failed: the log could not be written, the sandbox's parent died
  executor @7;   # its executor has what it needs to know: see Ended.reason
}

interface RunHost {
  # What the daemon offers to a shim.

  event @0 (seq :UInt64, event :RunEvent) -> ();
  # Events are numbered from 1 and come in order. The answer is the acknowledgement: the event is in
  # the database. An event that the database has already is acknowledged again and changes nothing.
}

struct RunEvent {
  union {
    ended @0 :Ended;
    note @1 :Text;
    # Something a person should know (the log's cap was reached), at most 1 KiB.
    session @2 :Text;
    # The agent's own session, by which a later run resumes it; at most 256 bytes.
    usage @3 :Usage;
    # What the agent has used so far, in all.
    network @4 :Gateway.NetworkTotals;
    # Told at the end.
    denied @5 :Denied;
    # Something that the policy refused; at most 64 different ones a run.
  }

  struct Denied {
    kind @0 :Text;
    # read, write, host, socket
    what @1 :Text;
    why @2 :Text;
  }

  struct Usage {
    inputTokens @0 :UInt64;
    outputTokens @1 :UInt64;
    cacheReadTokens @2 :UInt64;
    cacheWriteTokens @3 :UInt64;
    costMicroUsd @4 :UInt64;
    # Millionths of a US dollar.
    turns @5 :UInt32;
  }

  struct Ended {
    status @0 :Common.ExitStatus;
    stopped @1 :StopReason;
    # What stopped it; `none` when it ended by itself. After our own stop the status means nothing.
    detail @2 :Text;
    # For `failed`: what failed, at most 1 KiB. With a reason: what a person should know of it.
    reason @3 :Text;
    # What the executor makes of the end, a word of at most 32 bytes: "done", or one of docs/reasons.md. Empty: it has no say, the
    # status is all.
  }
}
