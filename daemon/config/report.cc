#include "report.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/text.h"

namespace oc::config {

namespace {

// More than a person reads; keeps a config of garbage from becoming gigabytes of complaints.
constexpr size_t diagnosticLimit = 1000;

}  // namespace

std::optional<Spot> Spot::field(std::string_view name) const {
  auto member = node->find(name);
  if (member == nullptr) return std::nullopt;
  return Spot{&member->value, member};
}

std::optional<Spot> Spot::field(std::string_view a, std::string_view b) const {
  auto first = field(a);
  return first ? first->field(b) : std::nullopt;
}

std::vector<Spot> Spot::items() const {
  std::vector<Spot> result;
  result.reserve(node->items.size());
  for (auto& item : node->items) result.push_back({&item, nullptr});
  return result;
}

std::vector<Spot> Spot::members() const {
  std::vector<Spot> result;
  result.reserve(node->members.size());
  for (auto& member : node->members) result.push_back({&member.value, &member});
  return result;
}

std::string Spot::text(std::string_view name) const {
  auto member = node->find(name);
  return member != nullptr && member->value.kind == Node::Kind::String ? member->value.text : "";
}

std::vector<std::string> Spot::texts(std::string_view name) const {
  std::vector<std::string> result;
  auto member = node->find(name);
  if (member == nullptr) return result;
  for (auto& item : member->value.items) {
    if (item.kind == Node::Kind::String) result.push_back(item.text);
  }
  return result;
}

void Report::error(const Spot& spot, std::string message, std::string fix, std::string reason) {
  add({Diagnostic::Severity::Error, spot.node->at.line, spot.node->at.column, spot.path(), std::move(reason),
       std::move(message), std::move(fix)});
}

void Report::warning(const Spot& spot, std::string message, std::string fix) {
  add({Diagnostic::Severity::Warning, spot.node->at.line, spot.node->at.column, spot.path(), "", std::move(message),
       std::move(fix)});
}

void Report::errorOfKey(const Spot& member, std::string message, std::string fix) {
  add({Diagnostic::Severity::Error, member.keyAt().line, member.keyAt().column, member.path(), "", std::move(message),
       std::move(fix)});
}

void Report::add(Diagnostic diagnostic) {
  bool isError = diagnostic.severity == Diagnostic::Severity::Error;
  if (diagnostics.size() < diagnosticLimit) {
    diagnostics.push_back(std::move(diagnostic));
  } else {
    ++dropped;
    droppedError |= isError;
  }
}

std::vector<Diagnostic> Report::take() {
  auto order = [](const Diagnostic& d) { return std::tie(d.line, d.column, d.field, d.severity, d.message); };
  std::stable_sort(diagnostics.begin(), diagnostics.end(), [&order](auto& a, auto& b) { return order(a) < order(b); });
  auto same = [&order](auto& a, auto& b) { return order(a) == order(b); };
  diagnostics.erase(std::unique(diagnostics.begin(), diagnostics.end(), same), diagnostics.end());
  if (dropped > 0) {
    auto severity = droppedError ? Diagnostic::Severity::Error : Diagnostic::Severity::Warning;
    diagnostics.push_back(
        {severity, 0, 0, "", "", fmt::format("{} more problems are not shown", dropped), "mend these first"});
  }
  dropped = 0;
  return std::move(diagnostics);
}

std::string didYouMean(std::string_view word, const std::vector<std::string>& candidates, std::string otherwise) {
  auto close = closest(word, candidates);
  return close.empty() ? otherwise : fmt::format("did you mean \"{}\"?", printable(close));
}

}  // namespace oc::config
