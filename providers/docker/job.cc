#include "job.h"

#include <fmt/format.h>

#include "base/text.h"
#include "names.h"
#include "providers/kit/kit.h"

namespace oc::docker {

namespace {

constexpr unsigned runConnections = 5;
constexpr unsigned mostTaskConnections = 8;  // descriptors 4 to 11

void requireName(const std::string& value, const char* what) {
  if (!isProperName(value)) throw kit::UsageError{fmt::format("\"{}\" is no proper {}", printable(value), what)};
}

unsigned readCount(const std::string& text) {
  if (text.size() != 1 || text[0] < '1' || text[0] > '0' + static_cast<char>(mostTaskConnections)) {
    throw kit::UsageError{fmt::format("a task has 1 to {} connections", mostTaskConnections)};
  }
  return text[0] - '0';
}

}  // namespace

int firstConnection(const Job& job) { return job.kind == Kind::Run ? 5 : 4; }

Job parseJob(const std::vector<std::string>& words) {
  if (words.empty() || (words[0] != "task" && words[0] != "run")) throw kit::UsageError{"a job is task or run"};
  Job job;
  job.kind = words[0] == "run" ? Kind::Run : Kind::Task;
  if (job.kind == Kind::Run) job.connections = runConnections;
  for (size_t i = 1; i < words.size(); i += 2) {
    auto& option = words[i];
    if (i + 1 == words.size()) throw kit::UsageError{"a value is missing after " + printable(option)};
    auto& value = words[i + 1];
    if (option == "--owner") {
      requireName(job.owner = value, "owner");
    } else if (option == "--run" && job.kind == Kind::Run) {
      requireName(job.run = value, "run");
    } else if (option == "--connections" && job.kind == Kind::Task) {
      job.connections = readCount(value);
    } else if (option == "--context") {
      job.context = shortened(printable(value), 128);
    } else {
      throw kit::UsageError{"unknown option: " + printable(option)};
    }
  }
  if (job.connections == 0) throw kit::UsageError{"--connections is missing"};
  if (job.kind == Kind::Run && (job.owner.empty() || job.run.empty()))
    throw kit::UsageError{"--owner or --run is missing"};
  return job;
}

std::vector<std::string> jobWords(const Job& job) {
  bool run = job.kind == Kind::Run;
  std::vector<std::string> words = {run ? "run" : "task"};
  auto add = [&words](const char* option, const std::string& value) {
    if (value.empty()) return;
    words.push_back(option);
    words.push_back(value);
  };
  if (!run) add("--connections", std::to_string(job.connections));
  add("--owner", job.owner);
  add("--run", job.run);
  add("--context", job.context);
  return words;
}

}  // namespace oc::docker
