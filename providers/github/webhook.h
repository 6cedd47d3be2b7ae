// The listener for GitHub's webhooks: it believes nothing that is not signed, and knows no secret but the hook's.
#pragma once

#include <kj/compat/http.h>

#include "base/crypto.h"
#include "github.capnp.h"
#include "providers/kit/kit.h"

namespace oc::github {

// A hook's answer: 2xx only when the event is in the database.
struct HookAnswer {
  unsigned status = 500;
  std::string words;
};

class WebhookService final : public kj::HttpService {
 public:
  WebhookService(kj::HttpHeaderTable::Builder& table);

  // Of the finished builder: before the first request.
  void useTable(const kj::HttpHeaderTable& finished) { table = &finished; }
  void open(SecretBytes secret, proto::GitHubSink::Client sink);

  kj::Promise<void> request(kj::HttpMethod method, kj::StringPtr url, const kj::HttpHeaders& headers,
                            kj::AsyncInputStream& body, Response& response) override;

 private:
  kj::Promise<HookAnswer> take(std::string event, std::string delivery, std::string signature, std::string body);

  const kj::HttpHeaderTable* table = nullptr;
  kj::HttpHeaderId signatureId, eventId, deliveryId;
  SecretBytes secret;
  kj::Maybe<proto::GitHubSink::Client> sink;
  unsigned busy = 0;
  size_t held = 0;  // bytes of bodies
};

class WebhookServer final : public proto::GitHubWebhook::Server, private kj::TaskSet::ErrorHandler {
 public:
  explicit WebhookServer(kit::Context& context);

  kj::Promise<void> protections(ProtectionsContext call) override;
  kj::Promise<void> listen(ListenContext call) override;

 private:
  void taskFailed(kj::Exception&& exception) override;
  void serve(kj::Own<kj::AsyncIoStream> connection);

  kit::Context& context;
  kj::HttpHeaderTable::Builder builder;
  WebhookService service;
  kj::Own<kj::HttpHeaderTable> table;
  kj::Own<kj::ConnectionReceiver> receiver;
  kj::Own<kj::HttpServer> server;
  bool listening = false;
  size_t connections = 0;
  kj::TaskSet tasks;
};

}  // namespace oc::github
