// open-conduit-attack: what a hostile agent tries. `open-conduit doctor --attack` runs it in a binding's sandbox, and
// outside beside it, where each attack has to succeed.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stand.h"
#include "tools.h"

namespace oc::battery {

namespace {

constexpr const char* usage =
    "open-conduit-attack: the attacks of open-conduit doctor --attack\n"
    "\n"
    "  open-conduit-attack stand NAME=DIR…            puts the targets up, prints them, serves until its input ends\n"
    "  open-conduit-attack try FILE [NAME=VALUE…]     tries all of them on the targets of FILE, a line each\n"
    "  open-conduit-attack outside FILE [NAME=VALUE…] the same, as someone whom nothing was taken from\n"
    "\n"
    "A line is a verdict (through, held ERROR, absent, look PATH, failed WHY), whose promise it is about, and the attack.\n";

constexpr int slowest = 15;  // seconds for one of them

std::string inWords(const Result& result) {
  switch (result.kind) {
    case Result::Kind::Through: return "through";
    case Result::Kind::Absent: return "absent";
    case Result::Kind::Look: return "look " + result.text;
    case Result::Kind::Held: break;
  }
  auto name = result.error == 0 ? nullptr : strerrorname_np(result.error);
  return std::string("held ") + (name == nullptr ? "-" : name);
}

// In a process of its own, since some change what the next one would meet; whatever it leaves running is ended.
std::string carryOut(const Attack& attack, const Targets& targets) {
  int pipes[2];
  if (pipe2(pipes, O_CLOEXEC) < 0) return std::string("failed ") + strerror(errno);
  pid_t child = fork();
  if (child < 0) return std::string("failed ") + strerror(errno);
  if (child == 0) {
    setpgid(0, 0);
    signal(SIGTTOU, SIG_IGN);
    alarm(slowest);
    auto text = inWords(attack.tryIt(targets));
    (void)!write(pipes[1], text.data(), text.size());
    _exit(0);
  }
  close(pipes[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(pipes[0], buffer, sizeof(buffer))) > 0;) text.append(buffer, static_cast<size_t>(n));
  close(pipes[0]);
  int status = 0;
  waitpid(child, &status, 0);
  kill(-child, SIGKILL);
  if (!text.empty()) return text;
  if (!WIFSIGNALED(status)) return "failed it said nothing";
  // A call that the kernel answers by ending the caller did not get through; one that never came back, neither.
  return WTERMSIG(status) == SIGALRM ? "held ETIMEDOUT" : std::string("held SIG") + sigabbrev_np(WTERMSIG(status));
}

int tryAll(const Targets& targets) {
  for (auto& attack : allAttacks()) {
    printf("%s\t%s\t%s\n", carryOut(attack, targets).c_str(), attack.against, attack.name);
    fflush(stdout);
  }
  return 0;
}

// The sandbox is to keep an agent from descriptors, variables and a terminal that somebody left to it. Outside there
// are some.
void inheritSomething(const Targets& targets) {
  constexpr int directory = 120, file = 121;
  dup2(open(targets["own"].c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), directory);
  dup2(open((targets["own"] + "/secret").c_str(), O_RDONLY | O_CLOEXEC), file);
  setenv("OPEN_CONDUIT_ATTACK_SECRET", targets.marker().c_str(), 1);
  int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0 || grantpt(terminal) < 0 || unlockpt(terminal) < 0) return;
  setsid();
  int mine = open(ptsname(terminal), O_RDWR);
  ioctl(mine, TIOCSCTTY, 0);
}

}  // namespace

std::vector<Attack> allAttacks() {
  std::vector<Attack> all;
  for (auto group : {fileReads, mountTricks, fileWrites, gitTricks, processAttacks, memoryAttacks, kernelAttacks,
                     socketAttacks, networkAttacks, proxyAttacks, limitAttacks}) {
    for (auto& attack : group()) all.push_back(attack);
  }
  return all;
}

}  // namespace oc::battery

int main(int argc, char** argv) {
  using namespace oc::battery;
  std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words[0] == "stand") return runStand({words.begin() + 1, words.end()});
  if (words.size() < 2 || (words[0] != "try" && words[0] != "outside")) {
    fputs(usage, words.size() == 1 && words[0] == "--help" ? stdout : stderr);
    return words.size() == 1 && words[0] == "--help" ? 0 : 2;
  }
  auto targets = Targets::parse(textOf(words[1]));
  if (targets.marker().empty()) {
    fprintf(stderr, "open-conduit-attack: %s has no targets\n", words[1].c_str());
    return 2;
  }
  for (size_t i = 2; i < words.size(); ++i) {
    auto equals = words[i].find('=');
    if (equals != std::string::npos) targets.set(words[i].substr(0, equals), words[i].substr(equals + 1));
  }
  signal(SIGPIPE, SIG_IGN);
  if (words[0] == "outside") inheritSomething(targets);
  return tryAll(targets);
}
