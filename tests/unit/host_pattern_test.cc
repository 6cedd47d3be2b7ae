#include "base/host_pattern.h"

#include <string>

#include "tests/catch.h"

using namespace oc;

namespace {

HostPattern pattern(std::string_view text) {
  std::string why;
  auto parsed = parseHostPattern(text, why);
  INFO(text << ": " << why);
  REQUIRE(parsed);
  return *parsed;
}

// The reason for which `text` is refused.
std::string refusal(std::string_view text) {
  std::string why;
  auto parsed = parseHostPattern(text, why);
  INFO(text);
  CHECK_FALSE(parsed);
  CHECK_FALSE(why.empty());
  return why;
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("B3 host opens every port of that host and of no other") {
  auto host = pattern("example.org");
  CHECK(host.matches("example.org", 443));
  CHECK(host.matches("example.org", 22));
  CHECK(host.matches("EXAMPLE.org.", 443));
  CHECK_FALSE(host.matches("www.example.org", 443));
  CHECK_FALSE(host.matches("evilexample.org", 443));
  CHECK_FALSE(host.matches("example.org.evil", 443));
  CHECK_FALSE(host.matches("example.org..", 443));
  CHECK_FALSE(host.matches("", 443));
}

TEST_CASE("B3 host:port opens that port only") {
  auto host = pattern("example.org:8443");
  CHECK(host.matches("example.org", 8443));
  CHECK_FALSE(host.matches("example.org", 443));
  CHECK(pattern("example.org:65535").port == 65535);
}

TEST_CASE("B3 *.domain opens every name under it, not the domain itself") {
  auto under = pattern("*.example.org");
  CHECK(under.matches("a.example.org", 443));
  CHECK(under.matches("a.b.Example.ORG.", 1));
  CHECK_FALSE(under.matches("example.org", 443));
  CHECK_FALSE(under.matches(".example.org", 443));
  CHECK_FALSE(under.matches("evilexample.org", 443));
  CHECK(pattern("*.example.org:443").matches("a.example.org", 443));
  CHECK_FALSE(pattern("*.example.org:443").matches("a.example.org", 80));
}

TEST_CASE("B3 what only ends like a name under the domain is no name under it") {
  auto under = pattern("*.example.org");
  CHECK(under.matches("a.example.org", 443));
  CHECK_FALSE(under.matches(std::string_view("evil.test\0.example.org", 22), 443));
  CHECK_FALSE(under.matches("evil.test/.example.org", 443));
  CHECK_FALSE(under.matches("user@x.example.org", 443));
  CHECK_FALSE(under.matches("a..example.org", 443));
  CHECK_FALSE(under.matches("::1%x.example.org", 443));
  CHECK_FALSE(under.matches("a\r\nb.example.org", 443));
}

TEST_CASE("B3 addresses are matched as addresses") {
  CHECK(pattern("192.0.2.1").matches("192.0.2.1", 80));
  CHECK_FALSE(pattern("192.0.2.1").matches("192.0.2.10", 80));
  CHECK_FALSE(pattern("192.0.2.1").matches("192.0.2.1.", 80));
  CHECK(pattern("192.0.2.1:80").port == 80);
  auto six = pattern("[2001:DB8:0::1]:443");
  CHECK(six.host == "2001:db8::1");
  CHECK(six.matches("2001:db8::1", 443));
  CHECK(six.matches("[2001:0db8::0001]", 443));
  CHECK_FALSE(six.matches("2001:db8::1", 80));
  CHECK_FALSE(six.matches("2001:db8::2", 443));
  CHECK_FALSE(six.matches("2001:db8::1%eth0", 443));
}

TEST_CASE("a host pattern is written back as one that reads the same") {
  for (auto text : {"example.org", "example.org:443", "*.example.org", "*.example.org:1", "192.0.2.1", "[2001:db8::1]",
                    "[2001:db8::1]:443", "localhost", "a-b.c_d.example", "xn--bcher-kva.example"}) {
    CHECK(pattern(text).toString() == text);
    CHECK(pattern(pattern(text).toString()) == pattern(text));
  }
  CHECK(pattern("Example.ORG.").toString() == "example.org");
  CHECK(pattern(std::string(63, 'a') + ".example").host.size() == 71);
}

TEST_CASE("what is no host is refused with its reason") {
  CHECK(contains(refusal("https://example.org"), "scheme"));
  CHECK(contains(refusal("example.org/path"), "path"));
  CHECK(contains(refusal("10.0.0.0/8"), "network's size"));
  CHECK(contains(refusal("user@example.org"), "user name"));
  CHECK(contains(refusal("a b"), "space"));
  CHECK(contains(refusal("a.example,b.example"), "list"));
  CHECK(contains(refusal(std::string_view("a\0b", 3)), "control character"));
  CHECK(contains(refusal("a\nb"), "control character"));
  CHECK(contains(refusal("bücher.example"), "ASCII"));
  CHECK(contains(refusal("*"), "every host"));
  CHECK(contains(refusal("*:443"), "every host"));
  CHECK(contains(refusal("*."), "no domain"));
  CHECK(contains(refusal("*.:443"), "no domain"));
  CHECK(contains(refusal("*.*.example"), "beginning"));
  CHECK(contains(refusal("a*.example"), "beginning"));
  CHECK(contains(refusal("*.192.0.2.1"), "address"));
  CHECK(contains(refusal(""), "empty"));
  CHECK(contains(refusal("."), "empty"));
  CHECK(contains(refusal("a..b"), "empty part"));
  CHECK(contains(refusal(".example"), "empty part"));
  CHECK(contains(refusal("-a.example"), "'-'"));
  CHECK(contains(refusal("a$.example"), "'$'"));
  CHECK(contains(refusal("a%2e.example"), "'%'"));
}

TEST_CASE("a host pattern can't be an address in disguise") {
  for (auto text : {"127.1", "0x7f000001", "2130706433", "192.0.2.1.5", "192.0.2.256", "a.0x1"}) {
    CHECK(contains(refusal(text), "number"));
  }
  CHECK(contains(refusal("[::ffff:192.0.2.1]"), "IPv4"));
  CHECK(contains(refusal("[fe80::1%eth0]"), "no IPv6 address"));
  CHECK(contains(refusal("2001:db8::1"), "brackets"));
  CHECK(contains(refusal("[2001:db8::1"), "isn't closed"));
  CHECK(contains(refusal("[2001:db8::1]x"), "only a port"));
}

TEST_CASE("a port is a number from 1 to 65535") {
  for (auto text : {"example.org:", "example.org:0", "example.org:65536", "example.org:x", "example.org:0443",
                    "example.org:443443", "[2001:db8::1]:", "[2001:db8::1]:0"}) {
    CHECK(contains(refusal(text), "port"));
  }
  CHECK(contains(refusal("a:1:2"), "more than one ':'"));
}

TEST_CASE("a host's name has its limits") {
  CHECK(contains(refusal(std::string(64, 'a') + ".example"), "63"));
  std::string longName;
  for (int i = 0; i < 64; ++i) longName += "abc.";
  CHECK(contains(refusal(longName + "d"), "253"));
  CHECK(contains(refusal(std::string(4096, 'a')), "too long"));
}
