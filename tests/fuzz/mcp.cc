// What an agent says to its toolbelt, as any bytes: the lines, and the conversation.
#include <capnp/message.h>
#include <capnp/orphan.h>
#include <kj/async-io.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "providers/run/toolbelt/line_stream.h"
#include "providers/run/toolbelt/mcp.h"

namespace {

using namespace oc;

// Every other call is answered at once, the others never.
class Echo final : public run::Caller {
 public:
  kj::Promise<run::Answer> call(const std::string&, Json arguments) override {
    if (++calls % 2 == 0) return kj::NEVER_DONE;
    return run::Answer{arguments.dump(), false};
  }
  size_t calls = 0;
};

const run::Operations& operations() {
  static const run::Operations made = []() {
    capnp::MallocMessageBuilder message;
    auto orphan = message.getOrphanage().newOrphan<capnp::List<proto::ToolbeltOperation>>(1);
    auto operation = orphan.get()[0];
    operation.setName("t");
    operation.setInputSchema(
        R"({"type":"object","properties":{"a":{"type":"string","maxLength":3},"b":{"type":"array","items":{"type":"integer"}}}})");
    return run::Operations(orphan.getReader());
  }();
  return made;
}

class Bytes final : public kj::AsyncInputStream {
 public:
  Bytes(const uint8_t* data, size_t size) : data(data), left(size) {}
  kj::Promise<size_t> tryRead(void* buffer, size_t, size_t most) override {
    auto n = std::min({most, left, size_t(97)});
    memcpy(buffer, data, n);
    data += n;
    left -= n;
    return n;
  }

 private:
  const uint8_t* data;
  size_t left;
};

void converse(run::LineReader& reader, run::McpSession& session, kj::WaitScope& scope) {
  while (true) {
    auto line = reader.next(4096).wait(scope);
    KJ_IF_MAYBE (message, line) {
      message->tooLong ? session.refuseTooLong(4096) : session.receive(message->text);
      scope.poll();
    } else {
      return;
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto io = kj::setupAsyncIo();
  Bytes bytes(data, size);
  run::LineReader reader(bytes);
  Echo echo;
  run::McpSession session(operations(), echo, [](const std::string& answer) {
    // Whatever came in, one line of JSON goes out.
    auto message = parseJson(answer);
    if (message.is_discarded() || answer.find('\n') != std::string::npos) abort();
  });
  converse(reader, session, io.waitScope);
  return 0;
}
