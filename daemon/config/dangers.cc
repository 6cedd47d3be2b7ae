// What is legal and probably not meant.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/home_files.h"
#include "base/host_pattern.h"
#include "base/paths.h"
#include "check_shape.h"
#include "format_parts.h"
#include "rules.h"

namespace oc::config {

namespace {

// Anyone's programs begin with these, and with all that is in most of them.
constexpr const char* systemPlaces[] = {"/etc",   "/usr", "/bin",  "/sbin", "/lib",
                                        "/lib64", "/opt", "/boot", "/root", "/var"};
constexpr const char* peoplesPlaces[] = {"/opt/", "/var/", "/usr/local/"};

// Domains under which anyone can have a name.
constexpr const char* rentedDomains[] = {"github.io",         "amazonaws.com", "cloudfront.net",  "googleapis.com",
                                         "appspot.com",       "web.app",       "firebaseapp.com", "azurewebsites.net",
                                         "windows.net",       "herokuapp.com", "netlify.app",     "vercel.app",
                                         "pages.dev",         "workers.dev",   "r2.dev",          "fly.dev",
                                         "onrender.com",      "ngrok.io",      "ngrok.app",       "ngrok-free.app",
                                         "trycloudflare.com", "co.uk",         "com.au"};
// Made for taking what anyone sends.
constexpr const char* uploadHosts[] = {"pastebin.com", "transfer.sh",    "file.io",         "0x0.st",
                                       "webhook.site", "requestbin.com", "gist.github.com", "uploads.github.com",
                                       "hastebin.com", "paste.rs",       "termbin.com",     "ix.io"};

bool isToolset(std::string_view operation) { return operation.starts_with('@'); }

// "github" of "@github.author".
std::string_view serviceOf(std::string_view operation) {
  if (isToolset(operation)) operation.remove_prefix(1);
  return operation.substr(0, operation.find('.'));
}

class Dangers {
 public:
  explicit Dangers(const BindingContext& context)
      : context(context), binding(context.binding), home(context.all.environment.home), report(context.report) {}

  void find() {
    if (auto policy = context.srt()) {
      findInHosts(*policy);
      findInWrites(*policy);
      findInReads(*policy);
    }
    if (auto policy = context.docker()) {
      findInHosts(*policy);
      findInWrites(*policy);
      findInMounts(*policy);
      findInPrivateRanges(*policy);
      findStaticTokens();
      findGitsWay();
    }
    findPlainSecrets();
    findHostileVariables();
    findFixedBranch();
    findUnreachableOperations();
    findUselessTimes();
  }

 private:
  void findInHosts(const Spot& policy) {
    std::set<std::string> seen;
    for (auto& entry : stringsOf(policy.field("network", "allow"))) {
      std::string why;
      auto pattern = parseHostPattern(entry.node->text, why);
      if (!pattern) continue;
      if (!seen.insert(pattern->toString()).second)
        report.warning(entry, "this host is listed twice", "delete one of the two");
      findInHost(entry, *pattern);
    }
  }

  void findInHost(const Spot& entry, const HostPattern& pattern) {
    constexpr const char* fix = "name the hosts that are needed";
    auto among = [&pattern](auto& list) {
      return std::find(std::begin(list), std::end(list), pattern.host) != std::end(list);
    };
    if (pattern.subdomains && pattern.host.find('.') == std::string::npos) {
      report.warning(entry, fmt::format("this allows every host under .{}", pattern.host), fix);
    } else if (pattern.subdomains && among(rentedDomains)) {
      report.warning(entry, fmt::format("anyone can have a host under {}", pattern.host), fix);
    } else if (!pattern.subdomains && among(uploadHosts)) {
      report.warning(entry, "this host takes uploads from anyone: a run can send it all that it can read",
                     "leave it out if you can");
    }
    bool loopback = pattern.host == "localhost" || pattern.host.starts_with("127.") || pattern.host == "::1";
    if (loopback && context.srt() && !pattern.port) {
      report.warning(entry, "this opens the services on your own machine to runs", "name a port, or leave it out");
    } else if (loopback && context.srt()) {
      report.warning(entry,
                     fmt::format("this opens what listens on port {} of your own machine to runs", *pattern.port),
                     "leave it out where that is not meant");
    } else if (loopback) {
      report.warning(entry, "a container has a loopback of its own, and its gateway connects to none", "delete it");
    }
    if (pattern.host == "169.254.169.254" || pattern.host == "metadata.google.internal") {
      report.warning(entry, "a cloud's metadata service hands out the machine's own credentials", "leave it out");
    }
  }

  void findInWrites(const Spot& policy) {
    for (auto& entry : stringsOf(policy.field("write"))) {
      auto path = hostPath(entry.node->text, context.all.environment);
      if (!path) continue;
      auto fix = "grant the directories that runs need to write";
      // Runs are refused for it.
      if (auto message = escapeByWriting(*path)) {
        report.error(entry, *message, fix, "sandbox_denied");
      } else if (auto message = dangerOfWriting(*path)) {
        report.warning(entry, *message, fix);
      }
    }
  }

