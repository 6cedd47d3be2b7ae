// What commands have of the world, in one place, so that a test can give them another one.
#pragma once

#include <kj/async-io.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/places.h"
#include "control.capnp.h"
#include "proto/rpc.h"
#include "ui/look.h"

namespace oc::cli {

// A connection that the daemon has let in.
struct Link {
  kj::Own<Connection> connection;
  proto::Control::Client control;
};

struct World {
  Places places;
  Look look;
  std::string programs;                            // the folder of our programs
  std::function<void(std::string_view)> out, err;  // bytes as they are
  std::function<std::string(size_t)> readInput;    // standard input, at most so many bytes of it
  std::function<kj::AsyncIoContext&()> io;         // made when it is first asked for
  std::function<Link()> connect;                   // throws Failure
  std::function<kj::Promise<void>()> interrupted;  // resolves at Ctrl-C, which then does nothing else
};

// Up to `most` bytes, fewer only at the stream's end.
std::string readAtMost(int fd, size_t most);

// The one that main runs in.
std::unique_ptr<World> makeRealWorld();

}  // namespace oc::cli
