// The listener for webhooks: an instance of the provider that has a socket, the hook's secret, and nothing of GitHub's.
#pragma once

#include <kj/async.h>
#include <kj/refcount.h>

#include <functional>
#include <string>
#include <vector>

#include "connection.h"
#include "intake.h"

namespace oc::hub {

class Webhooks {
 public:
  // Listens on 127.0.0.1:PORT; 0: any port, see port(). Throws when it cannot be had. `secret` is read anew for each
  // instance.
  Webhooks(supervisor::Supervisor& supervisor, uint16_t port, std::string secretReference, ReadSecret readSecret,
           std::vector<Intake*> intakes, supervisor::RestartPolicy policy = {});

  ~Webhooks() noexcept(false);

  uint16_t port() const { return thePort; }
  supervisor::Resident& instance() { return *resident; }

 private:
  // Between the instance's events and the intakes, which may be gone before: Cap'n Proto does not cancel a call when
  // its connection ends.
  struct Door final : public kj::Refcounted {
    std::vector<Intake*> intakes;  // none: closed
    kj::Canceler pending;
  };
  class Sink;
  kj::Promise<void> listen(supervisor::Instance& instance);

  kj::Timer& timer;
  std::string secretReference;
  ReadSecret readSecret;
  kj::Own<Door> door;
  uint16_t thePort = 0;
  kj::AutoCloseFd socket;
  kj::Own<supervisor::Resident> resident;
  kj::Promise<void> givenUp = nullptr;
};

}  // namespace oc::hub
