#include "webhooks.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <sys/socket.h>

#include "base/error.h"
#include "base/pace.h"
#include "proto/convert.h"

namespace oc::hub {

namespace {

constexpr int listeningDescriptor = 4;
// As the provider has it.
constexpr size_t shortestSecret = 16;

}  // namespace

class Webhooks::Sink final : public proto::GitHubSink::Server {
 public:
  Sink(kj::Own<Door> door, kj::Timer& timer) : door(kj::mv(door)), pace(timer, mostAtOnce, perSecond) {}

  kj::Promise<void> event(EventContext context) override {
    return door->pending.wrap(pace.turn().then([this, context]() mutable { return take(context); }));
  }

 private:
  // An event is a write to the disk, for which everybody waits. GitHub waits for ten seconds, and what it gives up is
  // polled.
  static constexpr double mostAtOnce = 500, perSecond = 50;

  kj::Promise<void> take(EventContext context) {
    auto params = context.getParams();
    auto repo = toString(params.getRepo());
    kj::Vector<kj::Promise<void>> all;
    // Each knows its own repositories.
    for (auto* intake : door->intakes) all.add(intake->take(repo, params.getEvent()).eagerlyEvaluate(nullptr));
    return kj::joinPromises(all.releaseAsArray());
  }

  kj::Own<Door> door;
  Pace pace;
};

Webhooks::Webhooks(supervisor::Supervisor& supervisor, uint16_t port, std::string secretReference,
                   ReadSecret readSecret, std::vector<Intake*> intakes, supervisor::RestartPolicy policy)
    : timer(supervisor.timer()),
      secretReference(std::move(secretReference)),
      readSecret(std::move(readSecret)),
      door(kj::refcounted<Door>()) {
  door->intakes = std::move(intakes);
  int fd;
  KJ_SYSCALL(fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  socket = kj::AutoCloseFd(fd);
  int on = 1;
  KJ_SYSCALL(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)));
  struct sockaddr_in address {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  KJ_SYSCALL(bind(fd, reinterpret_cast<struct sockaddr*>(&address), sizeof(address)), "the webhooks' port", port);
  KJ_SYSCALL(::listen(fd, 128));
  socklen_t length = sizeof(address);
  KJ_SYSCALL(getsockname(fd, reinterpret_cast<struct sockaddr*>(&address), &length));
  thePort = ntohs(address.sin_port);

  supervisor::LaunchSpec launch;
  launch.provider = "github";
  launch.label = "webhooks";
  launch.job = {"webhook"};
  launch.descriptors = {{fd, listeningDescriptor}};
  launch.carriesCalls = true;
  resident = kj::heap<supervisor::Resident>(
      supervisor, kj::mv(launch), policy,
      supervisor::Resident::Prepare([this](supervisor::Instance& instance) { return listen(instance); }));
  // Whoever delivers is to be told at once that nobody listens: it would wait for an answer as long as the port is
  // open. A reload makes all of this anew.
  givenUp = resident->onGivenUp().then([this]() { socket = nullptr; }).eagerlyEvaluate(nullptr);
}

Webhooks::~Webhooks() noexcept(false) {
  door->intakes.clear();
  door->pending.cancel("the listener is gone");
}

kj::Promise<void> Webhooks::listen(supervisor::Instance& instance) {
  return readSecret("webhook_secret", secretReference).then([this, &instance](OrRefusal<SecretBytes> secret) {
    if (!secret.ok()) fail(secret.refusal().what);
    if (secret.value().size() < shortestSecret)
      fail(fmt::format("{} has {} bytes, and a webhook's secret has at least {}: make another, here and on GitHub",
                       secretReference, secret.value().size(), shortestSecret));
    auto request = instance.as<proto::GitHubWebhook>().listenRequest();
    request.setSecret(toData(secret.value().view()));
    request.setSink(kj::heap<Sink>(kj::addRef(*door), timer));
    return request.send().ignoreResult();
  });
}

}  // namespace oc::hub
