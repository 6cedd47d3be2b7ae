#include "crypto.h"

#include <kj/debug.h>
#include <sodium.h>

#include <algorithm>

namespace oc {

namespace {

// 1 from sodium_init means that somebody has called it already. Without it, random bytes may come from a
// source that was not checked.
void requireSodium() {
  static const bool usable = sodium_init() >= 0;
  KJ_REQUIRE(usable, "libsodium found no usable source of random bytes: is /dev/urandom there?");
}

const unsigned char* asBytes(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

// Longer than any standard library keeps inside the string object itself (at most 22 bytes): moving a string
// then hands over its memory, and leaves no copy of the bytes in the one that was moved from.
constexpr size_t LEAST_CAPACITY = 63;

std::string secretBuffer(size_t size) {
  std::string buffer;
  buffer.reserve(std::max(size, LEAST_CAPACITY));
  buffer.resize(size);
  return buffer;
}

}  // namespace

std::string sha256Hex(std::string_view bytes) {
  unsigned char hash[crypto_hash_sha256_BYTES];
  crypto_hash_sha256(hash, asBytes(bytes), bytes.size());
  char hex[sizeof(hash) * 2 + 1];
  sodium_bin2hex(hex, sizeof(hex), hash, sizeof(hash));
  return hex;
}

SecretBytes::SecretBytes(std::string_view bytes) : data(secretBuffer(bytes.size())) {
  std::copy(bytes.begin(), bytes.end(), data.begin());
}

SecretBytes SecretBytes::random(size_t size) {
  requireSodium();
  SecretBytes result;
  result.data = secretBuffer(size);
  randombytes_buf(result.data.data(), size);
  return result;
}

SecretBytes::~SecretBytes() { wipe(); }

SecretBytes::SecretBytes(SecretBytes&& other) noexcept : data(std::move(other.data)) { other.data.clear(); }

SecretBytes& SecretBytes::operator=(SecretBytes&& other) noexcept {
  if (this != &other) {
    wipe();
    data = std::move(other.data);
    other.data.clear();
  }
  return *this;
}

std::string_view SecretBytes::view() const { return data; }

kj::ArrayPtr<const kj::byte> SecretBytes::bytes() const { return kj::arrayPtr(asBytes(data), data.size()); }

void SecretBytes::wipe() {
  sodium_memzero(data.data(), data.size());
  data.clear();
}

bool equalSecrets(std::string_view a, std::string_view b) {
  // How long a secret is, is no secret.
  return a.size() == b.size() && sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string hmacSha256(std::string_view key, std::string_view message) {
  // The one-call form takes 32-byte keys only; this one takes any, as RFC 2104 has it.
  crypto_auth_hmacsha256_state state;
  KJ_DEFER(sodium_memzero(&state, sizeof(state)));
  if (key.data() == nullptr) key = "";
  std::string mac(crypto_auth_hmacsha256_BYTES, '\0');
  KJ_ASSERT(crypto_auth_hmacsha256_init(&state, asBytes(key), key.size()) == 0);
  KJ_ASSERT(crypto_auth_hmacsha256_update(&state, asBytes(message), message.size()) == 0);
  KJ_ASSERT(crypto_auth_hmacsha256_final(&state, reinterpret_cast<unsigned char*>(mac.data())) == 0);
  return mac;
}

std::string randomBytes(size_t size) {
  requireSodium();
  std::string result(size, '\0');
  randombytes_buf(result.data(), size);
  return result;
}

std::string newId(std::string_view prefix) {
  requireSodium();
  constexpr std::string_view LETTERS = "23456789abcdefghjkmnpqrstuvwxyz";
  std::string id(prefix);
  // randombytes_uniform: a remainder would make the first letters likelier.
  for (int i = 0; i < 8; ++i) id += LETTERS[randombytes_uniform(LETTERS.size())];
  return id;
}

}  // namespace oc
