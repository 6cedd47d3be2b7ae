#include "handover.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

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

// The one descriptor that came with a byte; none with an errno that says why. What came beside it is closed by the
// kernel.
kj::AutoCloseFd receiveDescriptor(int from) {
  char byte;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t n = recvmsg(from, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (n < 0) return kj::AutoCloseFd();
  errno = EINVAL;
  auto* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS ||
      header->cmsg_len != CMSG_LEN(sizeof(int))) {
    return kj::AutoCloseFd();
  }
  int fd;
  memcpy(&fd, CMSG_DATA(header), sizeof(fd));
  return kj::AutoCloseFd(fd);
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
    if (given.get() < 0 && errno == EINTR) continue;
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
