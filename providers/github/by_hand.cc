#include "by_hand.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <map>

#include "base/crypto.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "github.capnp.h"
#include "job.h"
#include "proto/convert.h"
#include "providers/kit/kit.h"

namespace oc::github {

const char* const usageByHand =
    "usage: open-conduit-github SIGN-IN token    --repo O/R      a token for that repository, with contents: write\n"
    "       open-conduit-github SIGN-IN issues   --repo O/R      its issues\n"
    "       open-conduit-github SIGN-IN identity --repo O/R      who commits and comments\n"
    "       open-conduit-github SIGN-IN check    --repo O/R      what doctor checks of it\n"
    "       open-conduit-github SIGN-IN call OPERATION JSON --repo O/R [--issue N] [--branch B] [--base B]\n"
    "       open-conduit-github SIGN-IN revoke                   the token on standard input\n"
    "\n"
    "SIGN-IN is --app ID --key FILE, or --token-file FILE; besides, --bot-app ID --bot-key FILE for the bot's App,\n"
    "--api URL for a GitHub Enterprise (https://HOST/api/v3), and --ca FILE for its CA. Files rather than values, so that\n"
    "nothing secret stands on a command line. It all happens in an instance that is locked down as the daemon starts it.\n";

namespace {

constexpr size_t mostSecret = 64u << 10;

struct Wanted {
  std::map<std::string, std::string> options;
  std::vector<std::string> words;

  std::string get(const char* name) const {
    auto found = options.find(name);
    return found == options.end() ? std::string() : found->second;
  }
  std::string need(const char* name) const {
    auto value = get(name);
    if (value.empty()) throw kit::UsageError{fmt::format("{} is missing", name)};
    return value;
  }
};

Wanted readWords(const std::vector<std::string>& words) {
  static const char* const known[] = {"--app", "--key",  "--token-file", "--bot-app", "--bot-key", "--api",
                                      "--ca",  "--repo", "--issue",      "--branch",  "--base"};
  Wanted wanted;
  for (size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with("--")) {
      wanted.words.push_back(words[i]);
      continue;
    }
    bool isKnown = false;
    for (auto* name : known) isKnown = isKnown || words[i] == name;
    if (!isKnown) throw kit::UsageError{fmt::format("unexpected word: {}", printable(words[i]))};
    if (i + 1 == words.size()) throw kit::UsageError{fmt::format("{}: its value is missing", words[i])};
    wanted.options[words[i]] = words[i + 1];
    ++i;
  }
  if (wanted.words.empty()) throw kit::UsageError{"what to do is missing"};
  return wanted;
}

SecretBytes secretFrom(const std::string& path) {
  auto text = readFile(path, mostSecret);
  SecretBytes secret(text);
  memset(text.data(), 0, text.size());
  return secret;
}

class Asking {
 public:
  Asking(const Wanted& wanted, kit::ByHandInstance& instance)
      : wanted(wanted), github(instance.capability().castAs<proto::GitHub>()), scope(instance.io().waitScope) {}

  int run() {
    int code = signIn();
    if (code != 0) return code;
    code = perform();
    github.signOutRequest().send().wait(scope);
    return code;
  }

 private:
  int signIn() {
    auto request = github.signInRequest();
    auto credentials = request.initCredentials();
    if (!wanted.get("--token-file").empty()) {
      auto token = secretFrom(wanted.get("--token-file"));
      auto text = token.view();
      while (text.ends_with('\n')) text.remove_suffix(1);
      credentials.setToken(toData(text));
    } else {
      auto app = credentials.initApp();
      app.setId(toText(wanted.need("--app")));
      app.setPrivateKey(toData(secretFrom(wanted.need("--key")).view()));
    }
    if (!wanted.get("--bot-key").empty()) {
      credentials.setBotAppId(toText(wanted.need("--bot-app")));
      credentials.setBotPrivateKey(toData(secretFrom(wanted.get("--bot-key")).view()));
    }
    auto refusal = read(request.send().wait(scope).getRefusal());
    return refusal.reason.empty() ? 0 : kit::printRefusal(refusal);
  }

  int perform() {
    auto& verb = wanted.words[0];
    if (verb == "token") return token();
    if (verb == "revoke") return revoke();
    if (verb == "issues") return issues(1);
    if (verb == "identity") return identity();
    if (verb == "check") return check();
    if (verb == "call" && wanted.words.size() == 3) return call();
    throw kit::UsageError{fmt::format("unexpected word: {}", printable(verb))};
  }

  // The repository's id; 0 when it was refused, which has been printed.
  uint64_t repositoryId() {
    auto request = github.repositoryRequest();
    request.setRepo(toText(wanted.need("--repo")));
    auto answer = request.send().wait(scope);
    auto refusal = read(answer.getRefusal());
    if (!refusal.reason.empty()) kit::printRefusal(refusal);
    return answer.getRepository().getId();
  }

