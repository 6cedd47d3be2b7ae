@0xf03c86a5d1297be4;
# open-conduit-docker: the Engine's client. It reads the Engine's answers and nothing that an agent wrote.
#
# The daemon dials every connection to the Engine and hands it over at spawn; the instance opens none. Two jobs:
#
#   task     --connections N        3 the RPC connection to the daemon, 4 … 3+N connections to the Engine (1 to 8), for:
#            [--owner ID]           engine, image, pull, inspect, remove, sweep, check. With an owner it touches no other's.
#   run      --run ID --owner ID    3 the RPC connection, 4 the Process connection to the run's shim (sandbox.capnp),
#                                   5 connections for calls, 6 for waiting, 7 for attaching the agent, 8 for attaching
#                                   the gateway, 9 spare for stopping. It outlives the daemon and dies with its shim:
#                                   when the connection on 4 closes, it kills the run's containers and exits. When the
#                                   daemon goes before `start`, it removes them and exits.
#
# Both take `--context NAME`, the Docker context's name, for the commands in refusals. The Engine drops a connection on
# which nothing was asked for five minutes after it was made: dial shortly before `create`.
#
# A connection that an attach was done on belongs to the shim from then on (the daemon kept a duplicate): after the
# Engine's answer to the attach not one byte of it is read here.
#
# Everything that is made is labelled: `io.openconduit.owner` (which installation), `io.openconduit.run`,
# `io.openconduit.role` (agent, gateway, volume, egress, check, attach), `io.openconduit.plan` (SHA-256). Other
# owners' things are never touched.
#
# Refusals: `sandbox_unavailable` (engine unreachable or too old, image missing, no gateway image, engine error: with
# the Engine's own words, made printable), `sandbox_denied` (a mount source that is not there or was swapped),
# `container_running` (a container of an earlier attempt that does not stop).

using Cxx = import "/capnp/c++.capnp";
using Common = import "common.capnp";
$Cxx.namespace("oc::proto");

interface Docker extends(Common.Instance) {
  engine @0 () -> (refusal :Common.Refusal, engine :Engine);
  # First of all: refuses an Engine whose API is older than 1.48.

  image @1 (reference :Text) -> (refusal :Common.Refusal, found :Bool, image :Image);
  # By digest (`name@sha256:…`, `name:tag@sha256:…`: the digest counts) or by id (`sha256:…`).

  pull @2 (reference :Text) -> (refusal :Common.Refusal);
  # By its digest. The refusal's fix is the command to type.

  create @3 (spec :RunSpec) -> (refusal :Common.Refusal, agent :Text, gateway :Text);
  # (run) Makes the egress network where it is missing, the run's volume, the gateway and the agent's container;
  # attaches both, and begins to start the gateway: what is written to its stream waits until it runs. A container of the same run that is there already is stopped and removed first
  # (`container_running` when that fails). On a refusal nothing of it is left. Returns both ids.

  start @4 () -> (refusal :Common.Refusal);
  # (run) Starts the agent's container, beside the gateway if that is still being started: the entry point waits for
  # the gateway's sockets. Refuses as well when the gateway could not be started; then nothing of the run is left. From
  # then on Process.wait answers with the agent's end: an exit status above 128 is told as the signal that it stands for,
  # since a container's first process ends so.

  inspect @5 (owner :Text, run :Text) -> (refusal :Common.Refusal, containers :List(Container));
  # What there is of a run, by labels; with an empty `run`, of all runs of this owner. A run's instance tells of its own run.

  remove @6 (owner :Text, run :Text, gateway :Text) -> (refusal :Common.Refusal, removed :UInt32, left :List(Text));
  # Kills and removes the run's containers, then its volume; and those of `gateway`, one that was made ahead and that the run
  # used (empty: none). What is gone already is no error. `left` names what could not be removed, with why. A run's
  # instance removes its own run and the gateway that its containers use, and may be asked when its agent has ended.

  sweep @7 (owner :Text, keep :List(Text)) -> (refusal :Common.Refusal, removed :UInt32, left :List(Text));
  # Removes everything of this owner but the runs in `keep`; the egress network too, when nothing uses it.

