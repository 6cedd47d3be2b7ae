#include "control.h"

#include <fmt/format.h>

#include "base/redact.h"
#include "base/text.h"
#include "proto/convert.h"
#include "rows.h"

namespace oc::control {

namespace {

constexpr size_t mostTitle = 1024;
constexpr size_t mostBody = 16u << 20;
constexpr size_t mostName = 256;

Refusal invalid(std::string what, std::string fix = "") { return {"request_invalid", std::move(what), std::move(fix)}; }

// What can be said of a request without knowing the config. The body is looked at last, and once: reading it counts
// against what may be read of one message.
OrRefusal<WorkRequest> readRequest(proto::NewWork::Reader from) {
  WorkRequest request{toString(from.getScope()), toString(from.getBinding()), toString(from.getTitle()), ""};
  if (request.scope.empty() || request.binding.empty() || request.scope.size() > mostName ||
      request.binding.size() > mostName) {
    return invalid("a request names its binding as SCOPE/BINDING", "open-conduit work new --binding SCOPE/BINDING");
  }
  if (request.title.size() > mostTitle) {
    return invalid(fmt::format("the title has {} bytes and may have {}", request.title.size(), mostTitle),
                   "put the rest into the body");
  }
  if (hasControlCharacters(request.title)) {
    return invalid(fmt::format("the title has a control character: {}", shortened(printable(request.title), 128)),
                   "write the title as one line of plain text");
  }
  if (!isUtf8(request.title)) {
    return invalid(fmt::format("the title is not UTF-8: {}", shortened(printable(request.title), 128)));
  }
  auto body = from.getBody();
  if (body.size() > mostBody) {
    return invalid(fmt::format("the body has {} bytes and may have {} (16 MiB)", body.size(), mostBody),
                   "put what is large into the repository and name it in the body");
  }
  request.body = toString(body);
  return request;
}

}  // namespace

kj::Promise<void> ControlImpl::status(StatusContext context) {
  return answer([this, context]() mutable { backend.fillStatus(context.getResults().initStatus()); });
}

kj::Promise<void> ControlImpl::newWork(NewWorkContext context) {
  return answer([this, context]() mutable {
    auto request = readRequest(context.getParams().getRequest());
    context.releaseParams();
    auto results = context.getResults();
    if (!request) return write(results.initRefusal(), request.refusal());
    auto made = backend.newWork(std::move(request).value());
    if (!made) return write(results.initRefusal(), made.refusal());
    results.setId(toText(made.value().work));
    results.setRun(toText(made.value().run));
  });
}

kj::Promise<void> ControlImpl::listWork(ListWorkContext context) {
  return answer([this, context]() mutable {
    fillAllWork(context.getResults(), backend.store(), backend.places(), context.getParams().getLimit());
  });
}

kj::Promise<void> ControlImpl::getWork(GetWorkContext context) {
  return answer([this, context]() mutable {
    auto work = findWork(backend.store(), toString(context.getParams().getId()));
    auto results = context.getResults();
    if (!work) return write(results.initRefusal(), work.refusal());
    std::vector<std::string> runs;
    state::Usage usage;
    for (auto& run : backend.store().runsOf(work.value().id)) {
      runs.push_back(run.id);
      add(usage, run.usage);
    }
    auto to = results.initWork();
    fillWork(to, work.value(), runs, backend.places());
    fillNotes(to, backend.store(), work.value().id);
    fill(to.initUsage(), usage);
  });
}

template <typename Context>
kj::Promise<void> ControlImpl::endWork(Context context, bool cancel, bool discard) {
  return answer([this, context, cancel, discard]() mutable -> kj::Promise<void> {
    auto work = findWork(backend.store(), toString(context.getParams().getId()));
    if (!work) {
      write(context.getResults().initRefusal(), work.refusal());
      return kj::READY_NOW;
    }
    return session->wait(
        backend.endWork(work.value().id, cancel, discard).then([context](OrRefusal<bool>&& ended) mutable {
          if (!ended) write(context.getResults().initRefusal(), ended.refusal());
        }));
  });
}

kj::Promise<void> ControlImpl::finishWork(FinishWorkContext context) { return endWork(context, false, false); }
kj::Promise<void> ControlImpl::cancelWork(CancelWorkContext context) {
  return endWork(context, true, context.getParams().getDiscard());
}

kj::Promise<void> ControlImpl::listRuns(ListRunsContext context) {
  return answer([this, context]() mutable {
    auto id = toString(context.getParams().getWork());
    auto limit = context.getParams().getLimit();
    if (id.empty()) return fillRuns(context.getResults(), backend.store(), id, limit);
    auto work = findWork(backend.store(), id);
    if (!work) return write(context.getResults().initRefusal(), work.refusal());
    fillRuns(context.getResults(), backend.store(), work.value().id, limit);
  });
}

void ControlImpl::showRun(proto::Run::Builder to, const std::string& id) {
  auto run = backend.store().run(id);
  if (!run) kj::throwFatalException(plainError(kj::Exception::Type::FAILED, "the run is not in the database any more"));
  fillRun(to, *run, backend.store().work(run->work).value_or(state::WorkRow{}));
}

kj::Promise<void> ControlImpl::getRun(GetRunContext context) {
  return answer([this, context]() mutable {
    auto run = findRun(backend.store(), toString(context.getParams().getId()));
    if (!run) return write(context.getResults().initRefusal(), run.refusal());
    showRun(context.getResults().initRun(), run.value().id);
  });
}

kj::Promise<void> ControlImpl::waitRun(WaitRunContext context) {
  return answer([this, context]() mutable -> kj::Promise<void> {
    auto run = findRun(backend.store(), toString(context.getParams().getId()));
    if (!run) {
      write(context.getResults().initRefusal(), run.refusal());
      return kj::READY_NOW;
    }
    auto id = run.value().id;
    return session->wait(backend.waitRun(id).then([this, context, id](OrRefusal<bool>&& ended) mutable {
      if (!ended) return write(context.getResults().initRefusal(), ended.refusal());
      showRun(context.getResults().initRun(), id);
    }));
  });
}

// A piece of one of a run's files, which `read` gets from the backend.
template <typename Context, typename Read>
kj::Promise<void> ControlImpl::answerPiece(Context context, Read read) {
  return answer([this, context, read]() mutable -> kj::Promise<void> {
    auto params = context.getParams();
    auto run = findRun(backend.store(), toString(params.getId()));
    if (!run) {
      write(context.getResults().initRefusal(), run.refusal());
      return kj::READY_NOW;
    }
    auto piece = read(run.value().id, params.getOffset(), params.getFollow());
    return session->wait(piece.then([context](OrRefusal<LogPiece>&& piece) mutable {
      auto results = context.getResults();
      if (!piece) return write(results.initRefusal(), piece.refusal());
      results.setBytes(toData(piece.value().bytes));
      results.setNext(piece.value().next);
      results.setEnd(piece.value().end);
    }));
  });
}

kj::Promise<void> ControlImpl::readLog(ReadLogContext context) {
  return answerPiece(context, [this](const std::string& run, uint64_t offset, bool follow) {
    return backend.readLog(run, offset, follow);
  });
}

kj::Promise<void> ControlImpl::readNetwork(ReadNetworkContext context) {
  return answerPiece(context, [this](const std::string& run, uint64_t offset, bool follow) {
    return backend.readNetwork(run, offset, follow);
  });
}

kj::Promise<void> ControlImpl::getPolicy(GetPolicyContext context) {
  return answer([this, context]() mutable {
    auto results = context.getResults();
    auto run = findRun(backend.store(), toString(context.getParams().getId()));
    if (!run) return write(results.initRefusal(), run.refusal());
    auto plan = backend.plan(run.value().id);
    if (!plan) return write(results.initRefusal(), plan.refusal());
    results.setPlan(toText(plan.value().json));
    results.setSha256(toText(plan.value().sha256));
  });
}

kj::Promise<void> ControlImpl::sayWork(SayWorkContext context) {
  return answer([this, context]() mutable -> kj::Promise<void> {
    auto work = findWork(backend.store(), toString(context.getParams().getId()));
    auto text = toString(context.getParams().getText());
    context.releaseParams();
    if (!work) {
      write(context.getResults().initRefusal(), work.refusal());
      return kj::READY_NOW;
    }
    return session->wait(
        backend.sayWork(work.value().id, std::move(text)).then([context](OrRefusal<Said>&& said) mutable {
          auto results = context.getResults();
          if (!said) return write(results.initRefusal(), said.refusal());
          results.setRun(toText(said.value().run));
          results.setDelivered(said.value().delivered);
        }));
  });
}

kj::Promise<void> ControlImpl::execPlace(ExecPlaceContext context) {
  return answer([this, context]() mutable {
    auto results = context.getResults();
    auto work = findWork(backend.store(), toString(context.getParams().getId()));
    if (!work) return write(results.initRefusal(), work.refusal());
    auto place = backend.execPlace(work.value().id);
    if (!place) return write(results.initRefusal(), place.refusal());
    results.setDirectory(toText(place.value().directory));
    auto environment = results.initEnvironment(place.value().environment.size());
    for (size_t i = 0; i < place.value().environment.size(); ++i) {
      environment[i].setName(toText(place.value().environment[i].first));
      environment[i].setValue(toText(place.value().environment[i].second));
    }
  });
}

kj::Promise<void> ControlImpl::stopRun(StopRunContext context) {
  return answer([this, context]() mutable {
    auto run = findRun(backend.store(), toString(context.getParams().getId()));
    if (!run) return write(context.getResults().initRefusal(), run.refusal());
    auto stopped = backend.stopRun(run.value().id);
    if (!stopped) write(context.getResults().initRefusal(), stopped.refusal());
  });
}

kj::Promise<void> ControlImpl::drain(DrainContext context) {
  return answer([this, context]() mutable { return session->wait(backend.drain(context.getParams().getStop())); });
}

kj::Promise<void> ControlImpl::reload(ReloadContext context) {
  return answer([this, context]() mutable { context.getResults().setDiagnostics(toText(backend.reload())); });
}

kj::Promise<void> ControlImpl::doctor(DoctorContext context) {
  return answer([this, context]() mutable {
    return session->wait(backend.doctor().then([context](std::vector<DoctorLine>&& lines) mutable {
      auto checks = context.getResults().initChecks(lines.size());
      for (size_t i = 0; i < lines.size(); ++i) {
        checks[i].setName(toText(lines[i].name));
        checks[i].setLevel(toText(lines[i].level));
        checks[i].setWhat(toText(withoutSecrets(lines[i].what)));
        checks[i].setFix(toText(withoutSecrets(lines[i].fix)));
      }
    }));
  });
}

}  // namespace oc::control
