#include "convert.h"

#include "base/redact.h"
#include "base/text.h"

namespace oc {

namespace {

std::string bounded(capnp::Text::Reader text, size_t limit, bool newlines = false) {
  return shortened(printable(toString(text), newlines), limit);
}

}  // namespace

void write(proto::Refusal::Builder to, const Refusal& from) {
  to.setReason(toText(from.reason));
  to.setWhat(toText(withoutSecrets(from.what)));
  to.setFix(toText(withoutSecrets(from.fix)));
}

Refusal read(proto::Refusal::Reader from) {
  return {bounded(from.getReason(), 64), bounded(from.getWhat(), 4096, true), bounded(from.getFix(), 4096, true)};
}

void write(proto::ExitStatus::Builder to, const ProcessEnd& from) {
  if (!from.known) {
    to.setUnknown("");
  } else if (from.signaled) {
    to.setSignaled(from.code);
  } else {
    to.setExited(from.code);
  }
}

ProcessEnd read(proto::ExitStatus::Reader from) {
  switch (from.which()) {
    case proto::ExitStatus::EXITED: return {true, false, from.getExited() & 0xFF};
    case proto::ExitStatus::SIGNALED: return {true, true, from.getSignaled() & 0x7F};
    case proto::ExitStatus::UNKNOWN: break;
  }
  return {};
}

void write(proto::Protections::Builder to, const Protections& from) {
  to.setNoNewPrivs(from.noNewPrivs);
  to.setNotDumpable(from.notDumpable);
  to.setSeccomp(from.seccomp);
  to.setLandlockAbi(from.landlockAbi);
  to.setLandlockFiles(from.landlockFiles);
  to.setLandlockScopes(from.landlockScopes);
  to.setUserNamespace(from.userNamespace);
  to.setMountNamespace(from.mountNamespace);
  to.setPidNamespace(from.pidNamespace);
  to.setNetworkNamespace(from.networkNamespace);
  to.setIpcNamespace(from.ipcNamespace);
  auto missing = to.initMissing(from.missing.size());
  for (size_t i = 0; i < from.missing.size(); ++i) missing.set(i, toText(from.missing[i]));
}

Protections read(proto::Protections::Reader from) {
  Protections to;
  to.noNewPrivs = from.getNoNewPrivs();
  to.notDumpable = from.getNotDumpable();
  to.seccomp = from.getSeccomp();
  to.landlockAbi = from.getLandlockAbi();
  to.landlockFiles = from.getLandlockFiles();
  to.landlockScopes = from.getLandlockScopes();
  to.userNamespace = from.getUserNamespace();
  to.mountNamespace = from.getMountNamespace();
  to.pidNamespace = from.getPidNamespace();
  to.networkNamespace = from.getNetworkNamespace();
  to.ipcNamespace = from.getIpcNamespace();
  for (auto text : from.getMissing()) {
    if (to.missing.size() == 16) break;  // there are fewer protections than that
    to.missing.push_back(bounded(text, 256));
  }
  return to;
}

}  // namespace oc
