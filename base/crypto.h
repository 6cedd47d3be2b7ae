// Hashes, keys and random bytes, from libsodium.
#pragma once

#include <kj/array.h>

#include <string>
#include <string_view>

namespace oc {

std::string sha256Hex(std::string_view bytes);

// Bytes that are wiped when they go away: keys, tokens, secrets' values. Not copied by accident.
class SecretBytes {
 public:
  SecretBytes() = default;
  explicit SecretBytes(std::string_view bytes);
  static SecretBytes random(size_t size);
  ~SecretBytes();
  SecretBytes(SecretBytes&& other) noexcept;
  SecretBytes& operator=(SecretBytes&& other) noexcept;
  SecretBytes(const SecretBytes&) = delete;
  SecretBytes& operator=(const SecretBytes&) = delete;

  SecretBytes clone() const { return SecretBytes(view()); }
  std::string_view view() const;
  kj::ArrayPtr<const kj::byte> bytes() const;
  size_t size() const { return data.size(); }

 private:
  void wipe();
  std::string data;
};

// Compares in constant time.
bool equalSecrets(std::string_view a, std::string_view b);

// HMAC-SHA-256, 32 bytes.
std::string hmacSha256(std::string_view key, std::string_view message);

std::string randomBytes(size_t size);

// "w-" and eight characters without look-alikes (0/o, 1/l/i): about 39 random bits.
std::string newId(std::string_view prefix);

}  // namespace oc
