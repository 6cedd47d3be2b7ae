#include "gateway/policy.h"

#include "tests/catch.h"

using namespace oc::gateway;

namespace {

Policy policyOf(std::vector<std::string> allow, std::vector<std::string> privateRanges = {},
                std::vector<std::string> refuse = {}, std::vector<std::string> own = {"172.30.0.0/16"}) {
  Policy::Parts parts;
  std::string why;
  for (auto& text : allow) parts.allow.push_back(*oc::parseHostPattern(text, why));
  for (auto& text : privateRanges) parts.privateRanges.push_back(*parseNetwork(text));
  for (auto& text : refuse) parts.refuse.push_back(*parseNetwork(text));
  for (auto& text : own) parts.own.push_back(*parseNetwork(text));
  return Policy(std::move(parts));
}

// "", "no target", or the refusal's word.
std::string decide(const Policy& policy, const std::string& authority) {
  std::string why;
  auto target = parseTarget(authority, 0, why);
  if (!target) return why.empty() ? "no reason" : "no target";
  auto verdict = policy.decide(*target);
  CHECK(verdict.allowed == verdict.reason.empty());
  if (!verdict.allowed) {
    CHECK(verdict.why.size() > 10);
    CHECK(verdict.fix.size() > 10);
  }
  return verdict.reason;
}

std::string resolved(const Policy& policy, const std::string& address) {
  std::string why;
  auto target = parseTarget("name.test:443", 0, why);
  return policy.decideResolved(*target, *parseAddress(address)).reason;
}

}  // namespace

TEST_CASE("B3 the gateway's policy: host, host:port and *.domain") {
  auto policy = policyOf({"allowed.com", "port.test:8443", "*.under.test", "*.narrow.test:443"});
  CHECK(decide(policy, "allowed.com:443") == "");
  CHECK(decide(policy, "allowed.com:1") == "");
  CHECK(decide(policy, "ALLOWED.Com:443") == "");
  CHECK(decide(policy, "allowed.com.:443") == "");
  CHECK(decide(policy, "port.test:8443") == "");
  CHECK(decide(policy, "port.test:443") == "not_allowed");
  CHECK(decide(policy, "a.under.test:443") == "");
  CHECK(decide(policy, "a.b.under.test:22") == "");
  CHECK(decide(policy, "under.test:443") == "not_allowed");
  CHECK(decide(policy, "a.narrow.test:443") == "");
  CHECK(decide(policy, "a.narrow.test:80") == "not_allowed");
}

TEST_CASE("B2 names that only look allowed are refused") {
  auto policy = policyOf({"allowed.com", "*.under.test"});
  for (auto name : {"allowed.com.evil", "evilallowed.com", "a.allowed.com", "allowed.co", "allowed.comm",
                    "under.test.evil", "evilunder.test", "xn--allowed-9za.com"}) {
    INFO(name);
    CHECK(decide(policy, std::string(name) + ":443") == "not_allowed");
  }
  using std::string_literals::operator""s;
  for (auto& name : {"allowed.com@evil"s,
                     "evil@allowed.com"s,
                     "user:pw@allowed.com"s,
                     "allowed.com\0.evil"s,
                     "evil\0.under.test"s,
                     "allowed.com\r\nX: y"s,
                     "allowed.com\n"s,
                     "allowed%2ecom"s,
                     "allowed.com%00"s,
                     "allowed.com "s,
                     " allowed.com"s,
                     "al lowed.com"s,
                     ".allowed.com"s,
                     "allowed..com"s,
                     "allowed.com.."s,
                     "..under.test"s,
                     ".under.test"s,
                     "a..under.test"s,
                     ""s,
                     "."s,
                     "*"s,
                     "*.under.test"s,
                     "\xC3\xA4llowed.com"s,
                     "allowed\xE3\x80\x82"
                     "com"s,
                     "allowed.com/"s,
                     "allowed.com#"s,
                     "allowed.com?"s,
                     "allowed.com\\"s,
                     "-allowed.com"s,
                     std::string(64, 'a') + ".under.test",
                     std::string(300, 'a'),
                     "a." + std::string(250, 'b') + ".under.test"}) {
    INFO(name);
    CHECK(decide(policy, name + ":443") == "no target");
  }
  for (auto authority : {"allowed.com", "allowed.com:", "allowed.com:0", "allowed.com:65536", "allowed.com:+443",
                         "allowed.com:0443", "allowed.com:44 3", "allowed.com:443:443", "allowed.com:https",
                         "allowed.com:443/", "allowed.com:99999999999999999999"}) {
    INFO(authority);
    CHECK(decide(policy, authority) == "no target");
  }
}

