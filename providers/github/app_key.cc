#include "app_key.h"

#include <fmt/format.h>
#include <kj/debug.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <sodium.h>

#include "base/json.h"

namespace oc::github {

namespace {

std::string base64Url(std::string_view bytes) {
  constexpr int variant = sodium_base64_VARIANT_URLSAFE_NO_PADDING;
  std::string text(sodium_base64_encoded_len(bytes.size(), variant), '\0');
  sodium_bin2base64(text.data(), text.size(), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                    variant);
  text.pop_back();  // it ends in a zero byte
  return text;
}

// A key with a password would make OpenSSL ask for it on the terminal.
int noPassword(char*, int, int, void*) { return -1; }

Refusal notAKey(const std::string& whose, const std::string& what) {
  return {"github_credentials", fmt::format("the private key of {} {}", whose, what),
          "store the .pem file that GitHub gave you when the key was made (App settings, \"Private keys\"), as it is"};
}

bool has(std::string_view pem, std::string_view words) { return pem.find(words) != std::string_view::npos; }

}  // namespace

struct AppKey::Impl {
  EVP_PKEY* key = nullptr;
  ~Impl() { EVP_PKEY_free(key); }
};

AppKey::AppKey(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
AppKey::~AppKey() = default;

OrRefusal<std::unique_ptr<AppKey>> AppKey::read(std::string_view pem, const std::string& whose) {
  if (pem.size() > (64u << 10) || !has(pem, "-----BEGIN ")) return notAKey(whose, "is no PEM file");
  if (has(pem, "BEGIN CERTIFICATE")) return notAKey(whose, "is a certificate");
  if (has(pem, "BEGIN PUBLIC KEY") || has(pem, "BEGIN RSA PUBLIC KEY")) return notAKey(whose, "is a public key");
  if (has(pem, "ENCRYPTED")) return notAKey(whose, "is encrypted with a password, which nobody is there to type");
  if (has(pem, "BEGIN OPENSSH")) return notAKey(whose, "is an ssh key");
  BIO* bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  KJ_REQUIRE(bio != nullptr, "out of memory");
  auto impl = std::make_unique<Impl>();
  impl->key = PEM_read_bio_PrivateKey(bio, nullptr, noPassword, nullptr);
  BIO_free(bio);
  ERR_clear_error();
  if (impl->key == nullptr) return notAKey(whose, "cannot be read: it is damaged, or cut off");
  if (EVP_PKEY_get_base_id(impl->key) != EVP_PKEY_RSA) return notAKey(whose, "is no RSA key");
  if (EVP_PKEY_get_bits(impl->key) < 2048) return notAKey(whose, "has fewer than 2048 bits");
  return std::unique_ptr<AppKey>(new AppKey(std::move(impl)));
}

std::string AppKey::jwt(const std::string& issuer, int64_t now) const {
  // GitHub takes ten minutes at most; a minute of them lies in the past, for clocks that differ.
  Json claims = {{"iat", now - 60}, {"exp", now + 9 * 60}, {"iss", issuer}};
  auto signedPart = base64Url(R"({"alg":"RS256","typ":"JWT"})") + "." + base64Url(claims.dump());
  auto* context = EVP_MD_CTX_new();
  KJ_DEFER(EVP_MD_CTX_free(context));
  size_t size = 0;
  auto* bytes = reinterpret_cast<const unsigned char*>(signedPart.data());
  bool ok = EVP_DigestSignInit(context, nullptr, EVP_sha256(), nullptr, impl->key) == 1 &&
            EVP_DigestSign(context, nullptr, &size, bytes, signedPart.size()) == 1;
  std::string signature(size, '\0');
  ok = ok && EVP_DigestSign(context, reinterpret_cast<unsigned char*>(signature.data()), &size, bytes,
                            signedPart.size()) == 1;
  ERR_clear_error();
  KJ_REQUIRE(ok, "OpenSSL could not sign");
  signature.resize(size);
  return signedPart + "." + base64Url(signature);
}

}  // namespace oc::github
