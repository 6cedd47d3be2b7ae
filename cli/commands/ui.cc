// The terminal UI: the runs, what each came to, its log as it grows, and a key that stops it.
#include <unistd.h>

#include "cli/client.h"
#include "cli/failure.h"
#include "cli/ui/log_filter.h"
#include "cli/ui/screen.h"
#include "cli/ui/times.h"
#include "cli/ui/views.h"
#include "commands.h"

namespace oc::cli {

namespace {

// How often the daemon is asked; while nobody looks there is no UI, and nobody asks.
constexpr auto refreshPause = 1 * kj::SECONDS;
constexpr size_t mostRuns = 500;

class Ui {
 public:
  explicit Ui(World& world)
      : world(world),
        link(world.connect()),
        screen(world.look.colour),
        keys(world.io().unixEventPort, STDIN_FILENO, kj::UnixEventPort::FdObserver::OBSERVE_READ) {}

  int run() {
    while (going) {
      refresh();
      screen.show(browser.render(screen.width(), screen.height()));
      waitForKeyOrTime();
      readKeys();
    }
    return Done;
  }

 private:
  // ---- what the daemon says

  void refresh() {
    try {
      world.look.now = nowMilliseconds();
      loadRuns();
      if (browser.view() == Browser::View::Run) loadDetail();
      if (browser.view() == Browser::View::Log) loadLog();
      browser.setTrouble("");
    } catch (const Failure& failure) {
      browser.setTrouble(line(failure.why.what));
      reconnect();
    }
  }

  void reconnect() {
    try {
      link = world.connect();
    } catch (const Failure&) {  // the trouble is shown already, and it is tried again
    }
  }

  void loadRuns() {
    auto request = link.control.listRunsRequest();
    request.setLimit(mostRuns);
    auto answer = ask(world, request.send());
    std::vector<RunLine> lines;
    auto plain = world.look;
    plain.colour = false;
    for (auto run : answer.getRuns()) {
      auto outcome = toString(run.getOutcome());
      bool live = outcome.empty();
      auto tint = live                                               ? Tint::Bold
                  : outcome == "succeeded"                           ? Tint::Good
                  : outcome == "stopped" || outcome == "interrupted" ? Tint::Caution
                                                                     : Tint::Bad;
      lines.push_back({line(toString(run.getId())), line(toString(run.getWork())),
                       line(toString(run.getScope()) + "/" + toString(run.getBinding())), stateOf(plain, run),
                       line(toString(run.getTitle())), tint, live});
    }
    browser.setRuns(std::move(lines));
  }

  void loadDetail() {
    auto request = link.control.getRunRequest();
    request.setId(toText(browser.chosen()));
    auto answer = ask(world, request.send());
    requireDone(answer.getRefusal());
    auto plain = world.look;
    plain.colour = false;
    browser.setDetail(runView(plain, answer.getRun()));
  }

  void loadLog() {
    if (logOf != browser.chosen()) {
      logOf = browser.chosen();
      logOffset = 0;
      filter = LogFilter();
    }
    for (int pieces = 0; pieces < 16; ++pieces) {
      auto request = link.control.readLogRequest();
      request.setId(toText(logOf));
      request.setOffset(logOffset);
      auto answer = ask(world, request.send());
      requireDone(answer.getRefusal());
      auto bytes = answer.getBytes();
      if (bytes.size() == 0) return;
      browser.addLog(filter.feed({reinterpret_cast<const char*>(bytes.begin()), bytes.size()}));
      logOffset = answer.getNext();
    }
  }

  void stopChosen() {
    try {
      auto request = link.control.stopRunRequest();
      request.setId(toText(browser.chosen()));
      requireDone(ask(world, request.send()).getRefusal());
      browser.say(browser.chosen() + " is being stopped");
    } catch (const Failure& failure) {
      browser.say(line(failure.why.what));
    }
  }

  // ---- the person

  void waitForKeyOrTime() {
    auto late = world.io().provider->getTimer().afterDelay(refreshPause);
    auto interrupted = world.interrupted().then([this]() { going = false; });
    keys.whenBecomesReadable()
        .exclusiveJoin(kj::mv(late))
        .exclusiveJoin(kj::mv(interrupted))
        .wait(world.io().waitScope);
  }

  void readKeys() {
    for (;;) {
      auto pressed = screen.read();
      if (pressed.key == Key::None) return;
      switch (browser.press(pressed.key, pressed.character)) {
        case Browser::Wish::Quit: going = false; return;
        case Browser::Wish::StopRun: stopChosen(); break;
        case Browser::Wish::ShowLog: logOf.clear(); break;
        case Browser::Wish::ShowRun:
        case Browser::Wish::Nothing: break;
      }
    }
  }

  World& world;
  Link link;
  Screen screen;
  kj::UnixEventPort::FdObserver keys;
  Browser browser;
  bool going = true;
  std::string logOf;
  uint64_t logOffset = 0;
  LogFilter filter;
};

}  // namespace

int runUi(World& world) {
  if (!world.look.terminal || isatty(STDIN_FILENO) != 1) {
    throw Failure{WrongUsage, {"usage", "the terminal UI needs a terminal", "open-conduit runs list"}};
  }
  return Ui(world).run();
}

void addUi(Command& all, Choice&) {
  all.commandWithoutJson("ui", "The terminal UI: runs, their logs, and stopping them", runUi);
}

}  // namespace oc::cli
