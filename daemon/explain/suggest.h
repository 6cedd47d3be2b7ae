// What would have to change in a binding for its runs not to be refused what one was. A person decides and applies it:
// what an agent asked for is not what it should have.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/refusal.h"
#include "daemon/config/load.h"

namespace oc::explain {

struct Denied {
  std::string kind, what, why;  // as RunEvent.Denied has them; of an agent's making
};

struct Addition {
  std::string entry;                  // of network.allow
  std::string opens;                  // a sentence
  std::vector<std::string> warnings;  // what config check would say of it
};

struct Unchanged {
  Denied denied;
  std::string why;  // why nothing is suggested for it
};

struct Suggestion {
  std::string field;  // "scopes[0].bindings[1].sandbox.config.network.allow"
  std::vector<Addition> additions;
  Json patch = Json::array();  // RFC 6902, of the config's file; empty without additions
  std::vector<Unchanged> unchanged;
};

// `text` is the config's file. Each addition is one host at one port, and the patched config was checked: an entry that
// makes an error of it is not suggested. Refuses (`config_invalid`, `binding_missing`) a config that has errors or not
// this binding, and
// (`binding_unsandboxed`) a binding that refuses nothing.
OrRefusal<Suggestion> suggest(const std::string& text, const config::Environment& environment,
                              const std::string& binding, const std::vector<Denied>& denied);

}  // namespace oc::explain
