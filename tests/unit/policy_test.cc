// From denials to a change of the config, for a person.
#include "daemon/explain/suggest.h"

#include "config_support.h"

using namespace oc;
using namespace oc::config::testing;
using explain::Denied;

namespace {

config::Environment operator_{"/home/me"};

explain::Suggestion suggested(const std::string& text, const std::vector<Denied>& denied,
                              const std::string& binding = "s/b") {
  auto made = explain::suggest(text, operator_, binding, denied);
  if (!made.ok()) FAIL(made.refusal().what);
  return std::move(made.value());
}

std::string refusedWith(const std::string& text, const std::string& binding = "s/b") {
  auto made = explain::suggest(text, operator_, binding, {{"host", "a.org:443", "not_allowed"}});
  return made.ok() ? "(suggested)" : made.refusal().reason;
}

std::string patched(const std::string& text, const explain::Suggestion& suggestion) {
  return parseJson(text).patch(suggestion.patch).dump();
}

const std::vector<Denied> two = {{"host", "pypi.org:443", "not_allowed"}, {"host", "[2001:db8::1]:80", "not_allowed"}};

}  // namespace

TEST_CASE(
    "policy suggest: each refused host and port is an entry, at the field's place in the file, and no more than that is opened") {
  for (auto& [policy, paths] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {R"("network": {"allow": ["a.org"]})", {"/network/allow/-", "/network/allow/-"}},
           {R"("network": {})", {"/network/allow"}},
           {R"("write": ["{workspace}"])", {"/network"}}}) {
    for (bool docker : {false, true}) {
      auto text = docker ? withDocker(policy) : withSrt(policy);
      std::string kind = docker ? "container" : "sandbox";
      auto suggestion = suggested(text, two);
      CHECK(suggestion.field == "scopes[0].bindings[0]." + kind + ".config.network.allow");
      REQUIRE(suggestion.additions.size() == 2);
      CHECK(suggestion.additions[0].entry == "pypi.org:443");
      CHECK(suggestion.additions[0].opens.find("every run of s/b could connect to pypi.org at port 443") == 0);
      CHECK(suggestion.additions[1].entry == "[2001:db8::1]:80");
      REQUIRE(suggestion.patch.size() == paths.size());
      for (size_t i = 0; i < paths.size(); ++i) {
        CHECK(suggestion.patch[i]["path"] == "/scopes/0/bindings/0/" + kind + "/config" + paths[i]);
      }
      auto loaded = load(patched(text, suggestion));
      INFO(rendered(loaded));
      REQUIRE(loaded.config.has_value());
      auto& binding = loaded.config->scopes[0].bindings[0];
      auto& allow = docker ? binding.container->networkAllow : binding.srt->networkAllow;
      auto reaches = [&](const std::string& host, uint16_t port) {
        return std::any_of(allow.begin(), allow.end(), [&](auto& entry) { return entry.matches(host, port); });
      };
      CHECK(reaches("pypi.org", 443));
      CHECK_FALSE(reaches("pypi.org", 80));
      CHECK_FALSE(reaches("sub.pypi.org", 443));
      // What was applied is not suggested again.
      auto again = suggested(patched(text, suggestion), two);
      CHECK(again.additions.empty());
      CHECK(again.patch.empty());
      REQUIRE(again.unchanged.size() == 2);
      CHECK(again.unchanged[0].why.find("allows it by now: pypi.org:443") != std::string::npos);
    }
  }
}

TEST_CASE("policy suggest: what an entry can't or should not allow is left, each with why") {
  auto suggestion =
      suggested(withSrt(R"("network": {"allow": []})"), {{"host", "inner.example.org:443", "private_address"},
                                                         {"host", "x.example.org:443", "own_network"},
                                                         {"host", "a b\x1b[31m:443", "not_allowed"},
                                                         {"host", "*.example.org:443", "not_allowed"},
                                                         {"host", "example.org", "not_allowed"},
                                                         {"host", "intranet:80", "not_allowed"},
                                                         {"read", "/etc/shadow", "denied"},
                                                         {"host", "PyPI.org:443", "not_allowed"},
                                                         {"host", "pypi.org.:443", "not_allowed"}});
  REQUIRE(suggestion.additions.size() == 1);
  CHECK(suggestion.additions[0].entry == "pypi.org:443");
  REQUIRE(suggestion.unchanged.size() == 7);
  CHECK(suggestion.unchanged[0].why.find("network.private") != std::string::npos);
  CHECK(suggestion.unchanged[5].why.find("without a dot") != std::string::npos);
  for (auto& one : suggestion.unchanged) CHECK_FALSE(one.why.empty());
  CHECK(
      suggested(withDocker(R"("network": {"allow": []})"), {{"host", "intranet:80", "not_allowed"}}).additions.size() ==
      1);
}

TEST_CASE("policy suggest: what config check warns of an entry is beside it") {
  auto suggestion = suggested(withSrt(R"("network": {"allow": ["a.org"]})"),
                              {{"host", "169.254.169.254:80", "not_allowed"}, {"host", "pypi.org:443", "not_allowed"}});
  REQUIRE(suggestion.additions.size() == 2);
  CHECK(suggestion.additions[0].warnings.size() == 1);
  CHECK(suggestion.additions[1].warnings.empty());
}

TEST_CASE("policy suggest: no suggestion for a config with errors, a binding that is gone or one without a sandbox") {
  CHECK(refusedWith("{") == "config_invalid");
  CHECK(refusedWith(withSrt(""), "s/gone") == "binding_missing");
  CHECK(refusedWith(withShell("")) == "binding_unsandboxed");
  CHECK(refusedWith(withSrt("")) == "(suggested)");
}
