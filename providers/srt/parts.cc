#include "parts.h"

#include "providers/kit/kit.h"

namespace oc::srt {

namespace {

struct Option {
  const char* name;
  std::string Job::*member;
  bool needed;
};

constexpr Option options[] = {
    {"--node", &Job::node, true},          {"--cli", &Job::cli, true},
    {"--bwrap", &Job::bwrap, false},       {"--socat", &Job::socat, false},
    {"--ripgrep", &Job::ripgrep, false},   {"--seccomp", &Job::seccompHelper, false},
    {"--settings", &Job::settings, false}, {"--scratch", &Job::scratch, true},
};

}  // namespace

Job parsePartialJob(const std::vector<std::string>& words) {
  Job job;
  for (size_t i = 0; i < words.size(); i += 2) {
    if (words[i] == "--cgroup" && i + 1 < words.size()) {
      job.cgroups.push_back(words[i + 1]);
      continue;
    }
    if (words[i] == "--socket" && i + 1 < words.size()) {
      job.sockets.push_back(words[i + 1]);
      continue;
    }
    const Option* known = nullptr;
    for (auto& option : options) {
      if (words[i] == option.name) known = &option;
    }
    if (known == nullptr) throw kit::UsageError{"unexpected word: " + words[i]};
    if (i + 1 == words.size()) throw kit::UsageError{words[i] + " needs a path"};
    job.*known->member = words[i + 1];
  }
  return job;
}

Job parseJob(const std::vector<std::string>& words) {
  auto job = parsePartialJob(words);
  for (auto& option : options) {
    auto& value = job.*option.member;
    if (option.needed && value.empty()) throw kit::UsageError{std::string(option.name) + " is missing"};
    if (!value.empty() && value[0] != '/') throw kit::UsageError{std::string(option.name) + " needs an absolute path"};
  }
  for (auto& folder : job.cgroups) {
    if (folder.empty() || folder[0] != '/') throw kit::UsageError{"--cgroup needs an absolute path"};
  }
  for (auto& path : job.sockets) {
    if (path.empty() || path[0] != '/') throw kit::UsageError{"--socket needs an absolute path"};
  }
  return job;
}

std::vector<std::string> toWords(const Job& job) {
  std::vector<std::string> words;
  for (auto& option : options) {
    if (!(job.*option.member).empty()) words.insert(words.end(), {option.name, job.*option.member});
  }
  for (auto& folder : job.cgroups) words.insert(words.end(), {"--cgroup", folder});
  for (auto& path : job.sockets) words.insert(words.end(), {"--socket", path});
  return words;
}

}  // namespace oc::srt
