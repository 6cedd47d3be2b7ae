// Every diagnostic that the sources can give has a row with its exact place. The rows are those of the other config
// tests, which are run here once more by themselves and tell what they saw.
#include <stdio.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>

#include "config_support.h"

using namespace oc;
using namespace oc::config::testing;

namespace {

struct Message {
  std::string file, text;  // as the source has it, with {} in it
};

// The string that begins at a quote, with those that follow it directly; `at` is behind them then.
std::string literalAt(const std::string& source, size_t& at) {
  std::string text;
  while (at < source.size() && source[at] == '"') {
    for (++at; source[at] != '"'; ++at) {
      if (source[at] == '\\') ++at;
      text += source[at];
    }
    ++at;
    auto next = source.find_first_not_of(" \n", at);
    if (next == source.npos || source[next] != '"') break;
    at = next;
  }
  return text;
}

// Behind what begins a diagnostic, up to the end of its statement: its message is the first text of more than a word.
std::string messageBehind(const std::string& source, size_t at) {
  while (at < source.size() && source[at] != ';') {
    if (source[at] == '"') {
      auto text = literalAt(source, at);
      if (text.find(' ') != text.npos) return text;
    } else if (source.compare(at, 3, "'\"'") == 0) {
      at += 3;
    } else {
      ++at;
    }
  }
  return "";
}

std::vector<Message> messagesInSources() {
  std::regex begins(
      R"re((?:report\.(?:error|warning)|\bhere|\brefuse|\bproblem|return fail|problems\.push_back|errorOfKey)\(|\b(?:message|why) = )re");
  std::regex dangers(R"re(return (?:path == home \? )?(?:fmt::format\()?(?="))re");
  std::vector<Message> found;
  for (auto& entry : std::filesystem::directory_iterator(sources() + "/daemon/config")) {
    auto name = entry.path().filename().string();
    bool readsFiles = name == "load.cc";  // of these there is a test of its own
    if (entry.path().extension() != ".cc" || readsFiles) continue;
    auto source = std::regex_replace(readFile(entry.path(), 1 << 20), std::regex("(^|\n) *//[^\n]*"), "$1");
    auto add = [&](const std::regex& form) {
      for (std::sregex_iterator it(source.begin(), source.end(), form), end; it != end; ++it) {
        auto text = messageBehind(source, static_cast<size_t>(it->position() + it->length()));
        if (!text.empty()) found.push_back({name, text});
      }
    };
    add(begins);
    if (name == "dangers.cc") add(dangers);
  }
  return found;
}

// What stands between the places of a message.
std::vector<std::string> partsOf(const std::string& message) {
  std::vector<std::string> parts(1);
  for (size_t i = 0; i < message.size(); ++i) {
    bool twice = i + 1 < message.size() && message[i + 1] == message[i];
    if (message[i] == '{' && !twice) {
      i = message.find('}', i);
      parts.emplace_back();
      continue;
    }
    if ((message[i] == '{' || message[i] == '}') && twice) ++i;
    parts.back() += message[i];
  }
  return parts;
}

bool fits(const std::string& shown, const std::vector<std::string>& parts) {
  size_t at = 0;
  for (auto& part : parts) {
    at = shown.find(part, at);
    if (at == shown.npos) return false;
    at += part.size();
  }
  return true;
}

// Of the rows, by the program's own tests.
std::vector<std::string> messagesOfRows() {
  std::string file = "/tmp/oc-rows-" + std::to_string(getpid());
  auto program = std::filesystem::read_symlink("/proc/self/exe").string();
  auto command =
      "OPEN_CONDUIT_COLLECT_DIAGNOSTICS=" + file + " '" + program +
      "' -# '[#config_rules_test],[#config_sandbox_test],[#config_document_test],[#config_github_test]' >/dev/null 2>&1";
  int status = system(command.c_str());
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  auto text = readFile(file, 16 << 20);
  unlink(file.c_str());
  std::vector<std::string> lines;
  for (size_t at = 0, end; (end = text.find('\n', at)) != text.npos; at = end + 1)
    lines.push_back(text.substr(at, end - at));
  return lines;
}

}  // namespace

TEST_CASE("D2 every diagnostic that the sources can give has a row with its exact place") {
  auto messages = messagesInSources();
  CHECK(messages.size() > 110);
  auto rows = messagesOfRows();
  CHECK(rows.size() > 150);
  // Of the file as a whole, which has no place; and one for a parser that stops where ours never does.
  std::set<std::string> others = {"the file is larger than {} MiB", "the file ends too early"};
  for (auto& message : messages) {
    if (others.count(message.text) != 0) continue;
    auto parts = partsOf(message.text);
    INFO(message.file << " says \"" << message.text << "\", and no row does");
    CHECK(std::any_of(rows.begin(), rows.end(), [&parts](auto& row) { return fits(row, parts); }));
  }
  // One that nobody says.
  CHECK_FALSE(std::any_of(rows.begin(), rows.end(), [](auto& row) { return fits(row, {"", " is made of cheese"}); }));
}
