// A provider that was taken over by what it parsed, under each provider's profile: what it tries and what stops it. See
// tests/attack. The tables are printed, and docs/security.md has them.
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <set>

#include "base/fd.h"
#include "daemon/supervisor/supervisor.h"
#include "tests/attack/attacks.h"
#include "tests/catch.h"
#include "tests/ordinary_user.h"

namespace oc {
namespace {

using attack::Targets;
using Names = std::set<std::string>;
using Results = std::map<std::string, int>;  // by attack: 0 where it got through

int listenOn(const std::string& name) {
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, name.data(), name.size());
  auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  REQUIRE(bind(fd, reinterpret_cast<struct sockaddr*>(&address), length) == 0);
  REQUIRE(listen(fd, 1000) == 0);
  return fd;
}

int portOf(int type, kj::AutoCloseFd& keep) {
  int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
  keep = kj::AutoCloseFd(fd);
  struct sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(bind(fd, reinterpret_cast<struct sockaddr*>(&address), sizeof(address)) == 0);
  if (type == SOCK_STREAM) REQUIRE(listen(fd, 1000) == 0);
  socklen_t length = sizeof(address);
  REQUIRE(getsockname(fd, reinterpret_cast<struct sockaddr*>(&address), &length) == 0);
  return ntohs(address.sin_port);
}

// A mistake of the daemon's: a directory, among the descriptors that it hands over.
constexpr int leakedDescriptor = 40;

// What there is to attack, and a process that plays the daemon.
class World {
 public:
  World() {
    test::becomeOrdinaryUser();
    char path[] = "/tmp/oc-att-XXXXXX";
    REQUIRE(mkdtemp(path) != nullptr);
    root = path;
    for (auto name : {"/state", "/home", "/programs", "/scratch"}) REQUIRE(mkdir((root + name).c_str(), 0700) == 0);
    targets.secretFile = root + "/state/secret";
    targets.homeFile = root + "/home/notes";
    writeFileAtomically(targets.secretFile, "secret");
    writeFileAtomically(targets.homeFile, "notes");
    targets.socket = root + "/home/socket";
    targets.hiddenSocket = root + "/state/socket";
    targets.abstractSocket = "oc-att-" + std::to_string(getpid());
    sockets[0] = kj::AutoCloseFd(listenOn(targets.socket));
    sockets[1] = kj::AutoCloseFd(listenOn(targets.hiddenSocket));
    sockets[2] = kj::AutoCloseFd(listenOn(std::string(1, '\0') + targets.abstractSocket));
    targets.tcpPort = portOf(SOCK_STREAM, sockets[3]);
    targets.udpPort = portOf(SOCK_DGRAM, sockets[4]);
    targets.sharedMemory = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
    REQUIRE(targets.sharedMemory >= 0);
    makeCheckout();
  }
  ~World() {
    endDaemon();
    shmctl(targets.sharedMemory, IPC_RMID, nullptr);
    removeTree(root);
  }

  // Dumpable or not, and open to tracers, so that a machine's Yama does not do our work.
  void startDaemon(bool dumpable) {
    endDaemon();
    auto ready = makePipe();
    targets.daemon = fork();
    if (targets.daemon == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
      prctl(PR_SET_DUMPABLE, dumpable ? 1 : 0);
      if (::write(ready.second.get(), "r", 1) != 1) _exit(1);
      for (;;) pause();
    }
    char byte;
    REQUIRE(::read(ready.first.get(), &byte, 1) == 1);
  }
  void endDaemon() {
    if (targets.daemon == 0) return;
    kill(targets.daemon, SIGKILL);
    waitpid(targets.daemon, nullptr, 0);
    targets.daemon = 0;
  }

