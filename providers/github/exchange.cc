#include "exchange.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <netdb.h>
#include <sodium.h>
#include <sys/socket.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

#include "base/text.h"

namespace oc::github {

namespace {

constexpr int lanes = 4;
constexpr long connectSeconds = 15;
constexpr long wholeSeconds = 90;
// An answer that trickles slower than this for so long is given up.
constexpr long leastBytesPerSecond = 32;
constexpr long slowSeconds = 30;
constexpr size_t mostHeaders = 100;
constexpr size_t mostHeader = 8u << 10;

struct Task {
  HttpRequest request;
  HttpAnswer answer;
  std::atomic<bool> dropped{false};
  const std::atomic<bool>* ending = nullptr;  // of all of them
  kj::Own<kj::CrossThreadPromiseFulfiller<void>> done;
};

std::string addressesOf(const std::string& host) {
  struct addrinfo hints {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  struct addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return "";
  KJ_DEFER(freeaddrinfo(found));
  std::string result;
  for (auto* at = found; at != nullptr; at = at->ai_next) {
    char text[INET6_ADDRSTRLEN];
    const void* bytes = at->ai_family == AF_INET6
                            ? static_cast<const void*>(&reinterpret_cast<struct sockaddr_in6*>(at->ai_addr)->sin6_addr)
                            : static_cast<const void*>(&reinterpret_cast<struct sockaddr_in*>(at->ai_addr)->sin_addr);
    if (at->ai_family != AF_INET && at->ai_family != AF_INET6) continue;
    if (inet_ntop(at->ai_family, bytes, text, sizeof(text)) == nullptr) continue;
    result += (result.empty() ? "" : ",") + (at->ai_family == AF_INET6 ? fmt::format("[{}]", text) : std::string(text));
  }
  return result;
}

size_t takeBody(char* data, size_t, size_t size, void* to) {
  auto& body = static_cast<Task*>(to)->answer.body;
  if (body.size() + size > mostBody) return 0;
  body.append(data, size);
  return size;
}

size_t takeHeader(char* data, size_t, size_t size, void* to) {
  auto& headers = static_cast<Task*>(to)->answer.headers;
  std::string_view line(data, size);
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
  if (line.starts_with("HTTP/")) headers.clear();  // after a 100, or a proxy's own answer
  auto colon = line.find(':');
  if (colon == std::string_view::npos) return size;
  if (headers.size() >= mostHeaders || line.size() > mostHeader) return 0;
  std::string name(line.substr(0, colon));
  for (auto& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  auto value = line.substr(colon + 1);
  while (value.starts_with(' ')) value.remove_prefix(1);
  headers[name] = std::string(value);
  return size;
}

int giveUpDropped(void* from, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  auto& task = *static_cast<Task*>(from);
  return task.dropped || *task.ending ? 1 : 0;
}

// Certificates, names and connections say so before anything is sent.
bool neverSent(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE: return true;
    default: return false;
  }
}

class List {
 public:
  ~List() {
    for (auto* at = first; at != nullptr; at = at->next) sodium_memzero(at->data, strlen(at->data));
    curl_slist_free_all(first);
  }
  void add(const std::string& line) {
    auto* grown = curl_slist_append(first, line.c_str());
    KJ_REQUIRE(grown != nullptr, "out of memory");
    first = grown;
  }
  curl_slist* get() { return first; }

 private:
  curl_slist* first = nullptr;
};

}  // namespace

struct Exchanges::Shared {
  Job job;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::shared_ptr<Task>> waiting;
  std::atomic<bool> ending{false};
  std::vector<std::thread> threads;

  void work();
  void perform(CURL* curl, Task& task);
};

void Exchanges::Shared::perform(CURL* curl, Task& task) {
  auto& request = task.request;
  auto& answer = task.answer;
  curl_easy_reset(curl);
  auto set = [curl](CURLoption option, auto value) { curl_easy_setopt(curl, option, value); };
  set(CURLOPT_URL, request.url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "https");
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  set(CURLOPT_SSL_VERIFYPEER, 1L);
  set(CURLOPT_SSL_VERIFYHOST, 2L);
  if (!job.caFile.empty()) set(CURLOPT_CAINFO, job.caFile.c_str());
  // On a connection from before, libcurl sends a request once more when it was closed without an answer.
  set(CURLOPT_FRESH_CONNECT, request.once ? 1L : 0L);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_CONNECTTIMEOUT, connectSeconds);
  set(CURLOPT_TIMEOUT, wholeSeconds);
  set(CURLOPT_LOW_SPEED_LIMIT, leastBytesPerSecond);
  set(CURLOPT_LOW_SPEED_TIME, slowSeconds);
  set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  set(CURLOPT_WRITEFUNCTION, takeBody);
  set(CURLOPT_WRITEDATA, &task);
  set(CURLOPT_HEADERFUNCTION, takeHeader);
  set(CURLOPT_HEADERDATA, &task);
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_XFERINFOFUNCTION, giveUpDropped);
  set(CURLOPT_XFERINFODATA, &task);

