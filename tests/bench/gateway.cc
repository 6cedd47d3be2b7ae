// The gateway beside squid and tinyproxy, in one network namespace, to one server in another. Started by
// tests/bench/gateway.
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>

#include "tests/gateway_world.h"

using namespace oc::test;
using Clock = std::chrono::steady_clock;

namespace {

constexpr const char* server = "198.51.100.10";
std::atomic<bool> closing{false};

struct Way {
  std::string name;
  std::string path = {};  // a Unix socket, or
  uint16_t port = 0;      // a port of the loopback, or the server itself where there is neither
  pid_t pid = 0;
};

int openTo(const Way& way, uint16_t serverPort) {
  sockaddr_storage to{};
  socklen_t size;
  if (!way.path.empty()) {
    auto& address = reinterpret_cast<sockaddr_un&>(to);
    address.sun_family = AF_UNIX;
    strncpy(address.sun_path, way.path.c_str(), sizeof(address.sun_path) - 1);
    size = sizeof(address);
  } else {
    auto& address = reinterpret_cast<sockaddr_in&>(to);
    address.sin_family = AF_INET;
    address.sin_port = htons(way.port ? way.port : serverPort);
    inet_pton(AF_INET, way.port ? "127.0.0.1" : server, &address.sin_addr);
    size = sizeof(address);
  }
  int fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  timeval limit{20, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  if (fd < 0 || connect(fd, reinterpret_cast<sockaddr*>(&to), size) < 0) {
    if (fd >= 0) close(fd);
    return -1;
  }
  return fd;
}

// A tunnel to the server's port; -1 when there is none.
int tunnelTo(const Way& way, uint16_t port) {
  int fd = openTo(way, port);
  if (fd < 0 || (way.path.empty() && way.port == 0)) return fd;
  auto head = fmt::format("CONNECT {}:{} HTTP/1.1\r\nHost: {}:{}\r\n\r\n", server, port, server, port);
  char answer[4096];
  size_t at = 0;
  if (send(fd, head.data(), head.size(), MSG_NOSIGNAL) > 0) {
    for (ssize_t n; at < sizeof(answer) && (n = recv(fd, answer + at, 1, 0)) == 1;) {
      at += n;
      if (std::string_view(answer, at).ends_with("\r\n\r\n")) break;
    }
  }
  if (std::string_view(answer, at).substr(0, 12).ends_with(" 200")) return fd;
  close(fd);
  return -1;
}

double microseconds(const Way& way, int rounds, std::vector<double>& all) {
  for (int i = 0; i < rounds; ++i) {
    auto begin = Clock::now();
    int fd = tunnelTo(way, 443);
    all.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    KJ_REQUIRE(fd >= 0, "no tunnel", way.name.c_str());
    close(fd);
  }
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

double gigabits(const Way& way, size_t bytes) {
  int fd = tunnelTo(way, 80);
  KJ_REQUIRE(fd >= 0, "no tunnel", way.name.c_str());
  static std::vector<char> buffer(1 << 20);
  auto begin = Clock::now();
  size_t sum = 0;
  for (ssize_t n; sum < bytes && (n = recv(fd, buffer.data(), buffer.size(), 0)) > 0;) sum += n;
  double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  close(fd);
  return sum * 8 / seconds / 1e9;
}

size_t residentKilobytes(pid_t pid) {
  auto status = oc::readFile(fmt::format("/proc/{}/status", pid), 1 << 16);
  auto at = status.find("VmRSS:");
  return at == std::string::npos ? 0 : std::stoul(status.substr(at + 6));
}

pid_t start(const std::vector<std::string>& words, int channel = -1) {
  pid_t pid;
  KJ_SYSCALL(pid = fork());
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (channel >= 0) dup2(channel, 0), dup2(channel, 1);
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  _exit(99);
}

// In the gateway's namespace.
struct Stage {
  explicit Stage(const std::string& directory) : directory(directory) {
    auto programs = std::string(getenv("OPEN_CONDUIT_PROGRAMS"));
    auto channel = oc::makeSocketPair();
    gateway.pid = start({programs + "/open-conduit-gateway"}, channel.second);
    channel.second = nullptr;
    connection = kj::heap<oc::Connection>(
        io.lowLevelProvider->wrapSocketFd(kj::mv(channel.first), kj::LowLevelAsyncIoProvider::ALREADY_CLOEXEC),
        capnp::rpc::twoparty::Side::CLIENT, kj::heap<KeepingHost>(told, none), oc::RpcLimits(), "the gateway");
    client = connection->bootstrapOfPeer().castAs<oc::proto::Gateway>();
    auto request = KJ_ASSERT_NONNULL(client).configureRequest();
    auto policy = request.initPolicy();
    policy.initAllow(1)[0].setPattern(server);
    policy.setSocketDirectory(directory.c_str());
    request.setHost(kj::heap<KeepingHost>(told, none));
    request.send().wait(io.waitScope);
    gateway.path = directory + "/proxy.sock";
    forwarded.pid = start({"unshare", "--pid", "--fork", "--kill-child", programs + "/open-conduit-toolbelt", "enter",
                           "--port", "3128:" + directory + "/proxy.port", "--", "sleep", "100000"});
    squid.pid = start({"squid", "-N", "-f", directory + "/squid.conf"});
    tinyproxy.pid = start({"tinyproxy", "-d", "-c", directory + "/tinyproxy.conf"});
    for (auto way : {&forwarded, &squid, &tinyproxy}) {
      int fd = -1;
      for (int i = 0; i < 300 && (fd = tunnelTo(*way, 443)) < 0; ++i) usleep(100'000);
      KJ_REQUIRE(fd >= 0, "it did not come up", way->name.c_str());
      close(fd);
    }
  }
  ~Stage() {
    for (auto way : {&gateway, &forwarded, &squid, &tinyproxy}) kill(way->pid, SIGKILL), waitpid(way->pid, nullptr, 0);
  }
  // Records are acknowledged only while this process listens. How many came since the last time.
  size_t listen() {
    KJ_ASSERT_NONNULL(client).totalsRequest().send().wait(io.waitScope);
    size_t count = told.size();
    told.clear();
    return count;
  }

  std::string directory;
  kj::AsyncIoContext io = kj::setupAsyncIo();
  std::vector<KeepingHost::Told> told;
  std::function<oc::proto::ByteSink::Client(oc::proto::ByteSink::Client)> none;
  kj::Own<oc::Connection> connection;
  kj::Maybe<oc::proto::Gateway::Client> client;
  Way direct{"direct"}, gateway{"gateway (its socket)"}, forwarded{"gateway (by loopback)", "", 3128},
      squid{"squid", "", 3130}, tinyproxy{"tinyproxy", "", 3131};
};

void measureLatency(Stage& stage) {
  printf("\nCONNECT, microseconds to the answer (p50 / p99)\n");
  std::map<std::string, std::vector<double>> all;
  std::map<std::string, double> p50;
  for (int round = 0; round < 5; ++round) {
    for (auto way : {&stage.direct, &stage.gateway, &stage.forwarded, &stage.squid, &stage.tinyproxy}) {
      p50[way->name] = microseconds(*way, 200, all[way->name]);
      stage.listen();
    }
  }
  for (auto& [name, values] : all)
    printf("  %-24s %7.0f %7.0f\n", name.c_str(), p50[name], values[values.size() * 99 / 100]);
  printf("  gateway by loopback : tinyproxy  %.2f (goal: at most 0.80)\n",
         p50[stage.forwarded.name] / p50[stage.tinyproxy.name]);
}

void measureThroughput(Stage& stage) {
  printf("\none tunnel's download, Gbit/s (best of 3)\n");
  std::map<std::string, double> best;
  for (int round = 0; round < 3; ++round) {
    for (auto way : {&stage.direct, &stage.gateway, &stage.forwarded, &stage.squid, &stage.tinyproxy}) {
      best[way->name] = std::max(best[way->name], gigabits(*way, 512u << 20));
    }
  }
  for (auto& [name, value] : best) printf("  %-24s %7.2f\n", name.c_str(), value);
  printf("  gateway by loopback : squid      %.2f (goal: at least 1.30)\n",
         best[stage.forwarded.name] / best[stage.squid.name]);
}

void measureTunnels(Stage& stage) {
  printf("\nopen tunnels, KiB resident of the gateway\n");
  std::vector<int> fds;
  // Two descriptors each in the gateway.
  rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  size_t most = std::min<size_t>(10'000, (files.rlim_cur - 300) / 2);
  for (size_t wanted : {size_t(0), size_t(100), size_t(1000), most}) {
    while (fds.size() < wanted) {
      int fd = tunnelTo(stage.gateway, 443);
      if (fd < 0) break;
      fds.push_back(fd);
    }
    printf("  %5zu  %6zu%s\n", fds.size(), residentKilobytes(stage.gateway.pid),
           fds.size() < wanted ? "  (no more were to be had)" : "");
  }
  for (int fd : fds) close(fd);
  // Until the gateway has noticed, and told.
  for (size_t told = 1; told > 0; told = stage.listen()) usleep(200'000);
}

// The requests come from threads, so that this one can take the gateway's records all the while, as the daemon does: a
// gateway whose records nobody takes accepts no further connections.
void measureGrowth(Stage& stage, size_t requests) {
  printf("\nKiB resident of the gateway after so many requests, half of them refused\n");
  std::atomic<size_t> begun{0}, ended{0};
  auto work = [&]() {
    for (size_t i; (i = begun++) < requests; ++ended) {
      int fd = tunnelTo(stage.gateway, i % 2 ? 443 : 25);
      if (fd >= 0) close(fd);
    }
  };
  std::vector<std::thread> clients;
  for (int i = 0; i < 4; ++i) clients.emplace_back(work);
  auto start = Clock::now();
  for (size_t next = requests / 10; next <= requests;) {
    stage.listen();
    usleep(1000);
    if (ended < next) continue;
    printf("  %8zu  %6zu   after %.0f s\n", next, residentKilobytes(stage.gateway.pid),
           std::chrono::duration<double>(Clock::now() - start).count());
    next += requests / 10;
  }
  for (auto& client : clients) client.join();
}

void serve(int listener, bool flood) {
  std::vector<int> held;
  for (;;) {
    int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    if (!flood) {
      if (closing)
        close(fd);
      else
        held.push_back(fd);
      continue;
    }
    std::thread([fd]() {
      std::vector<char> block(1 << 20, 'x');
      while (send(fd, block.data(), block.size(), MSG_NOSIGNAL) > 0) {
      }
      close(fd);
    }).detach();
  }
}

}  // namespace

int main(int argc, char** argv) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  std::string directory = argv[1];
  size_t requests = argc > 2 ? std::stoul(argv[2]) : 0;
  std::string only = argc > 3 ? argv[3] : "";
  rlimit files{100'000, 100'000};
  if (setrlimit(RLIMIT_NOFILE, &files) < 0) {
    KJ_SYSCALL(getrlimit(RLIMIT_NOFILE, &files));
    files.rlim_cur = files.rlim_max;
    KJ_SYSCALL(setrlimit(RLIMIT_NOFILE, &files));
  }
  signal(SIGPIPE, SIG_IGN);
  auto report = oc::makeSocketPair();
  pid_t pid;
  KJ_SYSCALL(pid = fork());
  if (pid == 0) {
    makeNetworks(report.second, directory, false);
    {
      Stage stage(directory);
      auto wanted = [&only](const char* what) { return only.empty() || only == what; };
      if (wanted("latency")) measureLatency(stage);
      if (wanted("throughput")) measureThroughput(stage);
      if (wanted("tunnels")) measureTunnels(stage);
      if (requests) measureGrowth(stage, requests);
    }
    fflush(stdout);
    _exit(0);
  }
  report.second = nullptr;
  auto listening = receiveDescriptors(report.first, 3);
  closing = requests > 0;
  std::thread(serve, listening[1].get(), true).detach();
  std::thread(serve, listening[2].get(), false).detach();
  int status = 0;
  waitpid(pid, &status, 0);
  _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}
