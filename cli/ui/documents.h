// What `--json` prints. The names of the fields are a contract with scripts; what is not known is null.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

#include "base/refusal.h"
#include "control.capnp.h"

// Compiled once, in documents.cc.
extern template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace oc::cli {

using Document = nlohmann::ordered_json;

Document runDocument(proto::Run::Reader run);
Document workDocument(proto::Work::Reader work);
Document statusDocument(proto::Status::Reader status, int64_t now);
Document checkDocument(const std::string& name, const std::string& level, const std::string& what,
                       const std::string& fix);
Document errorDocument(const Refusal& why);

// A string, or null for the empty one.
Document textOrNull(std::string text);

// With a line end. `ascii`: everything else is escaped, so that no text can drive a terminal.
std::string render(const Document& document, bool ascii);

}  // namespace oc::cli
