// Every reason that Open Conduit gives, once: what it means, and what helps. `runs get`, `--json` and docs/reasons.md
// have it from here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace oc {

struct Reason {
  std::string_view word;     // that scripts match on
  std::string_view meaning;  // a sentence's end, Markdown: "the run needs …"
  std::string_view fix;      // likewise; empty: nothing is to be done
};

struct ReasonGroup {
  std::string_view title, before, after;  // prose around the table; may be empty
  std::vector<Reason> reasons;
};

const std::vector<ReasonGroup>& reasonGroups();

// Null for a word that is none.
const Reason* findReason(std::string_view word);

// What to do: `fix`, which knows the very case, else what generally helps.
std::string fixFor(std::string_view reason, const std::string& fix);

// docs/reasons.md, whole.
std::string reasonsPage();

}  // namespace oc
