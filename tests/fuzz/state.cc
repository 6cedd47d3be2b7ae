// A damaged database file is opened or refused, and what was opened can be read.
#include <kj/common.h>
#include <kj/exception.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "daemon/state/store.h"

namespace {

// The folder that the script made for this.
std::string folder() {
  const char* named = getenv("FUZZ_STATE");
  return named != nullptr ? named : "/tmp";
}

void put(const std::string& path, const uint8_t* data, size_t size) {
  std::ofstream(path, std::ios::binary | std::ios::trunc).write(reinterpret_cast<const char*>(data), size);
}

}  // namespace

// The first byte says how much of the rest, in eighths, is a write-ahead log beside the database.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace oc;
  if (size < 1) return 0;
  auto path = folder() + "/" + std::to_string(getpid()) + ".db";
  size_t log = (size - 1) * (data[0] % 8) / 8;
  put(path, data + 1, size - 1 - log);
  unlink((path + "-shm").c_str());
  unlink((path + "-wal").c_str());
  if (log > 0) put(path + "-wal", data + size - log, log);
  auto opened = state::Store::open(path);
  if (!opened) {
    if (opened.refusal().reason.empty() || opened.refusal().what.find('\x1b') != std::string::npos) abort();
    return 0;
  }
  auto store = std::move(opened).value();
  // A row that can't be read is an exception that names it, and no more.
  kj::runCatchingExceptions([&]() {
    for (auto& run : store->unendedRuns()) {
      store->work(run.work);
      store->plan(run.id);
      store->runKey(run.id);
    }
  });
  return 0;
}
