#include <kj/debug.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "handshake.h"
#include "kit.h"
#include "lockdown.h"

namespace oc::kit {

namespace {

// Descriptors up to here may be an instance's: RPC and what the schemas list.
constexpr int highestDescriptor = 11;

struct InstanceWords {
  std::vector<std::string> hidden, kept, job;
};

InstanceWords readInstanceWords(const std::vector<std::string>& words) {
  InstanceWords result;
  size_t i = 1;
  for (; i < words.size() && words[i] != "--"; ++i) {
    bool hide = words[i] == "--hide", keep = words[i] == "--keep";
    if ((!hide && !keep) || i + 1 == words.size()) throw UsageError{"unexpected word: " + words[i]};
    (hide ? result.hidden : result.kept).push_back(words[++i]);
  }
  if (i < words.size()) result.job.assign(words.begin() + i + 1, words.end());
  return result;
}

Profile profileOf(Provider& provider, const InstanceWords& words) {
  auto profile = provider.profile();
  profile.name = provider.name();
  profile.hidden.insert(profile.hidden.end(), words.hidden.begin(), words.hidden.end());
  profile.kept.insert(profile.kept.end(), words.kept.begin(), words.kept.end());
  return profile;
}

void serveUntilDone(Provider& provider, Protections protections) {
  // It ends with the process: what the provider holds may have put events on the loop that it goes with.
  auto& io = *new kj::AsyncIoContext(kj::setupAsyncIo());
  auto gone = kj::newPromiseAndFulfiller<void>();
  Context context{io, kj::mv(protections), kj::mv(gone.promise)};
  auto stream = io.lowLevelProvider->wrapSocketFd(kj::AutoCloseFd(rpcDescriptor));
  // The daemon is trusted, but bounded like everyone.
  Connection connection(kj::mv(stream), capnp::rpc::twoparty::Side::SERVER, provider.serve(context), RpcLimits(),
                        "the daemon");
  sayReady(rpcDescriptor);
  connection.onDisconnect().wait(io.waitScope);
  gone.fulfiller->fulfill();
  if (!provider.exitsWithDaemon()) kj::Promise<void>(kj::NEVER_DONE).wait(io.waitScope);
}

// What went wrong, for who started us: as one line, without our source's file names.
int failed(const std::string& text) {
  try {
    sayFailure(rpcDescriptor, text);
  } catch (const kj::Exception& exception) {
    logError("{}; and nobody is there to be told: {}", text, describe(exception));
  }
  return 1;
}

int runInstance(Provider& provider, const std::vector<std::string>& words) {
  bool ready = false;
  try {
    auto parsed = readInstanceWords(words);
    provider.parse(parsed.job);
    auto protections =
        lockDown(profileOf(provider, parsed), highestDescriptor, [](pid_t pid) { sayPid(rpcDescriptor, pid); });
    ready = true;
    serveUntilDone(provider, kj::mv(protections));
    return 0;
  } catch (const UsageError& error) {
    return failed(error.message);
  } catch (const kj::Exception& exception) {
    if (!ready) return failed(describe(exception));
    if (exception.getType() != kj::Exception::Type::DISCONNECTED) logError("{}", describe(exception));
    return 1;
  }
}

int runByHand(Provider& provider, const std::vector<std::string>& words) {
  auto usage = [&provider](FILE* to) { fputs(provider.usage().c_str(), to); };
  if (words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    usage(words.empty() ? stderr : stdout);
    return words.empty() ? 2 : 0;
  }
  if (words[0] == "--version") {
    printf("open-conduit-%s %s\n", provider.name().c_str(), OPEN_CONDUIT_VERSION);
    return 0;
  }
  try {
    return provider.byHand(words);
  } catch (const UsageError& error) {
    fprintf(stderr, "open-conduit-%s: %s\n\n", provider.name().c_str(), error.message.c_str());
    usage(stderr);
    return 2;
  } catch (const kj::Exception& exception) {
    fprintf(stderr, "open-conduit-%s: %s\n", provider.name().c_str(), describe(exception).c_str());
    return 1;
  }
}

}  // namespace

int providerMain(int argc, char** argv, Provider& provider) {
  signal(SIGPIPE, SIG_IGN);
  initLog("open-conduit-" + provider.name());
  std::vector<std::string> words(argv + 1, argv + argc);
  bool instance = !words.empty() && words[0] == "--instance";
  if (!instance) return runByHand(provider, words);
  int code = runInstance(provider, words);
  // What the provider holds may be of the event loop, which is gone when an instance lost its daemon as it began.
  fflush(nullptr);
  _exit(code);
}

void answerProtections(const Context& context, proto::Instance::ProtectionsResults::Builder results) {
  write(results.initProtections(), context.protections);
  results.setVersion(proto::PROTOCOL_VERSION);
}

}  // namespace oc::kit
