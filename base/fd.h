// Descriptors and files: the few things that KJ lacks. All descriptors are close-on-exec unless said.
// Failures of the system are kj::Exceptions that name the call and the path.
#pragma once

#include <kj/common.h>
#include <kj/io.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace oc {

struct FdPair {
  kj::AutoCloseFd first;
  kj::AutoCloseFd second;
};

// A connected pair of stream sockets.
FdPair makeSocketPair();
// first is the reading end, second the writing end.
FdPair makePipe();

// Opens with O_CLOEXEC. Throws with the path in the message.
kj::AutoCloseFd openFile(const std::string& path, int flags, unsigned mode = 0600);
// Like openFile, but nothing instead of an exception when there is no such file.
std::optional<kj::AutoCloseFd> openIfThere(const std::string& path, int flags);

// The whole file, which must be regular and at most `limit` bytes; throws otherwise.
std::string readFile(const std::string& path, size_t limit);
// Everything up to the end of the stream, at most `limit` bytes; throws beyond.
std::string readAll(int fd, size_t limit);
void writeAll(int fd, std::string_view bytes);

// Writes beside the target, syncs, and renames over it: after a crash the file is the old or the new one.
void writeFileAtomically(const std::string& path, std::string_view bytes, unsigned mode = 0600);

// Makes `path` and its missing parents with `mode`. One that is there must be a directory.
void makeDirectories(const std::string& path, unsigned mode = 0700);
// Makes `path` 0700 and ours, or throws saying whose it is or what it is instead. Never follows a link at
// its last name.
void makePrivateDirectory(const std::string& path);
// Deletes a tree without following links, making its directories writable on the way. Not there: fine.
void removeTree(const std::string& path);

}  // namespace oc
