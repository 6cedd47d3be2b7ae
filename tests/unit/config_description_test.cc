// One description, and what is made from it.
#include "daemon/config/description.h"

#include <fcntl.h>

#include <algorithm>
#include <regex>

#include "config_support.h"
#include "daemon/config/operations.h"
#include "daemon/github/owner.h"
#include "daemon/toolbelt/operations.h"

using namespace oc;
using namespace oc::config;
using namespace oc::config::testing;

namespace {

// Every object of the description, once.
void collect(const Shape& shape, std::vector<const Shape*>& objects) {
  if (shape.item) collect(*shape.item, objects);
  if (shape.kind == Shape::Kind::Object) objects.push_back(&shape);
  for (auto& field : shape.fields) {
    collect(*field.shape, objects);
    for (auto& [value, choice] : field.choices) collect(*choice, objects);
  }
}

std::vector<const Shape*> allObjects() {
  std::vector<const Shape*> objects;
  collect(configShape(), objects);
  return objects;
}

}  // namespace

// To write the page anew: OPEN_CONDUIT_WRITE_REFERENCE=1 unit-tests "[reference]"
TEST_CASE("D1 docs/reference.md is what the description says", "[reference]") {
  auto path = sources() + "/docs/reference.md";
  auto page = configReference();
  if (getenv("OPEN_CONDUIT_WRITE_REFERENCE") != nullptr) writeFileAtomically(path, page, 0644);
  INFO("to write it anew: OPEN_CONDUIT_WRITE_REFERENCE=1 unit-tests '[reference]'");
  CHECK(readFile(path, 1 << 20) == page);
}

TEST_CASE(
    "D1 the reference's example is a config without a word to say about it, and its toolsets are the catalogue's") {
  checkClean(configExample());
  CHECK(configReference().find(configExample()) != std::string::npos);
  toolbelt::Catalogue catalogue;
  hub::addOperations(catalogue);
  for (auto& toolset : knownToolsets()) {
    for (auto& operation : catalogue.expanded({toolset})) {
      INFO(operation);
      CHECK(toolsetOf(operation) == toolset);
      CHECK(std::count(knownOperations().begin(), knownOperations().end(), operation) == 1);
    }
  }
}

TEST_CASE("D1 the reference has every field, with a sentence, and links that lead somewhere") {
  auto page = configReference();
  for (auto object : allObjects()) {
    for (auto& field : object->fields) {
      INFO(object->title << "." << field.name);
      CHECK(field.doc.size() > 3);
      CHECK(field.doc.back() == '.');
      CHECK(page.find("| `" + field.name + "` |") != std::string::npos);
      CHECK((field.choices.empty() || object->find(field.chosenBy) != nullptr));
    }
  }
  std::regex link("\\]\\(#([a-z0-9-]+)\\)");
  std::vector<std::string> headings;
  std::regex heading("\n## ([^\n]+)\n");
  for (std::sregex_iterator it(page.begin(), page.end(), heading), end; it != end; ++it) {
    std::string name = (*it)[1];
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return c == ' ' ? '-' : std::tolower(c); });
    headings.push_back(name);
  }
  size_t links = 0;
  for (std::sregex_iterator it(page.begin(), page.end(), link), end; it != end; ++it, ++links) {
    INFO((*it)[1]);
    CHECK(std::count(headings.begin(), headings.end(), (*it)[1].str()) == 1);
  }
  CHECK(links > 20);
}

TEST_CASE("D1 the schema is one of JSON Schema 2020-12, and all its references lead somewhere") {
  auto schema = configSchema();
  CHECK(schema["$schema"] == "https://json-schema.org/draft/2020-12/schema");
  CHECK(schema["required"] == Json::array({"version"}));
  CHECK(schema["properties"]["version"]["const"] == 1);
  CHECK(schema["properties"]["settings"]["default"] == Json::object());
  size_t references = 0;
  auto places = schema.flatten();
  for (auto& [pointer, value] : places.items()) {
    if (!pointer.ends_with("/$ref")) continue;
    INFO(pointer << " → " << value);
    ++references;
    CHECK(schema["$defs"].contains(value.get<std::string>().substr(std::string("#/$defs/").size())));
  }
  CHECK(references > 20);
  for (auto object : allObjects()) {
    if (object->title.empty() || object == &configShape()) continue;
    std::string name = object->title;
    std::replace(name.begin(), name.end(), ' ', '-');
    INFO(name);
    REQUIRE(schema["$defs"].contains(name));
    auto& definition = schema["$defs"][name];
    CHECK(definition["additionalProperties"] == false);
    CHECK(definition["properties"].size() == object->fields.size());
  }
}

