// What runs there are, what they did, and stopping them.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/json.h"
#include "cli/client.h"
#include "cli/commands/wait.h"
#include "cli/failure.h"
#include "cli/program.h"
#include "cli/ui/documents.h"
#include "cli/ui/log_filter.h"
#include "cli/ui/network_view.h"
#include "cli/ui/transcript.h"
#include "cli/ui/views.h"
#include "commands.h"

namespace oc::cli {

namespace {

struct Options {
  std::string id, work;
  size_t limit = 50;
  bool limitGiven = false, follow = false, raw = false;
};

int list(World& world, const Options& options, bool json) {
  auto link = world.connect();
  auto request = link.control.listRunsRequest();
  request.setWork(toText(options.work));
  // A script gets all, unless it says otherwise.
  request.setLimit(json && !options.limitGiven ? 0 : static_cast<uint32_t>(options.limit));
  auto answer = ask(world, request.send());
  requireDone(answer.getRefusal());
  auto runs = answer.getRuns();
  if (!json) {
    world.out(runsView(world.look, runs, answer.getOlder()));
    return Done;
  }
  auto documents = Document::array();
  for (auto run : runs) documents.push_back(runDocument(run));
  print(world, documents);
  return Done;
}

int get(World& world, const std::string& id, bool json) {
  auto link = world.connect();
  auto request = link.control.getRunRequest();
  request.setId(toText(id));
  auto answer = ask(world, request.send());
  requireDone(answer.getRefusal());
  if (json) {
    print(world, runDocument(answer.getRun()));
  } else {
    world.out(runView(world.look, answer.getRun()));
  }
  return Done;
}

// Gives the log's pieces to `piece`, in order, up to what there is, or with `follow` to the run's end. True when no
// more will come.
bool readLog(World& world, const Options& options, kj::Function<void(std::string_view)> piece) {
  auto link = world.connect();
  for (uint64_t offset = 0;;) {
    auto request = link.control.readLogRequest();
    request.setId(toText(options.id));
    request.setOffset(offset);
    request.setFollow(options.follow);
    auto answer = options.follow ? askPatiently(world, request.send()) : ask(world, request.send());
    requireDone(answer.getRefusal());
    auto bytes = answer.getBytes();
    piece({reinterpret_cast<const char*>(bytes.begin()), bytes.size()});
    offset = answer.getNext();
    if (answer.getEnd()) return true;
    if (bytes.size() == 0 && !options.follow) return false;
  }
}

// The records of the run's gateway, as its shim wrote them: a line of JSON each. One that is not is left out.
std::vector<Json> networkRecords(World& world, const std::string& id) {
  auto link = world.connect();
  std::string text;
  for (uint64_t offset = 0;;) {
    auto request = link.control.readNetworkRequest();
    request.setId(toText(id));
    request.setOffset(offset);
    auto answer = ask(world, request.send());
    requireDone(answer.getRefusal());
    auto bytes = answer.getBytes();
    text.append(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
    offset = answer.getNext();
    if (answer.getEnd() || bytes.size() == 0) break;
  }
  std::vector<Json> records;
  for (size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    auto record = parseJson(std::string_view(text).substr(at, end - at));
    if (record.is_object()) records.push_back(std::move(record));
  }
  return records;
}

int showNetwork(World& world, const std::string& id, bool json) {
  auto records = networkRecords(world, id);
  if (json) {
    print(world, Document(records));
  } else {
    world.out(networkView(world.look, records));
  }
  return Done;
}

// A transcript is shown as a person reads it. All else: a terminal gets text that cannot drive it, anything else the
// bytes as the agent wrote them, and so does --raw.
int showLog(World& world, const Options& options, bool json) {
  if (json) {
    std::string text;
    bool ended = readLog(world, options, [&text](std::string_view bytes) { text += bytes; });
    auto size = text.size();
    print(world, {{"id", options.id}, {"bytes", size}, {"ended", ended}, {"log", std::move(text)}});
  } else if (options.raw && world.look.terminal) {
    LogFilter filter;
    readLog(world, options, [&](std::string_view bytes) { world.out(filter.feed(bytes)); });
    world.out(filter.finish());
  } else if (options.raw) {
    readLog(world, options, [&world](std::string_view bytes) { world.out(bytes); });
  } else {
    LogView view(world.look);
    readLog(world, options, [&](std::string_view bytes) { world.out(view.feed(bytes)); });
    world.out(view.finish());
  }
  return Done;
}

// With --json exactly the bytes that were hashed, so that a pipe to sha256sum gives the run's policy.sha256.
int showPolicy(World& world, const std::string& id, bool json) {
  auto link = world.connect();
  auto request = link.control.getPolicyRequest();
  request.setId(toText(id));
  auto answer = ask(world, request.send());
  requireDone(answer.getRefusal());
  auto plan = toString(answer.getPlan());
  if (!json) {
    world.out(planView(world.look, plan, toString(answer.getSha256())));
  } else if (world.look.terminal) {
    world.out(line(plan) + "\n");
  } else {
    world.out(plan);
  }
  return Done;
}

int stop(World& world, const std::string& id, bool json) {
  auto link = world.connect();
  auto request = link.control.stopRunRequest();
  request.setId(toText(id));
  requireDone(ask(world, request.send()).getRefusal());
  if (json) {
    print(world, {{"id", id}, {"stopping", true}});
  } else {
    world.out(fmt::format("{} is being stopped\n", line(id)));
  }
  return Done;
}

int wait(World& world, const std::string& id, bool json) {
  auto ended = awaitLastTry(world, world.connect(), id, json);
  KJ_IF_MAYBE (answer, ended) {
    auto run = answer->getRun();
    if (json) {
      print(world, runDocument(run));
    } else {
      tellEnd(world, run);
    }
    return run.getOutcome() == "succeeded" ? Done : No;
  }
  return interruptedCode;
}

}  // namespace

void addRuns(Command& all, Choice& choice) {
  auto runs = all.group("runs", "Runs: what they did, their logs and policies");
  auto options = std::make_shared<Options>();
  auto withId = [&](const char* name, const char* what, std::function<int(World&)> act) {
    return runs.command(name, what, std::move(act))
        .required("id", options->id, "The run's id, or a beginning that only one has", "ID");
  };

  runs.command("list", "The newest runs",
               [&choice, options](World& world) { return list(world, *options, choice.json); })
      .option("--work", options->work, "Only those of this Work", "ID")
      .option("-n,--limit", options->limit, options->limitGiven,
              "At most so many; 0: all (50 unless said, with --json all)", "N");
  withId("get", "What a run is and what came of it",
         [&choice, options](World& world) { return get(world, options->id, choice.json); });
  withId("logs", "What its agent printed",
         [&choice, options](World& world) { return showLog(world, *options, choice.json); })
      .flag("-f,--follow", options->follow, "Go on until the run has ended")
      .flag("--raw", options->raw, "Every line as it came, where an agent's transcript would be made readable");
  withId("network", "What it reached and what was refused (containers)",
         [&choice, options](World& world) { return showNetwork(world, options->id, choice.json); });
  withId("policy", "The exact policy that it ran under",
         [&choice, options](World& world) { return showPolicy(world, options->id, choice.json); });
  withId("wait", "Wait for its end, and its further tries'; exit with 1 unless the last one succeeded",
         [&choice, options](World& world) { return wait(world, options->id, choice.json); });
  withId("stop", "Stop it", [&choice, options](World& world) { return stop(world, options->id, choice.json); });
}

}  // namespace oc::cli
