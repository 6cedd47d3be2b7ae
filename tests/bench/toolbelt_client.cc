// Calls a run's toolbelt over and over, and says how long that takes.
//
//   toolbelt-bench-client ROUNDS [TOGETHER]     by OPEN_CONDUIT_TOOLBELT and its token; TOGETHER calls at a time, 1
//   unless said
//   toolbelt-bench-client --bare [ROUNDS]       a byte through a process to another one and back the same way, over
//   Unix sockets: what is left of such a call when nothing is done
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "gateway/client/toolbelt_socket.h"

namespace {

using Clock = std::chrono::steady_clock;

std::string call(int id) {
  return R"({"jsonrpc":"2.0","id":)" + std::to_string(id) +
         R"(,"method":"tools/call","params":{"name":"conduit.work.get","arguments":{},"_meta":{)"
         R"("io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}})";
}

struct Pair {
  int ours, theirs;
  Pair() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0) abort();
    ours = ends[0], theirs = ends[1];
  }
};

// Answers each byte from `from`, having asked `by` for it where there is one, until `from` ends.
void answerBytes(int from, int by) {
  for (char byte; read(from, &byte, 1) == 1;) {
    if (by >= 0 && (write(by, &byte, 1) != 1 || read(by, &byte, 1) != 1)) return;
    if (write(from, &byte, 1) != 1) return;
  }
}

pid_t forkToAnswer(int from, int by, const Pair& other) {
  pid_t pid = fork();
  if (pid != 0) return pid;
  close(other.ours);
  answerBytes(from, by);
  _exit(0);
}

int bare(int rounds) {
  Pair far;
  pid_t last = forkToAnswer(far.theirs, -1, far);
  close(far.theirs);
  Pair near;  // which the last one must not hold open
  pid_t middle = forkToAnswer(near.theirs, far.ours, near);
  close(near.theirs);
  close(far.ours);
  std::vector<double> micros;
  char byte = 0;
  for (int i = 0; i < rounds; ++i) {
    auto start = Clock::now();
    if (write(near.ours, &byte, 1) != 1 || read(near.ours, &byte, 1) != 1) return 1;
    micros.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  close(near.ours);
  waitpid(middle, nullptr, 0);
  waitpid(last, nullptr, 0);
  std::sort(micros.begin(), micros.end());
  printf("rounds %d p50_us %.0f p95_us %.0f\n", rounds, micros[rounds / 2], micros[rounds * 95 / 100]);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "--bare") == 0) return bare(argc > 2 ? atoi(argv[2]) : 5000);
  int rounds = argc > 1 ? atoi(argv[1]) : 5000;
  int together = argc > 2 ? atoi(argv[2]) : 1;
  // Sixteen connections are what a run may have; more calls than that go four at a time on each.
  int connections = std::min(together, 16), onEach = together / connections;
  std::vector<std::unique_ptr<oc::client::ToolbeltSocket>> sockets;
  for (int i = 0; i < connections; ++i) sockets.push_back(std::make_unique<oc::client::ToolbeltSocket>("mcp"));
  std::vector<double> micros;
  auto begin = Clock::now();
  for (int i = 0; i < rounds; ++i) {
    auto start = Clock::now();
    for (auto& socket : sockets) {
      for (int k = 0; k < onEach; ++k) socket->writeLine(call(i * onEach + k));
    }
    for (auto& socket : sockets) {
      for (int k = 0; k < onEach; ++k) socket->readLine();
    }
    micros.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  auto seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  std::sort(micros.begin(), micros.end());
  printf("rounds %d together %d p50_us %.0f p95_us %.0f p99_us %.0f calls_per_second %.0f\n", rounds,
         connections * onEach, micros[rounds / 2], micros[rounds * 95 / 100], micros[rounds * 99 / 100],
         double(rounds) * connections * onEach / seconds);
  return 0;
}
