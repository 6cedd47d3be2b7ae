#include "session.h"

#include <fmt/format.h>
#include <kj/debug.h>
#include <sodium.h>
#include <sys/time.h>

#include <algorithm>

#include "fields.h"

namespace oc::github {

namespace {

// A token that is about to die is not used any more.
constexpr int64_t marginMs = 5 * 60 * 1000;

// What operations and intake need at most; less, where the installation grants less.
const std::map<std::string, std::string> workingPermissions = {
    {"checks", "read"}, {"issues", "write"}, {"metadata", "read"}, {"pull_requests", "write"}};

bool grants(const std::string& has, const std::string& wanted) {
  return has == "admin" || has == "write" || (has == "read" && wanted == "read");
}

Json workingWish(const Repository& repository, const Installation& installation) {
  auto permissions = Json::object();
  for (auto& [name, level] : workingPermissions) {
    auto has = installation.permissions.find(name);
    if (has == installation.permissions.end()) continue;
    permissions[name] = grants(has->second, level) ? level : has->second;
  }
  return {{"repository_ids", {repository.id}}, {"permissions", permissions}};
}

// A token as text that fits into a header and a line of git's protocol. Nothing is assumed of its form or length.
bool isToken(const std::string& text) {
  return !text.empty() && text.size() <= 4096 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

// What was granted is what was asked for, and not more.
bool onlyAsAsked(const Json& answer, const Json& wanted) {
  auto& granted = fieldOf(answer, "permissions");
  if (!granted.is_object()) return false;
  for (auto& [name, level] : granted.items()) {
    if (name == "metadata") continue;  // comes with every token
    auto& asked = fieldOf(wanted.at("permissions"), name.c_str());
    if (!level.is_string() || !asked.is_string() || level != asked) return false;
  }
  if (!wanted.contains("repository_ids")) return true;
  auto& repositories = fieldOf(answer, "repositories");
  if (textOf(answer, "repository_selection") == "all") return false;
  return !repositories.is_array() || (repositories.size() == 1 && numberOf(repositories[0], "id") ==
                                                                      wanted.at("repository_ids")[0].get<uint64_t>());
}

bool isRepositoryName(const std::string& name) {
  auto slash = name.find('/');
  return slash != std::string::npos && slash > 0 && slash + 1 < name.size() && name.size() <= 200 &&
         name.find('/', slash + 1) == std::string::npos && name.find("..") == std::string::npos &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_' || c == '.' || c == '/'; });
}

}  // namespace

int64_t clockMs() {
  struct timeval now;
  gettimeofday(&now, nullptr);
  return static_cast<int64_t>(now.tv_sec) * 1000 + now.tv_usec / 1000;
}

std::string lowerCase(std::string text) {
  for (auto& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return text;
}

// ---- repositories and installations

kj::Promise<OrRefusal<Repository>> Session::repository(std::string name) {
  if (!isRepositoryName(name))
    return OrRefusal<Repository>(Refusal{"github_refused", "that is no repository's name", "write owner/name"});
  auto found = repositories.find(lowerCase(name));
  if (found != repositories.end()) return OrRefusal<Repository>(found->second);
  if (!byApp()) return lookUp(name, personal());
  return installationOf(SignIn::Kind::App, name)
      .then([this](OrRefusal<Installation> installation) -> kj::Promise<OrRefusal<Minted>> {
        if (!installation.ok()) return OrRefusal<Minted>(installation.refusal());
        // Its id is not known yet, so this one is for all of the installation, for its names alone.
        return mintFrom(SignIn::Kind::App, installation.value().id, {{"permissions", {{"metadata", "read"}}}});
      })
      .then([this, name](OrRefusal<Minted> minted) mutable -> kj::Promise<OrRefusal<Repository>> {
        if (!minted.ok()) return OrRefusal<Repository>(minted.refusal());
        auto token = std::move(minted.value().token);
        auto looked = lookUp(name, {SignIn::Kind::Token, std::string(token.view()), true});
        return looked.then([this, token = std::move(token)](OrRefusal<Repository> result) mutable {
          return revoke(token).then([result = std::move(result)](Refusal) mutable { return std::move(result); });
        });
      });
}

kj::Promise<OrRefusal<Repository>> Session::lookUp(std::string name, SignIn signIn) {
  ApiCall call;
  call.path = "/repos/" + name;
  call.what = "the repository " + name;
  return api.call(std::move(signIn), std::move(call)).then([this, name](ApiAnswer answer) -> OrRefusal<Repository> {
    if (!answer.ok()) return answer.refusal;
    Repository repository{numberOf(answer.body, "id"), textOf(answer.body, "full_name", 256),
                          textOf(answer.body, "default_branch", 256)};
    if (repository.id == 0 || !isRepositoryName(repository.fullName)) {
      return Refusal{"github_unavailable", "GitHub's answer about " + name + " does not say which repository that is",
                     ""};
    }
    repositories[lowerCase(name)] = repository;
    return repository;
  });
}

kj::Promise<OrRefusal<Installation>> Session::installationOf(SignIn::Kind app, std::string repo) {
  ApiCall call;
  call.path = "/repos/" + repo + "/installation";
  call.what = "the App's installation on " + repo;
  return api.call({app, "", false}, std::move(call)).then([repo](ApiAnswer answer) -> OrRefusal<Installation> {
    if (answer.status == 404) {
      return Refusal{"github_denied", "the App is not installed on " + repo,
                     "install it: the App's settings on GitHub, \"Install App\", and choose the repository"};
    }
    if (!answer.ok()) return answer.refusal;
    Installation result;
    result.id = numberOf(answer.body, "id");
    result.suspended = fieldOf(answer.body, "suspended_at").is_string();
    for (auto& [name, level] : fieldOf(answer.body, "permissions").items()) {
      if (level.is_string() && result.permissions.size() < 200) result.permissions[name] = level.get<std::string>();
    }
    if (result.suspended) {
      return Refusal{"github_denied", "the App's installation on " + repo + " is suspended",
                     "the account's owner can lift that, in its settings"};
    }
    return result;
  });
}

// ---- tokens

kj::Promise<OrRefusal<Minted>> Session::mintFrom(SignIn::Kind app, uint64_t installation, Json wanted) {
  ApiCall call;
  call.method = "POST";
  call.path = fmt::format("/app/installations/{}/access_tokens", installation);
  call.body = wanted;
  call.what = "an installation token";
  call.twiceIsOnce = true;  // one that was lost dies by itself, and nobody has it
  return api.call({app, "", false}, std::move(call))
      .then([this, wanted](ApiAnswer answer) -> kj::Promise<OrRefusal<Minted>> {
        if (!answer.ok()) {
          if (answer.status == 422)
            answer.refusal.fix = "grant the App these permissions on GitHub, and accept them where it is installed";
          return OrRefusal<Minted>(answer.refusal);
        }
        auto text = wholeText(answer.body, "token", 8192);
        KJ_DEFER(sodium_memzero(text.data(), text.size()));
        auto expires = timeOf(textOf(answer.body, "expires_at", 64));
        if (answer.body.contains("token")) {
          auto& original = answer.body["token"];
          if (original.is_string())
            sodium_memzero(original.get_ref<std::string&>().data(), original.get_ref<std::string&>().size());
        }
        if (!isToken(text) || expires == 0) {
          return OrRefusal<Minted>(
              Refusal{"github_unavailable", "GitHub's answer has no token in it that can be used", ""});
        }
        Minted minted;
        minted.token = SecretBytes(text);
        minted.expiresAt = clockMs() + (expires - api.lastDate() * 1000);
        if (onlyAsAsked(answer.body, wanted)) return OrRefusal<Minted>(std::move(minted));
        return revoke(minted.token).then([](Refusal) -> OrRefusal<Minted> {
          return Refusal{"github_refused", "GitHub gave a token that can do more than was asked for; it was revoked",
                         ""};
        });
      });
}

kj::Promise<OrRefusal<Minted>> Session::mint(std::string repo, uint64_t repositoryId) {
  if (!canMint()) {
    return OrRefusal<Minted>(
        Refusal{"github_refused", "a personal access token cannot be narrowed to one repository, so none is handed out",
                "use a GitHub App, or select a token for the binding as a secret"});
  }
  auto app = api.secrets.botKey != nullptr ? SignIn::Kind::Bot : SignIn::Kind::App;
  return installationOf(app, repo).then(
      [this, app, repositoryId](OrRefusal<Installation> installation) -> kj::Promise<OrRefusal<Minted>> {
        if (!installation.ok()) return OrRefusal<Minted>(installation.refusal());
        return mintFrom(app, installation.value().id,
                        {{"repository_ids", {repositoryId}}, {"permissions", {{"contents", "write"}}}});
      });
}

kj::Promise<Refusal> Session::revoke(const SecretBytes& token) {
  ApiCall call;
  call.method = "DELETE";
  call.path = "/installation/token";
  call.what = "the revocation of a token";
  call.twiceIsOnce = true;
  return api.call({SignIn::Kind::Token, std::string(token.view()), false}, std::move(call), false)
      .then([](ApiAnswer answer) { return answer.status == 401 ? Refusal() : answer.refusal; });
}

kj::Promise<OrRefusal<SignIn>> Session::working(Repository repository) {
  if (!byApp()) return OrRefusal<SignIn>(personal());
  auto found = workings.find(repository.id);
  if (found != workings.end() && found->second.expiresAt > clockMs() + marginMs) {
    return OrRefusal<SignIn>(SignIn{SignIn::Kind::Token, std::string(found->second.token.view()), false});
  }
  return installationOf(SignIn::Kind::App, repository.fullName)
      .then([this, repository](OrRefusal<Installation> installation) -> kj::Promise<OrRefusal<Minted>> {
        if (!installation.ok()) return OrRefusal<Minted>(installation.refusal());
        return mintFrom(SignIn::Kind::App, installation.value().id, workingWish(repository, installation.value()));
      })
      .then([this, repository](OrRefusal<Minted> minted) -> OrRefusal<SignIn> {
        if (!minted.ok()) return minted.refusal();
        SignIn signIn{SignIn::Kind::Token, std::string(minted.value().token.view()), true};
        workings[repository.id] = {repository, std::move(minted.value().token), minted.value().expiresAt};
        return signIn;
      });
}

kj::Promise<ApiAnswer> Session::call(Repository repository, ApiCall call, bool patient) {
  return working(repository)
      .then([this, repository, call = std::move(call),
             patient](OrRefusal<SignIn> signIn) mutable -> kj::Promise<ApiAnswer> {
        if (!signIn.ok()) {
          ApiAnswer answer;
          answer.refusal = signIn.refusal();
          return answer;
        }
        if (!call.path.starts_with("https://")) call.path = repository.path() + call.path;
        return api.call(std::move(signIn.value()), std::move(call), patient)
            .then([this, id = repository.id](ApiAnswer answer) {
              // The App was uninstalled, or the token revoked by somebody: the next call starts anew.
              if (answer.status == 401) workings.erase(id);
              if (answer.status == 404 || answer.status == 401) {
                for (auto at = repositories.begin(); at != repositories.end();)
                  at = at->second.id == id ? repositories.erase(at) : std::next(at);
              }
              return answer;
            });
      });
}

kj::Promise<void> Session::signOut() {
  kj::Vector<kj::Promise<Refusal>> revoked;
  for (auto& [id, one] : workings) revoked.add(revoke(one.token).eagerlyEvaluate(nullptr));
  workings.clear();
  return kj::joinPromises(revoked.releaseAsArray()).ignoreResult();
}

// ---- who we are

kj::Promise<OrRefusal<Identity>> Session::botOf(SignIn::Kind app, std::string repo) {
  ApiCall self;
  self.path = "/app";
  self.what = "the App";
  return api.call({app, "", false}, std::move(self))
      .then([this, repo](ApiAnswer answer) -> kj::Promise<OrRefusal<Identity>> {
        if (!answer.ok()) return OrRefusal<Identity>(answer.refusal);
        auto login = textOf(answer.body, "slug", 128) + "[bot]";
        return repository(repo)
            .then([this, login](OrRefusal<Repository> repository) -> kj::Promise<ApiAnswer> {
              if (!repository.ok()) {
                ApiAnswer answer;
                answer.refusal = repository.refusal();
                return answer;
              }
              ApiCall user;
              user.path = job.api + "/users/" + login.substr(0, login.size() - 5) + "%5Bbot%5D";
              user.what = "the user " + login;
              return call(repository.value(), std::move(user));
            })
            .then([this, login](ApiAnswer answer) -> OrRefusal<Identity> {
              if (!answer.ok()) return answer.refusal;
              Identity identity{login, login, "", numberOf(answer.body, "id")};
              if (identity.id == 0 || lowerCase(textOf(answer.body, "login", 128)) != lowerCase(login)) {
                return Refusal{"github_unavailable", "GitHub's answer about " + login + " is about somebody else", ""};
              }
              auto host = job.apiHost.host == "api.github.com" ? "github.com" : job.apiHost.host;
              identity.email = fmt::format("{}+{}@users.noreply.{}", identity.id, login, host);
              return identity;
            });
      });
}

kj::Promise<OrRefusal<Identities>> Session::identities(std::string repo) {
  auto found = known.find("");
  if (found != known.end()) return OrRefusal<Identities>(found->second);
  auto remember = [this](Identity git, Identity speaker) {
    return OrRefusal<Identities>(known[""] = Identities{std::move(git), std::move(speaker)});
  };
  if (!byApp()) {
    ApiCall call;
    call.path = "/user";
    call.what = "the token's user";
    return api.call(personal(), std::move(call))
        .then([this, remember, repo](ApiAnswer answer) mutable -> kj::Promise<OrRefusal<Identities>> {
          if (!answer.ok()) return OrRefusal<Identities>(answer.refusal);
          Identity self{textOf(answer.body, "login", 128), textOf(answer.body, "name", 128), "",
                        numberOf(answer.body, "id")};
          if (self.name.empty()) self.name = self.login;
          auto host = job.apiHost.host == "api.github.com" ? "github.com" : job.apiHost.host;
          self.email = fmt::format("{}+{}@users.noreply.{}", self.id, self.login, host);
          if (api.secrets.botKey == nullptr) return remember(self, self);
          return botOf(SignIn::Kind::Bot, repo)
              .then([remember, self](OrRefusal<Identity> bot) mutable -> OrRefusal<Identities> {
                return bot.ok() ? remember(bot.value(), self) : bot.refusal();
              });
        });
  }
  return botOf(SignIn::Kind::App, repo)
      .then([this, remember, repo](OrRefusal<Identity> self) mutable -> kj::Promise<OrRefusal<Identities>> {
        if (!self.ok()) return OrRefusal<Identities>(self.refusal());
        if (api.secrets.botKey == nullptr) return remember(self.value(), self.value());
        return botOf(SignIn::Kind::Bot, repo)
            .then([remember, self = self.value()](OrRefusal<Identity> bot) mutable -> OrRefusal<Identities> {
              return bot.ok() ? remember(bot.value(), self) : bot.refusal();
            });
      });
}

}  // namespace oc::github
