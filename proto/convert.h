// Between the contracts' structs and the plain ones.
#pragma once

#include <capnp/common.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/refusal.h"
#include "base/watch.h"
#include "common.capnp.h"

namespace oc {

inline std::string toString(capnp::Text::Reader text) { return std::string(text.begin(), text.size()); }
inline kj::StringPtr toText(const std::string& text) { return kj::StringPtr(text.c_str(), text.size()); }
inline std::string toString(capnp::Data::Reader data) {
  return std::string(reinterpret_cast<const char*>(data.begin()), data.size());
}
inline capnp::Data::Reader toData(std::string_view bytes) {
  return capnp::Data::Reader(reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size());
}

void write(proto::Refusal::Builder to, const Refusal& from);
// A refusal that a provider sent: bounded and made printable. Empty reason: not refused.
Refusal read(proto::Refusal::Reader from);

void write(proto::ExitStatus::Builder to, const ProcessEnd& from);
ProcessEnd read(proto::ExitStatus::Reader from);

// What an instance has in force.
struct Protections {
  bool noNewPrivs = false, notDumpable = false, seccomp = false;
  int landlockAbi = 0;
  bool landlockFiles = false, landlockScopes = false;
  bool userNamespace = false, mountNamespace = false, pidNamespace = false, networkNamespace = false,
       ipcNamespace = false;
  std::vector<std::string> missing;
};
void write(proto::Protections::Builder to, const Protections& from);
Protections read(proto::Protections::Reader from);

}  // namespace oc