  // Resolved here: libcurl's own resolver wants a socket pair, which is denied.
  List resolved;
  for (auto* one : {&job.apiHost, job.proxy ? &*job.proxy : nullptr}) {
    if (one == nullptr) continue;
    auto addresses = addressesOf(one->host);
    if (!addresses.empty()) {
      resolved.add(fmt::format("{}:{}:{}", one->host, one->port, addresses));
    } else if (one != &job.apiHost || !job.proxy) {
      answer.trouble = fmt::format("the name {} could not be resolved", one->host);
      return;
    }
  }
  set(CURLOPT_RESOLVE, resolved.get());

  List headers;
  for (auto& header : request.headers) headers.add(header);
  if (request.authorization.size() != 0) {
    auto line = "Authorization: " + std::string(request.authorization.view());
    headers.add(line);
    sodium_memzero(line.data(), line.size());
  }
  if (!request.body.empty()) {
    set(CURLOPT_POSTFIELDS, request.body.c_str());
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    headers.add("Content-Type: application/json");
    headers.add("Expect:");
  }
  set(CURLOPT_HTTPHEADER, headers.get());

  char words[CURL_ERROR_SIZE] = {};
  set(CURLOPT_ERRORBUFFER, words);
  auto code = curl_easy_perform(curl);
  answer.sent = code == CURLE_OK || !neverSent(code);
  if (code == CURLE_OK) {
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    answer.status = static_cast<int>(status);
  } else {
    answer.status = 0;
    bool tooLarge = code == CURLE_WRITE_ERROR;
    answer.trouble = tooLarge ? "its answer is larger than an answer can be"
                              : shortened(printable(words[0] != '\0' ? words : curl_easy_strerror(code)), 512);
    answer.body.clear();
  }
  set(CURLOPT_HTTPHEADER, static_cast<curl_slist*>(nullptr));
  set(CURLOPT_RESOLVE, static_cast<curl_slist*>(nullptr));
}

void Exchanges::Shared::work() {
  CURL* curl = curl_easy_init();
  KJ_DEFER(curl_easy_cleanup(curl));
  for (;;) {
    std::shared_ptr<Task> task;
    {
      std::unique_lock<std::mutex> lock(mutex);
      changed.wait(lock, [this]() { return ending || !waiting.empty(); });
      if (ending) return;
      task = waiting.front();
      waiting.pop_front();
    }
    if (!task->dropped) perform(curl, *task);
    task->request.authorization = SecretBytes();
    task->done->fulfill();
  }
}

Exchanges::Exchanges(const Job& job) : shared(std::make_shared<Shared>()) {
  KJ_REQUIRE(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK, "libcurl could not be initialized");
  shared->job = job;
  for (int i = 0; i < lanes; ++i) shared->threads.emplace_back([shared = shared.get()]() { shared->work(); });
}

Exchanges::~Exchanges() noexcept(false) {
  {
    std::lock_guard<std::mutex> lock(shared->mutex);
    shared->ending = true;
    for (auto& task : shared->waiting) task->dropped = true;
  }
  shared->changed.notify_all();
  for (auto& thread : shared->threads) thread.join();
}

kj::Promise<HttpAnswer> Exchanges::run(HttpRequest request) {
  auto task = std::make_shared<Task>();
  task->request = std::move(request);
  task->ending = &shared->ending;
  auto pair = kj::newPromiseAndCrossThreadFulfiller<void>();
  task->done = kj::mv(pair.fulfiller);
  {
    std::lock_guard<std::mutex> lock(shared->mutex);
    shared->waiting.push_back(task);
  }
  shared->changed.notify_one();
  auto drop = kj::defer([task]() { task->dropped = true; });
  return pair.promise.then([task]() { return std::move(task->answer); }).attach(kj::mv(drop));
}

}  // namespace oc::github
