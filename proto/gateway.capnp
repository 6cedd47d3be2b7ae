@0xb86d20f1c93e745a;
# open-conduit-gateway: the only way out of one run's container.
#
# It speaks this over its standard input and output, which the run's shim has as an attached stream. Whoever
# speaks first may configure it, once. When the stream closes, it closes everything and exits.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("oc::proto");

interface Gateway {
  configure @0 (policy :GatewayPolicy, host :GatewayHost) -> (report :GatewayReport);
  # Once: a second call throws. Answers when the sockets in `socketDirectory` accept connections. Throws, naming the
  # entry, for a policy that it cannot read; then it serves nothing.

  totals @1 () -> (totals :NetworkTotals);
  # Every refusal so far has been told to the host before this answers.

  resolve @2 (name :Text) -> (addresses :List(Text), error :Text);
  # Doctor's probe: what the gateway's resolver says. Only names that the policy allows are asked for.
}

struct GatewayPolicy {
  allow @0 :List(HostRule);
  private @1 :List(Text);
  # CIDR ranges that are private and that allowed names may resolve to all the same.
  refuse @2 :List(Text);
  # Addresses (the engine host's own, public ones too) that are never dialed, beside the gateway's own networks.
  socketDirectory @3 :Text;
  # Where `proxy.sock` and, with `toolbelt`, `toolbelt.sock` are made; a folder of the run's volume.
  toolbelt @4 :Bool;
}

struct HostRule {
  pattern @0 :Text;
  # A name, `*.domain`, an IPv4 address, or an IPv6 address without brackets; lower case, as base/host_pattern has it.
  port @1 :UInt16;
  # 0: any port.
}

struct GatewayReport {
  version @0 :Text;
  ipForward @1 :Bool;
  # As read back from /proc/sys/net/ipv4/ip_forward; the gateway refuses to serve when it is 1 and cannot be cleared.
  networks @2 :List(Text);
  # Its own networks, as CIDR.
}

interface GatewayHost {
  # What the shim offers.

  connection @0 (record :NetworkRecord) -> ();
  # Each attempt to get out, when it has been refused or has ended. At most 32 are not acknowledged; more wait.

  toolbelt @1 (toAgent :ByteSink) -> (fromAgent :ByteSink);
  # A connection to toolbelt.sock, told with its first byte: who connects and says nothing is none. What the agent sends
  # goes to `fromAgent`, what it gets comes by `toAgent`. The connection is over when both have ended, or one is dropped.
}

interface ByteSink {
  write @0 (bytes :Data) -> ();
  # At most 64 KiB each, in order. Answered when it is taken, or a millisecond later; the sender has at most 256 KiB unanswered.
  end @1 () -> ();
  # No more will come. Dropping the capability without it is an abort.
}

struct NetworkRecord {
  host @0 :Text;
  # As the agent named it, made printable, at most 253 bytes.
  port @1 :UInt16;
  allowed @2 :Bool;
  # What the policy said. An allowed host that could not be reached is still allowed.
  reason @3 :Text;
  # A word. Not allowed: not_allowed, private_address, own_network, malformed, too_many, timeout (of the request's head).
  # Allowed: empty when all went well, else no_such_name, unreachable, timeout, reset, client_left, malformed (a body
  # that broke its framing), protocol (a 101 that nobody asked for).
  address @4 :Text;
  # The address that was dialed, or that was refused after the name's lookup; empty when there was none.
  bytesUp @5 :UInt64;
  bytesDown @6 :UInt64;
  startedAt @7 :Int64;   # milliseconds since 1970
  endedAt @8 :Int64;
  count @9 :UInt32;
  # How many alike this record stands for: refusals of one host and port within a second are told once. At least 1.
}

struct NetworkTotals {
  allowed @0 :UInt64;
  denied @1 :UInt64;
  bytesUp @2 :UInt64;
  bytesDown @3 :UInt64;
  open @4 :UInt32;
}
