// A person's attachment, as the control socket has it.
#include <algorithm>

#include "control.h"
#include "proto/convert.h"
#include "rows.h"

namespace oc::control {

namespace {

constexpr size_t mostKind = 64;

// What goes into an environment comes from the caller's own; odd bytes there are not passed on.
std::string properKind(capnp::Text::Reader text, const char* otherwise) {
  auto kind = toString(text);
  auto proper = [](char c) {
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return letter || (c >= '0' && c <= '9') || c == '.' || c == '+' || c == '-' || c == '_';
  };
  bool good = !kind.empty() && kind.size() <= mostKind && std::all_of(kind.begin(), kind.end(), proper);
  return good ? kind : otherwise;
}

TerminalFacts readTerminal(proto::Terminal::Reader from) {
  return {{from.getColumns(), from.getRows()},
          properKind(from.getKind(), "xterm-256color"),
          properKind(from.getColours(), "")};
}

class AttachSessionImpl final : public proto::AttachSession::Server {
 public:
  AttachSessionImpl(kj::Own<Session> session, kj::Own<Attachment> attachment)
      : session(kj::mv(session)), attachment(kj::mv(attachment)) {}

  kj::Promise<void> terminal(TerminalContext context) override {
    return answer([this, context]() mutable { context.getResults().setPath(toText(attachment->terminal())); });
  }

  kj::Promise<void> resize(ResizeContext context) override {
    return answer([this, context]() mutable {
      attachment->resize({context.getParams().getColumns(), context.getParams().getRows()});
    });
  }

  // By the session, so that it ends with the connection: a call that waits would hold the attachment for nobody.
  kj::Promise<void> wait(WaitContext context) override {
    return answer([this, context]() mutable {
      return session->wait(attachment->wait().then(
          [context](ProcessEnd end) mutable { write(context.getResults().initStatus(), end); }));
    });
  }

 private:
  kj::Own<Session> session;
  kj::Own<Attachment> attachment;
};

}  // namespace

kj::Promise<void> ControlImpl::attachWork(AttachWorkContext context) {
  return answer([this, context]() mutable -> kj::Promise<void> {
    auto work = findWork(backend.store(), toString(context.getParams().getId()));
    auto terminal = readTerminal(context.getParams().getTerminal());
    context.releaseParams();
    if (!work) {
      write(context.getResults().initRefusal(), work.refusal());
      return kj::READY_NOW;
    }
    auto asked = backend.attachWork(work.value().id, std::move(terminal));
    auto attached = asked.then([this, context](OrRefusal<AttachPlace> place) mutable {
      auto results = context.getResults();
      if (!place) return write(results.initRefusal(), place.refusal());
      auto& [command, host, attachment] = place.value();
      auto to = results.initHost();
      auto words = to.initCommand(command.size());
      for (size_t i = 0; i < command.size(); ++i) words.set(i, toText(command[i]));
      to.setDirectory(toText(host.directory));
      auto environment = to.initEnvironment(host.environment.size());
      for (size_t i = 0; i < host.environment.size(); ++i) {
        environment[i].setName(toText(host.environment[i].first));
        environment[i].setValue(toText(host.environment[i].second));
      }
      results.setSession(kj::heap<AttachSessionImpl>(kj::addRef(*session), kj::mv(attachment)));
    });
    return session->wait(kj::mv(attached));
  });
}

}  // namespace oc::control
