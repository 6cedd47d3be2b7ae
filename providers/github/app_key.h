// An App's private key, and the JWTs that are signed with it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/refusal.h"

namespace oc::github {

class AppKey {
 public:
  // PEM, RSA, not encrypted; refuses `github_credentials` saying what it is instead. `pem` stays the caller's to wipe.
  static OrRefusal<std::unique_ptr<AppKey>> read(std::string_view pem, const std::string& whose);
  ~AppKey();

  // RS256 for `issuer`, as of `now` (seconds since 1970, by GitHub's clock): valid from a minute ago, for nine more.
  std::string jwt(const std::string& issuer, int64_t now) const;

 private:
  struct Impl;
  explicit AppKey(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

}  // namespace oc::github
