#include "cleaner.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "json_fields.h"
#include "names.h"
#include "refusals.h"

namespace oc::docker {

namespace {

constexpr int mostAttempts = 50;
constexpr auto pause = 100 * kj::MILLISECONDS;

std::vector<std::string> labelsOf(const std::string& owner, const std::string& run) {
  std::vector<std::string> labels = {std::string(ownerLabel) + "=" + owner};
  if (!run.empty()) labels.push_back(std::string(runLabel) + "=" + run);
  return labels;
}

FoundContainer readContainer(const Json& item) {
  FoundContainer found;
  auto& labels = objectField(item, "Labels");
  found.id = textField(item, "Id");
  auto names = textsField(item, "Names", 1);
  if (!names.empty()) found.name = names[0].starts_with('/') ? names[0].substr(1) : names[0];
  found.owner = textField(labels, ownerLabel);
  found.run = textField(labels, runLabel);
  found.role = textField(labels, roleLabel);
  found.planSha256 = textField(labels, planLabel);
  found.gateway = textField(labels, gatewayLabel);
  found.imageId = textField(item, "ImageID");
  auto state = textField(item, "State");
  found.running = state == "running" || state == "paused" || state == "restarting";
  return found;
}

// Whoever speaks to the agent first, so that nothing new is asked of a gateway that goes.
bool before(const FoundContainer& one, const FoundContainer& other) {
  return one.role != "gateway" && other.role == "gateway";
}

}  // namespace

struct Cleaner::Task {
  std::string owner;
  std::vector<std::string> runs;  // of these; none: of all
  std::vector<std::string> keep;
  bool everything = false;
  std::deque<FoundContainer> containers;
  std::deque<std::string> volumes;
  Removed removed;

  bool keeps(const std::string& other) const { return std::find(keep.begin(), keep.end(), other) != keep.end(); }

