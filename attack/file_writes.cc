// Each call that changes a file or a directory of the operator's.
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>

#include "tools.h"

namespace oc::battery {

namespace {

std::string outside(const Targets& t, const char* name) { return t["outside"] + "/" + name; }
// A file of the agent's own.
std::string mine(const Targets& t, const char* name) {
  auto path = t["workspace"] + "/attack-" + name;
  writeText(path, "attack");
  return path;
}

// A container's root may have a place of the same name, so it is looked at from outside.
Result seen(long value, const std::string& path) { return value < 0 ? held(errno) : look(path); }

Result append(const std::string& path) {
  File file(open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  return file ? judge(write(file.get(), "x", 1)) : held(errno);
}
Result create(const std::string& path) {
  File file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  return file ? look(path) : held(errno);
}

Result appendToIt(const Targets& t) { return append(outside(t, "to-append")); }
Result createBeside(const Targets& t) { return create(outside(t, "made-by-open")); }
Result appendByLink(const Targets& t) {
  auto link = t["workspace"] + "/attack-write-link";
  if (symlink(outside(t, "to-append").c_str(), link.c_str()) < 0) return held(errno);
  return append(link);
}
Result truncateIt(const Targets& t) { return judge(truncate(outside(t, "to-truncate").c_str(), 0)); }
Result renameAway(const Targets& t) {
  return judge(rename(outside(t, "to-rename").c_str(), (t["workspace"] + "/attack-renamed").c_str()));
}
Result renameOnto(const Targets& t) {
  return judge(rename(mine(t, "onto").c_str(), outside(t, "to-overwrite").c_str()));
}
Result exchange(const Targets& t) {
  return judge(syscall(SYS_renameat2, AT_FDCWD, mine(t, "exchange").c_str(), AT_FDCWD,
                       outside(t, "to-exchange").c_str(), RENAME_EXCHANGE));
}
Result removeIt(const Targets& t) { return judge(unlink(outside(t, "to-remove").c_str())); }
Result makeDirectory(const Targets& t) {
  auto path = outside(t, "made-by-mkdir");
  return seen(mkdir(path.c_str(), 0700), path);
}
Result removeDirectory(const Targets& t) { return judge(rmdir(outside(t, "to-rmdir").c_str())); }
Result makeSymlink(const Targets& t) {
  auto path = outside(t, "made-by-symlink");
  return seen(symlink("/", path.c_str()), path);
}
Result makeHardLink(const Targets& t) {
  auto path = outside(t, "made-by-link");
  return seen(link(mine(t, "link").c_str(), path.c_str()), path);
}
Result makePipe(const Targets& t) {
  auto path = outside(t, "made-by-mkfifo");
  return seen(mkfifo(path.c_str(), 0600), path);
}
Result makeSocket(const Targets& t) {
  auto path = outside(t, "made-by-bind");
  File socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return held(errno);
  struct sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, path.data(), std::min(path.size(), sizeof(address.sun_path) - 1));
  return seen(bind(socket.get(), reinterpret_cast<struct sockaddr*>(&address), sizeof(address)), path);
}
Result makeUnnamed(const Targets& t) {
  File file(open(t["outside"].c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  if (!file) return held(errno);
  auto path = outside(t, "made-by-linkat"), self = "/proc/self/fd/" + std::to_string(file.get());
  return seen(linkat(AT_FDCWD, self.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW), path);
}
Result changeMode(const Targets& t) { return judge(chmod(outside(t, "to-chmod").c_str(), 0777)); }
Result changeTimes(const Targets& t) {
  struct timespec times[2] = {{1, 0}, {1, 0}};
  return judge(utimensat(AT_FDCWD, outside(t, "to-touch").c_str(), times, 0));
}
Result changeOwner(const Targets& t) {
  return judge(chown(outside(t, "to-chown").c_str(), static_cast<uid_t>(-1), getegid()));
}
Result changeAttributes(const Targets& t) {
  if (!t.has("attributes")) return absent();
  return judge(setxattr(outside(t, "to-append").c_str(), "user.attack", "x", 1, 0));
}
Result changeFlags(const Targets& t) {
  File file(open(outside(t, "to-append").c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return held(errno);
  int flags = 0;
  if (ioctl(file.get(), FS_IOC_GETFLAGS, &flags) < 0)
    return errno == ENOTTY || errno == EOPNOTSUPP ? absent() : held(errno);
  flags |= FS_NODUMP_FL;
  return judge(ioctl(file.get(), FS_IOC_SETFLAGS, &flags));
}
Result reopenForWriting(const Targets& t) {
  File file(open(outside(t, "to-append").c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return held(errno);
  return append("/proc/self/fd/" + std::to_string(file.get()));
}
Result speakIntoPipe(const Targets& t) {
  File file(open(outside(t, "pipe").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  return file ? judge(write(file.get(), "pipe\n", 5)) : held(errno);
}

Result writeTheState(const Targets& t) { return append(t["own"] + "/secret"); }
Result makeInTheState(const Targets& t) { return create(t["own"] + "/made-by-open"); }
Result writeAnotherRun(const Targets& t) { return append(t["beside"] + "/secret"); }
Result writeOwnPrivatePart(const Targets& t) { return t.has("private") ? append(t["private"] + "/secret") : absent(); }

Result shared(const Targets& t, const char* directory) {
  return create(std::string(directory) + "/oc-attack-" + t.marker());
}
Result inTmp(const Targets& t) { return shared(t, "/tmp"); }
Result inVarTmp(const Targets& t) { return shared(t, "/var/tmp"); }
Result inShm(const Targets& t) { return shared(t, "/dev/shm"); }

}  // namespace

std::vector<Attack> fileWrites() {
  return {
      {"append to a file of the operator", "write", appendToIt},
      {"make a file beside it", "write", createBeside},
      {"write through a link in the workspace", "write", appendByLink},
      {"truncate it by its path", "write", truncateIt},
      {"rename it away", "write", renameAway},
      {"rename a file of one's own onto it", "write", renameOnto},
      {"exchange it with a file of one's own", "write", exchange},
      {"remove it", "write", removeIt},
      {"make a directory there", "write", makeDirectory},
      {"remove a directory there", "write", removeDirectory},
      {"make a symbolic link there", "write", makeSymlink},
      {"make a hard link there", "write", makeHardLink},
      {"make a named pipe there", "write", makePipe},
      {"bind a socket there", "write", makeSocket},
      {"link an unnamed file there", "write", makeUnnamed},
      {"change its mode", "write", changeMode},
      {"change its times", "write", changeTimes},
      {"change its group", "write", changeOwner},
      {"set an extended attribute", "write", changeAttributes},
      {"set a flag of its inode", "write", changeFlags},
      {"open it for reading, and again by /proc/self/fd", "write", reopenForWriting},
      {"speak into a named pipe of the operator", "pipe", speakIntoPipe},
      {"write to the state", "own", writeTheState},
      {"make a file in the state", "own", makeInTheState},
      {"write to another run's files", "own", writeAnotherRun},
      {"write to the run's own private part", "own", writeOwnPrivatePart},
      {"leave a file in /tmp", "write", inTmp},
      {"leave a file in /var/tmp", "write", inVarTmp},
      {"leave a file in /dev/shm", "write", inShm},
  };
}

}  // namespace oc::battery
