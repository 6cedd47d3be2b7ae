#include "resolver.h"

#include <ares.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace oc::gateway {

namespace {

constexpr int queryMilliseconds = 2500, queryTries = 3;
constexpr int64_t longestMemory = 60'000;
constexpr size_t mostRemembered = 512, mostAddresses = 16;

}  // namespace

// A socket of c-ares'.
struct Resolver::Server final : Watcher {
  Server(Resolver& resolver, int fd) : resolver(resolver), fd(fd) {}

  void ready(uint32_t events) override {
    // c-ares may close the socket, and this object goes then.
    bool in = events & (EPOLLIN | EPOLLHUP | EPOLLERR), out = events & (EPOLLOUT | EPOLLERR);
    resolver.process(in ? fd : ARES_SOCKET_BAD, out ? fd : ARES_SOCKET_BAD);
  }

  Resolver& resolver;
  int fd;
};

struct Resolver::Lookup {
  Resolver& resolver;
  std::string name;
};

Resolver::Question::Question(Resolver& resolver, std::string name, Done done)
    : resolver(resolver), name(std::move(name)), done(std::move(done)) {
  resolver.questions.emplace(this->name, this);
}

Resolver::Question::~Question() {
  auto [begin, end] = resolver.questions.equal_range(name);
  for (auto i = begin; i != end; ++i) {
    if (i->second != this) continue;
    resolver.questions.erase(i);
    return;
  }
}

Resolver::Resolver(Loop& loop)
    : loop(loop),
      alarm(loop, [this]() { process(ARES_SOCKET_BAD, ARES_SOCKET_BAD); }),
      telling(loop, [this]() { tell(); }) {
  ares_options options{};
  options.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES;
  options.timeout = queryMilliseconds;
  options.tries = queryTries;
  char dnsOnly[] = "b";
  options.lookups = dnsOnly;
  options.sock_state_cb_data = this;
  options.sock_state_cb = [](void* self, ares_socket_t fd, int readable, int writable) {
    static_cast<Resolver*>(self)->socketChanged(fd, readable, writable);
  };
  int wanted = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB;
  int status = ares_init_options(&channel, &options, wanted);
  if (status != ARES_SUCCESS) fail(fmt::format("c-ares can't be set up: {}", ares_strerror(status)));
}

Resolver::~Resolver() {
  questions.clear();
  ares_destroy(channel);
}

const Resolver::Answer* Resolver::remembered(const std::string& name) {
  auto found = known.find(name);
  if (found == known.end()) return nullptr;
  if (found->second.until > loop.now()) return &found->second.answer;
  known.erase(found);
  return nullptr;
}

std::unique_ptr<Resolver::Question> Resolver::ask(const std::string& name, Done done) {
  auto question = std::make_unique<Question>(*this, name, std::move(done));
  if (sent.insert(name).second) send(name);
  return question;
}

void Resolver::send(const std::string& name) {
  ares_addrinfo_hints hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  // c-ares would connect sockets to find the order; we have ours.
  hints.ai_flags = ARES_AI_NOSORT;
  auto callback = [](void* argument, int status, int, ares_addrinfo* found) {
    std::unique_ptr<Lookup> lookup(static_cast<Lookup*>(argument));
    if (status == ARES_EDESTRUCTION) return;
    Answer answer;
    int64_t seconds = longestMemory / 1000;
    for (auto node = found ? found->nodes : nullptr; node && answer.addresses.size() < mostAddresses;
         node = node->ai_next) {
      if (auto address = addressOf(node->ai_addr)) answer.addresses.push_back(*address);
      seconds = std::min<int64_t>(seconds, node->ai_ttl);
    }
    if (found) ares_freeaddrinfo(found);
    if (answer.addresses.empty()) {
      answer.noSuchName = status == ARES_ENOTFOUND || status == ARES_ENODATA || status == ARES_SUCCESS;
      answer.error = status == ARES_SUCCESS ? "it has no address" : ares_strerror(status);
      seconds = 0;
    }
    lookup->resolver.answered(lookup->name, answer, seconds * 1000);
  };
  ares_getaddrinfo(channel, name.c_str(), nullptr, &hints, callback, new Lookup{*this, name});
  setAlarm();
}

// Within c-ares: nobody is told before the loop has control again.
void Resolver::answered(const std::string& name, const Answer& answer, int64_t milliseconds) {
  if (known.size() >= mostRemembered) known.clear();
  if (milliseconds > 0) known[name] = {answer, loop.now() + milliseconds};
  sent.erase(name);
  done.emplace_back(name, answer);
  telling.start(0);
}

void Resolver::tell() {
  std::vector<std::pair<std::string, Answer>> answers;
  answers.swap(done);
  for (auto& [name, answer] : answers) {
    // Each that is told may end others, or ask anew.
    std::vector<Question*> asked;
    auto [begin, end] = questions.equal_range(name);
    for (auto i = begin; i != end; ++i) asked.push_back(i->second);
    for (auto question : asked) {
      auto [from, to] = questions.equal_range(name);
      auto entry = std::find_if(from, to, [&](auto& each) { return each.second == question; });
      if (entry == to) continue;
      // It may stay for as long as its host is dialed, and what comes for the same name then is not for it.
      questions.erase(entry);
      auto call = std::move(question->done);
      call(answer);
    }
  }
}

void Resolver::setAlarm() {
  timeval longest{60, 0}, result;
  auto next = ares_timeout(channel, &longest, &result);
  if (sent.empty()) return alarm.stop();
  alarm.start(next->tv_sec * 1000 + next->tv_usec / 1000 + 1);
}

void Resolver::socketChanged(int fd, bool readable, bool writable) {
  auto found = servers.find(fd);
  if (!readable && !writable) {
    if (found == servers.end()) return;
    loop.unwatch(fd, *found->second);
    servers.erase(found);
    return;
  }
  if (found == servers.end()) found = servers.emplace(fd, std::make_unique<Server>(*this, fd)).first;
  loop.watchLevel(fd, *found->second, readable, writable);
}

void Resolver::process(int readable, int writable) {
  ares_process_fd(channel, readable, writable);
  setAlarm();
}

}  // namespace oc::gateway
