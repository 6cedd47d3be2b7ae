// Secrets of the config: storing them in the keyring, and which are there. The keyring provider does it, by hand, as
// one does without Open Conduit; no daemon is needed.
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "base/fd.h"
#include "base/json.h"
#include "base/secret_source.h"
#include "base/spawn.h"
#include "base/text.h"
#include "cli/failure.h"
#include "cli/ui/table.h"
#include "commands.h"
#include "daemon/config/formats.h"
#include "daemon/config/load.h"

namespace oc::cli {

namespace {

// A thousand names are 64 KB.
constexpr size_t mostOutput = 1u << 20;

std::vector<std::pair<std::string, std::string>> environmentForKeyring() {
  std::vector<std::pair<std::string, std::string>> result = {{"PATH", "/usr/local/bin:/usr/bin:/bin"}};
  for (auto name : {"HOME", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR"}) {
    if (const char* value = getenv(name)) result.emplace_back(name, value);
  }
#ifdef OPEN_CONDUIT_SANITIZED
  result.emplace_back("ASAN_OPTIONS", "detect_leaks=0");
#endif
  return result;
}

// A provider that ended before it read the value is told by its exit code.
void give(int pipe, const SecretBytes& value) {
  auto before = signal(SIGPIPE, SIG_IGN);
  KJ_DEFER(signal(SIGPIPE, before));
  try {
    writeAll(pipe, value.view());
  } catch (const kj::Exception&) {
  }
}

Json parsed(const std::string& text) {
  try {
    return parseJson(text);
  } catch (const kj::Exception&) {
    return nullptr;
  }
}

std::string textIn(const Json& object, const char* name) {
  return object.is_object() && object.contains(name) && object[name].is_string() ? object[name].get<std::string>() : "";
}

Refusal refusalIn(const std::string& errors) {
  auto document = parsed(errors);
  Refusal why;
  if (document.is_object() && document.contains("error")) {
    auto& error = document["error"];
    why = {textIn(error, "reason"), textIn(error, "message"), textIn(error, "fix")};
  }
  if (why.reason.empty())
    why = {"failed", errors.empty() ? "open-conduit-keyring ended without an answer" : errors, ""};
  return why;
}

// The provider's answer; Failure with its refusal.
Json askKeyring(const World& world, std::vector<std::string> words, const SecretBytes& value = {}) {
  auto in = makePipe(), out = makePipe(), err = makePipe();
  SpawnSpec spec;
  spec.program = world.programs + "/open-conduit-keyring";
  spec.arguments = std::move(words);
  spec.arguments.push_back("--json");
  spec.environment = environmentForKeyring();
  spec.descriptors = {
      {in.first.get(), STDIN_FILENO}, {out.second.get(), STDOUT_FILENO}, {err.second.get(), STDERR_FILENO}};
  spec.newSession = false;  // Ctrl-C is for both
  auto spawned = spawn(spec);
  in.first = nullptr;
  out.second = nullptr;
  err.second = nullptr;
  give(in.second.get(), value);
  in.second = nullptr;
  auto printed = readAll(out.first.get(), mostOutput), errors = readAll(err.first.get(), mostOutput);
  int status;
  KJ_SYSCALL(waitpid(spawned.pid, &status, 0));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) throw Failure{No, refusalIn(errors)};
  return parsed(printed);
}

void requireName(const std::string& name) {
  if (auto problem = config::checkFormat(config::Format::Name, name)) throw wrongUsage(problem->message, problem->fix);
}

int set(World& world, const std::string& name, bool json) {
  requireName(name);
  auto value = readSecretInput(fmt::format("the secret {} (not shown): ", name));
  if (!value.ok()) throw Failure{No, value.refusal()};
  auto answer = askKeyring(world, {"set", name}, value.value());
  bool replaced = answer.is_object() && answer.value("replaced", false);
  if (json) {
    print(world, {{"name", name}, {"replaced", replaced}});
  } else {
    world.out(fmt::format("{} is in the keyring{}; the config refers to it as keyring:{}\n", name,
                          replaced ? ", in the place of the one before" : "", name));
  }
  return Done;
}

int remove(World& world, const std::string& name, bool json) {
  requireName(name);
  askKeyring(world, {"rm", name});
  if (json) {
    print(world, {{"name", name}});
  } else {
    world.out(fmt::format("{} is gone from the keyring\n", name));
  }
  return Done;
}

// ---- list

struct Reference {
  std::string text;
  std::vector<std::string> usedBy;
  std::string state, why;  // state: there, missing, unknown
};

struct Keyring {
  std::set<std::string> names;
  Refusal why;  // it could not be asked
};

Keyring lookIntoKeyring(const World& world) {
  Keyring keyring;
  try {
    auto answer = askKeyring(world, {"list"});
    if (answer.is_object() && answer.contains("names") && answer["names"].is_array()) {
      for (auto& name : answer["names"]) {
        if (name.is_string()) keyring.names.insert(name.get<std::string>());
      }
    }
  } catch (const Failure& failure) {
    keyring.why = failure.why;
  }
  return keyring;
}

void judge(Reference& reference, const Keyring& keyring) {
  auto rest = reference.text.substr(reference.text.find(':') + 1);
  if (reference.text.starts_with("file:")) {
    auto read = readSecretFile(rest);
    reference.state = read.ok() ? "there" : "missing";
    if (!read.ok()) reference.why = read.refusal().what;
  } else if (reference.text.starts_with("env:")) {
    const char* value = getenv(rest.c_str());
    reference.state = "unknown";
    reference.why = fmt::format("the daemon's environment counts; here it is {}set",
                                value == nullptr || *value == '\0' ? "not " : "");
  } else if (!keyring.why.reason.empty()) {
    reference.state = "unknown";
    reference.why = "the keyring can't be asked";
  } else {
    reference.state = keyring.names.contains(rest) ? "there" : "missing";
    if (reference.state == "missing") reference.why = "open-conduit secret set " + rest;
  }
}

std::vector<Reference> referencesOf(const config::Config& config, const Keyring& keyring) {
  std::map<std::string, std::vector<std::string>> users;
  for (auto& connection : config.connections) {
    for (auto& [name, text] : connection.secretRefs)
      users[text].push_back(fmt::format("connection {}: {}", connection.id, name));
  }
  for (auto& scope : config.scopes) {
    for (auto& [name, text] : scope.secretRefs) users[text].push_back(fmt::format("scope {}: {}", scope.id, name));
  }
  for (auto& name : keyring.names) users["keyring:" + name];
  std::vector<Reference> references;
  for (auto& [text, usedBy] : users) {
    references.push_back({text, usedBy, "", ""});
    judge(references.back(), keyring);
    if (usedBy.empty()) references.back().why = "nothing in the config refers to it";
  }
  return references;
}

int list(World& world, const Choice& choice) {
  auto file = choice.configFile.empty() ? world.places.config() : choice.configFile;
  auto loaded = config::loadFile(file, config::environmentOf(world.places.home));
  auto keyring = lookIntoKeyring(world);
  auto references = referencesOf(loaded.config.value_or(config::Config()), keyring);
  if (choice.json) {
    auto secrets = Document::array();
    for (auto& reference : references) {
      secrets.push_back({{"reference", reference.text},
                         {"used_by", reference.usedBy},
                         {"state", reference.state},
                         {"why", textOrNull(reference.why)}});
    }
    print(world, {{"config_ok", loaded.config.has_value()},
                  {"keyring_problem", textOrNull(keyring.why.what)},
                  {"secrets", secrets}});
    return Done;
  }
  if (!loaded.config)
    world.err(
        fmt::format("{} has errors, so what it refers to is not known: open-conduit config check\n", printable(file)));
  if (!keyring.why.reason.empty()) {
    world.err(fmt::format("{}\n", paragraph(keyring.why.what, 0)));
    if (!keyring.why.fix.empty()) world.err(fmt::format("  fix: {}\n", paragraph(keyring.why.fix, 7)));
  }
  Table table({"SECRET", "STATE", "USED BY", ""});
  for (auto& reference : references) {
    auto tint = reference.state == "there" ? Tint::Good : reference.state == "missing" ? Tint::Bad : Tint::Caution;
    table.add(
        {reference.text, {reference.state, tint}, fmt::format("{}", fmt::join(reference.usedBy, ", ")), reference.why});
  }
  world.out(table.empty() ? "the config refers to no secret, and the keyring has none of Open Conduit's\n"
                          : table.render(world.look));
  return Done;
}

}  // namespace

void addSecret(Command& all, Choice& choice) {
  auto secret = all.group("secret", "Secrets in the keyring");
  auto name = std::make_shared<std::string>();
  secret
      .command("set", "Store one: typed without being shown, or from standard input",
               [&choice, name](World& world) { return set(world, *name, choice.json); })
      .required("name", *name, "What the config calls it, behind keyring:", "NAME");
  secret.command("list", "Those that the config refers to, and whether they are there",
                 [&choice](World& world) { return list(world, choice); });
  secret.command("rm", "Delete one", [&choice, name](World& world) { return remove(world, *name, choice.json); })
      .required("name", *name, "Its name", "NAME");
}

}  // namespace oc::cli
