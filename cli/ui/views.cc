#include "views.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/reasons.h"
#include "proto/convert.h"
#include "table.h"
#include "times.h"

namespace oc::cli {

namespace {

// Facts below each other: a label each, and what there is to say behind it.
class Sheet {
 public:
  explicit Sheet(const Look& look) : look(look) {}
  void add(std::string label, std::string text) { rows.push_back({std::move(label), std::move(text)}); }
  void addIf(const std::string& label, const std::string& text) {
    if (!text.empty()) add(label, text);
  }
  // A list's first row has the label, the others have none.
  void addList(const std::string& label, capnp::List<capnp::Text>::Reader texts) {
    for (uint32_t i = 0; i < texts.size(); ++i) add(i == 0 ? label : "", paragraph(toString(texts[i]), column));
  }
  std::string render() const {
    std::string result;
    for (auto& row : rows) result += tinted(look, Tint::Dim, padded(row.label, column)) + row.text + "\n";
    return result;
  }
  static constexpr size_t column = 12;

 private:
  struct Row {
    std::string label, text;
  };
  const Look& look;
  std::vector<Row> rows;
};

std::string bindingOf(capnp::Text::Reader scope, capnp::Text::Reader binding) {
  return line(toString(scope) + "/" + toString(binding));
}

std::string titleOf(capnp::Text::Reader title) { return title.size() == 0 ? "(untitled)" : toString(title); }

Tint tintOf(proto::Run::Reader run) {
  auto outcome = toString(run.getOutcome());
  if (outcome.empty()) return Tint::Bold;
  if (outcome == "succeeded") return Tint::Good;
  return outcome == "stopped" || outcome == "interrupted" ? Tint::Caution : Tint::Bad;
}

std::string plural(uint64_t count, const char* one, const char* many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string ago(const Look& look, int64_t when) { return when == 0 ? "" : span(look.now - when) + " ago"; }

std::string commitsOf(const Look& look, proto::Run::Reader run) {
  if (toString(run.getReason()) == "save_failed") return "commits not saved";
  if (run.getCommits() == 0) return run.getOutcome().size() == 0 ? "" : "no commits";
  auto text = plural(run.getCommits(), "commit", "commits");
  auto branch = toString(run.getBranch()), savedAs = toString(run.getSavedAs());
  if (savedAs.empty()) return text;
  text += ", saved to " + line(shortPath(look, toString(run.getCheckout())));
  if (savedAs != branch) text += " as " + line(savedAs) + " (" + line(branch) + " was in the way)";
  return text;
}

// "$0.0413   2 turns, 240 tokens in (30 cached), 80 out"; empty where no model was asked.
std::string usageOf(proto::RunEvent::Usage::Reader usage) {
  if (usage.getTurns() == 0 && usage.getInputTokens() == 0 && usage.getOutputTokens() == 0) return "";
  auto cached = usage.getCacheReadTokens();
  return fmt::format("${:.4f}   {}, {} tokens in{}, {} out", static_cast<double>(usage.getCostMicroUsd()) / 1e6,
                     plural(usage.getTurns(), "turn", "turns"),
                     usage.getInputTokens() + usage.getCacheWriteTokens() + cached,
                     cached == 0 ? "" : fmt::format(" ({} of them cached)", cached), usage.getOutputTokens());
}

std::string protectionsOf(proto::Protections::Reader from) {
  std::string text;
  auto add = [&text](bool have, const std::string& word) {
    if (have) text += (text.empty() ? "" : " ") + word;
  };
  add(from.getNoNewPrivs(), "no-new-privs");
  add(from.getNotDumpable(), "not-dumpable");
  add(from.getSeccomp(), "seccomp");
  add(from.getLandlockFiles(), "landlock-files");
  add(from.getLandlockScopes(), "landlock-scopes");
  std::string namespaces;
  for (auto [have, word] : {std::pair(from.getUserNamespace(), "user"),
                            {from.getMountNamespace(), "mount"},
                            {from.getPidNamespace(), "pid"},
                            {from.getNetworkNamespace(), "network"},
                            {from.getIpcNamespace(), "ipc"}}) {
    if (have) namespaces += (namespaces.empty() ? "" : ",") + std::string(word);
  }
  add(!namespaces.empty(), "namespaces:" + namespaces);
  return text;
}

std::string olderLine(const Look& look, uint64_t older) {
  if (older == 0) return "";
  return tinted(look, Tint::Dim, fmt::format("{} older ones: --limit 0 shows all\n", older));
}

}  // namespace

std::string stateOf(const Look& look, proto::Run::Reader run) {
  auto outcome = toString(run.getOutcome());
  if (outcome.empty()) {
    auto state = line(toString(run.getState()));
    auto since = run.getStartedAt() != 0 ? run.getStartedAt() : run.getCreatedAt();
    return since == 0 ? state : state + " for " + span(look.now - since);
  }
  if (outcome == "refused") return "refused: " + line(toString(run.getReason()));
  auto text = line(outcome);
  auto reason = toString(run.getReason());
  if (outcome == "failed" && run.getExitCode() > 0 && reason != "exit_status" && !reason.empty())
    return text + ": " + line(reason);
  if (outcome == "failed" && run.getExitCode() > 0) text += fmt::format(" (exit {})", run.getExitCode());
  if (run.getStartedAt() == 0 || run.getEndedAt() == 0) return text;
  return text + (outcome == "succeeded" ? " in " : " after ") + span(run.getEndedAt() - run.getStartedAt());
}

std::string runView(const Look& look, proto::Run::Reader run) {
  Sheet sheet(look);
  std::string head = tinted(look, Tint::Bold, line(toString(run.getId()))) + "   " +
                     bindingOf(run.getScope(), run.getBinding()) + "   " +
                     tinted(look, tintOf(run), stateOf(look, run));
  sheet.add("run", head);
  sheet.add("work", line(toString(run.getWork())) + "   " + line(titleOf(run.getTitle())));
  if (run.getOutcome() != "succeeded") {
    auto message = toString(run.getMessage());
    if (message.empty() && run.getOutcome() != "refused") message = toString(run.getReason());
    sheet.addIf("why", paragraph(message, Sheet::column));
  }
  if (run.getOutcome() == "refused") {
    if (auto* reason = findReason(toString(run.getReason())))
      sheet.add("means", paragraph(reason->meaning, Sheet::column));
  }
  sheet.addIf("fix", paragraph(fixFor(toString(run.getReason()), toString(run.getFix())), Sheet::column));
  if (run.getAttempt() > 1) sheet.add("attempt", fmt::format("{}", run.getAttempt()));
  auto commits = commitsOf(look, run);
  if (run.getBranch().size() > 0) {
    sheet.add("branch", line(toString(run.getBranch())) + (commits.empty() ? "" : "   " + commits));
  }
  sheet.addIf("usage", usageOf(run.getUsage()));
  sheet.addIf("session", line(toString(run.getSession())));
  if (run.getPolicyKind().size() > 0) {
    auto policy = line(toString(run.getPolicyKind()));
    auto hash = line(toString(run.getPolicySha256()));
    if (!hash.empty()) {
      policy += fmt::format("   policy {}   ", hash.substr(0, 12)) +
                tinted(look, Tint::Dim, "(open-conduit runs policy " + line(toString(run.getId())) + ")");
    }
    sheet.add("sandbox", policy);
  }
  auto network = run.getNetwork();
  if (network.getAllowed() + network.getDenied() > 0) {
    sheet.add("network",
              fmt::format("{} allowed, {} refused   ", plural(network.getAllowed(), "connection", "connections"),
                          network.getDenied()) +
                  tinted(look, Tint::Dim, "(open-conduit runs network " + line(toString(run.getId())) + ")"));
  }
  bool first = true;
  for (auto denial : run.getDenied()) {
    sheet.add(first ? "denied" : "", padded(line(toString(denial.getKind())), 8) +
                                         padded(line(shortPath(look, toString(denial.getWhat()))), 40) + "  " +
                                         line(toString(denial.getWhy())));
    first = false;
  }
  sheet.addList("note", run.getNotes());
  return sheet.render();
}

std::string runsView(const Look& look, capnp::List<proto::Run>::Reader runs, uint64_t older) {
  if (runs.size() == 0) return "no runs yet\n";
  Table table({"ID", "WORK", "BINDING", "STATE", "CREATED", "TITLE"});
  for (auto run : runs) {
    table.add({toString(run.getId()), toString(run.getWork()), bindingOf(run.getScope(), run.getBinding()),
               Cell(stateOf(look, run), tintOf(run)), ago(look, run.getCreatedAt()), titleOf(run.getTitle())});
  }
  return table.render(look) + olderLine(look, older);
}

std::string workView(const Look& look, proto::Work::Reader work) {
  Sheet sheet(look);
  sheet.add("work", tinted(look, Tint::Bold, line(toString(work.getId()))) + "   " +
                        bindingOf(work.getScope(), work.getBinding()) + "   " + line(toString(work.getState())));
  sheet.add("title", line(titleOf(work.getTitle())));
  sheet.add("created", ago(look, work.getCreatedAt()));
  sheet.addIf("ended", ago(look, work.getEndedAt()));
  sheet.addIf("branch", line(toString(work.getBranch())));
  sheet.addIf("checkout", line(shortPath(look, toString(work.getCheckout()))));
  sheet.addIf("workspace", line(shortPath(look, toString(work.getWorkspace()))));
  sheet.addIf("usage", usageOf(work.getUsage()));
  sheet.addIf("session", line(toString(work.getSession())));
  sheet.addList("runs", work.getRuns());
  sheet.addList("beware", work.getWarnings());
  for (auto note : work.getNotes()) {
    sheet.add("note", tinted(look, Tint::Dim, ago(look, note.getAt()) + ", " + line(toString(note.getRun()))) + "   " +
                          line(toString(note.getText())));
  }
  return sheet.render();
}

std::string allWorkView(const Look& look, capnp::List<proto::Work>::Reader works, uint64_t older) {
  if (works.size() == 0) return "no Work yet; make some: open-conduit work new --binding SCOPE/BINDING\n";
  Table table({"ID", "BINDING", "STATE", "RUNS", "CREATED", "TITLE"});
  for (auto work : works) {
    table.add({toString(work.getId()), bindingOf(work.getScope(), work.getBinding()),
               Cell(toString(work.getState()), work.getState() == "open" ? Tint::Bold : Tint::Plain),
               fmt::format("{}", work.getRuns().size()), ago(look, work.getCreatedAt()), titleOf(work.getTitle())});
  }
  return table.render(look) + olderLine(look, older);
}

std::string statusView(const Look& look, proto::Status::Reader status) {
  Sheet sheet(look);
  sheet.add("daemon", fmt::format("open-conduitd {}   pid {}   up {}", line(toString(status.getVersion())),
                                  status.getPid(), span(look.now - status.getStartedAt())));
  sheet.add("config", fmt::format("{}   loaded {}", line(shortPath(look, toString(status.getConfigPath()))),
                                  ago(look, status.getConfigLoadedAt())));
  if (status.getConfigProblem().size() > 0) {
    sheet.add("", tinted(look, Tint::Bad, "the file has changed and is not in force:"));
    sheet.add("", paragraph(toString(status.getConfigProblem()), Sheet::column));
  }
  sheet.add("runs", fmt::format("{} live, {} queued", status.getLiveRuns().size(), status.getQueued()) +
                        (status.getDraining() ? tinted(look, Tint::Caution, "   draining: no new ones") : ""));
  if (status.getPreparedContainers() > 0) {
    sheet.add("containers",
              fmt::format("{} started ahead of their bindings' next Work", status.getPreparedContainers()));
  }
  if (status.getPreparedGateways() > 0) {
    sheet.add("gateways", fmt::format("{} made ahead of container runs", status.getPreparedGateways()));
  }
  sheet.addList("lacks", status.getLacks());
  sheet.addList("left", status.getLeftovers());
  auto text = sheet.render();

  Table runs({"RUN", "BINDING", "STATE", "TITLE"});
  for (auto run : status.getLiveRuns()) {
    runs.add({toString(run.getId()), bindingOf(run.getScope(), run.getBinding()), Cell(stateOf(look, run), tintOf(run)),
              titleOf(run.getTitle())});
  }
  if (!runs.empty()) text += "\n" + runs.render(look);

  Table instances({"PROVIDER", "JOB", "PID", "STATE", "PROTECTIONS"});
  for (auto instance : status.getInstances()) {
    instances.add({toString(instance.getProvider()), toString(instance.getJob()), fmt::format("{}", instance.getPid()),
                   toString(instance.getState()), protectionsOf(instance.getProtections())});
  }
  if (!instances.empty()) text += "\n" + instances.render(look);
  return text;
}

std::string checksView(const Look& look, const std::vector<CheckLine>& checks) {
  size_t names = 0;
  for (auto& check : checks) names = std::max(names, columnsOf(line(check.name)));
  std::string text;
  for (auto& check : checks) {
    auto tint = check.level == "ok" ? Tint::Good : check.level == "warn" ? Tint::Caution : Tint::Bad;
    size_t indent = 6 + names + 2;
    text += tinted(look, tint, padded(line(check.level), 6)) + padded(line(check.name), names) + "  " +
            paragraph(check.what, indent) + "\n";
    if (!check.fix.empty()) text += std::string(indent, ' ') + "fix: " + paragraph(check.fix, indent + 5) + "\n";
  }
  return text;
}

std::string planView(const Look& look, const std::string& json, const std::string& sha256) {
  auto plan = parseJson(json);
  auto text = plan.is_discarded() ? json : plan.dump(2, ' ', false, Json::error_handler_t::replace);
  return tinted(look, Tint::Dim, "sha256 " + line(sha256)) + "\n" + paragraph(text, 0) + "\n";
}

}  // namespace oc::cli
