#include "documents.h"

#include "base/reasons.h"
#include "proto/convert.h"
#include "times.h"

template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace oc::cli {

namespace {

Document texts(capnp::List<capnp::Text>::Reader from) {
  auto list = Document::array();
  for (auto text : from) list.push_back(toString(text));
  return list;
}

Document timeOrNull(int64_t milliseconds) {
  return milliseconds == 0 ? Document(nullptr) : Document(timestamp(milliseconds));
}

Document notesOf(proto::Work::Reader work) {
  auto notes = Document::array();
  for (auto note : work.getNotes()) {
    notes.push_back(
        {{"run", toString(note.getRun())}, {"at", timeOrNull(note.getAt())}, {"text", toString(note.getText())}});
  }
  return notes;
}

Document textOrNull(capnp::Text::Reader text) { return cli::textOrNull(toString(text)); }

Document meaningOf(const std::string& reason) {
  auto* known = findReason(reason);
  return known == nullptr ? Document(nullptr) : Document(std::string(known->meaning));
}

Document bindingOf(capnp::Text::Reader scope, capnp::Text::Reader binding) {
  return toString(scope) + "/" + toString(binding);
}

Document protectionsDocument(proto::Protections::Reader from) {
  return {{"no_new_privs", from.getNoNewPrivs()},
          {"not_dumpable", from.getNotDumpable()},
          {"seccomp", from.getSeccomp()},
          {"landlock_abi", from.getLandlockAbi()},
          {"landlock_files", from.getLandlockFiles()},
          {"landlock_scopes", from.getLandlockScopes()},
          {"user_namespace", from.getUserNamespace()},
          {"mount_namespace", from.getMountNamespace()},
          {"pid_namespace", from.getPidNamespace()},
          {"network_namespace", from.getNetworkNamespace()},
          {"ipc_namespace", from.getIpcNamespace()},
          {"missing", texts(from.getMissing())}};
}

Document networkDocument(proto::NetworkTotals::Reader from) {
  return {{"allowed", from.getAllowed()},
          {"denied", from.getDenied()},
          {"bytes_up", from.getBytesUp()},
          {"bytes_down", from.getBytesDown()}};
}

// Null where the agent has no model, or none was asked.
Document usageDocument(proto::RunEvent::Usage::Reader usage) {
  if (usage.getTurns() == 0 && usage.getInputTokens() == 0 && usage.getOutputTokens() == 0) return nullptr;
  return {{"input_tokens", usage.getInputTokens()},
          {"output_tokens", usage.getOutputTokens()},
          {"cache_read_tokens", usage.getCacheReadTokens()},
          {"cache_write_tokens", usage.getCacheWriteTokens()},
          {"cost_usd", static_cast<double>(usage.getCostMicroUsd()) / 1e6},
          {"turns", usage.getTurns()}};
}

}  // namespace

Document textOrNull(std::string text) { return text.empty() ? Document(nullptr) : Document(std::move(text)); }

Document runDocument(proto::Run::Reader run) {
  auto denied = Document::array();
  for (auto denial : run.getDenied()) {
    denied.push_back({{"kind", toString(denial.getKind())},
                      {"what", toString(denial.getWhat())},
                      {"why", toString(denial.getWhy())}});
  }
  return {{"id", toString(run.getId())},
          {"work", toString(run.getWork())},
          {"binding", bindingOf(run.getScope(), run.getBinding())},
          {"title", toString(run.getTitle())},
          {"state", toString(run.getState())},
          {"outcome", textOrNull(run.getOutcome())},
          {"reason", textOrNull(run.getReason())},
          {"message", textOrNull(run.getMessage())},
          {"meaning", meaningOf(toString(run.getReason()))},
          {"fix", textOrNull(fixFor(toString(run.getReason()), toString(run.getFix())))},
          {"exit_code", run.getExitCode() < 0 ? Document(nullptr) : Document(run.getExitCode())},
          {"created_at", timeOrNull(run.getCreatedAt())},
          {"started_at", timeOrNull(run.getStartedAt())},
          {"ended_at", timeOrNull(run.getEndedAt())},
          {"attempt", run.getAttempt()},
          {"policy", {{"kind", textOrNull(run.getPolicyKind())}, {"sha256", textOrNull(run.getPolicySha256())}}},
          {"branch", textOrNull(run.getBranch())},
          {"commits", run.getCommits()},
          {"saved_as", textOrNull(run.getSavedAs())},
          {"checkout", textOrNull(run.getCheckout())},
          {"notes", texts(run.getNotes())},
          {"denied", denied},
          {"network", networkDocument(run.getNetwork())},
          {"session", textOrNull(run.getSession())},
          {"usage", usageDocument(run.getUsage())}};
}

Document workDocument(proto::Work::Reader work) {
  return {{"id", toString(work.getId())},
          {"binding", bindingOf(work.getScope(), work.getBinding())},
          {"title", toString(work.getTitle())},
          {"state", toString(work.getState())},
          {"session", textOrNull(work.getSession())},
          {"usage", usageDocument(work.getUsage())},
          {"created_at", timeOrNull(work.getCreatedAt())},
          {"ended_at", timeOrNull(work.getEndedAt())},
          {"branch", textOrNull(work.getBranch())},
          {"workspace", textOrNull(work.getWorkspace())},
          {"checkout", textOrNull(work.getCheckout())},
          {"runs", texts(work.getRuns())},
          {"warnings", texts(work.getWarnings())},
          {"notes", notesOf(work)}};
}

Document statusDocument(proto::Status::Reader status, int64_t now) {
  auto runs = Document::array();
  for (auto run : status.getLiveRuns()) runs.push_back(runDocument(run));
  auto instances = Document::array();
  for (auto instance : status.getInstances()) {
    instances.push_back({{"provider", toString(instance.getProvider())},
                         {"job", toString(instance.getJob())},
                         {"pid", instance.getPid()},
                         {"state", toString(instance.getState())},
                         {"started_at", timeOrNull(instance.getStartedAt())},
                         {"protections", protectionsDocument(instance.getProtections())}});
  }
  return {{"version", toString(status.getVersion())},
          {"pid", status.getPid()},
          {"started_at", timeOrNull(status.getStartedAt())},
          {"uptime_seconds", (now - status.getStartedAt()) / 1000},
          {"config",
           {{"path", toString(status.getConfigPath())},
            {"loaded_at", timeOrNull(status.getConfigLoadedAt())},
            {"problem", textOrNull(status.getConfigProblem())}}},
          {"draining", status.getDraining()},
          {"live_runs", runs},
          {"queued", status.getQueued()},
          {"instances", instances},
          {"lacks", texts(status.getLacks())},
          {"leftovers", texts(status.getLeftovers())},
          {"prepared_gateways", status.getPreparedGateways()},
          {"prepared_containers", status.getPreparedContainers()}};
}

Document checkDocument(const std::string& name, const std::string& level, const std::string& what,
                       const std::string& fix) {
  return {{"name", name}, {"level", level}, {"what", what}, {"fix", textOrNull(fix)}};
}

Document errorDocument(const Refusal& why) {
  return {{"error",
           {{"reason", why.reason},
            {"message", why.what},
            {"meaning", meaningOf(why.reason)},
            {"fix", textOrNull(fixFor(why.reason, why.fix))}}}};
}

std::string render(const Document& document, bool ascii) {
  return document.dump(2, ' ', ascii, Document::error_handler_t::replace) + "\n";
}

}  // namespace oc::cli
