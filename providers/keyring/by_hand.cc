#include "by_hand.h"

#include <fmt/format.h>
#include <kj/debug.h>
#include <stdio.h>
#include <unistd.h>

#include <map>
#include <vector>

#include "base/environment.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/secret_source.h"
#include "base/session_bus.h"
#include "base/spawn.h"
#include "base/text.h"
#include "job.h"
#include "keyring.capnp.h"
#include "proto/convert.h"
#include "providers/kit/kit.h"

namespace oc::keyring {

const char* const usageByHand =
    "usage: open-conduit-keyring get NAME     print the value, as it is\n"
    "       open-conduit-keyring set NAME     store what is typed (not shown), or standard input\n"
    "       open-conduit-keyring rm NAME\n"
    "       open-conduit-keyring list\n"
    "       … --json                          one JSON document instead of words (not for get)\n"
    "\n"
    "Secrets of Open Conduit's in your session's keyring. One newline at the end of what `set` reads is no part of it.\n";

namespace {

constexpr int busDescriptor = 4, valueDescriptor = 5;

class Call {
 public:
  Call(Job job, bool json) : job(std::move(job)), json(json) {}

  int make() {
    SecretBytes given;
    if (job.action == Action::Set) {
      auto read = readSecretInput(fmt::format("the secret {} (not shown): ", job.name));
      if (!read.ok()) return refused(read.refusal());
      given = std::move(read).value();
    }
    auto bus = dialSessionBus(ownEnvironment());
    if (!bus.ok()) return refused(bus.refusal());
    auto pipe = makePipe();
    auto& theirs = job.action == Action::Set ? pipe.first : pipe.second;
    auto& ours = job.action == Action::Set ? pipe.second : pipe.first;
    instance = kit::startByHand(jobWords(job), {{bus.value().get(), busDescriptor}, {theirs.get(), valueDescriptor}});
    theirs = nullptr;
    bus.value() = nullptr;
    int code = act(kj::mv(ours), given);
    instance->finish();
    return code;
  }

 private:
  // The value moves while the call is made: a pipe may hold less than a value.
  int act(kj::AutoCloseFd value, const SecretBytes& given) {
    auto keyring = instance->capability().castAs<proto::Keyring>();
    auto& scope = instance->io().waitScope;
    auto& low = *instance->io().lowLevelProvider;
    switch (job.action) {
      case Action::Get: {
        auto stream = low.wrapInputFd(kj::mv(value));
        auto reading = stream->readAllBytes(mostSecretBytes + 1).eagerlyEvaluate(nullptr);
        auto refusal = read(keyring.getRequest().send().wait(scope).getRefusal());
        if (!refusal.reason.empty()) return refused(refusal);
        auto bytes = reading.wait(scope);
        writeAll(STDOUT_FILENO, {reinterpret_cast<const char*>(bytes.begin()), bytes.size()});
        return 0;
      }
      case Action::Set: {
        auto stream = low.wrapOutputFd(kj::mv(value));
        auto writing = stream->write(given.bytes().begin(), given.size())
                           .then([&stream]() { stream = nullptr; })
                           .eagerlyEvaluate(nullptr);
        return stored(keyring.setRequest().send().wait(scope));
      }
      case Action::Remove: return removed(keyring.removeRequest().send().wait(scope));
      case Action::List: return listed(keyring.listRequest().send().wait(scope));
    }
    return 1;
  }

  int stored(proto::Keyring::SetResults::Reader results) {
    auto refusal = read(results.getRefusal());
    if (!refusal.reason.empty()) return refused(refusal);
    bool replaced = results.getReplaced();
    return say(fmt::format("{} is in the keyring{}", job.name, replaced ? ", in the place of the one before" : ""),
               {{"name", job.name}, {"replaced", replaced}});
  }

  int removed(proto::Keyring::RemoveResults::Reader results) {
    auto refusal = read(results.getRefusal());
    if (!refusal.reason.empty()) return refused(refusal);
    if (!results.getRemoved()) {
      return refused(
          {"secret_unknown", fmt::format("the keyring has no secret {}", job.name), "open-conduit secret list"});
    }
    return say(fmt::format("{} is gone from the keyring", job.name), {{"name", job.name}});
  }

  int listed(proto::Keyring::ListResults::Reader results) {
    auto refusal = read(results.getRefusal());
    if (!refusal.reason.empty()) return refused(refusal);
    auto names = Json::array();
    for (auto name : results.getNames()) {
      auto text = printable(toString(name));
      names.push_back(text);
      if (!json) printf("%s\n", text.c_str());
    }
    return json ? say("", {{"names", names}}) : 0;
  }

  int say(const std::string& words, const Json& document) {
    printf("%s\n", json ? document.dump().c_str() : words.c_str());
    return 0;
  }

  int refused(const Refusal& why) {
    if (json) {
      Json document = {{"error", {{"reason", why.reason}, {"message", why.what}, {"fix", why.fix}}}};
      fprintf(stderr, "%s\n", document.dump().c_str());
    } else {
      fprintf(stderr, "open-conduit-keyring: %s: %s\n", why.reason.c_str(), why.what.c_str());
      if (!why.fix.empty()) fprintf(stderr, "  fix: %s\n", why.fix.c_str());
    }
    return 1;
  }

  Job job;
  bool json;
  kj::Own<kit::ByHandInstance> instance;
};

}  // namespace

int byHand(const std::vector<std::string>& given) {
  auto words = given;
  bool json = std::erase(words, "--json") > 0;
  return Call(parseJob(words), json).make();
}

}  // namespace oc::keyring