TEST_CASE("B2 an address needs an entry of its own, in whatever form it comes") {
  auto policy = policyOf({"*.com", "allowed.com", "198.51.100.10", "[2001:db8::10]:443", "10.9.8.7"});
  CHECK(decide(policy, "198.51.100.10:443") == "");
  CHECK(decide(policy, "[2001:db8::10]:443") == "");
  CHECK(decide(policy, "[2001:0DB8:0:0::10]:443") == "");
  CHECK(decide(policy, "[2001:db8::10]:80") == "not_allowed");
  CHECK(decide(policy, "198.51.100.11:443") == "not_allowed");
  // The operator's will.
  CHECK(decide(policy, "10.9.8.7:22") == "");
  for (auto form : {"3325256714",
                    "0xc633640a",
                    "0xc6.0x33.0x64.0x0a",
                    "0306.063.0144.012",
                    "198.51.25610",
                    "198.3367946",
                    "198.51.100.012",
                    "127.1",
                    "0",
                    "0x7f.1",
                    "198.51.100.10.",
                    "[::ffff:198.51.100.10]",
                    "[::ffff:c633:640a]",
                    "2001:db8::10",
                    "[2001:db8::10%25eth0]",
                    "[2001:db8::10%eth0]",
                    "[198.51.100.10]",
                    "[]",
                    "[2001:db8::10",
                    "198.51.100.256",
                    "1e3"}) {
    INFO(form);
    auto result = decide(policy, std::string(form) + ":443");
    CHECK((result == "no target" || result == "not_allowed"));
  }
  for (auto form : {"[64:ff9b::198.51.100.10]", "[2002:c633:640a::1]", "[2001:0:c633:640a::1]", "[::198.51.100.10]",
                    "127.0.0.1", "[::1]", "0.0.0.0", "[::]", "169.254.169.254", "172.30.0.1"}) {
    INFO(form);
    CHECK((decide(policy, std::string(form) + ":443") != ""));
  }
}

TEST_CASE("B2 what is never dialed can't be listed either") {
  auto policy =
      policyOf({"127.0.0.1", "0.0.0.0", "[::1]", "[::]", "224.0.0.1", "255.255.255.255", "172.30.0.1", "203.0.113.5",
                "[64:ff9b::ac1e:1]", "[64:ff9b::7f00:1]", "[2002:ac1e:1::1]", "169.254.169.254", "192.168.1.1"},
               {"0.0.0.0/0", "::/0"}, {"203.0.113.5"});
  for (auto form : {"127.0.0.1", "0.0.0.0", "[::1]", "[::]", "224.0.0.1", "255.255.255.255", "[64:ff9b::7f00:1]"}) {
    INFO(form);
    CHECK(decide(policy, std::string(form) + ":80") == "private_address");
  }
  for (auto form : {"172.30.0.1", "203.0.113.5", "[64:ff9b::ac1e:1]", "[2002:ac1e:1::1]"}) {
    INFO(form);
    CHECK(decide(policy, std::string(form) + ":80") == "own_network");
  }
  // Listed by itself: the operator's will.
  CHECK(decide(policy, "169.254.169.254:80") == "");
  CHECK(decide(policy, "192.168.1.1:80") == "");
}

