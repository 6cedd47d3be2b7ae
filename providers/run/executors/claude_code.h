// Claude Code, headless, with stream-json both ways.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>

#include "claude_lines.h"
#include "executor.h"

namespace oc::run {

class ClaudeCodeExecutor final : public Executor {
 public:
  // `configJson`, all of it optional:
  //   message           the id of what it is told first, for the message's uuid
  //   session           the session that it is to resume
  //   required_servers  MCP servers without which it shall not go on
  //   end_seconds       how long it may live on after its last word; 20
  //   most_retries      of calls of the API, in a row; more is a storm; 40
  ClaudeCodeExecutor(const std::string& configJson, ExecutorHost& host);

  void start(std::string brief) override;
  void received(Stream stream, kj::ArrayPtr<const kj::byte> bytes, RunLog& log) override;
  kj::Promise<Delivery> inject(const std::string& id, const std::string& text) override;
  bool interrupt() override;
  Verdict finished(const ProcessEnd& ended, RunLog& log) override;

 private:
  struct Message {
    std::string uuid;
    kj::Own<kj::PromiseFulfiller<Delivery>> fulfiller;
    kj::ForkedPromise<Delivery> answer;
    bool open = true;
  };

  void output(std::string_view bytes, RunLog& log);
  void errors(std::string_view bytes, RunLog& log);
  void flushErrors(RunLog& log);
  void endLine();
  void plainLine(const std::string& text);
  void event(const ClaudeLine& line);
  void onInit(const ClaudeLine& line);
  void onRetry(const ClaudeLine& line);
  void onResult(const ClaudeLine& line);
  void acknowledge(const std::string& uuid, bool delivered, const char* why);
  void refuseAll(const char* why);
  size_t openMessages() const;
  void giveUp(const std::string& word, const std::string& text);
  Verdict ofResult(const ProcessEnd& ended) const;
  Verdict withoutResult(const ProcessEnd& ended) const;

  ExecutorHost& host;
  std::string firstId, resumed;
  std::set<std::string> required;
  kj::Duration endWithin = 20 * kj::SECONDS;
  uint32_t mostRetries = 40;

  ClaudeLineReader reader;
  bool midLine = false, midErrorLine = false;
  std::string heldErrors;  // standard error's, until the line of standard output is whole
  std::string said;        // what came as plain text, for what it says of a start that failed
  std::string session;
  bool begun = false, closed = false, waitsForEnd = false;
  uint32_t retries = 0;
  AgentUsage usage;
  std::unique_ptr<ClaudeLine> result;
  Verdict givenUp;
  std::map<std::string, Message> messages;  // by id
};

}  // namespace oc::run
