#include "scene.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/crypto.h"
#include "base/error.h"
#include "base/fd.h"
#include "daemon/sandbox/credentials.h"

namespace oc::attack {

namespace {

constexpr int standLimit = 20'000;  // milliseconds that it may take to put its targets up
constexpr size_t mostOutput = 1u << 20;

// A file in it that can be read, or itself; empty: none.
std::string fileAt(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored)) return access(path.c_str(), R_OK) == 0 ? path : "";
  for (auto& entry : std::filesystem::directory_iterator(path, ignored)) {
    if (!entry.is_regular_file(ignored) || entry.file_size(ignored) == 0) continue;
    if (access(entry.path().c_str(), R_OK) == 0) return entry.path();
  }
  return "";
}

}  // namespace

Scene::Scene(const Places& places, const work::Environment& own, std::string programParam)
    : places(places),
      program(std::move(programParam)),
      runId(newId("x-")),
      workId(newId("xw-")),
      besideId(newId("x-")),
      ownDir(places.dataDir + "/own-" + runId)  // not the state, over which srt's scratch lies in any case
      ,
      besideDir(places.runFiles(besideId)),
      outsideDir(places.home + "/.open-conduit-" + runId),
      runtimeDir(places.runtimeDir + "/" + runId),
      rootDir(places.dataDir + "/attacks/" + runId) {
  auto runtime = own.find("XDG_RUNTIME_DIR");
  if (runtime != own.end() && !runtime->second.empty()) runtimeDir = runtime->second + "/oc-" + runId;
  KJ_ON_SCOPE_FAILURE({
    for (auto& path : {ownDir, outsideDir, runtimeDir, rootDir, places.runDir(runId), places.runDir(besideId),
                       places.workDir(workId)})
      removeTree(path);
  });
  makeDirectories();
  startStand();
}

Scene::~Scene() noexcept(false) {
  toStand = nullptr;
  if (stand.pid > 0) waitpid(stand.pid, nullptr, 0);
  for (auto& path :
       {ownDir, outsideDir, runtimeDir, rootDir, places.runDir(runId), places.runDir(besideId), places.workDir(workId)})
    removeTree(path);
  rmdir((places.dataDir + "/attacks").c_str());
}

void Scene::makeDirectories() {
  for (auto& path : {places.runsDir(), places.worksDir(), places.dataDir + "/attacks", rootDir, places.runDir(runId),
                     places.runPrivate(runId), places.runFiles(runId), places.runFiles(runId) + "/tmp",
                     places.runSecrets(runId), places.runDir(besideId), besideDir, places.workDir(workId), workspace(),
                     places.workHome(workId), ownDir, outsideDir, runtimeDir, rootDir + "/workspace"})
    makePrivateDirectory(path);
}

std::string Scene::credential() const {
  for (auto& path : sandbox::commonCredentials(places.home)) {
    auto file = fileAt(path);
    if (!file.empty()) return file;
  }
  return "";
}

void Scene::startStand() {
  auto input = makePipe(), output = makePipe();
  SpawnSpec spec;
  spec.program = program;
  spec.arguments = {"stand",
                    "own=" + ownDir,
                    "beside=" + besideDir,
                    "outside=" + outsideDir,
                    "runtime=" + runtimeDir,
                    "root=" + rootDir,
                    "private=" + places.runPrivate(runId),
                    "repository=" + workspace(),
                    "repository=" + rootDir + "/workspace"};
  if (auto file = credential(); !file.empty()) spec.arguments.push_back("credential=" + file);
  spec.descriptors = {
      {input.first.get(), STDIN_FILENO}, {output.second.get(), STDOUT_FILENO}, {STDERR_FILENO, STDERR_FILENO}};
  spec.dieWithParent = true;
  stand = spawn(spec);
  toStand = kj::mv(input.second);
  fromStand = kj::mv(output.first);
  readTargets();
}

// Lines up to "ready".
void Scene::readTargets() {
  std::string text;
  char buffer[4096];
  while (!text.ends_with("ready\n")) {
    struct pollfd waiting = {fromStand.get(), POLLIN, 0};
    if (poll(&waiting, 1, standLimit) != 1) fail("the attacks' targets were not put up in time");
    ssize_t n = ::read(fromStand.get(), buffer, sizeof(buffer));
    if (n <= 0 || text.size() > mostOutput) fail("the attacks' targets could not be put up");
    text.append(buffer, static_cast<size_t>(n));
  }
  told.clear();
  for (size_t at = 0; at < text.size();) {
    auto end = text.find('\n', at);
    auto equals = text.find('=', at);
    if (equals < end) told[text.substr(at, equals - at)] = text.substr(equals + 1, end - equals - 1);
    at = end + 1;
  }
  writeFileAtomically(places.runPrivate(runId) + "/secret", told["marker"]);
}

void Scene::putUpAgain() {
  writeAll(toStand.get(), "again\n");
  readTargets();
}

std::string Scene::targetsText(const TargetMap& more) const {
  auto all = told;
  for (auto& [name, value] : more) all[name] = value;
  std::string text;
  for (auto& [name, value] : all) text += name + "=" + value + "\n";
  return text;
}

std::string Scene::attackOutside(const TargetMap& more) {
  auto file = rootDir + "/targets";
  auto all = more;
  all["workspace"] = rootDir + "/workspace";
  writeFileAtomically(file, targetsText(all));
  auto output = makePipe();
  SpawnSpec spec;
  spec.program = program;
  spec.arguments = {"outside", file};
  spec.descriptors = {{output.second.get(), STDOUT_FILENO}, {STDERR_FILENO, STDERR_FILENO}};
  spec.directory = rootDir + "/workspace";
  spec.noNewPrivs = false;  // nothing is taken from it
  spec.dieWithParent = true;
  auto spawned = spawn(spec);
  output.second = nullptr;
  auto text = readAll(output.first.get(), mostOutput);
  KJ_SYSCALL(waitpid(spawned.pid, nullptr, 0));
  return text;
}

std::vector<std::string> Scene::putIntoRun(const TargetMap& more) {
  auto files = places.runFiles(runId);
  auto copy = files + "/open-conduit-attack", file = files + "/attack-targets";
  std::filesystem::copy_file(program, copy, std::filesystem::copy_options::overwrite_existing);
  KJ_SYSCALL(chmod(copy.c_str(), 0700));
  auto all = more;
  all["workspace"] = workspace();
  writeFileAtomically(file, targetsText(all));
  return {copy, "try", file};
}

}  // namespace oc::attack
