// Which sockets of this machine lead out of a process sandbox.
#include "daemon/sandbox/hidden_sockets.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>

#include "base/fd.h"
#include "tests/catch.h"

using oc::sandbox::hiddenSockets;

namespace {

bool has(const std::vector<std::string>& paths, const std::string& path) {
  return std::find(paths.begin(), paths.end(), path) != paths.end();
}

struct Folder {
  Folder() { REQUIRE(mkdtemp(path) != nullptr); }
  ~Folder() { oc::removeTree(path); }
  char path[32] = "/tmp/oc-sockets-XXXXXX";
};

}  // namespace

TEST_CASE("C3 sockets of services that do as they are told are found wherever they are bound, datagram ones too") {
  Folder folder;
  auto list = std::string(folder.path) + "/bound";
  oc::writeFileAtomically(
      list,
      "Num       RefCount Protocol Flags    Type St Inode Path\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 16061 /opt/a place/docker.sock\n"
      "0000000000000000: 00000002 00000000 00000000 0002 01 16062 /srv/agents/S.gpg-agent\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 16063 /tmp/tmux-1000/default\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 16064 @/tmp/.X11-unix/X0\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 16065 /tmp/.X11-unix/X0\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 16066 /tmp/ssh-abc/agent.77\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 16067 /var/lib/postgresql/.s.PGSQL.5432\n"
      "0000000000000000: 00000003 00000000 00000000 0001 03 16068\n");
  auto found = hiddenSockets({{"TMUX", "/srv/mux/one,12,0"}}, "/home/you", {}, list).paths;
  for (auto path : {"/opt/a place/docker.sock", "/srv/agents/S.gpg-agent", "/tmp/tmux-1000", "/tmp/.X11-unix",
                    "/tmp/ssh-abc", "/srv/mux/one"}) {
    INFO(path);
    CHECK(has(found, path));
  }
  for (auto& path : found) CHECK(path.find("postgresql") == std::string::npos);
  // The exact name lifts one of them, as any other.
  CHECK_FALSE(
      has(hiddenSockets({}, "/home/you", {"/opt/a place/docker.sock"}, list).paths, "/opt/a place/docker.sock"));
}

TEST_CASE("C3 what is bound is looked at anew each time") {
  Folder folder;
  auto path = std::string(folder.path) + "/docker.sock";
  CHECK_FALSE(has(hiddenSockets({}, "/home/you", {}).paths, path));
  int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  struct sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, path.c_str(), path.size());
  REQUIRE(bind(fd, reinterpret_cast<struct sockaddr*>(&address), sizeof(address)) == 0);
  CHECK(has(hiddenSockets({}, "/home/you", {}).paths, path));
  close(fd);
}
