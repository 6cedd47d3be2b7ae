#include "webhooks.h"

#include <arpa/inet.h>
#include <kj/debug.h>
#include <sys/socket.h>

#include "base/error.h"
#include "proto/convert.h"

namespace oc::hub {

namespace {

constexpr int listeningDescriptor = 4;

class Sink final : public proto::GitHubSink::Server {
 public:
  explicit Sink(std::vector<Intake*> intakes) : intakes(std::move(intakes)) {}

  kj::Promise<void> event(EventContext context) override {
    auto params = context.getParams();
    auto repo = toString(params.getRepo());
    kj::Vector<kj::Promise<void>> all;
    // Each knows its own repositories.
    for (auto* intake : intakes) all.add(intake->take(repo, params.getEvent()).eagerlyEvaluate(nullptr));
    return kj::joinPromises(all.releaseAsArray());
  }

 private:
  std::vector<Intake*> intakes;
};

}  // namespace

Webhooks::Webhooks(supervisor::Supervisor& supervisor, uint16_t port, std::string secretReference,
                   ReadSecret readSecret, std::vector<Intake*> intakes)
    : secretReference(std::move(secretReference)), readSecret(std::move(readSecret)), intakes(std::move(intakes)) {
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
      supervisor, kj::mv(launch), supervisor::RestartPolicy(),
      supervisor::Resident::Prepare([this](supervisor::Instance& instance) { return listen(instance); }));
}

kj::Promise<void> Webhooks::listen(supervisor::Instance& instance) {
  return readSecret("webhook_secret", secretReference).then([this, &instance](OrRefusal<SecretBytes> secret) {
    if (!secret.ok()) fail(secret.refusal().what);
    auto request = instance.as<proto::GitHubWebhook>().listenRequest();
    request.setSecret(toData(secret.value().view()));
    request.setSink(kj::heap<Sink>(intakes));
    return request.send().ignoreResult();
  });
}

}  // namespace oc::hub
