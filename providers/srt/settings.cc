#include "settings.h"

#include <kj/debug.h>

#include "base/fd.h"

namespace oc::srt {

namespace {

std::vector<std::string> pathsOf(const Json& filesystem, const char* list) {
  std::vector<std::string> paths;
  auto found = filesystem.find(list);
  if (found == filesystem.end()) return paths;
  KJ_REQUIRE(found->is_array(), "not a list in srt's settings", list);
  for (auto& entry : *found) {
    paths.push_back(entry.is_object() ? entry.at("path").get<std::string>() : entry.get<std::string>());
  }
  return paths;
}

}  // namespace

Settings parseSettings(const Json& json) {
  auto& filesystem = json.at("filesystem");
  KJ_REQUIRE(filesystem.is_object(), "srt's settings have no filesystem section");
  auto network = json.find("network");
  bool allSockets = network != json.end() && network->is_object() && network->value("allowAllUnixSockets", false);
  return {pathsOf(filesystem, "denyRead"), pathsOf(filesystem, "allowWrite"), pathsOf(filesystem, "denyWrite"),
          allSockets};
}

Settings readSettings(const std::string& path) {
  try {
    return parseSettings(parseJson(readFile(path, 4u << 20)));
  } catch (const Json::exception& exception) {
    KJ_FAIL_REQUIRE("srt's settings cannot be read", path.c_str(), exception.what());
  }
}

}  // namespace oc::srt
