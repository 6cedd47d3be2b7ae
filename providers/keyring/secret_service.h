// The operator's keyring, by the Secret Service interface of the session bus: what gnome-keyring, KWallet and KeePassXC
// offer.
#pragma once

#include <kj/io.h>

#include <memory>
#include <string>
#include <vector>

#include "base/crypto.h"
#include "base/refusal.h"

namespace oc::keyring {

// Every method blocks until the keyring has answered, 20 seconds at most, and refuses with `secret_unavailable`: no
// keyring on the bus, one that is locked, one that wants to ask a person, or what it said. It never lets the keyring
// ask: nobody may be there.
class SecretService {
 public:
  // `bus`: a connected socket of the session bus, with nothing said on it.
  explicit SecretService(kj::AutoCloseFd bus);
  ~SecretService();

  // Refuses also a name that is not there, and more than mostSecretBytes.
  OrRefusal<SecretBytes> get(const std::string& name);
  // Stores it, reads it back and compares. True: there was one of that name, which it replaces.
  OrRefusal<bool> set(const std::string& name, const SecretBytes& value);
  // Every item of that name. False: there was none.
  OrRefusal<bool> remove(const std::string& name);
  // Sorted, at most 1,000.
  OrRefusal<std::vector<std::string>> list();

 private:
  class Conversation;
  std::unique_ptr<Conversation> conversation;
};

}  // namespace oc::keyring
