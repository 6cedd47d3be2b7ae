#include "by_hand.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/crypto.h"
#include "base/fd.h"
#include "base/watch.h"
#include "providers/kit/kit.h"
#include "run.capnp.h"
#include "sandbox.capnp.h"

namespace oc::run {

namespace {

struct Wanted {
  std::string logFile = "/dev/null";
  uint64_t timeout = 0;
  std::vector<std::string> command;
};

Wanted readWords(const std::vector<std::string>& words) {
  Wanted wanted;
  if (words[0] != "exec") throw kit::UsageError{"unknown command: " + words[0]};
  size_t i = 1;
  for (; i < words.size() && words[i] != "--"; ++i) {
    if (i + 1 == words.size()) throw kit::UsageError{"a value is missing after " + words[i]};
    if (words[i] == "--log") {
      wanted.logFile = words[++i];
    } else if (words[i] == "--timeout") {
      wanted.timeout = strtoull(words[++i].c_str(), nullptr, 10);
    } else {
      throw kit::UsageError{"unknown option: " + words[i]};
    }
  }
  if (i < words.size()) wanted.command.assign(words.begin() + i + 1, words.end());
  if (wanted.command.empty()) throw kit::UsageError{"a command is missing after --"};
  return wanted;
}

// The command, started by us: what a sandbox's instance is for a real run.
class DirectProcess final : public proto::Process::Server {
 public:
  DirectProcess(kj::UnixEventPort& port, Spawned spawned)
      : spawned(kj::mv(spawned)), ended(whenEnded(port, this->spawned.pidfd.get()).fork()) {}

  kj::Promise<void> signal(SignalContext context) override {
    auto number = context.getParams().getNumber();
    KJ_REQUIRE(number == SIGTERM || number == SIGKILL, "only TERM and KILL may be sent");
    ::kill(-spawned.pid, number);  // its session's process group
    return kj::READY_NOW;
  }
  kj::Promise<void> wait(WaitContext context) override {
    return ended.addBranch().then([context](ProcessEnd end) mutable { write(context.getResults().initStatus(), end); });
  }

 private:
  Spawned spawned;
  kj::ForkedPromise<ProcessEnd> ended;
};

class PrintingHost final : public proto::RunHost::Server {
 public:
  explicit PrintingHost(kj::Own<kj::PromiseFulfiller<int>> done) : done(kj::mv(done)) {}

  kj::Promise<void> event(EventContext context) override {
    auto event = context.getParams().getEvent();
    if (event.isNote()) {
      fprintf(stderr, "note: %s\n", event.getNote().cStr());
      return kj::READY_NOW;
    }
    if (!event.isEnded()) return kj::READY_NOW;
    auto status = read(event.getEnded().getStatus());
    if (!status.known) {
      fprintf(stderr, "ended, nobody knows how: %s\n", event.getEnded().getDetail().cStr());
    } else {
      fprintf(stderr, status.signaled ? "killed by signal %d\n" : "exit status %d\n", status.code);
    }
    done->fulfill(status.known && !status.signaled ? int(status.code) : 1);
    return kj::READY_NOW;
  }

 private:
  kj::Own<kj::PromiseFulfiller<int>> done;
};

// A socket that nobody will connect to: without a daemon there is no adoption.
kj::AutoCloseFd unreachableListener() {
  int fd;
  KJ_SYSCALL(fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  kj::AutoCloseFd owned(fd);
  struct sockaddr_un address {};
  address.sun_family = AF_UNIX;  // without a path: autobind to an abstract name of the kernel's choice
  KJ_SYSCALL(bind(fd, reinterpret_cast<struct sockaddr*>(&address), sizeof(sa_family_t)));
  KJ_SYSCALL(listen(fd, 1));
  return owned;
}

Spawned startCommand(const Wanted& wanted, int input, int output, int errors) {
  SpawnSpec spec;
  spec.program = "/usr/bin/env";
  spec.arguments = wanted.command;
  for (const char* name : {"PATH", "HOME", "LANG", "TERM", "USER"}) {
    if (const char* value = getenv(name)) spec.environment.emplace_back(name, value);
  }
  spec.descriptors = {{input, 0}, {output, 1}, {errors, 2}};
  char* directory = get_current_dir_name();
  if (directory != nullptr) spec.directory = directory;
  free(directory);
  spec.dieWithParent = true;
  return spawn(spec);
}

}  // namespace

int byHand(const std::vector<std::string>& words) {
  auto wanted = readWords(words);
  auto input = makePipe(), output = makePipe(), errors = makePipe();
  auto process = makeSocketPair();
  auto listener = unreachableListener();
  auto log = openFile(wanted.logFile, O_WRONLY | O_CREAT | O_APPEND, 0600);
  auto instance = kit::startByHand({}, {{process.second.get(), 4},
                                        {input.second.get(), 5},
                                        {output.first.get(), 6},
                                        {errors.first.get(), 7},
                                        {listener.get(), 8},
                                        {log.get(), 9}});
  auto& io = instance->io();
  auto command = startCommand(wanted, input.first.get(), output.second.get(), errors.second.get());
  // Ours are copies: the streams must end when the others' ends do.
  for (auto* pair : {&input, &output, &errors}) {
    pair->first = nullptr;
    pair->second = nullptr;
  }
  process.second = nullptr;
  Connection processConnection(io.lowLevelProvider->wrapSocketFd(kj::mv(process.first)),
                               capnp::rpc::twoparty::Side::SERVER,
                               kj::heap<DirectProcess>(io.unixEventPort, kj::mv(command)), RpcLimits(), "the shim");

  auto done = kj::newPromiseAndFulfiller<int>();
  auto begin = instance->capability().castAs<proto::Shim>().beginRequest();
  auto setup = begin.initSetup();
  setup.setExecutor("shell");
  setup.setConfig("{}");
  setup.setLogLimit(1u << 30);
  setup.setTimeoutSeconds(wanted.timeout);
  setup.setGraceSeconds(5);
  begin.setKey(SecretBytes::random(32).bytes());
  begin.setHost(kj::heap<PrintingHost>(kj::mv(done.fulfiller)));
  auto session = begin.send().wait(io.waitScope).getSession();
  session.launchedRequest().send().ignoreResult().wait(io.waitScope);
  int code = done.promise.wait(io.waitScope);
  session.finishRequest().send().ignoreResult().wait(io.waitScope);
  instance->finish();
  return code;
}

}  // namespace oc::run
