// What a connection gets once it has shown the operator token.
#pragma once

#include <kj/refcount.h>

#include "control.capnp.h"
#include "daemon/control/backend.h"
#include "daemon/control/session.h"

namespace oc::control {

class ControlImpl final : public proto::Control::Server {
 public:
  ControlImpl(kj::Own<Session> session, Backend& backend) : session(kj::mv(session)), backend(backend) {}

  kj::Promise<void> status(StatusContext context) override;
  kj::Promise<void> newWork(NewWorkContext context) override;
  kj::Promise<void> listWork(ListWorkContext context) override;
  kj::Promise<void> getWork(GetWorkContext context) override;
  kj::Promise<void> finishWork(FinishWorkContext context) override;
  kj::Promise<void> cancelWork(CancelWorkContext context) override;
  kj::Promise<void> listRuns(ListRunsContext context) override;
  kj::Promise<void> getRun(GetRunContext context) override;
  kj::Promise<void> waitRun(WaitRunContext context) override;
  kj::Promise<void> readLog(ReadLogContext context) override;
  kj::Promise<void> readNetwork(ReadNetworkContext context) override;
  kj::Promise<void> getPolicy(GetPolicyContext context) override;
  kj::Promise<void> stopRun(StopRunContext context) override;
  kj::Promise<void> sayWork(SayWorkContext context) override;
  kj::Promise<void> execPlace(ExecPlaceContext context) override;
  kj::Promise<void> attachWork(AttachWorkContext context) override;
  kj::Promise<void> drain(DrainContext context) override;
  kj::Promise<void> reload(ReloadContext context) override;
  kj::Promise<void> doctor(DoctorContext context) override;

 private:
  template <typename Context, typename Read>
  kj::Promise<void> answerPiece(Context context, Read read);
  template <typename Context>
  kj::Promise<void> endWork(Context context, bool cancel, bool discard);
  void showRun(proto::Run::Builder to, const std::string& id);

  kj::Own<Session> session;
  Backend& backend;
};

}  // namespace oc::control
