// Running git as a child: with an environment and settings made from nothing, bounded output, and its progress passed
// on.
#pragma once

#include <kj/async-io.h>
#include <kj/async-unix.h>
#include <kj/io.h>

#include <string>
#include <utility>
#include <vector>

#include "base/watch.h"

namespace oc::git {

// What running children needs of KJ's loop.
struct Loop {
  kj::LowLevelAsyncIoProvider& provider;
  kj::UnixEventPort& port;
  kj::Timer& timer;
};
Loop loopOf(kj::AsyncIoContext& io);

struct GitCommand {
  std::vector<std::string> arguments;

  std::string gitDir;                   // always given: git never looks for a repository by itself
  std::string workTree;                 // where the command touches files
  std::string objectDirectory;          // instead of gitDir's own
  std::vector<std::string> alternates;  // object directories to read besides

  // Settings above the repository's own, besides those that every command gets (see git_command.cc).
  std::vector<std::pair<std::string, std::string>> settings;

  std::string input;             // fed to standard input, when no descriptor is given
  kj::AutoCloseFd inputFd;       // standard input
  kj::AutoCloseFd outputFd;      // standard output; without it the output is kept
  bool quiet = false;            // a question that may be answered with a complaint: it is not passed on
  size_t outputLimit = 1 << 20;  // of what is kept, in bytes; beyond it the command is killed and an exception thrown
};

struct GitResult {
  ProcessEnd end;
  std::string output;
  std::string complaint;  // the last lines of standard error, printable and without progress; at most 1 KiB

  bool ok() const { return end.known && !end.signaled && end.code == 0; }
  // The output without the newline at its end.
  std::string line() const;
  // The complaint, or how it ended when it said nothing.
  std::string why() const;
};

// Starts /usr/bin/git and resolves when it has ended and its streams are read. Its standard error is passed on to ours
// as it comes, with control characters replaced. Dropping the promise kills it, as does our own end.
kj::Promise<GitResult> runGit(const Loop& loop, GitCommand command);

}  // namespace oc::git
