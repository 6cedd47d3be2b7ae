#include "server.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "surroundings.h"

namespace oc::gateway {

namespace {

constexpr size_t mostRules = 4096, mostNetworks = 1024;

std::string shown(std::string_view text) { return "\"" + shortened(printable(text), 300) + "\""; }

std::string_view view(capnp::Text::Reader text) { return {text.begin(), text.size()}; }

// The rule as an operator would write it, which is then read as an operator's entry.
HostPattern readRule(proto::HostRule::Reader rule) {
  auto host = std::string(view(rule.getPattern()));
  auto text = host.find(':') == std::string::npos ? host : "[" + host + "]";
  if (rule.getPort() != 0) text += fmt::format(":{}", rule.getPort());
  std::string why;
  auto pattern = parseHostPattern(text, why);
  if (!pattern) fail(fmt::format("the policy's entry {} can't be used: {}", shown(text), why));
  return *pattern;
}

std::vector<Network> readNetworks(capnp::List<capnp::Text>::Reader texts, const char* field) {
  if (texts.size() > mostNetworks)
    fail(fmt::format("the policy's \"{}\" has more than {} entries", field, mostNetworks));
  std::vector<Network> result;
  for (auto text : texts) {
    auto network = parseNetwork(view(text));
    if (!network)
      fail(fmt::format("the policy's \"{}\" has {}, which is neither an address nor a network", field,
                       shown(view(text))));
    result.push_back(*network);
  }
  return result;
}

Policy readPolicy(proto::GatewayPolicy::Reader policy) {
  Policy::Parts parts;
  if (policy.getAllow().size() > mostRules) fail(fmt::format("the policy allows more than {} hosts", mostRules));
  for (auto rule : policy.getAllow()) parts.allow.push_back(readRule(rule));
  parts.privateRanges = readNetworks(policy.getPrivate(), "private");
  parts.refuse = readNetworks(policy.getRefuse(), "refuse");
  parts.own = ownNetworks();
  return Policy(std::move(parts));
}

}  // namespace

GatewayServer::GatewayServer(Loop& loop, kj::LowLevelAsyncIoProvider& io, ProxyLimits limits)
    : loop(loop), io(io), limits(limits) {}

kj::Promise<void> GatewayServer::configure(ConfigureContext context) {
  if (configured) fail("the gateway has its policy already");
  configured = true;
  if (forwardsPackets()) {
    fail(
        "this network namespace forwards packets (ip_forward is 1) and that can't be cleared from inside: "
        "start the gateway's container with --sysctl net.ipv4.ip_forward=0");
  }
  auto params = context.getParams();
  auto given = params.getPolicy();
  auto policy = readPolicy(given);
  auto own = policy.parts().own;
  std::string directory(view(given.getSocketDirectory()));
  if (!directory.starts_with('/')) fail("the policy's socketDirectory is no absolute path");

  records = std::make_unique<Records>(loop, params.getHost(), [this]() { proxy->resume(); });
  if (given.getToolbelt()) {
    toolbelt = std::make_unique<ToolbeltRelay>(io, directory + "/toolbelt.sock", params.getHost());
    toolbeltPort = std::make_unique<Handover>(loop, directory + "/toolbelt.port", [this](kj::AutoCloseFd listener) {
      toolbelt->listenAlso(kj::mv(listener));
    });
  }
  proxy = std::make_unique<Proxy>(loop, directory + "/proxy.sock", std::move(policy), *records, limits);
  proxyPort = std::make_unique<Handover>(loop, directory + "/proxy.port",
                                         [this](kj::AutoCloseFd listener) { proxy->listenAlso(kj::mv(listener)); });

  auto report = context.getResults().initReport();
  report.setVersion(OPEN_CONDUIT_VERSION);
  report.setIpForward(false);
  auto networks = report.initNetworks(own.size());
  for (size_t i = 0; i < own.size(); ++i) networks.set(i, own[i].toString().c_str());
  return kj::READY_NOW;
}

kj::Promise<void> GatewayServer::totals(TotalsContext context) {
  if (!proxy) {
    context.getResults().initTotals();
    return kj::READY_NOW;
  }
  return records->toldSoFar().then([this, context]() mutable {
    auto totals = context.getResults().initTotals();
    auto sum = proxy->totals();
    totals.setAllowed(sum.allowed);
    totals.setDenied(sum.denied);
    totals.setBytesUp(sum.bytesUp);
    totals.setBytesDown(sum.bytesDown);
    totals.setOpen(proxy->open());
  });
}

kj::Promise<void> GatewayServer::resolve(ResolveContext context) {
  if (!proxy) fail("the gateway has no policy yet");
  std::string why;
  std::string name(view(context.getParams().getName()));
  // Any port will do: what counts is whether the policy names the host.
  auto target = parseTarget(name, 0, why);
  if (!target) target = parseTarget(name, 443, why);
  if (!target) fail(fmt::format("{} is no host: {}", shown(name), why));
  if (!proxy->policy().names(target->host))
    fail(fmt::format("{} is not in network.allow, and so not looked up", shown(name)));

  auto answered = kj::newPromiseAndFulfiller<Resolver::Answer>();
  // std::function wants to be copied, which an Own can't.
  auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<Resolver::Answer>>>(kj::mv(answered.fulfiller));
  auto question = proxy->names().ask(
      target->host, [fulfiller](const Resolver::Answer& answer) { (*fulfiller)->fulfill(Resolver::Answer(answer)); });
  return answered.promise.then([context, question = std::move(question)](Resolver::Answer answer) mutable {
    auto results = context.getResults();
    auto addresses = results.initAddresses(answer.addresses.size());
    for (size_t i = 0; i < answer.addresses.size(); ++i) addresses.set(i, answer.addresses[i].toString().c_str());
    results.setError(answer.error.c_str());
  });
}

}  // namespace oc::gateway
