// What deciding a process sandbox costs the daemon: looking through the machine's sockets, and the whole of srt's
// settings. Prints medians in milliseconds.
//
//   sandbox-bench FOLDER [SOCKETS [ROUNDS]]
//
// FOLDER is an empty one, for a run's places; SOCKETS more sockets are bound in it first.
#include <fmt/format.h>
#include <kj/debug.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <vector>

#include "base/fd.h"
#include "daemon/sandbox/hidden_sockets.h"
#include "daemon/sandbox/srt_settings.h"

namespace {

using namespace oc;

std::vector<kj::AutoCloseFd> bindSockets(const std::string& folder, unsigned count) {
  struct rlimit limit;
  KJ_SYSCALL(getrlimit(RLIMIT_NOFILE, &limit));
  limit.rlim_cur = limit.rlim_max;
  KJ_SYSCALL(setrlimit(RLIMIT_NOFILE, &limit));
  std::vector<kj::AutoCloseFd> sockets;
  for (unsigned i = 0; i < count; ++i) {
    int fd;
    KJ_SYSCALL(fd = socket(AF_UNIX, SOCK_STREAM, 0));
    kj::AutoCloseFd held(fd);
    struct sockaddr_un address {};
    address.sun_family = AF_UNIX;
    // Every tenth of a kind that is hidden.
    auto path = fmt::format("{}/{}{}", folder, i % 10 == 0 ? "S.gpg-agent." : "service-", i);
    KJ_REQUIRE(path.size() < sizeof(address.sun_path), "the folder's name is too long");
    memcpy(address.sun_path, path.c_str(), path.size());
    KJ_SYSCALL(bind(fd, reinterpret_cast<struct sockaddr*>(&address), sizeof(address)));
    sockets.push_back(kj::mv(held));
  }
  return sockets;
}

double median(unsigned rounds, const std::function<void()>& what) {
  std::vector<double> times;
  for (unsigned i = 0; i < rounds; ++i) {
    auto begin = std::chrono::steady_clock::now();
    what();
    times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) {
    fmt::print(stderr, "usage: sandbox-bench FOLDER [SOCKETS [ROUNDS]]\n");
    return 2;
  }
  std::string folder = words[1];
  unsigned sockets = count > 2 ? strtoul(words[2], nullptr, 10) : 0,
           rounds = count > 3 ? strtoul(words[3], nullptr, 10) : 51;
  Places places{folder + "/home", folder + "/config/open-conduit", folder + "/state/open-conduit",
                folder + "/data/open-conduit", folder + "/run/open-conduit"};
  sandbox::RunPlace place{
      "w-1", "r-1", places.workspace("w-1"), places.runFiles("r-1"), places.runFiles("r-1") + "/tmp", "", {}};
  for (auto& path : {places.home, places.configDir, places.stateDir, places.runtimeDir, place.workspace + "/.git/hooks",
                     place.tmp, folder + "/s"}) {
    makeDirectories(path);
  }
  std::map<std::string, std::string> environ = {{"HOME", places.home}, {"XDG_RUNTIME_DIR", folder + "/run"}};
  auto held = bindSockets(folder + "/s", sockets);
  auto list = readFile("/proc/net/unix", 16u << 20);
  size_t hidden = 0;
  auto looking = median(rounds, [&]() { hidden = sandbox::hiddenSockets(environ, places.home, {}).paths.size(); });

  sandbox::SrtParts parts{"/usr/bin/node",
                          "/usr/lib/srt/dist/cli.js",
                          "",
                          "/usr/bin/bwrap",
                          "/usr/bin/socat",
                          "/usr/bin/rg",
                          "/usr/lib/srt/x",
                          "/usr/lib/srt"};
  config::SrtPolicy policy;
  policy.write = {"{workspace}"};
  auto make = [&]() {
    auto made = sandbox::makeSrtSettings(policy, parts, places, place, environ);
    KJ_REQUIRE(made.ok(), made.refusal().what);
  };
  auto plain = median(rounds, make);
  policy.readOnly.emplace();
  auto strict = median(rounds, make);
  fmt::print(
      "{} sockets on the machine, {} paths to hide: {:.2f} ms; all of srt's settings: {:.2f} ms plain, {:.2f} ms strict\n",
      std::count(list.begin(), list.end(), '\n') - 1, hidden, looking, plain, strict);
}