  // A run's gateway goes with the run, and stays with it.
  void addGateway(const std::string& name) {
    if (!isPreparedName(name)) return;
    if (everything) return keep.push_back(name);
    if (std::find(runs.begin(), runs.end(), name) != runs.end()) return;
    runs.push_back(name);
    volumes.push_back(volumeName(owner, name));
  }
};

Cleaner::Cleaner(kj::Timer& timer, Engine& first, Engine& second, std::string context)
    : timer(timer), first(first), second(second), context(kj::mv(context)) {}

kj::Promise<OrRefusal<std::vector<FoundContainer>>> Cleaner::find(const std::string& owner, const std::string& run) {
  auto path = "/containers/json?all=1&" + labelFilter(labelsOf(owner, run));
  return first.get(path).then([this, owner, run](Answer answer) -> OrRefusal<std::vector<FoundContainer>> {
    if (!answer.good()) return refusalOf(answer, "list containers", context);
    if (!answer.body.is_array()) return malformedAnswer("the list of containers");
    std::vector<FoundContainer> found;
    for (auto& item : answer.body) {
      auto container = readContainer(item);
      // The filter is the engine's; that nothing of others is touched is ours to see to.
      if (!isContainerId(container.id) || container.owner != owner || (!run.empty() && container.run != run)) continue;
      found.push_back(kj::mv(container));
    }
    std::stable_sort(found.begin(), found.end(), before);
    return found;
  });
}

kj::Promise<OrRefusal<Removed>> Cleaner::removeRun(const std::string& owner, const std::string& run,
                                                   const std::string& gateway) {
  auto task = kj::heap<Task>();
  task->owner = owner;
  task->runs = {run};
  if (!gateway.empty()) task->runs.push_back(gateway);
  for (auto& name : task->runs) task->volumes.push_back(volumeName(owner, name));
  return removeAll(kj::mv(task));
}

kj::Promise<OrRefusal<Removed>> Cleaner::sweep(const std::string& owner, std::vector<std::string> keep) {
  auto task = kj::heap<Task>();
  task->owner = owner;
  task->keep = kj::mv(keep);
  task->everything = true;
  return removeAll(kj::mv(task));
}

kj::Promise<OrRefusal<Removed>> Cleaner::removeAll(kj::Own<Task> owned) {
  auto& task = *owned;
  using Result = OrRefusal<Removed>;
  return collect(task, 0)
      .then([this, &task](std::optional<Refusal> refusal) -> kj::Promise<Result> {
        if (refusal) return Result(*refusal);
        kj::Vector<kj::Promise<void>> both;
        both.add(removeContainers(task, first).eagerlyEvaluate(nullptr));
        if (&first != &second) both.add(removeContainers(task, second).eagerlyEvaluate(nullptr));
        return kj::joinPromises(both.releaseAsArray())
            .then([this, &task]() { return removeVolumes(task); })
            .then([this, &task]() { return removeEgress(task); })
            .then([&task]() { return Result(kj::mv(task.removed)); });
      })
      .attach(kj::mv(owned));
}

// The containers of each run in turn; once, with an empty name, where all are wanted.
kj::Promise<std::optional<Refusal>> Cleaner::collect(Task& task, size_t which) {
  if (which == std::max<size_t>(task.runs.size(), 1)) return std::optional<Refusal>();
  auto name = task.runs.empty() ? std::string() : task.runs[which];
  return find(task.owner, name)
      .then([this, &task, which](OrRefusal<std::vector<FoundContainer>> found) -> kj::Promise<std::optional<Refusal>> {
        if (!found) return std::optional<Refusal>(found.refusal());
        for (auto& container : found.value()) {
          if (!task.everything || task.keeps(container.run)) task.addGateway(container.gateway);
        }
        for (auto& container : found.value()) {
          if (!task.keeps(container.run)) task.containers.push_back(kj::mv(container));
        }
        return collect(task, which + 1);
      });
}

kj::Promise<void> Cleaner::removeContainers(Task& task, Engine& engine) {
  if (task.containers.empty()) return kj::READY_NOW;
  auto next = kj::mv(task.containers.front());
  task.containers.pop_front();
  return removeContainer(task, engine, kj::mv(next), 1).then([this, &task, &engine]() {
    return removeContainers(task, engine);
  });
}

kj::Promise<void> Cleaner::removeContainer(Task& task, Engine& engine, FoundContainer container, int attempt) {
  // v=1: with the volumes that its image may have made for it; named ones stay.
  auto path = fmt::format("/containers/{}?force=1&v=1", container.id);
  return engine.remove(path).then([this, &task, &engine, container = kj::mv(container),
                                   attempt](Answer answer) mutable -> kj::Promise<void> {
    if (answer.good()) ++task.removed.count;
    if (answer.good() || answer.status == 404) return kj::READY_NOW;
    if (attempt < mostAttempts && answer.status == 409) {  // somebody else is removing it: until it is gone
      return timer.afterDelay(pause).then([this, &task, &engine, container = kj::mv(container), attempt]() mutable {
        return removeContainer(task, engine, kj::mv(container), attempt + 1);
      });
    }
    if (attempt < 3) {
      return timer.afterDelay(pause * 3).then([this, &task, &engine, container = kj::mv(container), attempt]() mutable {
        return removeContainer(task, engine, kj::mv(container), attempt + 1);
      });
    }
    task.removed.left.push_back(fmt::format("container {}: {}", container.name, answer.message));
    return kj::READY_NOW;
  });
}

kj::Promise<void> Cleaner::removeVolumes(Task& task) {
  if (task.everything) {
    task.everything = false;
    auto path = "/volumes?" + labelFilter(labelsOf(task.owner, ""));
    return first.get(path).then([this, &task](Answer answer) -> kj::Promise<void> {
      if (!answer.good()) {
        task.removed.left.push_back(fmt::format("volumes: {}", answer.message));
        return kj::READY_NOW;
      }
      for (auto& volume : arrayField(answer.body, "Volumes")) {
        auto& labels = objectField(volume, "Labels");
        auto run = textField(labels, runLabel);
        if (textField(labels, ownerLabel) != task.owner || task.keeps(run)) continue;
        if (isProperName(run)) task.volumes.push_back(volumeName(task.owner, run));
      }
      return removeVolumes(task);
    });
  }
  if (task.volumes.empty()) return kj::READY_NOW;
  auto next = kj::mv(task.volumes.front());
  task.volumes.pop_front();
  return removeVolume(task, kj::mv(next), 1).then([this, &task]() { return removeVolumes(task); });
}

kj::Promise<void> Cleaner::removeVolume(Task& task, std::string name, int attempt) {
  return first.remove("/volumes/" + name)
      .then([this, &task, name, attempt](Answer answer) mutable -> kj::Promise<void> {
        if (answer.good()) ++task.removed.count;
        if (answer.good() || answer.status == 404) return kj::READY_NOW;
        // In use, by a container that is just being removed.
        if (answer.status == 409 && attempt < 10) {
          return timer.afterDelay(pause).then([this, &task, name = kj::mv(name), attempt]() mutable {
            return removeVolume(task, kj::mv(name), attempt + 1);
          });
        }
        task.removed.left.push_back(fmt::format("volume {}: {}", name, answer.message));
        return kj::READY_NOW;
      });
}

// It is every run's, so only a sweep that keeps none takes it away.
kj::Promise<void> Cleaner::removeEgress(Task& task) {
  if (!task.runs.empty() || !task.keep.empty()) return kj::READY_NOW;
  auto name = egressName(task.owner);
  return first.get("/networks/" + name).then([this, &task, name](Answer answer) -> kj::Promise<void> {
    if (!answer.good() || textField(objectField(answer.body, "Labels"), ownerLabel) != task.owner) return kj::READY_NOW;
    return first.remove("/networks/" + name).then([&task, name](Answer answer) {
      if (answer.good()) ++task.removed.count;
      // 403: a gateway is on it, which somebody has just started.
      if (answer.good() || answer.status == 404 || answer.status == 403) return;
      task.removed.left.push_back(fmt::format("network {}: {}", name, answer.message));
    });
  });
}

}  // namespace oc::docker
