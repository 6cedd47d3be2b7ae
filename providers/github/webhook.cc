#include "webhook.h"

#include <kj/debug.h>

#include "base/accept.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "events.h"
#include "fields.h"
#include "proto/convert.h"
#include "server.h"

namespace oc::github {

namespace {

constexpr int listeningDescriptor = 4;
// What GitHub sends at most.
constexpr size_t mostPayload = 25u << 20;
// Each is a descriptor, of which an instance has 128.
constexpr size_t mostConnections = 108;
// What is held at the same time: as much as somebody without a signature can make us hold.
constexpr unsigned mostBusy = 256;
constexpr size_t mostHeld = 64u << 20;

std::string headerOf(const kj::HttpHeaders& headers, kj::HttpHeaderId id) {
  KJ_IF_MAYBE (value, headers.get(id)) {
    return std::string(value->begin(), std::min<size_t>(value->size(), 256));
  }
  return "";
}

std::string hexOf(std::string_view bytes) {
  std::string text;
  for (unsigned char c : bytes) text += fmt::format("{:02x}", c);
  return text;
}

// What an event is about; an id of 0: nothing that is of interest.
Event eventFrom(const std::string& kind, const Json& payload) {
  auto action = textOf(payload, "action", 64);
  if (kind == "issues" && action != "deleted" && action != "transferred") return issueFrom(fieldOf(payload, "issue"));
  if (kind == "issue_comment" && action != "deleted") return commentFrom(fieldOf(payload, "comment"));
  return {};
}

}  // namespace

WebhookService::WebhookService(kj::HttpHeaderTable::Builder& table)
    : signatureId(table.add("X-Hub-Signature-256")),
      eventId(table.add("X-GitHub-Event")),
      deliveryId(table.add("X-GitHub-Delivery")) {}

void WebhookService::open(SecretBytes secretParam, proto::GitHubSink::Client sinkParam) {
  secret = std::move(secretParam);
  sink = kj::mv(sinkParam);
}

kj::Promise<void> WebhookService::request(kj::HttpMethod method, kj::StringPtr, const kj::HttpHeaders& headers,
                                          kj::AsyncInputStream& body, Response& response) {
  auto answer = [&response, table = table](unsigned status, std::string words) {
    kj::HttpHeaders own(*table);
    own.set(kj::HttpHeaderId::CONTENT_TYPE, "text/plain");
    words += "\n";
    auto stream = response.send(status, status < 300 ? "OK" : "Not OK", own, static_cast<uint64_t>(words.size()));
    auto text = kj::heap<std::string>(words);
    auto writing = stream->write(text->data(), text->size());
    return writing.attach(kj::mv(stream), kj::mv(text));
  };
  if (method != kj::HttpMethod::POST) return answer(405, "only deliveries are taken here");
  auto signature = headerOf(headers, signatureId);
  if (!signature.starts_with("sha256=") || signature.size() != 7 + 64) return answer(401, "there is no signature");
  auto length = body.tryGetLength();
  size_t size = mostPayload + 1;
  KJ_IF_MAYBE (known, length) {
    size = std::min<uint64_t>(*known, size);
  }
  if (size > mostPayload) return answer(413, "a delivery has a length, of at most 25 MiB");
  if (busy >= mostBusy || held + size > mostHeld) return answer(503, "busy");
  ++busy;
  held += size;
  auto done = kj::defer([this, size]() {
    --busy;
    held -= size;
  });
  auto event = headerOf(headers, eventId), delivery = headerOf(headers, deliveryId);
  return body.readAllBytes(mostPayload)
      .then([this, event, delivery, signature](kj::Array<kj::byte> bytes) {
        return take(event, delivery, signature, std::string(reinterpret_cast<char*>(bytes.begin()), bytes.size()));
      })
      .then([answer](HookAnswer result) { return answer(result.status, result.words); })
      .attach(kj::mv(done));
}

kj::Promise<HookAnswer> WebhookService::take(std::string event, std::string delivery, std::string signature,
                                             std::string body) {
  auto& to = KJ_REQUIRE_NONNULL(sink, "not listening yet");
  // The raw bytes, before anything is made of them.
  if (!equalSecrets(signature, "sha256=" + hexOf(hmacSha256(secret.view(), body))))
    return HookAnswer{401, "the signature is wrong"};
  if (event == "ping") return HookAnswer{200, "pong"};
  auto payload = parseJson(body);
  if (!payload.is_object())
    return HookAnswer{400, "that is no JSON object; choose application/json as the hook's content type"};
  auto happened = eventFrom(event, payload);
  if (happened.id == 0) return HookAnswer{202, "nothing to do"};
  std::vector<Event> one;
  one.push_back(std::move(happened));
  fitIntoMessage(one);
  auto request = to.eventRequest();
  request.setDelivery(toText(shortened(printable(delivery), 128)));
  request.setRepo(toText(textOf(fieldOf(payload, "repository"), "full_name", 256)));
  write(request.initEvent(), one[0]);
  return request.send().then(
      [](auto&&) {
        return HookAnswer{202, "taken"};
      },
      [](kj::Exception&& exception) {
        logWarning("a delivery was not taken: {}", describe(exception));
        return HookAnswer{503, "not taken; deliver it again"};
      });
}

WebhookServer::WebhookServer(kit::Context& context)
    : context(context), service(builder), table(builder.build()), tasks(*this) {
  service.useTable(*table);
}

kj::Promise<void> WebhookServer::protections(ProtectionsContext call) {
  kit::answerProtections(context, call.getResults());
  return kj::READY_NOW;
}

kj::Promise<void> WebhookServer::listen(ListenContext call) {
  KJ_REQUIRE(!listening, "this instance listens already");
  auto params = call.getParams();
  auto secret = params.getSecret();
  KJ_REQUIRE(secret.size() >= 16, "a webhook's secret has at least 16 bytes");
  service.open(SecretBytes(std::string_view(reinterpret_cast<const char*>(secret.begin()), secret.size())),
               params.getSink());
  receiver = context.io.lowLevelProvider->wrapListenSocketFd(kj::AutoCloseFd(listeningDescriptor));
  kj::HttpServerSettings settings;
  settings.headerTimeout = 15 * kj::SECONDS;
  settings.pipelineTimeout = 30 * kj::SECONDS;
  server = kj::heap<kj::HttpServer>(context.io.provider->getTimer(), *table, service, settings);
  listening = true;
  // Not by the server itself, which listens no more after a time without a descriptor left.
  auto taken = [this](kj::Own<kj::AsyncIoStream> connection) { serve(kj::mv(connection)); };
  tasks.add(acceptForever(*receiver, context.io.provider->getTimer(), "webhooks", kj::mv(taken)));
  return kj::READY_NOW;
}

// Beyond what there may be one is closed at once: who holds some open holds none of ours for longer than a head takes.
void WebhookServer::serve(kj::Own<kj::AsyncIoStream> connection) {
  if (connections >= mostConnections) return;
  ++connections;
  tasks.add(server->listenHttp(kj::mv(connection)).attach(kj::defer([this]() { --connections; })));
}

void WebhookServer::taskFailed(kj::Exception&& exception) { logError("{}", describe(exception)); }

}  // namespace oc::github
