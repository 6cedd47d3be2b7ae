// What a sandbox refused to its agent and can tell, for the run's shim to fetch.
#pragma once

#include <kj/async.h>

#include <string>
#include <vector>

namespace oc::kit {

struct Denial {
  std::string kind;  // host, write
  std::string what;  // HOST:PORT, or a path
  std::string why;
};

class DenialList {
 public:
  // The rest of a run's denials is not kept: it may be an agent's own doing.
  static constexpr size_t most = 64;

  // One that is there already (the same kind and what) changes nothing. Texts are cut to 1024 and 256 bytes and made
  // printable.
  void add(const Denial& denial);
  const std::vector<Denial>& all() const { return denials; }
  // Resolves when there are more than `count`.
  kj::Promise<void> whenMoreThan(size_t count);

 private:
  std::vector<Denial> denials;
  std::vector<kj::Own<kj::PromiseFulfiller<void>>> waiting;
};

}  // namespace oc::kit
