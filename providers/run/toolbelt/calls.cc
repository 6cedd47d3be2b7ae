#include "calls.h"

#include <kj/debug.h>

#include "base/log.h"
#include "base/text.h"
#include "proto/convert.h"
#include "proto/rpc.h"

namespace oc::run {

namespace {

constexpr size_t mostUnderWay = 64;
constexpr size_t mostBytesUnderWay = 1u << 20;  // the daemon reads no further beyond 2 MiB
constexpr auto callLimit = 5 * kj::MINUTES;
constexpr size_t mostArguments = 256u << 10;
constexpr size_t mostResult = 256u << 10;
constexpr size_t mostCredential = 4096;

Answer failed(const std::string& why) { return {why, true}; }

Answer unlessTooLarge(Answer answer) {
  if (!isUtf8(answer.text)) return failed("The operation answered with text that is not UTF-8.");
  if (answer.text.size() <= mostResult) return answer;
  return failed(fmt::format("The answer has {} bytes, and {} fit. Ask for less.", answer.text.size(), mostResult));
}

std::string utf8(capnp::Text::Reader text) { return printable(toString(text), true); }

Json listOf(capnp::List<capnp::Text>::Reader texts) {
  auto list = Json::array();
  for (auto text : texts) list.push_back(utf8(text));
  return list;
}

// As UTF-8, whatever the request's author wrote, and without its last character where that was cut in two.
std::string bodyText(std::string_view bytes) { return printable(bytes, true); }

std::string workText(proto::ToolbeltWork::Reader work) {
  auto runs = Json::array();
  for (auto run : work.getRuns()) {
    runs.push_back({{"id", utf8(run.getId())},
                    {"outcome", utf8(run.getOutcome())},
                    {"message", utf8(run.getMessage())},
                    {"ended_at_ms", run.getEndedAt()}});
  }
  Json json = {{"id", utf8(work.getId())},     {"title", utf8(work.getTitle())}, {"branch", utf8(work.getBranch())},
               {"base", utf8(work.getBase())}, {"earlier_runs", runs},           {"notes", listOf(work.getNotes())}};
  auto whole = toString(work.getBody());
  bool cut = work.getBodyCut();
  for (size_t size = whole.size();; size /= 2) {
    json["body"] = bodyText(std::string_view(whole).substr(0, size));
    json["body_cut"] = cut || size < whole.size();
    auto text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (text.size() <= mostResult || size == 0) return text;
  }
}

Answer done(const Refusal& refusal) {
  if (!refusal.reason.empty()) return failed(plain(refusal));
  return {R"({"done":true})"};
}

}  // namespace

std::string plain(const Refusal& refusal) {
  auto text = refusal.what;
  if (!refusal.fix.empty()) text += (text.ends_with('.') ? " " : ". ") + refusal.fix;
  return text + " (" + refusal.reason + ")";
}

// ---- turns

class DaemonCalls::Slot {
 public:
  Slot(DaemonCalls& calls, size_t bytes) : calls(calls), bytes(bytes) {
    ++calls.underWay;
    calls.bytesUnderWay += bytes;
  }
  ~Slot() noexcept(false) {
    --calls.underWay;
    calls.bytesUnderWay -= bytes;
    calls.wakeNext();
  }
  KJ_DISALLOW_COPY(Slot);

 private:
  DaemonCalls& calls;
  size_t bytes;
};

kj::Promise<kj::Own<DaemonCalls::Slot>> DaemonCalls::takeSlot(LineWriter& out, size_t bytes) {
  // Not in turn while it does not read: what is under way is what it may have to hold.
  if (!out.hasRoom()) return out.whenRoom().then([this, &out, bytes]() { return takeSlot(out, bytes); });
  if (underWay < mostUnderWay && bytesUnderWay + bytes <= mostBytesUnderWay) return kj::heap<Slot>(*this, bytes);
  auto paf = kj::newPromiseAndFulfiller<void>();
  waiting.push_back(kj::mv(paf.fulfiller));
  return paf.promise.then([this, &out, bytes]() {
    if (!out.hasRoom()) wakeNext();  // another may take this turn
    return takeSlot(out, bytes);
  });
}

void DaemonCalls::wakeNext() {
  while (!waiting.empty()) {
    auto next = kj::mv(waiting.front());
    waiting.pop_front();
    if (!next->isWaiting()) continue;  // was given up meanwhile
    next->fulfill();
    return;
  }
}

// ---- who is there

void DaemonCalls::attach(proto::Toolbelt::Client newDaemon) {
  if (isRevoked) return;
  daemon = kj::mv(newDaemon);
  ++daemons;
  for (auto& one : awaiting) one->fulfill();
  awaiting.clear();
}

void DaemonCalls::detach() { daemon = nullptr; }

void DaemonCalls::revoke() {
  if (isRevoked) return;
  isRevoked = true;
  daemon = nullptr;
  revocation.fulfiller->fulfill();
}

Refusal DaemonCalls::absence() const {
  if (isRevoked) return {"run_ended", "The run has ended, and its toolbelt with it", ""};
  return {"try_again", "Open Conduit's daemon is not there right now", "Try again in a few seconds"};
}

// ---- calls

kj::Promise<Answer> DaemonCalls::call(LineWriter& out, const std::string& operation, Json arguments) {
  auto text = arguments.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > mostArguments)
    return failed(fmt::format("The arguments have {} bytes, and {} fit.", text.size(), mostArguments));
  auto made =
      takeSlot(out, text.size()).then([this, operation, text, arguments = kj::mv(arguments)](kj::Own<Slot> slot) {
        return start(operation, text, arguments).attach(kj::mv(slot));
      });
  auto bounded = withDeadline(timer, callLimit, "the operation", kj::mv(made));
  auto ended = onRevoked.addBranch().then([this]() { return failed(plain(absence())); });
  return bounded
      .then([](Answer answer) { return unlessTooLarge(kj::mv(answer)); },
            [this](kj::Exception&& exception) {
              logInfo("a call of the toolbelt failed: {}", describe(exception));
              if (exception.getType() == kj::Exception::Type::DISCONNECTED || daemon == nullptr)
                return failed(plain(absence()));
              if (exception.getType() == kj::Exception::Type::OVERLOADED)
                return failed("The operation took too long. Whether it was done is not known.");
              return failed("The operation failed in Open Conduit; its log says why.");
            })
      .exclusiveJoin(kj::mv(ended));
}

