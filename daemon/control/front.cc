#include "front.h"

#include <fmt/format.h>

#include "common.capnp.h"
#include "control.h"
#include "proto/convert.h"
#include "server.h"

namespace oc::control {

namespace {

// Nobody mistypes a file. A connection that guesses has to dial again.
constexpr unsigned mostFailures = 3;

kj::Exception wrongVersion(uint32_t version) {
  return plainError(kj::Exception::Type::UNIMPLEMENTED,
                    fmt::format("the daemon is open-conduit {} and speaks version {} of the control protocol, not {}",
                                OPEN_CONDUIT_VERSION, proto::PROTOCOL_VERSION, version));
}

}  // namespace

kj::Promise<void> FrontImpl::login(LoginContext context) {
  auto params = context.getParams();
  auto offered = params.getToken();
  bool known = equalSecrets(token.view(), {reinterpret_cast<const char*>(offered.begin()), offered.size()});
  if (!known || failures >= mostFailures) {
    ++failures;
    return session->wait(timer.afterDelay(1 * kj::SECONDS).then([]() {
      kj::throwFatalException(plainError(kj::Exception::Type::FAILED, "this is not the daemon's operator token"));
    }));
  }
  if (params.getVersion() != proto::PROTOCOL_VERSION) return wrongVersion(params.getVersion());
  session->loggedIn = true;
  auto results = context.getResults();
  results.setControl(kj::heap<ControlImpl>(kj::addRef(*session), backend));
  results.setDaemonVersion(OPEN_CONDUIT_VERSION);
  return kj::READY_NOW;
}

proto::Front::Client makeFront(kj::Timer& timer, const SecretBytes& token, Backend& backend) {
  return kj::heap<FrontImpl>(kj::refcounted<Session>(), timer, token, backend);
}

}  // namespace oc::control
