// One agent's conversation in the Model Context Protocol: what comes in as lines, and what goes out. Both eras of it:
//
// - with a handshake (2024-11-05 to 2025-11-25): initialize, then tools/list, tools/call, ping;
// - without (2026-07-28): each request says its version in _meta; server/discover, tools/list, tools/call.
//
// A request says by itself which of them it is of. Nothing here touches a stream.
#pragma once

#include <kj/async.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "calls.h"
#include "operations.h"

namespace oc::run {

class McpSession final : private kj::TaskSet::ErrorHandler {
 public:
  // `send` takes one message, without a newline.
  McpSession(const Operations& operations, Caller& caller, std::function<void(const std::string&)> send);
  ~McpSession() noexcept(false);

  // One line of the agent's, hostile. Never throws.
  void receive(std::string_view line);
  // In place of a line that had more than `limit` bytes.
  void refuseTooLong(size_t limit);

  // Whether more may be read: there are few calls under way, and they hold little. Else, when that is so again. One may
  // wait at a time.
  bool mayReceive() const;
  kj::Promise<void> whenMayReceive();
  // Resolves when no call is under way.
  kj::Promise<void> whenIdle();

 private:
  struct Batch;
  struct Request;
  struct Call;

  void handle(Json message, const std::shared_ptr<Batch>& batch);
  void handleBatch(const Json& messages);
  void request(Request request);
  void withHandshake(const Request& request);
  void withoutHandshake(const Request& request);
  void notified(const std::string& method, const Json& params);
  void initialize(const Request& request);
  void listTools(const Request& request);
  void callTool(const Request& request);
  void started(const Request& request, const Operation& operation, Json arguments);
  void finished(const std::string& key, const Answer& answer);
  void result(const Request& request, Json result);
  void error(const Json& id, int code, const std::string& message, const std::shared_ptr<Batch>& batch,
             Json data = nullptr);
  void answer(Json message, const std::shared_ptr<Batch>& batch);
  void tellWaiter();
  void taskFailed(kj::Exception&& exception) override;

  const Operations& operations;
  Caller& caller;
  std::function<void(const std::string&)> send;
  std::string version;                         // of the handshake; empty before
  std::map<std::string, kj::Own<Call>> calls;  // under way, by their id as JSON
  size_t held = 0;                             // bytes of their arguments
  kj::Own<kj::PromiseFulfiller<void>> waiter, idleWaiter;
  kj::TaskSet ended;
};

}  // namespace oc::run
