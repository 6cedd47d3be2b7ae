#include "job.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "providers/kit/kit.h"

namespace oc::keyring {

namespace {

struct ActionForm {
  Action action;
  const char* word;
  bool named;
};

constexpr ActionForm forms[] = {{Action::Get, "get", true},
                                {Action::Set, "set", true},
                                {Action::Remove, "rm", true},
                                {Action::List, "list", false}};

constexpr size_t longestName = 64;

bool isLetterOrDigit(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

bool isName(const std::string& word) {
  return !word.empty() && word.size() <= longestName && isLetterOrDigit(word.front()) &&
         std::all_of(word.begin(), word.end(),
                     [](char c) { return isLetterOrDigit(c) || c == '.' || c == '_' || c == '-'; });
}

}  // namespace

Job parseJob(const std::vector<std::string>& words) {
  if (words.empty()) throw kit::UsageError{"a word is missing: get, set, list or rm"};
  for (auto& form : forms) {
    if (words[0] != form.word) continue;
    if (words.size() != (form.named ? 2 : 1)) {
      throw kit::UsageError{fmt::format("{} takes {}", form.word, form.named ? "one name" : "no name")};
    }
    if (!form.named) return {form.action, ""};
    if (!isName(words[1])) {
      throw kit::UsageError{
          fmt::format("\"{}\" can't be a secret's name: use letters, digits, '.', '_' and '-', up to {}",
                      shortened(printable(words[1]), longestName), longestName)};
    }
    return {form.action, words[1]};
  }
  throw kit::UsageError{
      fmt::format("there is no \"{}\": get, set, list or rm", shortened(printable(words[0]), longestName))};
}

std::vector<std::string> jobWords(const Job& job) {
  for (auto& form : forms) {
    if (form.action == job.action)
      return form.named ? std::vector<std::string>{form.word, job.name} : std::vector<std::string>{form.word};
  }
  return {};
}

}  // namespace oc::keyring
