#include "run_toolbelt.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <unistd.h>

#include <algorithm>

#include "base/fd.h"
#include "base/log.h"
#include "base/text.h"
#include "proto/convert.h"
#include "proto/rpc.h"

namespace oc::toolbelt {

namespace {

constexpr size_t mostArguments = 256u << 10;
constexpr size_t mostResult = 256u << 10;
constexpr size_t mostId = 32;
constexpr size_t mostBody = 128u << 10;  // what fits into a model's answer; all of it is in the run's body file
constexpr size_t mostNote = 4096;
constexpr size_t mostNotes = 100;    // a run
constexpr size_t mostWaiting = 256;  // calls of one run that are not answered yet
constexpr size_t mostListed = 20;    // runs, notes
constexpr size_t mostWord = 4096;    // of git's questions

constexpr const char* credentialOperation = "github.git.credential";
// What the shim calls when git was refused with its credential: no operation, and in no list.
constexpr const char* credentialRejected = "github.git.credential.rejected";

Refusal ended() { return {"run_ended", "the run has ended, and its toolbelt with it", ""}; }

// At most `limit` bytes of the file, and whether there is more; nothing of one that cannot be read.
std::pair<std::string, bool> beginningOf(const std::string& path, size_t limit) {
  if (path.empty()) return {"", false};
  auto fd = openIfThere(path, O_RDONLY | O_NOFOLLOW);
  if (!fd) return {"", false};
  std::string text(limit + 1, '\0');
  size_t have = 0;
  while (have < text.size()) {
    ssize_t n;
    KJ_SYSCALL(n = ::read(fd->get(), text.data() + have, text.size() - have), path);
    if (n == 0) break;
    have += n;
  }
  text.resize(std::min(have, limit));
  return {text, have > limit};
}

}  // namespace

struct RunToolbelt::State {
  State(Shared shared, WorkAccess& work, const std::vector<std::string>& operations)
      : shared(shared),
        work(&work),
        workId(work.workRow().id),
        run(work.runId()),
        operations(operations.begin(), operations.end()) {}

  bool offers(const std::string& operation) const { return operations.count(operation) != 0; }

  Shared shared;
  WorkAccess* work;  // null: revoked
  std::string workId, run;
  std::set<std::string> operations;
  size_t waiting = 0, notes = 0;
  kj::PromiseFulfillerPair<void> revocation = kj::newPromiseAndFulfiller<void>();
  kj::ForkedPromise<void> onRevoked = revocation.promise.fork();
};

namespace {

using State = RunToolbelt::State;

class Server final : public proto::Toolbelt::Server {
 public:
  explicit Server(std::shared_ptr<State> state) : state(std::move(state)) {}

  kj::Promise<void> call(CallContext context) override {
    auto params = context.getParams();
    auto operation = toString(params.getOperation());
    if (operation == credentialRejected && state->offers(credentialOperation)) return noteRejected(context);
    // The credential is no tool: only its own method gives it.
    if (!state->offers(operation) || operation == credentialOperation) return refuse(context, denied(operation));
    if (params.getArguments().size() > mostArguments) {
      return refuse(context, {"arguments_invalid", "the arguments have more than 256 KiB", ""});
    }
    auto arguments = toString(params.getArguments());
    CallId id{toString(params.getId()), params.getAgain()};
    if (id.id.size() > mostId) return refuse(context, {"arguments_invalid", "the call's id is too long", ""});
    context.releaseParams();
    return inTurn(context, [this, context, operation, arguments, id]() mutable -> kj::Promise<void> {
      auto* owner = state->shared.owners.of(operation);
      if (owner == nullptr) return refuse(context, unavailable(operation));
      return owner->call(state->workId, state->run, operation, arguments, id)
          .then([context, operation](OrRefusal<OperationResult> made) mutable -> kj::Promise<void> {
            if (!made.ok()) return refuse(context, made.refusal());
            auto& result = made.value();
            if (result.json.size() > mostResult) {
              return refuse(context, {"result_too_large",
                                      fmt::format("{} answered with {} bytes, and {} fit", operation,
                                                  result.json.size(), mostResult),
                                      "ask for less"});
            }
            auto results = context.getResults();
            results.setResult(toData(result.json));
            results.setIsError(result.isError);
            return kj::READY_NOW;
          });
    });
  }

