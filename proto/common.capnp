@0xb5c1f6f0a7d3e201;
# What every interface between the daemon and its providers shares.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("oc::proto");

const protocolVersion :UInt32 = 1;
# Spoken between a daemon and its instances. A daemon that adopts a run compares it with the
# shim's: an instance whose version it does not know is asked to stop its run and exit.

struct Refusal {
  # Why something was not done, as a value: what a person reads in `runs get`.
  # In results, a refusal with an empty `reason` means "not refused".

  reason @0 :Text;
  # One of the documented words (sandbox_denied, sandbox_unavailable, …): scripts match on it.
  what @1 :Text;
  # The thing that was refused, named, in a sentence of at most 4 KiB.
  fix @2 :Text;
  # What a person can do about it; may be empty.
}

struct EnvVar {
  name @0 :Text;
  value @1 :Text;
}

struct Protections {
  # What an instance has in force, as its kit read it back from the kernel after lockdown.
  # The daemon believes only what it can see itself in /proc (NoNewPrivs, Seccomp, CapEff,
  # NSpid); the rest is for `status`, doctor and the tests.

  noNewPrivs @0 :Bool;
  notDumpable @1 :Bool;
  seccomp @2 :Bool;
  landlockAbi @3 :Int32;
  # 0 where the kernel has none.
  landlockFiles @4 :Bool;
  landlockScopes @5 :Bool;
  # Signals and abstract sockets stay inside the instance (Landlock ABI 6).
  userNamespace @6 :Bool;
  mountNamespace @7 :Bool;
  pidNamespace @8 :Bool;
  networkNamespace @9 :Bool;
  ipcNamespace @10 :Bool;
  missing @11 :List(Text);
  # Wanted protections that this machine lacks, each with why. Required ones are never here:
  # an instance that lacks one does not start.
}

interface Instance {
  # What every provider's instance answers, whatever its job is.

  protections @0 () -> (protections :Protections, version :UInt32);
}

struct ExitStatus {
  union {
    exited @0 :Int32;
    # The exit code, 0 to 255.
    signaled @1 :Int32;
    # The signal's number.
    unknown @2 :Text;
    # It ended and nobody could learn how; the text says why.
  }
}
