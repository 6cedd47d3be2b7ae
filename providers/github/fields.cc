#include "fields.h"

#include <time.h>

#include "base/text.h"

namespace oc::github {

const Json& fieldOf(const Json& from, const char* name) {
  static const Json nothing;
  if (!from.is_object()) return nothing;
  auto found = from.find(name);
  return found == from.end() ? nothing : *found;
}

std::string textOf(const Json& from, const char* name, size_t limit) {
  auto& value = fieldOf(from, name);
  return value.is_string() ? shortened(printable(value.get_ref<const std::string&>()), limit) : std::string();
}

std::string wholeText(const Json& from, const char* name, size_t limit) {
  auto& value = fieldOf(from, name);
  if (!value.is_string()) return "";
  auto& text = value.get_ref<const std::string&>();
  return text.size() <= limit ? text : shortened(text, limit);
}

uint64_t numberOf(const Json& from, const char* name) {
  auto& value = fieldOf(from, name);
  return value.is_number_unsigned() ? value.get<uint64_t>() : 0;
}

bool flagOf(const Json& from, const char* name) {
  auto& value = fieldOf(from, name);
  return value.is_boolean() && value.get<bool>();
}

int64_t timeOf(const std::string& iso) {
  struct tm parts {};
  const char* end = strptime(iso.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (end == nullptr || *end != 'Z') return 0;
  return static_cast<int64_t>(timegm(&parts)) * 1000;
}

std::string isoOf(int64_t milliseconds) {
  time_t seconds = milliseconds / 1000;
  struct tm parts {};
  gmtime_r(&seconds, &parts);
  char text[32];
  strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

int64_t dateOf(const std::string& http) {
  struct tm parts {};
  const char* end = strptime(http.c_str(), "%a, %d %b %Y %H:%M:%S", &parts);
  return end == nullptr ? 0 : static_cast<int64_t>(timegm(&parts));
}

}  // namespace oc::github