  // As the daemon starts a provider of that name.
  Results underLockdown(const std::string& profile, const std::vector<std::string>& job) {
    startDaemon(false);
    auto link = root + "/programs/open-conduit-" + profile;
    unlink(link.c_str());
    REQUIRE(symlink(attacker().c_str(), link.c_str()) == 0);
    auto io = kj::setupAsyncIo();
    supervisor::Supervisor supervisor(io, root + "/programs");
    supervisor.setHidden({root + "/state"});
    auto pipe = makePipe();
    auto directory = openFile(scratch(), O_RDONLY | O_DIRECTORY);
    supervisor::LaunchSpec spec;
    spec.provider = profile;
    spec.job = orderFor(profile, job);
    spec.descriptors = {{pipe.second.get(), 4}, {directory.get(), leakedDescriptor}};
    auto instance = supervisor.start(std::move(spec)).wait(io.waitScope);
    pipe.second = nullptr;
    instance = nullptr;
    return read(pipe.first.get());
  }

  // With these measures only; "not dumpable" is the daemon's.
  Results with(const Names& measures, const std::string& profile, const std::vector<std::string>& job) {
    startDaemon(measures.count("not dumpable") == 0);
    auto pipe = makePipe();
    auto directory = openFile(scratch(), O_RDONLY | O_DIRECTORY);
    SpawnSpec spec;
    spec.program = attacker();
    for (auto& measure : measures) spec.arguments.insert(spec.arguments.end(), {"--with", measure});
    spec.arguments.insert(spec.arguments.end(), {"--hide", root + "/state", "--"});
    for (auto& word : orderFor(profile, job)) spec.arguments.push_back(word);
    spec.environment = {{"PATH", "/usr/bin:/bin"}, {"ASAN_OPTIONS", "detect_leaks=0"}};
    spec.descriptors = {{STDERR_FILENO, STDERR_FILENO}, {pipe.second.get(), 4}, {directory.get(), leakedDescriptor}};
    spec.noNewPrivs = false;
    auto spawned = spawn(spec);
    pipe.second = nullptr;
    auto results = read(pipe.first.get());
    int status;
    waitpid(spawned.pid, &status, 0);
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }  // the one that a pid namespace made ours
    return results;
  }

  std::string checkout() const { return root + "/checkout"; }
  std::string scratch() const { return root + "/scratch"; }

 private:
  static std::string attacker() { return std::string(getenv("OPEN_CONDUIT_PROGRAMS")) + "/tests/attacker"; }

  void makeCheckout() {
    auto script = "git init -q '" + checkout() + "' && cd '" + checkout() +
                  "' && git -c user.name=o -c user.email=o@example.org commit -q --allow-empty -m first";
    REQUIRE(system(script.c_str()) == 0);
  }

  std::vector<std::string> orderFor(const std::string& profile, const std::vector<std::string>& job) const {
    std::vector<std::string> words = {profile};
    for (auto& word : attack::toWords(targets)) words.push_back(word);
    words.push_back("--");
    words.insert(words.end(), job.begin(), job.end());
    return words;
  }

  static Results read(int fd) {
    auto text = readAll(fd, 1 << 20);
    Results results;
    for (size_t at = 0; at < text.size();) {
      auto tab = text.find('\t', at), end = text.find('\n', at);
      REQUIRE(tab < end);
      results[text.substr(tab + 1, end - tab - 1)] = std::stoi(text.substr(at, tab - at));
      at = end + 1;
    }
    REQUIRE(results.size() == attack::allAttacks().size());
    return results;
  }

  std::string root;
  Targets targets;
  kj::AutoCloseFd sockets[5];
};

Names through(const Results& results) {
  Names names;
  for (auto& [name, code] : results) {
    if (code == 0) names.insert(name);
  }
  return names;
}

struct Case {
  std::string title, profile;
  std::vector<std::string> job;
  Names measures;  // those of the profile, each of which has to stop something by itself
  Names open;      // what a provider of this kind may do: its work needs it, or nothing on Linux takes it away
};

const Names spaces = {"mount namespace", "pid namespace", "network namespace", "ipc namespace"};

Names operator+(Names a, const Names& b) {
  a.insert(b.begin(), b.end());
  return a;
}

