// Work: making it, looking at it, ending it.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/commands/request.h"
#include "cli/commands/wait.h"
#include "cli/failure.h"
#include "cli/program.h"
#include "cli/ui/documents.h"
#include "cli/ui/views.h"
#include "commands.h"

namespace oc::cli {

namespace {

struct Options {
  RequestWords request;
  std::string id;
  size_t limit = 50;
  bool limitGiven = false, wait = false, discard = false;
};

struct Made {
  std::string work, run;
};

Made make(World& world, Link& link, const Request& from) {
  auto call = link.control.newWorkRequest();
  auto request = call.initRequest();
  request.setScope(toText(from.scope));
  request.setBinding(toText(from.binding));
  request.setTitle(toText(from.title));
  request.setBody(toData(from.body));
  auto answer = ask(world, call.send());
  requireDone(answer.getRefusal());
  return {toString(answer.getId()), toString(answer.getRun())};
}

int makeAndWait(World& world, Link link, Made made, bool json) {
  auto ended = awaitLastTry(world, kj::mv(link), made.run, json);
  KJ_IF_MAYBE (run, ended) {
    if (json) {
      print(world,
            {{"id", made.work}, {"run", toString(run->getRun().getId())}, {"ended", runDocument(run->getRun())}});
    } else {
      tellEnd(world, run->getRun());
    }
    return run->getRun().getOutcome() == "succeeded" ? Done : No;
  }
  if (json) print(world, {{"id", made.work}, {"run", made.run}, {"ended", nullptr}});
  return interruptedCode;
}

int makeNew(World& world, const Options& options, bool json) {
  auto request = readRequest(world, options.request);
  auto link = world.connect();
  auto made = make(world, link, request);
  // At once: whoever interrupts the waiting has the id by then.
  if (!json) world.out(made.work + "\n");
  if (options.wait) return makeAndWait(world, kj::mv(link), made, json);
  if (json) print(world, {{"id", made.work}, {"run", made.run}});
  return Done;
}

int list(World& world, const Options& options, bool json) {
  auto link = world.connect();
  auto request = link.control.listWorkRequest();
  request.setLimit(json && !options.limitGiven ? 0 : static_cast<uint32_t>(options.limit));
  auto answer = ask(world, request.send());
  auto works = answer.getWork();
  if (!json) {
    world.out(allWorkView(world.look, works, answer.getOlder()));
    return Done;
  }
  auto documents = Document::array();
  for (auto work : works) documents.push_back(workDocument(work));
  print(world, documents);
  return Done;
}

int show(World& world, Link& link, const std::string& id, bool json) {
  auto request = link.control.getWorkRequest();
  request.setId(toText(id));
  auto answer = ask(world, request.send());
  requireDone(answer.getRefusal());
  if (json) {
    print(world, workDocument(answer.getWork()));
  } else {
    world.out(workView(world.look, answer.getWork()));
  }
  return Done;
}

int get(World& world, const std::string& id, bool json) {
  auto link = world.connect();
  return show(world, link, id, json);
}

// Saving commits and removing a large workspace take as long as they take.
int finish(World& world, const std::string& id, bool json) {
  auto link = world.connect();
  auto request = link.control.finishWorkRequest();
  request.setId(toText(id));
  requireDone(askPatiently(world, request.send()).getRefusal());
  return show(world, link, id, json);
}

int cancel(World& world, const std::string& id, bool discard, bool json) {
  auto link = world.connect();
  auto request = link.control.cancelWorkRequest();
  request.setId(toText(id));
  request.setDiscard(discard);
  requireDone(askPatiently(world, request.send()).getRefusal());
  return show(world, link, id, json);
}

void addNew(Command& work, Choice& choice, std::shared_ptr<Options> options) {
  auto& request = options->request;
  work.command("new", "Make Work, begin its first run, and print the Work's id",
               [&choice, options](World& world) { return makeNew(world, *options, choice.json); })
      .required("--binding", request.binding, "Which binding of the config runs it", "SCOPE/BINDING")
      .option("--title", request.title, "One line, at most 1 KiB", "TEXT")
      .option("--body-file", request.bodyFile, "What is asked for, at most 16 MiB; - is standard input", "FILE")
      .flag("--wait", options->wait, "Wait for the run's end; exit with 1 unless it succeeded");
}

}  // namespace

void addWork(Command& all, Choice& choice) {
  auto work = all.group("work", "Work: what was asked for, with its workspace and runs");
  auto options = std::make_shared<Options>();
  addNew(work, choice, options);

  work.command("list", "The newest Work",
               [&choice, options](World& world) { return list(world, *options, choice.json); })
      .option("-n,--limit", options->limit, options->limitGiven,
              "At most so much; 0: all (50 unless said, with --json all)", "N");

  auto addWithId = [&](const char* name, const char* what, int (*act)(World&, const std::string&, bool)) {
    work.command(name, what, [&choice, options, act](World& world) { return act(world, options->id, choice.json); })
        .required("id", options->id, "The Work's id, or a beginning that only one has", "ID");
  };
  addWithId("get", "What it is", get);
  addSay(work, choice);
  addAttach(work, choice);
  addWithId("finish", "Save its commits once more, then remove its workspace and home", finish);
  work.command("cancel", "Stop its live run, then as finish",
               [&choice, options](World& world) { return cancel(world, options->id, options->discard, choice.json); })
      .required("id", options->id, "The Work's id, or a beginning that only one has", "ID")
      .flag("--discard", options->discard, "Give up commits that cannot be saved");
}

}  // namespace oc::cli
