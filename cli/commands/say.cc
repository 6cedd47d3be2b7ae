// What a person does beside a Work's agent: telling it something, and running a command in its workspace.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <vector>

#include "cli/client.h"
#include "cli/failure.h"
#include "cli/ui/documents.h"
#include "commands.h"

namespace oc::cli {

namespace {

struct Words {
  std::string id, text;
  std::vector<std::string> command;
};

// An agent takes a message between two of its steps, so the answer may take as long as one of them.
int say(World& world, const Words& words, bool json) {
  auto text = words.text == "-" ? world.readInput((1u << 20) + 1) : words.text;
  auto link = world.connect();
  auto request = link.control.sayWorkRequest();
  request.setId(toText(words.id));
  request.setText(toText(text));
  auto answer = askPatiently(world, request.send());
  requireDone(answer.getRefusal());
  auto run = toString(answer.getRun());
  if (json) {
    print(world, {{"run", run}, {"delivered", answer.getDelivered()}});
  } else if (answer.getDelivered()) {
    world.out(fmt::format("run {} has it\n", line(run)));
  } else {
    world.out(fmt::format("run {} will begin with it\n", line(run)));
  }
  return Done;
}

// This process becomes the command.
int execute(World& world, const Words& words, bool) {
  auto link = world.connect();
  auto request = link.control.execPlaceRequest();
  request.setId(toText(words.id));
  auto answer = ask(world, request.send());
  requireDone(answer.getRefusal());
  auto directory = toString(answer.getDirectory());
  if (chdir(directory.c_str()) < 0) throw Failure{No, {"failed", directory + ": " + strerror(errno), ""}};
  for (auto variable : answer.getEnvironment()) setenv(variable.getName().cStr(), variable.getValue().cStr(), 1);
  std::vector<char*> argv;
  for (auto& word : words.command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  // Our loop ignores it, and the command would, too.
  signal(SIGPIPE, SIG_DFL);
  execvp(argv[0], argv.data());
  auto code = errno == ENOENT ? CommandNotFound : CommandNotRun;
  throw Failure{code, {"failed", words.command[0] + ": " + strerror(errno), ""}};
}

}  // namespace

void addSay(Command& work, Choice& choice) {
  auto words = std::make_shared<Words>();
  work.command("say", "Tell its agent something: in its live run where that takes it, else a new run begins with it",
               [&choice, words](World& world) { return say(world, *words, choice.json); })
      .required("id", words->id, "The Work's id, or a beginning that only one has", "ID")
      .required("text", words->text, "At most 1 MiB; - is standard input", "TEXT");
  work.command("exec", "Run a command in its workspace; only where its agent ran without a sandbox",
               [&choice, words](World& world) { return execute(world, *words, choice.json); })
      .required("id", words->id, "The Work's id, or a beginning that only one has", "ID")
      .required("command", words->command, "The program and its words, behind --", "COMMAND");
}

}  // namespace oc::cli
