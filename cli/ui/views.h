// What commands print for people.
#pragma once

#include <string>
#include <vector>

#include "control.capnp.h"
#include "look.h"

namespace oc::cli {

struct CheckLine {
  std::string name, level, what, fix;
};

std::string runView(const Look& look, proto::Run::Reader run);
std::string runsView(const Look& look, capnp::List<proto::Run>::Reader runs, uint64_t older);
std::string workView(const Look& look, proto::Work::Reader work);
std::string allWorkView(const Look& look, capnp::List<proto::Work>::Reader works, uint64_t older);
std::string statusView(const Look& look, proto::Status::Reader status);
std::string checksView(const Look& look, const std::vector<CheckLine>& checks);
// The canonical JSON of a plan, with line breaks.
std::string planView(const Look& look, const std::string& json, const std::string& sha256);

// "succeeded in 1.9 s", "running for 12 s", "refused: sandbox_denied", …
std::string stateOf(const Look& look, proto::Run::Reader run);

}  // namespace oc::cli
