// A connection's sign-in: which installation is asked for which repository, and the tokens that this instance keeps for
// itself.
#pragma once

#include <kj/async.h>

#include <map>
#include <string>

#include "api.h"

namespace oc::github {

struct Repository {
  uint64_t id = 0;
  std::string fullName;  // as GitHub has it now
  std::string defaultBranch;
  std::string path() const { return "/repos/" + fullName; }
  std::string owner() const { return fullName.substr(0, fullName.find('/')); }
};

struct Minted {
  SecretBytes token;
  int64_t expiresAt = 0;  // milliseconds since 1970, by this machine's clock
};

struct Identity {
  std::string login, name, email;
  uint64_t id = 0;
};

struct Identities {
  Identity git, speaker;
};

struct Installation {
  uint64_t id = 0;
  std::map<std::string, std::string> permissions;  // "issues" → "write"
  bool suspended = false;
};

class Session {
 public:
  Session(Api& api, const Job& job) : api(api), job(job) {}

  bool signedIn() const { return api.secrets.appKey != nullptr || api.secrets.token.size() != 0; }
  const std::string& base() const { return job.api; }
  bool byApp() const { return api.secrets.appKey != nullptr; }
  bool canMint() const { return byApp() || api.secrets.botKey != nullptr; }

  kj::Promise<OrRefusal<Repository>> repository(std::string name);

  // A call in a repository, by a token of our own that can do what operations need. `path` is beneath the repository's,
  // or a whole URL.
  kj::Promise<ApiAnswer> call(Repository repository, ApiCall call, bool patient = true);

  kj::Promise<OrRefusal<Minted>> mint(std::string repo, uint64_t repositoryId);
  kj::Promise<Refusal> revoke(const SecretBytes& token);
  kj::Promise<OrRefusal<Identities>> identities(std::string repo);
  kj::Promise<OrRefusal<Installation>> installationOf(SignIn::Kind app, std::string repo);
  // Revokes what this instance has for itself.
  kj::Promise<void> signOut();

  Api& api;

 private:
  struct Working {
    Repository repository;
    SecretBytes token;
    int64_t expiresAt = 0;
  };

  kj::Promise<OrRefusal<SignIn>> working(Repository repository);
  kj::Promise<OrRefusal<Repository>> lookUp(std::string name, SignIn signIn);
  kj::Promise<OrRefusal<Minted>> mintFrom(SignIn::Kind app, uint64_t installation, Json wanted);
  kj::Promise<OrRefusal<Identity>> botOf(SignIn::Kind app, std::string repo);
  SignIn personal() const { return {SignIn::Kind::Token, std::string(api.secrets.token.view()), false}; }

  const Job& job;
  std::map<std::string, Repository> repositories;  // by the name that was asked for, in lower case
  std::map<uint64_t, Working> workings;            // by the repository's id
  std::map<std::string, Identities> known;
};

// Milliseconds since 1970, by this machine's clock.
int64_t clockMs();
std::string lowerCase(std::string text);

}  // namespace oc::github