  kj::Promise<void> getWork(GetWorkContext context) override {
    if (!state->offers("conduit.work.get")) return refuse(context, denied("conduit.work.get"));
    return inTurn(context, [this, context]() mutable -> kj::Promise<void> {
      fillWork(context.getResults().initWork());
      return kj::READY_NOW;
    });
  }

  kj::Promise<void> addNote(AddNoteContext context) override {
    if (!state->offers("conduit.work.note")) return refuse(context, denied("conduit.work.note"));
    auto text = toString(context.getParams().getText());
    return inTurn(context, [this, context, text]() mutable -> kj::Promise<void> {
      if (auto problem = noteProblem(text); !problem.reason.empty()) return refuse(context, problem);
      state->work->addWorkNote(printable(text, true));
      ++state->notes;
      return kj::READY_NOW;
    });
  }

  kj::Promise<void> finishWork(FinishWorkContext context) override {
    if (!state->offers("conduit.work.finish")) return refuse(context, denied("conduit.work.finish"));
    auto summary = toString(context.getParams().getSummary());
    return inTurn(context, [this, context, summary]() mutable -> kj::Promise<void> {
      if (!summary.empty()) {
        if (auto problem = noteProblem(summary); !problem.reason.empty()) return refuse(context, problem);
        state->work->addWorkNote(printable(summary, true));
        ++state->notes;
      }
      state->work->askFinish();
      return kj::READY_NOW;
    });
  }

  kj::Promise<void> gitCredential(GitCredentialContext context) override {
    if (!state->offers(credentialOperation)) return refuse(context, denied(credentialOperation));
    auto params = context.getParams();
    auto protocol = toString(params.getProtocol()), host = toString(params.getHost()),
         path = toString(params.getPath());
    if (std::max({protocol.size(), host.size(), path.size()}) > mostWord) {
      return refuse(context, {"credential_refused", "git asked for something that is too long to be a repository", ""});
    }
    return inTurn(context, [this, context, protocol, host, path]() mutable -> kj::Promise<void> {
      auto* owner = state->shared.owners.of(credentialOperation);
      if (owner == nullptr) return refuse(context, unavailable(credentialOperation));
      return owner->credential(state->workId, state->run, protocol, host, path)
          .then([context](OrRefusal<GitCredential> given) mutable -> kj::Promise<void> {
            if (!given.ok()) return refuse(context, given.refusal());
            auto results = context.getResults();
            results.setUsername(toText(given.value().username));
            auto password = given.value().password.view();
            memcpy(results.initPassword(password.size()).begin(), password.data(), password.size());
            return kj::READY_NOW;
          });
    });
  }

 private:
  template <typename Context>
  static kj::Promise<void> refuse(Context context, const Refusal& refusal) {
    write(context.getResults().initRefusal(), refusal);
    return kj::READY_NOW;
  }

  kj::Promise<void> noteRejected(CallContext context) {
    return inTurn(context, [this, context]() mutable -> kj::Promise<void> {
      auto* owner = state->shared.owners.of(credentialOperation);
      if (owner == nullptr) return refuse(context, unavailable(credentialOperation));
      owner->credentialRejected(state->workId, state->run);
      context.getResults().setResult(toData("{}"));
      return kj::READY_NOW;
    });
  }

  static Refusal denied(const std::string& operation) {
    return {"operation_denied", fmt::format("this run has no operation {}", shortened(printable(operation), 128)),
            "an operation has to be listed by the binding and by its scope's authorization"};
  }

  static Refusal unavailable(const std::string& operation) {
    return {"operation_unavailable",
            fmt::format("nothing here carries out {} right now", shortened(printable(operation), 128)),
            "tell the operator; open-conduit status says what runs"};
  }

