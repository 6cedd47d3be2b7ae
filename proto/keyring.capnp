@0xd1c75b0a94e63f28;
# The keyring provider: one secret of the operator's, by the Secret Service of their session.
#
# A job is "get NAME", "set NAME", "rm NAME" or "list"; an instance is for one. Descriptor 4 is a connected socket of the session
# bus, on which nothing has been said yet: whoever starts the instance has dialed it, so the instance makes no socket. Descriptor 5
# is a pipe for the value: `get` writes to it and `set` reads from it, each to the end. A value is never in a message, whose memory
# nobody wipes.
#
# Each method belongs to the job of its name and throws in another one's instance. All refuse with `secret_unavailable`: no keyring
# on the bus, a locked one, one that wants to ask a person (it is never asked to), no answer within 20 seconds.

using Cxx = import "/capnp/c++.capnp";
using Common = import "common.capnp";
$Cxx.namespace("oc::proto");

const mostSecretBytes :UInt32 = 65536;

interface Keyring extends(Common.Instance) {
  get @0 () -> (refusal :Common.Refusal);
  # Writes the value to descriptor 5 and closes it. Refuses also when there is no such secret, or it is larger than
  # mostSecretBytes.

  set @1 () -> (refusal :Common.Refusal, replaced :Bool);
  # Stores what descriptor 5 brings, 1 to mostSecretBytes bytes, reads it back and compares. `replaced`: there was one before.

  remove @2 () -> (refusal :Common.Refusal, removed :Bool);
  # Every item of that name; not `removed` when there was none.

  list @3 () -> (refusal :Common.Refusal, names :List(Text));
  # The names of Open Conduit's secrets, sorted, at most 1,000.
}
