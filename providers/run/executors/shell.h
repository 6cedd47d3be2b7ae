#pragma once

#include "executor.h"

namespace oc::run {

class ShellExecutor final : public Executor {
 public:
  void received(Stream stream, kj::ArrayPtr<const kj::byte> bytes, RunLog& log) override;
};

}  // namespace oc::run
