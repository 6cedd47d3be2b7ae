// What blocks for long, beside the event loop.
#pragma once

#include <kj/async.h>
#include <kj/exception.h>
#include <kj/thread.h>

#include <type_traits>

namespace oc {

// Calls the function in a thread of its own and brings what it returns or throws to this loop. It must own all that it
// uses. Dropping the promise waits for the thread.
template <typename Function>
auto aside(Function function) -> kj::Promise<decltype(function())> {
  using Result = decltype(function());
  auto pair = kj::newPromiseAndCrossThreadFulfiller<Result>();
  auto thread =
      kj::heap<kj::Thread>([fulfiller = kj::mv(pair.fulfiller), function = kj::mv(function)]() mutable noexcept {
        auto failed = kj::runCatchingExceptions([&]() {
          if constexpr (std::is_void_v<Result>) {
            function();
            fulfiller->fulfill();
          } else {
            fulfiller->fulfill(function());
          }
        });
        KJ_IF_MAYBE (exception, failed) fulfiller->reject(kj::mv(*exception));
      });
  return pair.promise.attach(kj::mv(thread));
}

}  // namespace oc
