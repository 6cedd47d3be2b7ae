#include "server.h"

#include <kj/debug.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/secret_source.h"

namespace oc::keyring {

namespace {

// To its end; one byte more than may be, when there is more.
SecretBytes readAllSecret(int fd) {
  SecretBytes buffer(std::string(mostSecretBytes + 1, '\0'));
  auto* bytes = const_cast<char*>(buffer.view().data());
  size_t size = 0;
  while (size < buffer.size()) {
    ssize_t n;
    KJ_SYSCALL(n = ::read(fd, bytes + size, buffer.size() - size), "the pipe for the value");
    if (n == 0) break;
    size += n;
  }
  return SecretBytes(buffer.view().substr(0, size));
}

}  // namespace

KeyringServer::KeyringServer(kit::Context& context, Job job, kj::AutoCloseFd bus, kj::AutoCloseFd value)
    : context(context), job(std::move(job)), keyring(kj::mv(bus)), value(kj::mv(value)) {}

void KeyringServer::requireAction(Action action) { KJ_REQUIRE(job.action == action, "this instance has another job"); }

kj::Promise<void> KeyringServer::protections(ProtectionsContext call) {
  kit::answerProtections(context, call.getResults());
  return kj::READY_NOW;
}

kj::Promise<void> KeyringServer::get(GetContext call) {
  requireAction(Action::Get);
  auto secret = keyring.get(job.name);
  if (secret.ok()) {
    writeAll(value.get(), secret.value().view());
  } else {
    write(call.getResults().initRefusal(), secret.refusal());
  }
  value = nullptr;
  return kj::READY_NOW;
}

kj::Promise<void> KeyringServer::set(SetContext call) {
  requireAction(Action::Set);
  auto secret = readAllSecret(value.get());
  if (secret.size() == 0 || secret.size() > mostSecretBytes) {
    write(call.getResults().initRefusal(),
          Refusal{"secret_invalid", "a secret has 1 byte to 64 KiB", "give a token or a key on standard input"});
    return kj::READY_NOW;
  }
  auto stored = keyring.set(job.name, secret);
  if (stored.ok()) {
    call.getResults().setReplaced(stored.value());
  } else {
    write(call.getResults().initRefusal(), stored.refusal());
  }
  return kj::READY_NOW;
}

kj::Promise<void> KeyringServer::remove(RemoveContext call) {
  requireAction(Action::Remove);
  auto removed = keyring.remove(job.name);
  if (removed.ok()) {
    call.getResults().setRemoved(removed.value());
  } else {
    write(call.getResults().initRefusal(), removed.refusal());
  }
  return kj::READY_NOW;
}

kj::Promise<void> KeyringServer::list(ListContext call) {
  requireAction(Action::List);
  auto listed = keyring.list();
  if (!listed.ok()) {
    write(call.getResults().initRefusal(), listed.refusal());
    return kj::READY_NOW;
  }
  auto names = call.getResults().initNames(listed.value().size());
  for (size_t i = 0; i < listed.value().size(); ++i) names.set(i, toText(listed.value()[i]));
  return kj::READY_NOW;
}

}  // namespace oc::keyring
