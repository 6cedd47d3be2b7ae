// What a provider may do, in one value. Each provider has one function that makes it from its job.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace oc::kit {

enum class Need {
  No,
  Wanted,   // missing: reported by status and doctor
  Required  // missing: the instance does not start
};

enum class Access {
  Read,
  ReadExecute,
  ReadWrite,
  Directories  // to make and remove (empty) directories in it, and nothing else: for one's own entry in a parent
};

struct FileRule {
  std::string path;  // a directory with all beneath it, or a file
  Access access;
  bool optional = false;  // one that does not exist, or cannot be reached, is skipped; else it stops the instance
};

// Which system calls are denied. Each list contains the ones above it.
enum class SeccompList {
  Operator,  // srt's and host's agents live under it: what no job needs (modules, kexec, bpf, keyring, TIOCSTI, …)
  Tools,     // git and its children: also ptrace and its kin, mounts, namespaces, other processes' limits
  Alone,     // no other program at all: also execve and fork
};

struct Profile {
  std::string name;  // the provider's, in messages

  Need userNamespace = Need::Wanted;  // the others need it
  Need mountNamespace = Need::Wanted;
  Need pidNamespace = Need::Wanted;
  Need networkNamespace = Need::Wanted;
  Need ipcNamespace = Need::Wanted;
  bool freshProc = false;  // mount a new, unmasked /proc (with a pid namespace)

  bool landlockFiles = true;  // required when true; `files` is then all that can be opened
  std::vector<FileRule> files;
  // TCP ports that may be connected to, and no others, where Landlock knows of TCP (ABI 4); elsewhere any can, unless
  // sockets are denied. UDP is not Landlock's to deny.
  std::vector<uint16_t> connectPorts;
  Need landlockScopes = Need::Wanted;

  SeccompList seccomp = SeccompList::Tools;
  bool denyUnixSockets = true;    // socket(AF_UNIX); socketpairs, inherited and accepted ones stay
  bool denyAllSockets = false;    // socket() of any family
  bool denyWriteExecute = false;  // memory that is both (MDWE): for our own programs, not for node

  uint64_t maxOpenFiles = 1024;
  uint64_t maxFileSize = 0;      // bytes; 0: as it is
  uint64_t maxAddressSpace = 0;  // bytes; 0: as it is
  // Of the instance alone, threads among them: in a user namespace of its own they are counted by themselves from
  // Linux 5.14 on. 0, or without either: as it is.
  uint64_t maxProcesses = 0;

  // Directories under which nothing is to be seen (an empty tmpfs), and what shows through again at its own
  // path. From the kit's --hide and --keep, which the daemon gives; needs the mount namespace.
  std::vector<std::string> hidden;
  std::vector<std::string> kept;
  // An existing directory over which the instance gets an empty file system of its own to write to (16 MiB, nothing in
  // it can be executed): gone with the instance, however that ends. Empty: none.
  std::string scratch;
};

// What programs from the system need to run: /usr, /lib*, /bin, /sbin, /etc, and /dev/{null,zero,full,urandom,random}.
std::vector<FileRule> systemFiles();

}  // namespace oc::kit