  std::optional<std::string> escapeByWriting(const std::string& path) const {
    if (!home.empty() && isAtOrUnder(home, path)) {
      return path == home ? "runs could write to all of your home, and so into files that your shell obeys"
                          : "runs could write to all of your home and beyond it";
    }
    auto file = startupFileTouched(home, path);
    if (file.empty()) return std::nullopt;
    return fmt::format("what runs write there runs as you later: ~{}", file.substr(home.size()));
  }

  std::optional<std::string> dangerOfWriting(const std::string& path) const {
    if (!home.empty() && isAtOrUnder(path, home + "/.ssh")) return "what runs write there can run as you later: ~/.ssh";
    bool inHome = !home.empty() && isAtOrUnder(path, home);
    bool peoples = std::any_of(std::begin(peoplesPlaces), std::end(peoplesPlaces),
                               [&path](const char* place) { return path.starts_with(place); });
    for (auto place : systemPlaces) {
      bool systems = path == place || (isAtOrUnder(path, place) && !peoples);
      if (!inHome && systems) return fmt::format("{} belongs to the system", path);
    }
    auto resource = binding.field("resource", "config");
    auto checkout = resource ? hostPath(resource->text("checkout"), context.all.environment) : std::nullopt;
    if (checkout && (isAtOrUnder(*checkout, path) || isAtOrUnder(path, *checkout + "/.git"))) {
      return "runs could write into your own checkout, its hooks included; they have a clone of their own";
    }
    return std::nullopt;
  }

  void findInReads(const Spot& policy) {
    for (auto& entry : stringsOf(policy.field("read", "only"))) findInOnly(entry);
    auto denied = policy.field("read", "deny");
    for (auto& entry : stringsOf(policy.field("read", "allow"))) {
      auto path = hostPath(entry.node->text, context.all.environment);
      if (!path) continue;
      bool lifts = false;
      for (auto& name : credentialFiles()) {
        auto credential = home + "/" + name;
        lifts |= isAtOrUnder(*path, credential);
        if (*path == credential)
          report.warning(entry, fmt::format("runs can read ~/{}, and send it to every allowed host", name),
                         "allow only the file that is needed");
      }
      for (auto& deny : stringsOf(denied)) {
        auto deniedPath = hostPath(deny.node->text, context.all.environment);
        lifts |= deniedPath && isAtOrUnder(*path, *deniedPath);
      }
      if (!lifts)
        report.warning(entry, "this lifts nothing: only the very path of a deny, or one beneath it, does",
                       "name what is denied, or delete it");
    }
  }

  void findInOnly(const Spot& entry) {
    auto path = hostPath(entry.node->text, context.all.environment);
    if (!path || home.empty()) return;
    if (isAtOrUnder(home, *path))
      report.warning(entry, "runs can read all of your home, but for common credentials",
                     "list the files that are needed");
    for (auto& name : credentialFiles()) {
      if (*path == home + "/" + name)
        report.warning(entry, fmt::format("runs can read ~/{}, and send it to every allowed host", name),
                       "list only the file that is needed");
    }
  }

  void findInMounts(const Spot& policy) {
    for (auto& entry : stringsOf(policy.field("read"))) findCredentials(entry);
    // Of this the run has a copy.
    if (auto seed = binding.field("config", "home_seed"); seed && seed->isString()) findCredentials(*seed);
  }

  void findCredentials(const Spot& entry) {
    auto path = hostPath(entry.node->text, context.all.environment);
    if (!path || home.empty()) return;
    if (isAtOrUnder(home, *path)) {
      report.warning(entry, "runs can read all of your home, your credentials included",
                     "list the files that are needed");
      return;
    }
    for (auto& name : credentialFiles()) {
      if (isAtOrUnder(home + "/" + name, *path)) {
        report.warning(entry, fmt::format("runs can read ~/{}, and send it to every allowed host", name),
                       "list the files that are needed");
        return;
      }
    }
  }

  void findInPrivateRanges(const Spot& policy) {
    for (auto& entry : stringsOf(policy.field("network", "private"))) {
      auto& text = entry.node->text;
      if (text.ends_with("/0"))
        report.warning(entry, "this is every address there is, the machine's own included",
                       "list the ranges that are needed");
      if (text.starts_with("127.") || text.starts_with("::1/"))
        report.warning(entry, "this is the gateway's own loopback", "delete it");
      if (text.starts_with("169.254."))
        report.warning(entry, "clouds have their metadata service in this range", "delete it");
    }
  }

  void findStaticTokens() {
    auto isToken = [](const std::string& name) { return name == "GH_TOKEN" || name == "GITHUB_TOKEN"; };
    constexpr const char* message = "this token goes into the container as it is, and stays valid after the run";
    constexpr const char* fix = "use a GitHub App connection, or a fine-grained token for the one repository";
    if (auto map = binding.field("config", "secret_env")) {
      for (auto& entry : map->members()) {
        if (entry.isString() && isToken(entry.node->text)) report.warning(entry, message, fix);
      }
    }
    for (auto& name : stringsOf(binding.field("secret_names"))) {
      if (isToken(name.node->text)) report.warning(name, message, fix);
    }
  }

