// The config's secrets: which of them a run is given, and their values.
#pragma once

#include <kj/async.h>

#include <map>
#include <string>
#include <vector>

#include "base/crypto.h"
#include "base/redact.h"
#include "base/refusal.h"
#include "daemon/config/model.h"
#include "daemon/supervisor/supervisor.h"
#include "environment.h"

namespace oc::work {

struct SelectedSecret {
  std::string name;       // of the scope's secret_refs
  std::string reference;  // "keyring:…", "file:…", "env:…"
  std::string variable;   // that it goes into
};

// What a run of the binding is given: what its scope defines and the binding selects, both. A secret goes into the
// variable that `secret_env` has for it, else into the one of its own name where that is one in capital letters
// (GITHUB_TOKEN), else nowhere. Refuses (`secret_denied`), saying which of the two is missing.
OrRefusal<std::vector<SelectedSecret>> selectSecrets(const config::Scope& scope, const config::Binding& binding);

struct RunSecrets {
  std::map<std::string, SecretBytes> byVariable;
  std::vector<LiveSecret> live;  // to be kept as long as the run may say something
};

// The value behind a reference: "env:NAME" of `own`; "file:/path", see readSecretFile; "keyring:NAME", by an instance
// of the keyring provider that is gone when the promise resolves. `name` is what refusals (`secret_unavailable`) call
// it; they have no value in them. Never breaks.
kj::Promise<OrRefusal<SecretBytes>> readSecret(supervisor::Supervisor& supervisor, const Environment& own,
                                               std::string name, std::string reference);

// All of them at once; the first one's refusal if any cannot be read.
kj::Promise<OrRefusal<RunSecrets>> readSecrets(supervisor::Supervisor& supervisor, const Environment& own,
                                               std::vector<SelectedSecret> selected);

// For a container's entry point: a JSON object of the values by variable, 0600. It lies where only the daemon and that
// container look, and both delete it. Its values are text: whyNoSecretsFile refuses (`secret_unavailable`) what is no
// UTF-8; empty reason: none is.
void writeSecretsFile(const std::string& path, const std::map<std::string, SecretBytes>& values);
Refusal whyNoSecretsFile(const std::map<std::string, SecretBytes>& values);

// The names of the secrets in the keyring.
kj::Promise<OrRefusal<std::vector<std::string>>> keyringNames(supervisor::Supervisor& supervisor,
                                                              const Environment& own);

}  // namespace oc::work