TEST_CASE("D1 two objects of the description never share a title") {
  std::map<std::string, std::vector<std::string>> fields;
  for (auto object : allObjects()) {
    if (object->title.empty()) continue;
    std::vector<std::string> names;
    for (auto& field : object->fields) names.push_back(field.name);
    auto [known, isNew] = fields.emplace(object->title, names);
    INFO(object->title);
    CHECK(known->second == names);
  }
}

TEST_CASE("D1 an editor's pattern never refuses what config check accepts") {
  struct Row {
    Format format;
    std::vector<std::string> accepted, refused;
  } rows[] = {
      {Format::Name, {"a", "A.b_c-9", std::string(64, 'a')}, {"", "-a", "a b", std::string(65, 'a')}},
      {Format::HostPath, {"/", "/a b", "~", "~/x"}, {"a", "~x", "{workspace}"}},
      {Format::AbsolutePath, {"/a"}, {"~/a", "a"}},
      {Format::GrantPath, {"{workspace}", "{run}/x", "~", "/x"}, {"{toolbelt}", "{workspace}x", "x"}},
      {Format::SocketPath, {"{toolbelt}", "{run}/x", "/x"}, {"{toolbelt}/x", "x"}},
      {Format::Host, {"a.b", "a.b:1", "*.a.b", "192.0.2.1", "[::1]", "[::1]:80"}, {"", "http://a", "a b", "*", "a:0"}},
      {Format::Network, {"10.0.0.0/8", "fd00::/8"}, {"10.0.0.0", "x", "10.0.0.0/08"}},
      {Format::EnvironmentName, {"A", "_a1"}, {"", "1A", "A-B"}},
      {Format::SecretReference, {"keyring:a", "file:/a", "env:A"}, {"", "a", "file:a", "env:1"}},
      {Format::Operation, {"a.b", "@github.author"}, {"a", "A.b", "a..b"}},
      {Format::Image,
       {"a@sha256:" + std::string(64, '0'), "sha256:" + std::string(64, '0')},
       {"a", "sha256:0", "a:b", "a@sha256:0"}},
      {Format::Branch, {"a/{work}"}, {"", "a b", "a:b"}},
      {Format::Memory, {"6291456", "8g", "512M"}, {"", "0", "8gb"}},
      {Format::Repository, {"o/r", "o-1/r.x_y"}, {"o", "o/", "o/r/x"}},
      {Format::AppId, {"1", "Iv1.abc"}, {"", "a b"}},
      {Format::ContextName, {"default", "a+b"}, {"", "../a"}},
      {Format::Title, {"acme/web"}, {""}},
  };
  for (auto& row : rows) {
    std::regex pattern{std::string(formatPattern(row.format))};
    for (auto& text : row.accepted) {
      INFO(text);
      CHECK_FALSE(checkFormat(row.format, text));
      CHECK(std::regex_search(text, pattern));
    }
    for (auto& text : row.refused) {
      INFO(text);
      CHECK(checkFormat(row.format, text));
      CHECK_FALSE(std::regex_search(text, pattern));
    }
  }
}

TEST_CASE("D1 a field that stands elsewhere is found by its name") {
  CHECK(placesOfField("image", 5) == std::vector<std::string>{"scopes[].bindings[].container.config.image"});
  CHECK(placesOfField("allow", 2).size() == 2);
  CHECK(placesOfField("home_seed", 2) == std::vector<std::string>{"scopes[].bindings[].config.home_seed"});
  CHECK(placesOfField("nothing", 5).empty());
}
