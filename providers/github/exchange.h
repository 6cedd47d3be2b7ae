// One HTTPS exchange after another, by libcurl, on threads of their own: KJ's loop waits for none of them.
#pragma once

#include <kj/async-io.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/crypto.h"
#include "job.h"

namespace oc::github {

struct HttpRequest {
  std::string method = "GET";
  std::string url;                   // beneath the job's API, or as GitHub gave it: the same scheme, host and port
  SecretBytes authorization;         // the header's value; empty: none
  std::vector<std::string> headers;  // "name: value"
  std::string body;
  bool once = false;  // it must not be sent a second time, whatever happens to the first
};

struct HttpAnswer {
  int status = 0;                              // 0: there was no answer, and `trouble` says why
  std::map<std::string, std::string> headers;  // names in lower case; at most 100 of at most 8 KiB
  std::string body;                            // at most `mostBody`
  std::string trouble;
  bool sent = false;  // the request may have been carried out

  std::string header(const std::string& name) const {
    auto found = headers.find(name);
    return found == headers.end() ? std::string() : found->second;
  }
};

// What is read of an answer; GitHub's largest pages have some 7 MiB.
constexpr size_t mostBody = 16u << 20;

class Exchanges {
 public:
  explicit Exchanges(const Job& job);
  ~Exchanges() noexcept(false);

  // Never breaks. One that is dropped is given up.
  kj::Promise<HttpAnswer> run(HttpRequest request);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared;
};

}  // namespace oc::github
