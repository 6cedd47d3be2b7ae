#include "handover.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "base/descriptor_passing.h"
#include "socket_file.h"

namespace oc::gateway {

namespace {

int optionOf(int fd, int name) {
  int value = -1;
  socklen_t size = sizeof(value);
  return getsockopt(fd, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
}

bool isListeningTcp(int fd) {
  return optionOf(fd, SO_DOMAIN) == AF_INET && optionOf(fd, SO_TYPE) == SOCK_STREAM &&
         optionOf(fd, SO_PROTOCOL) == IPPROTO_TCP && optionOf(fd, SO_ACCEPTCONN) == 1;
}

}  // namespace

Handover::Handover(Loop& loop, std::string pathParam, std::function<void(kj::AutoCloseFd)> take)
    : loop(loop), path(std::move(pathParam)), take(std::move(take)), listener(listenAt(path)) {
  loop.watch(listener, *this);
}

Handover::~Handover() {
  dropGiver();
  stopListening();
}

void Handover::ready(uint32_t) {
  while (listener.get() >= 0) {
    if (giver.get() < 0) {
      int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
      if (fd < 0) return;
      giver = kj::AutoCloseFd(fd);
      loop.watch(giver, *this);
    }
    auto given = receiveDescriptor(giver);
    if (given.get() < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (given.get() < 0 || !isListeningTcp(given)) {
      dropGiver();
      continue;
    }
    fcntl(given, F_SETFL, O_RDWR | O_NONBLOCK);
    take(kj::mv(given));
    stopListening();
    char byte = 0;
    send(giver, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    dropGiver();
  }
}

void Handover::dropGiver() {
  if (giver.get() < 0) return;
  loop.unwatch(giver, *this);
  giver = nullptr;
}

void Handover::stopListening() {
  if (listener.get() < 0) return;
  loop.unwatch(listener, *this);
  listener = nullptr;
  unlink(path.c_str());
}

}  // namespace oc::gateway
