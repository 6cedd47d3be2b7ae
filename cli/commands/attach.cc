// A person in a Work's place: in a container of its own, or on the host where its agent ran there.
#include <errno.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "base/descriptor_passing.h"
#include "base/places.h"
#include "cli/client.h"
#include "cli/failure.h"
#include "cli/terminal.h"
#include "commands.h"

namespace oc::cli {

namespace {

using Answer = capnp::Response<proto::Control::AttachWorkResults>;

// After the terminal's end, its container is removed within seconds.
constexpr auto goneLimit = 60 * kj::SECONDS;

std::string variable(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? "" : value;
}

void requireTerminal() {
  if (isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1) return;
  throw Failure{
      No,
      {"no_terminal", "standard input and output are no terminal", "open-conduit work say tells the agent something"}};
}

int endBySignal(int number) {
  signal(number, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, number);
  raise(number);
  sigprocmask(SIG_UNBLOCK, &one, nullptr);
  return 128 + number;
}

// ---- on the host

volatile pid_t onHost = 0;
volatile sig_atomic_t endedBy = 0, continued = 0;

// Whoever ends us ends what runs for us, and is heard when that has ended.
void hangUpOnHost(int number) {
  endedBy = number;
  kill(onHost, SIGHUP);
}

// A program that is stopped or killed leaves the terminal in its own mode, and a shell keeps it for its own jobs. One
// that was started in the background was lent none.
class LentTerminal {
 public:
  LentTerminal() : known(tcgetattr(STDIN_FILENO, &before) == 0) {}

  void takeBack() {
    if (!lent) return;
    makeForeground(getpgrp());
    if (known) tcsetattr(STDIN_FILENO, TCSANOW, &before);
  }
  void lendAgain(pid_t group) {
    lent = isOurs() || tcgetpgrp(STDIN_FILENO) == group;
    if (lent && group != getpgrp()) makeForeground(group);
  }

 private:
  static bool isOurs() { return tcgetpgrp(STDIN_FILENO) == getpgrp(); }
  static void makeForeground(pid_t group) {
    auto before = signal(SIGTTOU, SIG_IGN);
    tcsetpgrp(STDIN_FILENO, group);
    signal(SIGTTOU, before);
  }