  bool usesGitHub() const {
    auto connection = context.connection();
    return connection && connection->text("type") == "github";
  }

  bool allowsGitHub(const Spot& policy) const {
    for (auto& entry : stringsOf(policy.field("network", "allow"))) {
      std::string why;
      auto pattern = parseHostPattern(entry.node->text, why);
      if (pattern && pattern->matches("github.com", 443)) return true;
    }
    return false;
  }

  // In a container with an App's connection, git asks the toolbelt, which needs the operation.
  void findGitsWay() {
    auto connection = context.connection();
    auto config = connection ? connection->field("config") : std::nullopt;
    if (!usesGitHub() || !config || config->text("auth") != "app") return;
    auto grants = [](const std::vector<std::string>& operations) {
      return std::any_of(operations.begin(), operations.end(), [](const std::string& operation) {
        return operation == "@github.workspace" || operation == "github.git.credential";
      });
    };
    auto authorization = context.scope.field("authorization");
    constexpr const char* fix = "add \"@github.workspace\"";
    if (!grants(binding.texts("operations"))) {
      report.warning(binding, "git push can't sign in: github.git.credential isn't among the binding's operations",
                     fix);
    } else if (!authorization || !grants(authorization->texts("operations"))) {
      report.warning(binding, "git push can't sign in: the scope's authorization doesn't have github.git.credential",
                     fix);
    }
  }

  void findPlainSecrets() {
    auto env = binding.field("config", "env");
    if (!env) return;
    for (auto& entry : env->members()) {
      bool looksLike = false;
      for (auto part : {"TOKEN", "SECRET", "PASSWORD", "API_KEY", "PRIVATE_KEY"})
        looksLike |= entry.key().find(part) != std::string::npos;
      if (looksLike && entry.isString() && !entry.node->text.empty()) {
        report.warning(entry, "this looks like a secret, in plain text",
                       "use \"secret_refs\", \"secret_names\" and \"secret_env\"");
      }
    }
  }

  // srt itself, outside of its sandbox, would obey these.
  void findHostileVariables() {
    if (!context.srt()) return;
    auto obeyed = [](const std::string& name) {
      return name.starts_with("LD_") || name.starts_with("DYLD_") || name == "NODE_OPTIONS" || name == "NODE_PATH" ||
             name == "BASH_ENV" || name == "ENV";
    };
    auto warn = [this](const Spot& spot, const std::string& name) {
      report.warning(spot, fmt::format("{} changes how programs start, the sandbox's own among them", name),
                     "set it in the command instead");
    };
    if (auto env = binding.field("config", "env")) {
      for (auto& entry : env->members()) {
        if (obeyed(entry.key())) warn(entry, entry.key());
      }
    }
    if (auto map = binding.field("config", "secret_env")) {
      for (auto& entry : map->members()) {
        if (entry.isString() && obeyed(entry.node->text)) warn(entry, entry.node->text);
      }
    }
  }

  void findFixedBranch() {
    auto branch = binding.field("config", "branch");
    if (!branch || !branch->isString() || branch->node->text.find('{') != std::string::npos) return;
    report.warning(*branch, "every Work of this binding would use the same branch",
                   "put {work} or {number} into the name");
  }

  void findUnreachableOperations() {
    auto authorization = context.scope.field("authorization");
    auto allowed = authorization ? authorization->texts("operations") : std::vector<std::string>();
    for (auto& entry : stringsOf(binding.field("operations"))) {
      auto& wanted = entry.node->text;
      auto gives = [&wanted](const std::string& operation) {
        // Which operations a toolset has is its provider's to know; of another service it has none.
        bool mayOverlap = isToolset(operation) != isToolset(wanted) && serviceOf(operation) == serviceOf(wanted);
        return operation == wanted || mayOverlap;
      };
      if (std::any_of(allowed.begin(), allowed.end(), gives)) continue;
      report.warning(entry, "the scope's authorization doesn't have this, so runs don't get it",
                     fmt::format("add it to {}.authorization.operations", context.scope.path()));
    }
  }

  void findUselessTimes() {
    auto timeout = binding.field("timeout"), stall = binding.field("stall_timeout");
    if (!timeout || !stall) return;
    auto whole = parseDuration(*timeout->node), quiet = parseDuration(*stall->node);
    if (whole && quiet && *quiet >= *whole) {
      report.warning(*stall, "\"timeout\" always comes first", "make this shorter than \"timeout\"");
    }
  }

  const BindingContext& context;
  const Spot& binding;
  const std::string& home;
  Report& report;
};

}  // namespace

void findDangers(const BindingContext& context) { Dangers(context).find(); }

}  // namespace oc::config
