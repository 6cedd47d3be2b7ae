#include "line_stream.h"

namespace oc::run {

// ---- reading

kj::Maybe<LineReader::Line> LineReader::take(size_t limit) {
  while (true) {
    auto end = pending.find('\n', looked);
    if (end == std::string::npos) break;
    Line line{pending.substr(begin, end - begin), false};
    begin = looked = end + 1;
    if (skipping) {
      skipping = false;  // its beginning was told when it became too long
      continue;
    }
    if (line.text.size() > limit) return Line{"", true};
    return kj::mv(line);
  }
  pending.erase(0, begin);
  begin = 0;
  looked = pending.size();
  if (skipping || pending.size() > limit) {
    pending.clear();
    looked = 0;
    if (!skipping) {
      skipping = true;
      return Line{"", true};
    }
  }
  return nullptr;
}

kj::Promise<kj::Maybe<LineReader::Line>> LineReader::next(size_t limit) {
  KJ_IF_MAYBE (line, take(limit)) {
    return kj::Maybe<Line>(kj::mv(*line));
  }
  return from.tryRead(buffer, 1, sizeof(buffer)).then([this, limit](size_t n) -> kj::Promise<kj::Maybe<Line>> {
    if (n == 0) return kj::Maybe<Line>(nullptr);
    pending.append(reinterpret_cast<const char*>(buffer), n);
    return next(limit);
  });
}

// ---- writing

void LineWriter::send(const std::string& line) {
  waiting += line;
  waiting += '\n';
  KJ_IF_MAYBE (fulfiller, wake) {
    (*fulfiller)->fulfill();
  }
  wake = nullptr;
}

kj::Promise<void> LineWriter::run() {
  if (waiting.empty()) {
    auto paf = kj::newPromiseAndFulfiller<void>();
    wake = kj::mv(paf.fulfiller);
    return paf.promise.then([this]() { return run(); });
  }
  writing = kj::mv(waiting);
  waiting.clear();
  return to.write(writing.data(), writing.size()).then([this]() {
    writing.clear();
    writing.shrink_to_fit();
    if (hasRoom()) tell(forRoom);
    if (queued() == 0) tell(forAll);
    return run();
  });
}

kj::Promise<void> LineWriter::whenRoom() { return hasRoom() ? kj::Promise<void>(kj::READY_NOW) : wait(forRoom); }

kj::Promise<void> LineWriter::whenTaken() { return queued() == 0 ? kj::Promise<void>(kj::READY_NOW) : wait(forAll); }

kj::Promise<void> LineWriter::wait(Waiters& waiters) {
  auto paf = kj::newPromiseAndFulfiller<void>();
  waiters.push_back(kj::mv(paf.fulfiller));
  return kj::mv(paf.promise);
}

void LineWriter::tell(Waiters& waiters) {
  for (auto& waiter : waiters) waiter->fulfill();
  waiters.clear();
}

}  // namespace oc::run
