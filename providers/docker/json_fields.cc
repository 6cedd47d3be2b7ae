#include "json_fields.h"

#include "base/text.h"

namespace oc::docker {

namespace {

const Json* find(const Json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

}  // namespace

std::string textField(const Json& object, const char* name, size_t limit) {
  auto found = find(object, name);
  if (found == nullptr || !found->is_string()) return "";
  return shortened(printable(found->get_ref<const std::string&>()), limit);
}

bool boolField(const Json& object, const char* name) {
  auto found = find(object, name);
  return found != nullptr && found->is_boolean() && found->get<bool>();
}

int64_t numberField(const Json& object, const char* name) {
  auto found = find(object, name);
  return found != nullptr && found->is_number_integer() ? found->get<int64_t>() : 0;
}

const Json& objectField(const Json& object, const char* name) {
  static const Json none = Json::object();
  auto found = find(object, name);
  return found != nullptr && found->is_object() ? *found : none;
}

const Json& arrayField(const Json& object, const char* name) {
  static const Json none = Json::array();
  auto found = find(object, name);
  return found != nullptr && found->is_array() ? *found : none;
}

std::vector<std::string> textsField(const Json& object, const char* name, size_t most) {
  std::vector<std::string> texts;
  for (auto& item : arrayField(object, name)) {
    if (texts.size() == most) break;
    if (item.is_string()) texts.push_back(shortened(printable(item.get_ref<const std::string&>()), 512));
  }
  return texts;
}

}  // namespace oc::docker
