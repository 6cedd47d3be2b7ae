// What git, or whoever plays it, asks for a credential: whatever it says, a token goes to the run's repository alone,
// and what git is answered is two lines.
#include <stdint.h>
#include <stdlib.h>

#include <algorithm>
#include <string>

#include "daemon/github/run_scope.h"
#include "gateway/client/git_attributes.h"

namespace {

void require(bool holds) {
  if (!holds) abort();
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; });
  return text;
}

void checkQuestion(std::string_view text) {
  auto asked = oc::client::gitAttributes(text);
  oc::hub::RunScope scope{"github", "acme/web", 1, "b", ""};
  auto refusal = oc::hub::whyNotThisRepository(scope, "github.com", asked["protocol"], asked["host"], asked["path"]);
  // GitHub's names know no case; ".git" does.
  constexpr size_t nameSize = sizeof("acme/web") - 1;
  auto path = lower(asked["path"].substr(0, nameSize)) +
              (asked["path"].size() > nameSize ? asked["path"].substr(nameSize) : "");
  bool ours = asked["protocol"] == "https" && lower(asked["host"]) == "github.com" &&
              (path == "acme/web" || path == "acme/web.git" || path == "acme/web/" || path == "acme/web.git/");
  require(refusal.reason.empty() == ours);
  // It is shown to an agent, and on a terminal.
  require(
      std::none_of(refusal.what.begin(), refusal.what.end(), [](char c) { return c >= 0 && c < 0x20 && c != '\t'; }));
  require(refusal.what.size() < 1024);
}

void checkAnswer(std::string_view text) {
  auto half = text.size() / 2;
  std::string username(text.substr(0, half)), password(text.substr(half));
  auto lines = oc::client::gitCredentialLines(username, password);
  if (!lines) return;
  require(std::count(lines->begin(), lines->end(), '\n') == 2);
  auto read = oc::client::gitAttributes(*lines);
  require(read.size() == 2 && read["username"] == username && read["password"] == password);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  checkQuestion(text);
  checkAnswer(text);
  return 0;
}
