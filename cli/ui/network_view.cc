#include "network_view.h"

#include <fmt/format.h>

#include "table.h"
#include "times.h"

namespace oc::cli {

namespace {

template <typename T>
T field(const Json& record, const char* name, T otherwise) {
  auto found = record.find(name);
  if (found == record.end()) return otherwise;
  try {
    return found->get<T>();
  } catch (const Json::exception&) {
    return otherwise;
  }
}

std::string amount(uint64_t bytes) {
  if (bytes < 1000) return fmt::format("{} B", bytes);
  if (bytes < 1'000'000) return fmt::format("{:.1f} kB", bytes / 1e3);
  if (bytes < 1'000'000'000) return fmt::format("{:.1f} MB", bytes / 1e6);
  return fmt::format("{:.1f} GB", bytes / 1e9);
}

}  // namespace

std::string networkView(const Look& look, const std::vector<Json>& records) {
  if (records.empty()) return "nothing went out, and nothing was refused\n";
  Table table({"HOST", "", "UP", "DOWN", "TOOK", "WHY"});
  for (auto& record : records) {
    bool allowed = field<bool>(record, "allowed", false);
    auto host = field<std::string>(record, "host", "?");
    if (host.find(':') != std::string::npos) host = "[" + host + "]";
    auto count = field<uint64_t>(record, "count", 1);
    auto took = field<int64_t>(record, "ended_at", 0) - field<int64_t>(record, "started_at", 0);
    table.add({fmt::format("{}:{}", host, field<int>(record, "port", 0)),
               Cell(allowed     ? "allowed"
                    : count > 1 ? fmt::format("denied {}×", count)
                                : "denied",
                    allowed ? Tint::Good : Tint::Bad),
               allowed ? amount(field<uint64_t>(record, "bytes_up", 0)) : "",
               allowed ? amount(field<uint64_t>(record, "bytes_down", 0)) : "", allowed ? span(took) : "",
               field<std::string>(record, "reason", "")});
  }
  return table.render(look);
}

}  // namespace oc::cli