kj::Promise<Answer> DaemonCalls::start(const std::string& operation, const std::string& text, const Json& arguments) {
  if (daemon == nullptr) return failed(plain(absence()));
  if (operation.starts_with("conduit.work.")) {
    auto to = KJ_ASSERT_NONNULL(daemon);
    return startBuiltIn(to, operation, arguments);
  }
  auto id = newId("");
  return whicheverDaemon<Answer>([this, operation, text, id](bool again) { return ask(operation, text, id, again); });
}

// ---- past a daemon's death

kj::Promise<void> DaemonCalls::daemonAfter(uint64_t which) {
  if (daemons > which && daemon != nullptr) return kj::READY_NOW;
  auto paf = kj::newPromiseAndFulfiller<void>();
  awaiting.push_back(kj::mv(paf.fulfiller));
  return kj::mv(paf.promise);
}

template <typename T>
kj::Promise<T> DaemonCalls::whicheverDaemon(kj::Function<kj::Promise<T>(bool)> attempt, bool again) {
  auto which = daemons;
  auto asked = attempt(again);
  return asked.catch_([this, which, attempt = kj::mv(attempt)](kj::Exception&& exception) mutable -> kj::Promise<T> {
    if (exception.getType() != kj::Exception::Type::DISCONNECTED || isRevoked) return kj::mv(exception);
    return daemonAfter(which).then(
        [this, attempt = kj::mv(attempt)]() mutable { return whicheverDaemon<T>(kj::mv(attempt), true); });
  });
}

kj::Promise<Answer> DaemonCalls::ask(std::string operation, std::string text, std::string id, bool again) {
  if (daemon == nullptr) return failed(plain(absence()));
  auto request = KJ_ASSERT_NONNULL(daemon).callRequest(capnp::MessageSize{text.size() / 8 + 64, 0});
  request.setOperation(toText(operation));
  request.setArguments(toData(text));
  request.setId(toText(id));
  request.setAgain(again);
  return request.send().then([](auto&& response) {
    auto refusal = oc::read(response.getRefusal());
    if (!refusal.reason.empty()) return failed(plain(refusal));
    return Answer{toString(response.getResult()), response.getIsError()};
  });
}

kj::Promise<Answer> DaemonCalls::startBuiltIn(proto::Toolbelt::Client& to, const std::string& operation,
                                              const Json& arguments) {
  if (operation == "conduit.work.get") {
    return to.getWorkRequest().send().then([](auto&& response) {
      auto refusal = oc::read(response.getRefusal());
      if (!refusal.reason.empty()) return failed(plain(refusal));
      return Answer{workText(response.getWork())};
    });
  }
  if (operation == "conduit.work.note") {
    auto request = to.addNoteRequest();
    request.setText(toText(arguments.at("text").get<std::string>()));
    return request.send().then([](auto&& response) { return done(oc::read(response.getRefusal())); });
  }
  if (operation == "conduit.work.finish") {
    auto request = to.finishWorkRequest();
    request.setSummary(toText(arguments.value("summary", std::string())));
    return request.send().then([](auto&& response) { return done(oc::read(response.getRefusal())); });
  }
  return failed("This version does not know the operation " + printable(operation) + ".");
}

kj::Promise<OrRefusal<Credential>> DaemonCalls::credential(LineWriter& out, const std::string& protocol,
                                                           const std::string& host, const std::string& path) {
  using Result = OrRefusal<Credential>;
  auto made =
      takeSlot(out, protocol.size() + host.size() + path.size()).then([this, protocol, host, path](kj::Own<Slot> slot) {
        return whicheverDaemon<Result>(
                   [this, protocol, host, path](bool) { return askCredential(protocol, host, path); })
            .attach(kj::mv(slot));
      });
  auto ended = onRevoked.addBranch().then([this]() { return Result(absence()); });
  return withDeadline(timer, callLimit, "the credential", kj::mv(made))
      .catch_([this](kj::Exception&& exception) -> Result {
        logInfo("git's credential was not given: {}", describe(exception));
        return absence();
      })
      .exclusiveJoin(kj::mv(ended));
}

kj::Promise<OrRefusal<Credential>> DaemonCalls::askCredential(std::string protocol, std::string host,
                                                              std::string path) {
  using Result = OrRefusal<Credential>;
  if (daemon == nullptr) return Result(absence());
  auto request = KJ_ASSERT_NONNULL(daemon).gitCredentialRequest();
  request.setProtocol(toText(protocol));
  request.setHost(toText(host));
  request.setPath(toText(path));
  return request.send().then([](auto&& response) -> Result {
    auto refusal = oc::read(response.getRefusal());
    if (!refusal.reason.empty()) return refusal;
    auto password = response.getPassword();
    KJ_REQUIRE(password.size() <= mostCredential && response.getUsername().size() <= mostCredential, "too long");
    return Credential{toString(response.getUsername()),
                      SecretBytes(std::string_view(password.begin(), password.size()))};
  });
}

}  // namespace oc::run