  check @8 (spec :RunSpec) -> (refusal :Common.Refusal, exitCode :Int32, output :Data);
  # (task, with at least three connections) Doctor's: makes, starts, waits for at most 30 seconds, and removes a container
  # like a run's, gateway included; returns what the agent's container wrote to standard output (at most 64 KiB).
  # The gateway is given `spec.gatewayPolicy`, as the shim would give it.

  resize @9 (columns :UInt16, rows :UInt16) -> (refusal :Common.Refusal);
  # (run) Tells the size of the terminal of a container that has one. One that does not run is no error.

  prepareGateway @10 (spec :GatewaySpec) -> (refusal :Common.Refusal);
  # (task, with at least two connections; once) Makes a gateway ahead of its run: the egress network where it is missing, the
  # volume, and the container, attached to the second connection and started. It lets nothing through before it is told a
  # policy on that stream, and ends when the stream does. On a refusal nothing of it is left. A run uses it by
  # `RunSpec.preparedGateway`; `remove` takes its name for a run's.
}

struct GatewaySpec {
  owner @0 :Text;
  name @1 :Text;             # begins with "g-"
  image @2 :Text;            # the gateway image's id
  user @3 :Text;             # "1000:1000": the run's, who alone may use its sockets
  unlimited @4 :Bool;        # as RunSpec.unlimited
}

struct Engine {
  id @0 :Text;
  version @1 :Text;          # "28.5.2"
  apiVersion @2 :Text;       # "1.51"
  os @3 :Text;               # "linux"
  architecture @4 :Text;     # "amd64", as images have it
  operatingSystem @5 :Text;  # "Docker Desktop", "OrbStack", "Debian GNU/Linux 12 (bookworm)"
  rootless @6 :Bool;
  cgroupVersion @7 :Text;
  storageDriver @8 :Text;
  canLimitMemory @9 :Bool;
  canLimitCpus @10 :Bool;
  canLimitPids @11 :Bool;
  remapsUsers @12 :Bool;     # userns-remap: files made inside would be owned by somebody else
}

struct Image {
  id @0 :Text;               # as the Engine has it
  repoDigests @1 :List(Text);
  os @2 :Text;
  architecture @3 :Text;
  size @4 :UInt64;
}

struct Mount {
  source @0 :Text;           # on the host, absolute, resolved
  target @1 :Text;
  writable @2 :Bool;
}

struct RunSpec {
  owner @0 :Text;
  run @1 :Text;
  role @2 :Text;             # agent, check, attach
  planSha256 @3 :Text;
  image @4 :Text;            # the image's id, as `image` gave it
  gatewayImage @5 :Text;
  command @6 :List(Text);    # the entry point and its arguments, whole
  environment @7 :List(Common.EnvVar);   # no secrets
  directory @8 :Text;
  user @9 :Text;             # "1000:1000"
  mounts @10 :List(Mount);
  memoryBytes @11 :UInt64;   # 0: no limit
  nanoCpus @12 :UInt64;      # 0: no limit
  pids @13 :UInt64;          # 0: 4096
  tty @14 :Bool;
  stdin @15 :Bool;
  gatewayPolicy @16 :Data;   # for `check` alone: a serialized GatewayPolicy message
  network @17 :Bool;         # false: no gateway at all (nothing is allowed and there is no toolbelt)
  hostname @18 :Text;
  unlimited @19 :Bool;
  # No limit at all, the default of processes included: for an engine that can keep none (a rootless one under cgroup v1).
  columns @20 :UInt16;       # of the terminal at its start, with `tty`; 0: not known
  rows @21 :UInt16;
  preparedGateway @22 :Text;
  # The name of a gateway that was made ahead for this user and gateway image, whose stream the daemon has; it is this
  # run's from here on, and no other's. `create` refuses (`sandbox_unavailable`) one that is not there, does not run, or
  # is otherwise than asked. Empty: the run's own is made.
}

struct Container {
  id @0 :Text;
  role @1 :Text;
  running @2 :Bool;
  imageId @3 :Text;
  planSha256 @4 :Text;
  startedAt @5 :Int64;       # seconds since 1970; 0: it has not been started
  exitCode @6 :Int32;        # of one that has ended
  outOfMemory @7 :Bool;      # the kernel has killed something in it at its memory limit
  error @8 :Text;            # why it could not be started, in the Engine's words
  name @9 :Text;
}
