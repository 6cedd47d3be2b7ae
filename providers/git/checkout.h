// The operator's checkout: is it one that Work can be made from, and what is known of it.
#pragma once

#include <kj/async.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/refusal.h"
#include "git_command.h"

namespace oc::git {

struct CheckoutFacts {
  std::string path;  // without links
  std::string gitDir;
  std::string head;    // HEAD's commit
  std::string branch;  // empty when detached
  bool sha256 = false;
  // The repository's own settings in their order, sections and names in lower case.
  std::vector<std::pair<std::string, std::string>> config;

  std::optional<std::string> setting(const std::string& key) const;  // the last one counts
  bool hasRemote(const std::string& name) const;
};

// Refuses (`checkout_invalid`) what the contract lists; writes nothing.
kj::Promise<OrRefusal<CheckoutFacts>> inspectCheckout(const Loop& loop, std::string path);
// For one that was inspected before: its HEAD may be on a branch without a commit by now, and is not looked at.
kj::Promise<OrRefusal<CheckoutFacts>> reopenCheckout(const Loop& loop, std::string path);

// How many commits the branch has that `tip` has not, at most 1000; 0 when either is not there.
kj::Promise<OrRefusal<uint32_t>> countMissing(const Loop& loop, std::string path, std::string branch, std::string tip);

// The object directories that this one borrows from, and theirs (git follows five levels), whether they can be read or
// not. Reads at most a few small files.
std::vector<std::string> alternatesOf(const std::string& objectDirectory);

// A remote's address as it may be shown: no password, no user of an HTTP address, no query.
std::string withoutCredentials(const std::string& url);

}  // namespace oc::git