TEST_CASE("B2 an allowed name that resolves to what is not on the internet is refused") {
  auto policy = policyOf({"name.test"}, {}, {"203.0.113.5", "2001:db8::5"});
  for (auto address : {"198.51.100.10", "8.8.8.8", "203.0.113.6", "172.32.0.1", "172.15.255.255", "100.128.0.1",
                       "100.63.255.255", "198.20.0.1", "198.17.255.255", "192.167.255.255", "11.0.0.0",
                       "169.253.255.255", "223.255.255.255", "2001:db8::10", "2606:4700::1111", "2003::1"}) {
    INFO(address);
    CHECK(resolved(policy, address) == "");
  }
  for (auto address : {"0.0.0.0",
                       "0.1.2.3",
                       "127.0.0.1",
                       "127.255.255.255",
                       "10.0.0.0",
                       "10.255.255.255",
                       "172.16.0.1",
                       "172.29.255.255",
                       "192.168.0.1",
                       "192.168.255.255",
                       "100.64.0.0",
                       "100.127.255.255",
                       "169.254.169.254",
                       "169.254.0.1",
                       "198.18.0.0",
                       "198.19.255.255",
                       "192.0.0.8",
                       "192.88.99.1",
                       "224.0.0.1",
                       "239.255.255.255",
                       "240.0.0.1",
                       "255.255.255.255",
                       "::",
                       "::1",
                       "::ffff:198.51.100.10",
                       "::ffff:10.0.0.1",
                       "::ffff:172.30.0.1",
                       "::198.51.100.10",
                       "64:ff9b::a00:1",
                       "64:ff9b::c633:640a",
                       "64:ff9b:1::1",
                       "2002:a00:1::1",
                       "2002:c633:640a::1",
                       "2001:0:1::1",
                       "fc00::1",
                       "fd12:3456::1",
                       "fe80::1",
                       "febf::1",
                       "fec0::1",
                       "ff02::1",
                       "100::1",
                       "4000::1",
                       "::ffff:0:10.0.0.1",
                       "2001:20::1",
                       "5f00::1"}) {
    INFO(address);
    CHECK(resolved(policy, address) == "private_address");
  }
  for (auto address :
       {"172.30.0.1", "172.30.255.255", "203.0.113.5", "2001:db8::5", "2002:ac1e:1::1", "64:ff9b::cb00:7105"}) {
    INFO(address);
    CHECK(resolved(policy, address) == "own_network");
  }
}

TEST_CASE("B2 network.private opens exactly its ranges, and never the gateway's own") {
  auto policy = policyOf(
      {"name.test"}, {"10.1.0.0/16", "fd00:5::/32", "172.30.0.0/16", "127.0.0.0/8", "169.254.0.0/16", "64:ff9b::/96"},
      {"10.1.0.9"});
  CHECK(resolved(policy, "10.1.2.3") == "");
  CHECK(resolved(policy, "fd00:5::1") == "");
  CHECK(resolved(policy, "10.2.0.1") == "private_address");
  CHECK(resolved(policy, "fd00:6::1") == "private_address");
  CHECK(resolved(policy, "172.30.0.1") == "own_network");
  CHECK(resolved(policy, "10.1.0.9") == "own_network");
  CHECK(resolved(policy, "127.0.0.1") == "private_address");
  CHECK(resolved(policy, "169.254.169.254") == "private_address");
  // With a translator's range opened, what it would reach is judged.
  CHECK(resolved(policy, "64:ff9b::c633:640a") == "");
  CHECK(resolved(policy, "64:ff9b::a01:203") == "");
  CHECK(resolved(policy, "64:ff9b::a02:1") == "private_address");
  CHECK(resolved(policy, "64:ff9b::7f00:1") == "private_address");
  CHECK(resolved(policy, "64:ff9b::a9fe:a9fe") == "private_address");
}

TEST_CASE("networks are read as they are written, and nothing else") {
  CHECK(parseNetwork("10.0.0.0/8")->toString() == "10.0.0.0/8");
  CHECK(parseNetwork("192.0.2.1")->toString() == "192.0.2.1/32");
  CHECK(parseNetwork("fd00::/8")->contains(*parseAddress("fdff::1")));
  CHECK_FALSE(parseNetwork("fd00::/8")->contains(*parseAddress("fc00::1")));
  CHECK(parseNetwork("0.0.0.0/0")->contains(*parseAddress("198.51.100.1")));
  CHECK_FALSE(parseNetwork("0.0.0.0/0")->contains(*parseAddress("2001:db8::1")));
  CHECK(parseNetwork("198.51.100.128/25")->contains(*parseAddress("198.51.100.200")));
  CHECK_FALSE(parseNetwork("198.51.100.128/25")->contains(*parseAddress("198.51.100.127")));
  for (auto text : {"10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/8/8", "10.0.0.0/08",
                    "0.0.0.0/00", "::/129", "fd00::1/64", "10.0.0/8", "x", "", "/8", "10.0.0.0/ 8"}) {
    INFO(text);
    CHECK_FALSE(parseNetwork(text).has_value());
  }
}
