#include "policy.h"

#include <fmt/format.h>

#include <algorithm>

namespace oc::gateway {

namespace {

constexpr size_t mostEntriesShown = 20;

const Network* find(const std::vector<Network>& networks, const Address& address) {
  auto found = std::find_if(networks.begin(), networks.end(), [&](const Network& n) { return n.contains(address); });
  return found == networks.end() ? nullptr : &*found;
}

std::string listed(const std::vector<HostPattern>& allow) {
  if (allow.empty()) return "network.allow is empty";
  std::string result = "network.allow has: ";
  for (size_t i = 0; i < allow.size() && i < mostEntriesShown; ++i) result += (i ? ", " : "") + allow[i].toString();
  if (allow.size() > mostEntriesShown) result += fmt::format(", and {} more", allow.size() - mostEntriesShown);
  return result;
}

Verdict refused(std::string reason, std::string why, std::string fix) {
  return {false, std::move(reason), std::move(why), std::move(fix)};
}

}  // namespace

std::string Target::toString() const {
  return fmt::format("{}:{}", literal && literal->v6 ? "[" + host + "]" : host, port);
}

std::optional<Target> parseTarget(std::string_view authority, uint16_t defaultPort, std::string& why) {
  auto pattern = parseHostPattern(authority, why);
  if (!pattern) return std::nullopt;
  if (pattern->subdomains) {
    why = "'*' can't be in a host's name";
    return std::nullopt;
  }
  Target target{pattern->host, pattern->port.value_or(defaultPort), parseAddress(pattern->host)};
  if (target.port == 0) {
    why = "it has no port";
    return std::nullopt;
  }
  return target;
}

Policy::Policy(Parts parts) : all(std::move(parts)) {}

bool Policy::isListed(const Target& target) const {
  return std::any_of(all.allow.begin(), all.allow.end(),
                     [&](const HostPattern& pattern) { return pattern.matches(target.host, target.port); });
}

bool Policy::names(const std::string& host) const {
  return std::any_of(all.allow.begin(), all.allow.end(),
                     [&](const HostPattern& pattern) { return pattern.matches(host, pattern.port.value_or(1)); });
}

std::optional<Verdict> Policy::refusedAlways(const Address& address) const {
  auto text = address.toString();
  if (auto network = find(all.own, address)) {
    return refused("own_network", fmt::format("{} is in the gateway's own network {}.", text, network->toString()),
                   "Nothing can allow this: the gateway and its neighbours are not for runs.");
  }
  if (find(all.refuse, address) != nullptr) {
    return refused(
        "own_network", fmt::format("{} is an address of the machine that runs the containers.", text),
        "Nothing can allow this: a run in a container reaches no port of its host. Serve what it needs elsewhere.");
  }
  if (reachOf(address) == Reach::Never) {
    return refused(
        "private_address", fmt::format("{} is a loopback, unspecified, group or broadcast address.", text),
        "Nothing can allow this: seen from the gateway such an address is the gateway itself, or everybody.");
  }
  // Whoever translates between the two would take us to the IPv4 address.
  if (auto inner = embeddedIpv4(address)) return refusedAlways(*inner);
  return std::nullopt;
}

Verdict Policy::decide(const Target& target) const {
  if (!isListed(target)) {
    return refused(
        "not_allowed", fmt::format("Nothing in network.allow names {}. {}.", target.toString(), listed(all.allow)),
        fmt::format("If runs of this binding should reach it, add \"{}\" to its network.allow.", target.toString()));
  }
  if (target.literal) {
    if (auto verdict = refusedAlways(*target.literal)) return *verdict;
  }
  return {true, "", "", ""};
}

Verdict Policy::decideResolved(const Target& target, const Address& address) const {
  if (auto verdict = refusedAlways(address)) return *verdict;
  auto reach = reachOf(address);
  auto text = address.toString();
  if (reach == Reach::LinkLocal) {
    return refused(
        "private_address", fmt::format("{} resolves to {}, a link-local address.", target.host, text),
        fmt::format("A cloud's metadata service has such addresses. If that is what you want, list \"{}\" itself in "
                    "network.allow.",
                    text));
  }
  if (reach == Reach::Private && find(all.privateRanges, address) == nullptr) {
    return refused("private_address",
                   fmt::format("{} resolves to {}, which is not on the public internet.", target.host, text),
                   fmt::format("If that is meant, add \"{}\" or its network to network.private.",
                               Network{address, address.v6 ? 128u : 32u}.toString()));
  }
  // The address that a translator would reach stands by itself, too.
  if (auto inner = embeddedIpv4(address)) return decideResolved(target, *inner);
  return {true, "", "", ""};
}

}  // namespace oc::gateway
