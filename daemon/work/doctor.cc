#include "doctor.h"

#include <fmt/format.h>
#include <kj/debug.h>

#include <algorithm>
#include <set>

#include "base/secret_source.h"
#include "base/text.h"
#include "cgroup.h"
#include "daemon/sandbox/srt_settings.h"
#include "git.capnp.h"
#include "proto/convert.h"
#include "sandbox.capnp.h"
#include "secrets.h"

namespace oc::work {

namespace {

using control::DoctorLine;
using Lines = std::vector<DoctorLine>;
using supervisor::Instance;

constexpr auto checkLimit = 120 * kj::SECONDS;

// Those of this process: without a daemon, of the shell that doctor was called in.
Lines limitLines(const config::Config& config) {
  RunCgroups groups;
  Lines lines;
  for (auto& scope : config.scopes) {
    for (auto& binding : scope.bindings) {
      if (!binding.srt || !binding.srt->limits.any()) continue;
      auto name = binding.id();
      auto refusal = groups.whyNot(binding.srt->limits);
      if (refusal.reason.empty()) {
        lines.push_back({"limits", "ok", name + ": its limits can be kept", ""});
      } else {
        lines.push_back({"limits", "FAIL", name + ": " + refusal.what, refusal.fix});
      }
    }
  }
  if (!lines.empty()) return lines;
  auto available = groups.available();
  return {{"limits", "ok",
           available.empty()
               ? "process sandboxes can't be given limits here; no binding asks for any"
               : "process sandboxes can be given limits of " + fmt::format("{}", fmt::join(available, ", ")),
           ""}};
}

bool usesSrt(const config::Config& config) {
  return std::any_of(config.scopes.begin(), config.scopes.end(), [](auto& scope) {
    return std::any_of(scope.bindings.begin(), scope.bindings.end(),
                       [](auto& binding) { return binding.srt.has_value(); });
  });
}

std::set<std::string> secretReferences(const config::Config& config) {
  std::set<std::string> references;
  for (auto& connection : config.connections) {
    for (auto& [name, reference] : connection.secretRefs) references.insert(reference);
  }
  for (auto& scope : config.scopes) {
    for (auto& [name, reference] : scope.secretRefs) references.insert(reference);
  }
  return references;
}

std::string inForce(const Protections& protections) {
  std::string text;
  auto add = [&text](bool has, const char* name) {
    if (has) text += (text.empty() ? "" : ", ") + std::string(name);
  };
  add(protections.noNewPrivs, "no_new_privs");
  add(protections.notDumpable, "not dumpable");
  add(protections.seccomp, "seccomp");
  add(protections.landlockFiles, "Landlock");
  add(protections.landlockScopes, "Landlock scopes");
  bool all = protections.userNamespace && protections.mountNamespace && protections.pidNamespace &&
             protections.networkNamespace && protections.ipcNamespace;
  add(all, "own namespaces");
  return text;
}

Lines lackLines(const Protections& protections) {
  Lines lines;
  for (auto& lack : protections.missing) {
    lines.push_back({"kernel", "warn", "missing: " + lack,
                     "providers work without it, less well fenced in; a newer kernel, or allowing unprivileged user "
                     "namespaces, brings it"});
  }
  return lines;
}

Lines examineGit(Instance& instance) {
  Lines lines = {{"providers", "ok", "git starts locked down: " + inForce(instance.protections()), ""}};
  auto lacks = lackLines(instance.protections());
  lines.insert(lines.end(), lacks.begin(), lacks.end());
  return lines;
}

Lines joined(Lines lines, const Lines& more) {
  lines.insert(lines.end(), more.begin(), more.end());
  return lines;
}

DoctorLine failure(const std::string& name, const std::string& what, const std::string& fix) {
  return {name, "FAIL", what, fix};
}

}  // namespace

kj::Promise<Lines> Doctor::examine(const config::Config& config) {
  return examineProviders()
      .then([this, config](Lines lines) -> kj::Promise<Lines> {
        if (!usesSrt(config)) return kj::mv(lines);
        return examineSrt(config).then([lines = joined(kj::mv(lines), limitLines(config))](Lines more) mutable {
          return joined(kj::mv(lines), more);
        });
      })
      .then([this, config](Lines lines) {
        return examineContainers(config).then(
            [lines = kj::mv(lines)](Lines more) mutable { return joined(kj::mv(lines), more); });
      })
      .then([this, config](Lines lines) {
        return examineSecrets(config).then(
            [lines = kj::mv(lines)](Lines more) mutable { return joined(kj::mv(lines), more); });
      });
}

// What the config refers to. Files and variables can be looked at here and now; the keyring is asked for its names.
kj::Promise<Lines> Doctor::examineSecrets(const config::Config& config) {
  auto references = secretReferences(config);
  if (references.empty()) return Lines();
  Lines lines;
  std::vector<std::string> wanted;
  for (auto& reference : references) {
    auto rest = reference.substr(reference.find(':') + 1);
    if (reference.starts_with("keyring:")) {
      wanted.push_back(rest);
    } else if (reference.starts_with("file:")) {
      auto read = readSecretFile(rest);
      if (!read.ok()) lines.push_back(failure("secrets", reference + ": " + read.refusal().what, read.refusal().fix));
    } else if (auto found = own.find(rest); found == own.end() || found->second.empty()) {
      lines.push_back(
          failure("secrets", rest + " is not set in this environment", "set it where the daemon is started"));
    }
  }
  auto summed = [total = references.size()](Lines lines) -> Lines {
    if (lines.empty())
      lines.push_back({"secrets", "ok",
                       fmt::format("{} that the config refers to {} there", total, total == 1 ? "is" : "are"), ""});
    return lines;
  };
  if (wanted.empty()) return summed(kj::mv(lines));
  return keyringNames(supervisor, own)
      .then([lines = kj::mv(lines), wanted, summed](OrRefusal<std::vector<std::string>> names) mutable -> Lines {
        if (!names.ok()) {
          lines.push_back(failure("secrets", names.refusal().what, names.refusal().fix));
          return kj::mv(lines);
        }
        for (auto& name : wanted) {
          if (std::find(names.value().begin(), names.value().end(), name) != names.value().end()) continue;
          lines.push_back(
              failure("secrets", fmt::format("the keyring has no secret {}", name), "open-conduit secret set " + name));
        }
        return summed(kj::mv(lines));
      });
}

// One after another: they start containers.
kj::Promise<Lines> Doctor::examineContainers(const config::Config& config) {
  std::set<std::pair<std::string, std::string>> used;
  for (auto& scope : config.scopes) {
    for (auto& binding : scope.bindings) {
      if (binding.container) used.insert({binding.container->context, binding.container->image});
    }
  }
  kj::Promise<Lines> all = Lines();
  for (auto& [context, image] : used) {
    auto where = containers.find(config, context);
    all = all.then([this, where, image = image](Lines lines) -> kj::Promise<Lines> {
      if (!where.ok()) return joined(kj::mv(lines), {{"docker", "FAIL", where.refusal().what, where.refusal().fix}});
      return containers.checks.examine(where.value(), image).then([lines = kj::mv(lines)](Lines more) mutable {
        return joined(kj::mv(lines), more);
      });
    });
  }
  return all;
}

// An instance of the git provider that looks at nothing: it stands for all that share the kit.
kj::Promise<Lines> Doctor::examineProviders() {
  supervisor::LaunchSpec spec;
  spec.provider = "git";
  spec.label = "doctor";
  spec.job = {"check"};
  return supervisor.start(kj::mv(spec))
      .then([this](kj::Own<Instance> instance) -> kj::Promise<Lines> {
        auto lines = examineGit(*instance);
        auto asked = instance->as<proto::Git>().checkRequest().send().then(
            [lines = kj::mv(lines)](auto&& response) mutable -> Lines {
              auto refusal = read(response.getRefusal());
              if (refusal.reason.empty()) {
                lines.push_back({"git", "ok", toString(response.getVersion()), ""});
              } else {
                lines.push_back(failure("git", refusal.what, refusal.fix));
              }
              return kj::mv(lines);
            });
        return withDeadline(supervisor.timer(), checkLimit, "git", kj::mv(asked)).attach(kj::mv(instance));
      })
      .catch_([](kj::Exception&& exception) -> Lines {
        return {failure("providers", describe(exception),
                        "the message names the protection that this machine lacks, or the program that is missing: "
                        "reinstall Open Conduit, or use a kernel with it")};
      });
}

kj::Promise<Lines> Doctor::examineSrt(const config::Config& config) {
  auto found = config.settings.extensions.find("srt");
  auto parts =
      sandbox::findSrt(found == config.settings.extensions.end() ? config::ExtensionSettings() : found->second, places);
  if (!parts.ok()) return Lines{failure("srt", parts.refusal().what, parts.refusal().fix)};
  supervisor::LaunchSpec spec;
  spec.provider = "srt";
  spec.label = "doctor";
  spec.job = sandbox::srtCheckJob(parts.value(), places);
  auto version = parts.value().version;
  return supervisor.start(kj::mv(spec))
      .then([this, version](kj::Own<Instance> instance) -> kj::Promise<Lines> {
        auto asked = instance->as<proto::Sandbox>().checkRequest().send().then([version](auto&& response) -> Lines {
          Lines lines;
          for (auto check : response.getReport().getChecks()) {
            if (lines.size() >= 64) break;
            auto level = check.getOk() ? "ok" : check.getWanted() ? "warn" : "FAIL";
            lines.push_back({"srt", level, shortened(printable(toString(check.getWhat())), 2048),
                             shortened(printable(toString(check.getFix()), true), 2048)});
          }
          if (lines.empty()) lines.push_back(failure("srt", "the check reported nothing", "see the daemon's log"));
          return lines;
        });
        return withDeadline(supervisor.timer(), checkLimit, "srt", kj::mv(asked)).attach(kj::mv(instance));
      })
      .catch_([](kj::Exception&& exception) -> Lines {
        return {failure("srt", describe(exception),
                        "process sandboxes need unprivileged user namespaces; on Ubuntu 24.04: sudo sysctl "
                        "kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile for bwrap and for "
                        "open-conduit-srt")};
      });
}

std::vector<std::string> lackingProtections(const std::vector<Instance*>& instances) {
  std::set<std::string> lacking;
  for (auto* instance : instances) {
    lacking.insert(instance->protections().missing.begin(), instance->protections().missing.end());
  }
  return {lacking.begin(), lacking.end()};
}

}  // namespace oc::work
