#pragma once

#include "executor.h"

namespace oc::run {

class ShellExecutor final : public Executor {
 public:
  explicit ShellExecutor(ExecutorHost& host) : host(host) {}
  void start(std::string brief) override;
  void received(Stream stream, kj::ArrayPtr<const kj::byte> bytes, RunLog& log) override;

 private:
  ExecutorHost& host;
};

}  // namespace oc::run
