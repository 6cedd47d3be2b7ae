// One connection to a run's toolbelt: its first line, and then the channel that it asked for.
#pragma once

#include <kj/async-io.h>
#include <kj/timer.h>

#include "base/crypto.h"
#include "base/refusal.h"
#include "calls.h"
#include "line_stream.h"
#include "mcp.h"
#include "operations.h"

namespace oc::run {

class ToolbeltConnection final {
 public:
  // What it lives in, and which outlives it.
  struct World {
    kj::Timer& timer;
    const SecretBytes& token;
    const Operations& operations;
    DaemonCalls& calls;
  };

  ToolbeltConnection(World world, kj::Own<kj::AsyncIoStream> stream);

  // Until either side is done with it; breaks when the stream does.
  kj::Promise<void> serve();
  // Says why not, and that is all. The other side has five seconds to take it.
  kj::Promise<void> refuse(const Refusal& refusal);

 private:
  class OwnCaller;

  kj::Promise<void> greet(LineReader::Line line);
  kj::Promise<void> mcp();
  kj::Promise<void> mcpLoop(McpSession& session);
  kj::Promise<void> oneCall(const Json& request);
  kj::Promise<void> oneCredential(const Json& request);
  // The one line of a channel that has one, as an object.
  kj::Promise<void> withOneObject(kj::Function<kj::Promise<void>(const Json&)> use);
  kj::Promise<void> sayLast(const Json& message);

  World world;
  kj::Own<kj::AsyncIoStream> stream;
  LineReader reader;
  LineWriter writer;
  kj::Promise<void> writing;
};

}  // namespace oc::run
