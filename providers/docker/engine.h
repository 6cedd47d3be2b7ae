// One connection to the Engine, handed in by the daemon: HTTP/1.1 and JSON, both bounded. Calls on one connection come
// one after the other.
#pragma once

#include <kj/async-io.h>
#include <kj/compat/http.h>

#include <string>

#include "base/json.h"

namespace oc::docker {

// The first API that has all that we use; Engine 28.
constexpr int leastApiMajor = 1, leastApiMinor = 48;

struct Answer {
  unsigned status = 0;
  Json body;            // discarded when it was none, or deeper than parseJson allows
  std::string message;  // of a failure: the Engine's own words, printable and cut

  bool good() const { return status >= 200 && status < 300; }
};

struct WaitingAnswer {
  kj::Promise<Answer> answer;
};

// Characters that a path or a query may not have are encoded.
std::string encoded(const std::string& text);
// A query "filters=…" for things that have all of these labels, each "name=value".
std::string labelFilter(const std::vector<std::string>& labels);

class Engine {
 public:
  explicit Engine(kj::Own<kj::AsyncIoStream> stream);
  ~Engine() noexcept(false);
  KJ_DISALLOW_COPY(Engine);

  // `path` begins behind the API's version. Breaks when the connection is gone, or the answer is larger than 4 MiB.
  kj::Promise<Answer> get(const std::string& path);
  kj::Promise<Answer> post(const std::string& path, const Json& body = nullptr);
  kj::Promise<Answer> remove(const std::string& path);
  // The one call without a version. Good answers of these two are remembered: an Engine that has become another one was
  // restarted, and no connection outlives that.
  kj::Promise<Answer> version();
  kj::Promise<Answer> info();

  // A call that is answered long after it has been taken up: resolves when the Engine has done that.
  kj::Promise<WaitingAnswer> postAndWait(const std::string& path);
  // Like post, for an answer of many lines, each a JSON value of at most 64 KiB: `onLine` gets them as they come. The
  // Answer's body is empty.
  kj::Promise<Answer> postForLines(const std::string& path, kj::Function<void(const Json&)> onLine);

 private:
  struct Impl;
  kj::Own<Impl> impl;
};

}  // namespace oc::docker
