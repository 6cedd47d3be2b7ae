// Where a secret's value comes from, besides a keyring: a file, a terminal, standard input. No value is ever printed.
#pragma once

#include <string>

#include "crypto.h"
#include "refusal.h"

namespace oc {

// A secret is a token or a key.
constexpr size_t mostSecretBytes = 64u << 10;

// A regular file of this user's that nobody else can read, no link, 1 to mostSecretBytes bytes; one newline at its end
// is no part of the value. Refuses (`secret_unavailable`) otherwise, naming the file and what to do.
OrRefusal<SecretBytes> readSecretFile(const std::string& path);

// From standard input: where that is a terminal, one line without echo after `prompt` on standard error, else
// everything. One newline at the end ("\n" or "\r\n") is no part of the value. Refuses (`secret_invalid`) nothing at
// all, more than mostSecretBytes, and a NUL.
OrRefusal<SecretBytes> readSecretInput(const std::string& prompt);

}  // namespace oc
