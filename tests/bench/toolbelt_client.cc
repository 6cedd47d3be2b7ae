// Calls a run's toolbelt over and over, and says how long that takes.
//
//   toolbelt-bench-client ROUNDS [TOGETHER]     by OPEN_CONDUIT_TOOLBELT and its token; TOGETHER calls at a time, 1
//   unless said
#include <stdio.h>
#include <stdlib.h>

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

}  // namespace

int main(int argc, char** argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 5000;
  int together = argc > 2 ? atoi(argv[2]) : 1;
  // Each connection has one call at a time; sixteen is what a run may have.
  std::vector<std::unique_ptr<oc::client::ToolbeltSocket>> sockets;
  for (int i = 0; i < std::min(together, 16); ++i)
    sockets.push_back(std::make_unique<oc::client::ToolbeltSocket>("mcp"));
  std::vector<double> micros;
  auto begin = Clock::now();
  for (int i = 0; i < rounds; ++i) {
    auto start = Clock::now();
    for (auto& socket : sockets) socket->writeLine(call(i));
    for (auto& socket : sockets) socket->readLine();
    micros.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  auto seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  std::sort(micros.begin(), micros.end());
  printf("rounds %d together %zu p50_us %.0f p95_us %.0f p99_us %.0f calls_per_second %.0f\n", rounds, sockets.size(),
         micros[rounds / 2], micros[rounds * 95 / 100], micros[rounds * 99 / 100],
         double(rounds) * double(sockets.size()) / seconds);
  return 0;
}