  struct termios before = {};
  bool known, lent = isOurs();
};

// A stop of the program is one of ours, too, so that the person's shell has its terminal meanwhile.
int awaitOnHost(pid_t pid, LentTerminal& terminal) {
  while (true) {
    int status = 0;
    bool changed = waitpid(pid, &status, WUNTRACED) == pid;
    if (changed && !WIFSTOPPED(status)) return status;
    if (!changed && errno != EINTR) KJ_FAIL_SYSCALL("waitpid", errno);
    // Who reads a terminal in the background is stopped with all of its group, us included.
    if (changed && !continued) {
      terminal.takeBack();
      raise(SIGSTOP);
    }
    if (!continued) continue;
    auto group = getpgid(pid);
    terminal.lendAgain(group);
    kill(-group, SIGCONT);
    continued = 0;
  }
}

// The environment is made before the fork, and this process stays: it holds the attachment.
int runOnHost(proto::HostAttachment::Reader host) {
  auto directory = toString(host.getDirectory());
  std::vector<char*> argv;
  for (auto word : host.getCommand()) argv.push_back(const_cast<char*>(word.cStr()));
  argv.push_back(nullptr);
  for (auto one : host.getEnvironment()) setenv(one.getName().cStr(), one.getValue().cStr(), 1);
  LentTerminal terminal;
  pid_t pid, parent = getpid();
  (void)parent;
  KJ_SYSCALL(pid = fork());
  if (pid == 0) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    signal(SIGPIPE, SIG_DFL);
#ifdef __linux__
    // Without us a run may begin in the workspace.
    prctl(PR_SET_PDEATHSIG, SIGHUP);
    if (getppid() != parent) _exit(No);
#endif
    if (chdir(directory.c_str()) == 0) execvp(argv[0], argv.data());
    dprintf(STDERR_FILENO, "open-conduit: %s: %s\n", argv[0], strerror(errno));
    _exit(127);
  }
  // Keys reach both; what they mean is the program's to say.
  for (int number : {SIGINT, SIGQUIT, SIGTSTP}) signal(number, SIG_IGN);
  onHost = pid;
  for (int number : {SIGTERM, SIGHUP}) signal(number, hangUpOnHost);
  struct sigaction noted = {};
  noted.sa_handler = [](int) { continued = 1; };
  sigaction(SIGCONT, &noted, nullptr);
  int status = awaitOnHost(pid, terminal);
  terminal.takeBack();
  if (endedBy != 0) return endBySignal(endedBy);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// ---- in a container

kj::AutoCloseFd dial(const std::string& path) {
  requireSocketPathFits(path);
  int raw;
  KJ_SYSCALL(raw = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  kj::AutoCloseFd fd(raw);
  struct sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, path.c_str(), path.size() + 1);
  KJ_SYSCALL(connect(raw, reinterpret_cast<struct sockaddr*>(&address), sizeof(address)), path);
  return fd;
}

// The daemon gives the container's stream away and has none of it itself.
kj::AutoCloseFd takeTerminal(const std::string& path) {
  auto socket = dial(path);
  auto terminal = receiveDescriptor(socket.get());
  if (terminal.get() >= 0) return terminal;
  int error = errno;
  if (error != EINVAL) KJ_FAIL_SYSCALL("recvmsg", error);
  throw Failure{No, {"failed", "the daemon did not give the container's terminal", "see the daemon's log"}};
}

int codeOf(const ProcessEnd& end) {
  if (!end.known) return No;
  return end.signaled ? 128 + end.code : end.code;
}

int runInContainer(World& world, proto::AttachSession::Client session) {
  auto path = toString(ask(world, session.terminalRequest().send()).getPath());
  auto stream = world.io().lowLevelProvider->wrapSocketFd(takeTerminal(path));
  auto gone = session.waitRequest().send();
  auto onResize = [session](TerminalSize size) mutable -> kj::Promise<void> {
    auto request = session.resizeRequest();
    request.setColumns(size.columns);
    request.setRows(size.rows);
    return request.send().ignoreResult();
  };
  auto terminal = kj::heap<TerminalSession>(world.io(), kj::mv(stream), kj::mv(onResize));
  auto& ref = *terminal;
  auto end = await(world, ref.run());
  int number = ref.signal();
  terminal = nullptr;
  if (end == SessionEnd::Signal) return endBySignal(number);
  if (end == SessionEnd::TerminalLost) return No;
  if (end == SessionEnd::Detached) {
    world.err("\nopen-conduit: the attachment has ended, and its container is removed\n");
    return Done;
  }
  auto& timer = world.io().provider->getTimer();
  kj::Promise<capnp::Response<proto::AttachSession::WaitResults>> ended = kj::mv(gone);
  auto answer = await(world, withDeadline(timer, goneLimit, "the daemon", kj::mv(ended)));
  return codeOf(read(answer.getStatus()));
}

int attach(World& world, const std::string& id) {
  requireTerminal();
  auto link = world.connect();
  auto request = link.control.attachWorkRequest();
  request.setId(toText(id));
  auto size = terminalSize(STDIN_FILENO);
  auto terminal = request.initTerminal();
  terminal.setColumns(size.columns);
  terminal.setRows(size.rows);
  terminal.setKind(toText(variable("TERM")));
  terminal.setColours(toText(variable("COLORTERM")));
  auto answer = askPatiently(world, request.send());
  requireDone(answer.getRefusal());
  if (answer.getHost().getCommand().size() > 0) return runOnHost(answer.getHost());
  TerminalSession::captureSignals();
  return runInContainer(world, answer.getSession());
}

}  // namespace

void addAttach(Command& work, Choice& choice) {
  auto id = std::make_shared<std::string>();
  (void)choice;
  work.commandWithoutJson("attach",
                          "Open its session on this terminal; Ctrl-P Ctrl-Q ends that, and the container that it is in",
                          [id](World& world) { return attach(world, *id); })
      .required("id", *id, "The Work's id, or a beginning that only one has", "ID");
}

}  // namespace oc::cli
