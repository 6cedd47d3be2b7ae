#include "workspace_config.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/paths.h"

namespace oc::git {

namespace {

// What is taken over of a remote. Not uploadpack, receivepack and vcs, which name programs, nor promisor.
constexpr std::array<std::string_view, 8> remoteKeys = {"url",    "pushurl", "fetch",     "push",
                                                        "tagopt", "prune",   "prunetags", "proxy"};

constexpr std::array<std::string_view, 9> plainKeys = {
    "user.name", "user.email", "author.name", "author.email", "committer.name", "committer.email",
    // Other line ends would show every file as changed.
    "core.autocrlf", "core.eol",
    // How the operator's remotes are reached; it runs where the workspace's git runs.
    "core.sshcommand"};

std::string quoted(std::string_view value) {
  std::string result = "\"";
  for (char c : value) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n') {
      result += "\\n";
    } else if (c == '\t') {
      result += "\\t";
    } else {
      result += c;
    }
  }
  return result + "\"";
}

std::string subsectionQuoted(std::string_view name) {
  std::string result = "\"";
  for (char c : name) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

struct Key {
  std::string_view section, subsection, name;
};

Key split(std::string_view key) {
  auto first = key.find('.');
  auto last = key.rfind('.');
  if (first == std::string_view::npos) return {key, {}, {}};
  return {key.substr(0, first), first == last ? std::string_view() : key.substr(first + 1, last - first - 1),
          key.substr(last + 1)};
}

std::string entry(const Key& key, std::string_view value) {
  std::string text = "[" + std::string(key.section);
  if (!key.subsection.empty()) text += " " + subsectionQuoted(key.subsection);
  return text + "]\n\t" + std::string(key.name) + " = " + quoted(value) + "\n";
}

// A remote that is a relative path means one relative to the checkout.
std::string absoluteRemote(const std::string& url, const std::string& checkout) {
  auto colon = url.find(':');
  auto slash = url.find('/');
  bool elsewhere = colon != std::string::npos && (slash == std::string::npos || colon < slash);
  if (elsewhere || url.empty() || url[0] == '/' || url[0] == '~') return url;
  return normalizePath(checkout + "/" + url);
}

template <size_t n>
bool isOneOf(std::string_view word, const std::array<std::string_view, n>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

std::string workspaceConfig(const CheckoutFacts& checkout, const std::string& branch) {
  std::string text = "[core]\n\trepositoryformatversion = ";
  text += checkout.sha256 ? "1" : "0";
  text += "\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n";
  if (checkout.sha256) text += "[extensions]\n\tobjectformat = sha256\n";
  for (auto& [name, value] : checkout.config) {
    auto key = split(name);
    if (key.section == "remote" && !key.subsection.empty() && isOneOf(key.name, remoteKeys)) {
      bool address = key.name == "url" || key.name == "pushurl";
      text += entry(key, address ? absoluteRemote(value, checkout.path) : value);
    } else if (key.section == "url" && (key.name == "insteadof" || key.name == "pushinsteadof")) {
      text += entry(key, value);
    } else if (isOneOf(name, plainKeys)) {
      text += entry(key, value);
    }
  }
  if (checkout.hasRemote("origin")) {
    text += entry({"branch", branch, "remote"}, "origin");
    text += entry({"branch", branch, "merge"}, "refs/heads/" + branch);
  }
  return text;
}

}  // namespace oc::git
