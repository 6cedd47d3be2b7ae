// What the control socket may ask of the daemon. The scheduler implements it; the server translates.
#pragma once

#include <kj/async.h>

#include <string>
#include <utility>
#include <vector>

#include "base/places.h"
#include "base/refusal.h"
#include "base/watch.h"
#include "control.capnp.h"
#include "daemon/state/store.h"

namespace oc::control {

struct WorkRequest {
  std::string scope, binding, title, body;
};
struct NewWorkIds {
  std::string work, run;
};
struct LogPiece {
  std::string bytes;
  uint64_t next = 0;
  bool end = false;
};
struct DoctorLine {
  std::string name, level, what, fix;  // level: ok, FAIL, warn
};
struct Said {
  std::string run;         // that has the message, or will begin with it
  bool delivered = false;  // to a live agent
};
struct ExecPlace {
  std::string directory;
  std::vector<std::pair<std::string, std::string>> environment;
};
struct TerminalSize {
  uint16_t columns = 0, rows = 0;
};
struct TerminalFacts {
  TerminalSize size;
  std::string kind, colours;  // TERM and COLORTERM, with proper characters only
};
// A person's hold on Work. Dropping it ends the attachment.
class Attachment {
 public:
  virtual ~Attachment() noexcept(false) = default;
  virtual std::string terminal() = 0;  // the socket that gives the terminal away
  virtual void resize(TerminalSize size) = 0;
  virtual kj::Promise<ProcessEnd> wait() = 0;
};
struct AttachPlace {
  std::vector<std::string> command;  // for the host; empty: it is a container
  ExecPlace host;
  kj::Own<Attachment> attachment;
};
struct PinnedPlan {
  std::string json, sha256;
};

// Everything runs on the daemon's one thread.
class Backend {
 public:
  virtual ~Backend() noexcept(false) = default;
  virtual void fillStatus(proto::Status::Builder status) = 0;
  virtual OrRefusal<NewWorkIds> newWork(WorkRequest request) = 0;
  virtual state::Store& store() = 0;
  virtual const Places& places() = 0;
  virtual kj::Promise<OrRefusal<bool>> endWork(std::string id, bool cancel, bool discard) = 0;
  virtual kj::Promise<OrRefusal<Said>> sayWork(std::string id, std::string text) = 0;
  virtual OrRefusal<ExecPlace> execPlace(std::string id) = 0;
  virtual kj::Promise<OrRefusal<AttachPlace>> attachWork(std::string id, TerminalFacts terminal) = 0;
  virtual kj::Promise<OrRefusal<bool>> waitRun(std::string id) = 0;  // the run has ended
  virtual kj::Promise<OrRefusal<LogPiece>> readLog(std::string run, uint64_t offset, bool follow) = 0;
  virtual kj::Promise<OrRefusal<LogPiece>> readNetwork(std::string run, uint64_t offset, bool follow) = 0;
  virtual OrRefusal<PinnedPlan> plan(std::string run) = 0;
  virtual OrRefusal<bool> stopRun(std::string id) = 0;
  virtual kj::Promise<void> drain(bool stop) = 0;
  virtual std::string reload() = 0;
  virtual kj::Promise<std::vector<DoctorLine>> doctor() = 0;
};

}  // namespace oc::control