  // The run's turn, and its end: whichever comes first.
  template <typename Context, typename Job>
  kj::Promise<void> inTurn(Context context, Job job) {
    if (state->work == nullptr) return refuse(context, ended());
    if (state->waiting >= mostWaiting) {
      return refuse(context, {"too_many_calls", fmt::format("{} calls of this run wait already", mostWaiting),
                              "wait for their answers"});
    }
    ++state->waiting;
    auto done =
        state->shared.queue.turn(state->run)
            .then([this, context, job = kj::mv(job)](kj::Own<FairQueue::Turn> turn) mutable -> kj::Promise<void> {
              if (state->work == nullptr) return refuse(context, ended());
              return kj::evalNow(kj::mv(job))
                  .catch_([context](kj::Exception&& exception) mutable {
                    logError("a toolbelt's operation: {}", describe(exception));
                    write(context.getResults().initRefusal(),
                          {"operation_failed", "the operation failed in Open Conduit", "its log says why"});
                  })
                  .attach(kj::mv(turn));
            });
    auto late = state->onRevoked.addBranch().then([context]() mutable { return refuse(context, ended()); });
    return done.exclusiveJoin(kj::mv(late)).attach(kj::defer([state = state]() { --state->waiting; }));
  }

  Refusal noteProblem(const std::string& text) const {
    if (text.empty()) return {"arguments_invalid", "the note is empty", ""};
    if (text.size() > mostNote)
      return {"arguments_invalid", fmt::format("the note has {} bytes, and {} fit", text.size(), mostNote),
              "write less"};
    if (state->notes < mostNotes) return {};
    return {"too_many_notes", fmt::format("this run has left {} notes, and no more are kept", mostNotes), ""};
  }

  void fillWork(proto::ToolbeltWork::Builder to) const {
    auto& row = state->work->workRow();
    auto [body, cut] = beginningOf(row.bodyFile, mostBody);
    to.setId(toText(row.id));
    to.setTitle(toText(row.title));
    to.setBody(toData(body));
    to.setBodyCut(cut);
    to.setBranch(toText(row.branch));
    to.setBase(toText(row.base));
    std::vector<state::RunRow> runs;
    for (auto& run : state->shared.store.runsOf(row.id)) {
      if (run.id != state->run) runs.push_back(run);
    }
    size_t first = runs.size() > mostListed ? runs.size() - mostListed : 0;
    auto list = to.initRuns(runs.size() - first);
    for (size_t i = first; i < runs.size(); ++i) {
      list[i - first].setId(toText(runs[i].id));
      list[i - first].setOutcome(toText(state::toWord(runs[i].outcome)));
      list[i - first].setMessage(toText(shortened(runs[i].message, 1024)));
      list[i - first].setEndedAt(runs[i].endedAt);
    }
    auto notes = state->shared.store.notes(row.id, mostListed);
    auto texts = to.initNotes(notes.size());
    for (size_t i = 0; i < notes.size(); ++i) texts.set(i, toText(notes[i].text));
  }

  std::shared_ptr<State> state;
};

}  // namespace

RunToolbelt::RunToolbelt(Shared shared, WorkAccess& work, const std::vector<std::string>& operations)
    : state(std::make_shared<State>(shared, work, operations)) {
  // What an earlier daemon let it leave counts, too.
  for (auto& note : shared.store.notes(state->workId, 10'000)) state->notes += note.run == state->run;
}

RunToolbelt::~RunToolbelt() noexcept(false) { revoke(); }

proto::Toolbelt::Client RunToolbelt::capability() { return kj::heap<Server>(state); }

void RunToolbelt::revoke() {
  if (state->work == nullptr) return;
  state->work = nullptr;
  state->revocation.fulfiller->fulfill();
  std::set<OperationOwner*> told;
  for (auto& operation : state->operations) {
    auto* owner = state->shared.owners.of(operation);
    if (owner != nullptr && told.insert(owner).second) owner->runEnded(state->workId, state->run);
  }
}

}  // namespace oc::toolbelt
