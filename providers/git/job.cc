#include "job.h"

#include <fmt/format.h>

#include <charconv>

#include "base/paths.h"
#include "base/text.h"
#include "providers/kit/kit.h"

namespace oc::git {

namespace {

enum class Wants { No, Maybe, Yes };

struct RoleForm {
  Role role;
  const char* name;
  Wants checkout;
  Wants workspace;
};

constexpr RoleForm forms[] = {
    {Role::Check, "check", Wants::No, Wants::No},   {Role::Inspect, "inspect", Wants::Yes, Wants::No},
    {Role::Clone, "clone", Wants::Yes, Wants::Yes}, {Role::Worktree, "worktree", Wants::Yes, Wants::Yes},
    {Role::Pack, "pack", Wants::No, Wants::Yes},    {Role::Receive, "receive", Wants::Yes, Wants::No},
    {Role::Scan, "scan", Wants::No, Wants::Yes},    {Role::Remove, "remove", Wants::Maybe, Wants::Yes},
};

const RoleForm& formNamed(const std::string& name) {
  for (auto& form : forms) {
    if (name == form.name) return form;
  }
  throw kit::UsageError{fmt::format("there is no role \"{}\"", printable(name))};
}

std::string pathFrom(const std::string& option, const std::string& word) {
  if (word.empty() || word[0] != '/')
    throw kit::UsageError{fmt::format("{}: not an absolute path: \"{}\"", option, printable(word))};
  if (hasControlCharacters(word)) {
    throw kit::UsageError{fmt::format("{}: a path with control characters: \"{}\"", option, printable(word))};
  }
  auto path = normalizePath(word);
  if (path == "/") throw kit::UsageError{option + ": / can be neither a checkout nor a workspace"};
  return path;
}

uint64_t sizeFrom(const std::string& option, const std::string& word) {
  uint64_t size = 0;
  auto end = word.data() + word.size();
  auto result = std::from_chars(word.data(), end, size);
  if (result.ec != std::errc() || result.ptr != end || size == 0) {
    throw kit::UsageError{fmt::format("{}: not a number of bytes: \"{}\"", option, printable(word))};
  }
  return size;
}

void requireFits(const RoleForm& form, const char* option, Wants wants, bool given) {
  if (wants == Wants::Yes && !given) throw kit::UsageError{fmt::format("{}: {} is missing", form.name, option)};
  if (wants == Wants::No && given) throw kit::UsageError{fmt::format("{}: does not take {}", form.name, option)};
}

}  // namespace

const char* roleName(Role role) {
  for (auto& form : forms) {
    if (form.role == role) return form.name;
  }
  return "?";
}

Job parseJob(const std::vector<std::string>& words) {
  if (words.empty()) throw kit::UsageError{"a role is missing"};
  auto& form = formNamed(words[0]);
  Job job;
  job.role = form.role;
  bool sized = false;
  for (size_t i = 1; i < words.size(); i += 2) {
    auto& option = words[i];
    if (i + 1 == words.size()) throw kit::UsageError{fmt::format("{}: its value is missing", printable(option))};
    auto& value = words[i + 1];
    if (option == "--checkout") {
      job.checkout = pathFrom(option, value);
    } else if (option == "--workspace") {
      job.workspace = pathFrom(option, value);
    } else if (option == "--max-size") {
      job.maxSize = sizeFrom(option, value);
      sized = true;
    } else {
      throw kit::UsageError{fmt::format("unexpected word: \"{}\"", printable(option))};
    }
  }
  requireFits(form, "--checkout", form.checkout, !job.checkout.empty());
  requireFits(form, "--workspace", form.workspace, !job.workspace.empty());
  requireFits(form, "--max-size", form.role == Role::Receive ? Wants::Maybe : Wants::No, sized);
  if (!job.checkout.empty() && !job.workspace.empty() &&
      (isAtOrUnder(job.workspace, job.checkout) || isAtOrUnder(job.checkout, job.workspace))) {
    throw kit::UsageError{
        fmt::format("the workspace {} and the checkout {} lie in each other", job.workspace, job.checkout)};
  }
  return job;
}

std::vector<std::string> jobWords(const Job& job) {
  std::vector<std::string> words = {roleName(job.role)};
  auto add = [&words](const char* option, const std::string& value) {
    words.push_back(option);
    words.push_back(value);
  };
  if (!job.checkout.empty()) add("--checkout", job.checkout);
  if (!job.workspace.empty()) add("--workspace", job.workspace);
  if (job.role == Role::Receive) add("--max-size", std::to_string(job.maxSize));
  return words;
}

std::string viewOf(const Job& job) { return job.workspace + ".git-view"; }

}  // namespace oc::git
