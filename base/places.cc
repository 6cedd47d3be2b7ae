#include "places.h"

#include <kj/debug.h>
#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

#include <fmt/format.h>

#include "error.h"
#include "paths.h"

namespace oc {

namespace {

std::string absoluteVariable(const char* name) {
  const char* value = getenv(name);
  if (value == nullptr || value[0] != '/') return "";
  return normalizePath(value);
}

std::string homeDirectory() {
  auto home = absoluteVariable("HOME");
  if (!home.empty()) return home;
  struct passwd* entry = getpwuid(geteuid());
  KJ_REQUIRE(entry != nullptr && entry->pw_dir != nullptr && entry->pw_dir[0] == '/',
             "HOME is not set and the password database has no home for this user");
  return normalizePath(entry->pw_dir);
}

// What can't be resolved stays as it is: whoever opens it says what is wrong.
std::string real(const std::string& path) {
  std::string result = path;
  KJ_IF_MAYBE (exception, kj::runCatchingExceptions([&]() { result = resolvePath(path); })) {
    (void)exception;
  }
  return result;
}

// By its real path. Sandboxes mount over these and deny them by name, and a link is neither what lies behind it nor
// something that bubblewrap makes folders behind.
std::string under(const char* variable, const std::string& otherwise) {
  auto base = absoluteVariable(variable);
  return real((base.empty() ? otherwise : base) + "/open-conduit");
}

}  // namespace

Places findPlaces() {
  Places places;
  places.home = homeDirectory();
  places.configDir = under("XDG_CONFIG_HOME", places.home + "/.config");
  places.stateDir = under("XDG_STATE_HOME", places.home + "/.local/state");
  places.dataDir = under("XDG_DATA_HOME", places.home + "/.local/share");
  auto runtime = absoluteVariable("XDG_RUNTIME_DIR");
  // Not its last part: in /tmp, a link of that name is somebody else's.
  places.runtimeDir =
      runtime.empty() ? fmt::format("/tmp/open-conduit-{}", geteuid()) : real(runtime) + "/open-conduit";
  return places;
}

void requireSocketPathFits(const std::string& path) {
  constexpr size_t maximum = 107;  // sockaddr_un's 108 bytes with the terminating zero
  if (path.size() <= maximum) return;
  fail(
      fmt::format("the socket path {} has {} bytes and the system allows {}; make XDG_DATA_HOME or XDG_RUNTIME_DIR "
                  "(whichever it begins with) a shorter path",
                  path, path.size(), maximum));
}

}  // namespace oc
