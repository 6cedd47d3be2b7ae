// One connection of the config: its provider's instance, kept running and signed in.
#pragma once

#include <kj/async-io.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/crypto.h"
#include "base/refusal.h"
#include "daemon/supervisor/resident.h"
#include "github.capnp.h"

namespace oc::hub {

struct ConnectionSpec {
  std::string id;
  std::string api = "https://api.github.com";
  std::string caFile;           // empty: the system's CAs
  bool byApp = true;            // else by a personal token
  std::string appId, botAppId;  // botAppId empty: no App of the bot's own
  bool gitAsBot = false;
  std::string key, token, botKey;  // references: "keyring:…"

  bool operator==(const ConnectionSpec&) const = default;
};

// The value behind a reference, or `secret_unavailable`.
using ReadSecret = std::function<kj::Promise<OrRefusal<SecretBytes>>(std::string name, std::string reference)>;

struct Identity {
  uint64_t id = 0;
  std::string login, name, email;
};

// What is known of a repository, and of us in it.
struct RepositoryFacts {
  uint64_t id = 0;
  std::string defaultBranch;
  Identity git, speaker;
};

class Connection {
 public:
  Connection(supervisor::Supervisor& supervisor, ConnectionSpec spec, ReadSecret readSecret,
             supervisor::RestartPolicy policy = {});

  const ConnectionSpec& spec() const { return theSpec; }
  // The host that git signs in to: "github.com", or the Enterprise's host with its port.
  std::string gitHost() const;

  // The signed-in instance. One that is just being started is waited for, for at most 20 seconds; then
  // `github_unavailable`, saying what is wrong and that it can be tried again.
  kj::Promise<OrRefusal<proto::GitHub::Client>> client();
  // Empty while it is up.
  std::string trouble() const;
  pid_t pid();
  // After the operator has mended something.
  void retry();
  // Is one of the secrets another one than what the instance was signed in with? False when they can't be read.
  kj::Promise<bool> hasOtherSecrets();
  // Ends the instance, having its own tokens revoked. Whoever still calls is refused. The object itself has to stay,
  // since calls that are under way refer to it.
  kj::Promise<void> stop();

  // Asked for once in a connection's life, as long as it succeeds.
  kj::Promise<OrRefusal<RepositoryFacts>> facts(std::string repo);

  struct CheckLine {
    std::string level, what, fix;  // "ok", "warn", "FAIL"
  };
  // Doctor's lines: the key, the installation and its permissions on each repository, the clock, the rate limit. Never
  // breaks.
  kj::Promise<std::vector<CheckLine>> examine(std::vector<std::string> repos, std::vector<std::string> needs);

  // Called for each instance when it has been signed in, just before it counts as running.
  void onUp(std::function<void()> tell) { listeners.push_back(std::move(tell)); }
  kj::Timer& timer() { return supervisor.timer(); }

 private:
  supervisor::LaunchSpec launchSpec() const;
  kj::Promise<OrRefusal<RepositoryFacts>> askFacts(std::string repo);
  kj::Promise<void> signIn(supervisor::Instance& instance);
  struct Secrets {
    SecretBytes key, token, botKey;
  };
  kj::Promise<kj::Own<Secrets>> readAll();
  std::string fingerprint(const Secrets& secrets) const;
  kj::Maybe<supervisor::Instance&> instance();
  bool isLost() const;
  kj::Promise<OrRefusal<proto::GitHub::Client>> clientUntil(kj::TimePoint until);
  Refusal down() const;

  supervisor::Supervisor& supervisor;
  ConnectionSpec theSpec;
  ReadSecret readSecret;
  std::string problem;     // of the last sign-in
  std::string signedInBy;  // the fingerprint of the secrets
  std::string fingerprintKey;
  std::map<std::string, RepositoryFacts> known;
  std::vector<std::function<void()>> listeners;
  kj::Own<supervisor::Resident> resident;  // null: stopped
};

}  // namespace oc::hub
