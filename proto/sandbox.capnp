@0x9a37c5d81e64b2f7;
# open-conduit-srt and open-conduit-host: the parent of one agent's process tree.
#
# One instance is one run. What it gets at spawn, as descriptors: 3 the RPC connection to the daemon,
# 4 the Process connection to the run's shim, and 5, 6, 7 the agent's standard input, output and error,
# which it passes on and never reads. It outlives the daemon, and dies with its shim: when the
# connection on 4 closes it kills the tree and exits.

using Cxx = import "/capnp/c++.capnp";
using Common = import "common.capnp";
$Cxx.namespace("oc::proto");

interface Sandbox extends(Common.Instance) {
  launch @0 (command :List(Text), environment :List(Common.EnvVar), directory :Text)
      -> (refusal :Common.Refusal, started :Bool);
  # Starts the agent, once: a second call throws. The environment is all that the agent gets. The policy
  # (srt's settings file) was named on the command line. Refuses (`sandbox_unavailable`, `sandbox_denied`)
  # what cannot be enforced; then nothing was started. A daemon that goes away before it calls launch
  # ends the instance.

  check @1 () -> (report :CheckReport);
  # Doctor's check: the sandbox's parts, and a canary inside it that tries to write, read, connect and
  # open a socket where it must not. Needs no shim.
}

struct CheckReport {
  checks @0 :List(Check);

  struct Check {
    name @0 :Text;
    ok @1 :Bool;
    what @2 :Text;
    # What was found, in a line.
    fix @3 :Text;
    # Empty when ok.
    wanted @4 :Bool;
    # A failure here is a warning: reported, and blocks nothing.
  }
}

interface Process {
  # What a shim may do with its run's process tree; all that it may do.

  signal @0 (number :Int32) -> ();
  # SIGTERM asks the agent to stop. SIGKILL kills the whole tree and returns when nothing of it is
  # left. Any other number throws: INT, HUP and QUIT leave srt's command alive.

  wait @1 () -> (status :Common.ExitStatus);
  # Returns when the agent has ended and its tree is gone. May be called more than once.

  denials @2 (seen :UInt32) -> (denials :List(Denial));
  # What the sandbox refused and can tell, in its order and without the first `seen`: at most 64 different ones a run.
  # Waits while there is nothing new and the tree is there. An empty answer is the last one: the tree is gone, or this
  # sandbox tells nothing. One call at a time.

  struct Denial {
    kind @0 :Text;
    # host, write
    what @1 :Text;
    # HOST:PORT or a path; at most 1024 bytes.
    why @2 :Text;
    # At most 256 bytes.
  }
}