std::vector<Case> cases(const World& world) {
  Names common = {"not dumpable", "Landlock scopes", "seccomp", "limits", "descriptors closed"};
  Names git = common + spaces + Names{"Landlock files"};
  // Without a sandbox an agent is the operator, and so is its parent: the daemon's own process is out of reach, no
  // more.
  Names asOperator = {"prlimit the daemon",
                      "setpriority of the daemon",
                      "sched_setaffinity of the daemon",
                      "sched_setscheduler of the daemon",
                      "read the state",
                      "stat the state",
                      "chmod the state",
                      "connect to a socket in the state"};
  Names ofAgents = {"read the operator's files",
                    "write the operator's files",
                    "make a file beside them",
                    "connect to a path socket",
                    "send from a datagram pair",
                    "TCP to loopback",
                    "UDP to loopback",
                    "netlink",
                    "a user namespace of its own",
                    "mount over /tmp",
                    "run a program",
                    "memory that is written and run",
                    "2000 descriptors",
                    "16 GiB of memory",
                    "1500 processes"};
  return {
      {"run", "run", {}, git + Names{"MDWE"}, {}},
      {"docker", "docker", {}, git + Names{"MDWE"}, {}},
      {"keyring", "keyring", {}, git + Names{"MDWE"}, {}},
      {"git inspect",
       "git",
       {"inspect", "--checkout", world.checkout()},
       git,
       {"run a program", "memory that is written and run", "16 GiB of memory"}},
      {"git receive",
       "git",
       {"receive", "--checkout", world.checkout()},
       git,
       {"run a program", "memory that is written and run"}},
      {"git scan", "git", {"scan", "--workspace", world.checkout()}, git, {"memory that is written and run"}},
      // It has the network: by UDP to anybody, by TCP to the API's port and name servers alone.
      {"github",
       "github",
       {"connection", "--api", "https://localhost"},
       common + Names{"mount namespace", "pid namespace", "ipc namespace", "Landlock files", "MDWE"},
       {"UDP to loopback", "netlink"}},
      {"github webhook", "github", {"webhook"}, git + Names{"MDWE"}, {}},
      {"srt",
       "srt",
       {"--scratch", world.scratch()},
       common + Names{"mount namespace", "pid namespace", "ipc namespace"},
       ofAgents},
      {"host", "host", {}, common, asOperator + ofAgents + Names{"attach System V shared memory"}},
  };
}

void printRow(const std::string& first, const std::vector<std::string>& cells) {
  printf("| %-38s |", first.c_str());
  for (auto& cell : cells) printf(" %s |", cell.c_str());
  printf("\n");
}

}  // namespace

TEST_CASE("G3 what a compromised provider tries, each profile stops or is meant to allow") {
  World world;
  std::vector<std::string> titles;
  std::map<std::string, std::vector<std::string>> rows;
  for (auto& one : cases(world)) {
    auto results = world.underLockdown(one.profile, one.job);
    titles.push_back(one.title);
    for (auto& [name, code] : results) {
      rows[name].push_back(code == 0 ? "open" : code < 0 ? "held" : strerrorname_np(code));
    }
    INFO(one.title);
    CHECK(through(results) == one.open);
  }
  printRow("attack", titles);
  for (auto& each : attack::allAttacks()) printRow(each.name, rows[each.name]);
}

TEST_CASE("G3 without measures every attack gets through, and each measure stops one by itself") {
  World world;
  std::map<std::string, Names> stoppedBy;
  for (auto& one : cases(world)) {
    INFO(one.title);
    auto bare = world.with({}, one.profile, one.job);
    for (auto& [name, code] : bare) {
      INFO(name << " without measures");
      CHECK(code == 0);
    }
    for (auto& measure : one.measures) {
      int stopped = 0;
      for (auto& [name, code] : world.with({measure}, one.profile, one.job)) {
        if (code == 0 || bare[name] != 0) continue;
        ++stopped;
        stoppedBy[name].insert(measure);
      }
      INFO(measure << " alone");
      CHECK(stopped > 0);
    }
  }
  for (auto& each : attack::allAttacks()) {
    std::string measures;
    for (auto& measure : stoppedBy[each.name]) measures += (measures.empty() ? "" : ", ") + measure;
    printRow(each.name, {measures.empty() ? "–" : measures});
  }
}

}  // namespace oc