  int token() {
    auto id = repositoryId();
    if (id == 0) return 1;
    auto request = github.mintRequest();
    request.setRepo(toText(wanted.need("--repo")));
    request.setRepositoryId(id);
    auto answer = request.send().wait(scope);
    auto refusal = read(answer.getRefusal());
    if (!refusal.reason.empty()) return kit::printRefusal(refusal);
    auto token = answer.getToken();
    fwrite(token.begin(), 1, token.size(), stdout);
    fputc('\n', stdout);
    return 0;
  }

  int revoke() {
    auto text = readAll(STDIN_FILENO, mostSecret);
    while (text.ends_with('\n')) text.pop_back();
    auto request = github.revokeRequest();
    request.setToken(toData(text));
    memset(text.data(), 0, text.size());
    auto refusal = read(request.send().wait(scope).getRefusal());
    return refusal.reason.empty() ? 0 : kit::printRefusal(refusal);
  }

  int issues(uint32_t page) {
    auto request = github.sweepRequest();
    request.setRepo(toText(wanted.need("--repo")));
    request.setKind(proto::GitHubEventKind::ISSUE);
    request.setPage(page);
    auto answer = request.send().wait(scope);
    auto refusal = read(answer.getRefusal());
    if (!refusal.reason.empty()) return kit::printRefusal(refusal);
    for (auto event : answer.getEvents()) {
      printf("%-7llu %-7s %-20s %s\n", static_cast<unsigned long long>(event.getIssue()),
             event.getOpen() ? "open" : "closed", printable(toString(event.getAuthorLogin())).c_str(),
             printable(toString(event.getTitle())).c_str());
    }
    return answer.getNext() == 0 ? 0 : issues(answer.getNext());
  }

  int identity() {
    auto request = github.identityRequest();
    request.setRepo(toText(wanted.need("--repo")));
    auto answer = request.send().wait(scope);
    auto refusal = read(answer.getRefusal());
    if (!refusal.reason.empty()) return kit::printRefusal(refusal);
    auto print = [](const char* what, proto::GitHubIdentity::Reader who) {
      printf("%-8s %s <%s>\n", what, printable(toString(who.getName())).c_str(),
             printable(toString(who.getEmail())).c_str());
    };
    print("commits", answer.getGit());
    print("comments", answer.getSpeaker());
    return 0;
  }

  int check() {
    auto request = github.examineRequest();
    request.initRepos(1).set(0, toText(wanted.need("--repo")));
    auto needs = request.initNeeds(3);
    needs.set(0, "contents=write");
    needs.set(1, "issues=write");
    needs.set(2, "pull_requests=write");
    bool failed = false;
    auto answer = request.send().wait(scope);
    for (auto one : answer.getChecks()) {
      auto level = one.getOk() ? "ok" : one.getWanted() ? "warn" : "FAIL";
      failed = failed || (!one.getOk() && !one.getWanted());
      printf("%-5s %s\n", level, printable(toString(one.getWhat())).c_str());
      if (one.getFix().size() != 0) printf("      fix: %s\n", printable(toString(one.getFix())).c_str());
    }
    return failed ? 1 : 0;
  }

  int call() {
    auto id = repositoryId();
    if (id == 0) return 1;
    auto request = github.callRequest();
    auto bound = request.initBound();
    bound.setRepo(toText(wanted.need("--repo")));
    bound.setRepositoryId(id);
    auto issue = wanted.get("--issue");
    uint64_t number = 0;
    std::from_chars(issue.data(), issue.data() + issue.size(), number);
    bound.setIssue(number);
    bound.setBranch(toText(wanted.get("--branch")));
    bound.setBase(toText(wanted.get("--base")));
    bound.setWork("by-hand");
    bound.setRun("by-hand");
    request.setOperation(toText(wanted.words[1]));
    request.setArguments(toData(wanted.words[2]));
    auto answer = request.send().wait(scope);
    auto refusal = read(answer.getRefusal());
    if (!refusal.reason.empty()) return kit::printRefusal(refusal);
    auto value = parseJson(toString(answer.getResult()));
    printf("%s\n", printable(value.dump(2), true).c_str());
    return answer.getIsError() ? 1 : 0;
  }

  const Wanted& wanted;
  proto::GitHub::Client github;
  kj::WaitScope& scope;
};

}  // namespace

int byHand(const std::vector<std::string>& words) {
  auto wanted = readWords(words);
  std::vector<std::string> job = {"connection", "--api",
                                  wanted.get("--api").empty() ? "https://api.github.com" : wanted.get("--api")};
  if (!wanted.get("--ca").empty()) job.insert(job.end(), {"--ca", wanted.get("--ca")});
  parseJob(job);
  kit::Environment environment;
  for (auto name : {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"}) {
    if (const char* value = getenv(name)) environment.emplace_back(name, value);
  }
  auto instance = kit::startByHand(job, {}, environment);
  int code = Asking(wanted, *instance).run();
  instance->finish();
  return code;
}

}  // namespace oc::github
