// What main does, step by step.
#pragma once

#include <string>

namespace oc {

struct DaemonOptions {
  std::string config;      // empty: the usual place
  bool allowRoot = false;  // --allow-root: only for a machine that has no other user; srt still refuses
  bool doctor = false;     // one-shot: print the checks and exit
  std::string attack;      // one-shot: carry the attacks out in this binding's sandbox, print what held, and exit
  bool json = false;
};

struct DaemonUsage {
  std::string text;
  int code;
};

// Throws DaemonUsage for --help, --version and wrong words.
DaemonOptions readDaemonOptions(int argc, char** argv);

// Not dumpable, no core, files 0600 by default, SIGPIPE ignored: before anything secret is in memory.
void hardenSelf();

// As many descriptors as the operator's hard limit allows. Throws kj::Exception.
void allowManyDescriptors();

// Throws DaemonUsage when run as uid 0 without being told.
void refuseRoot(const DaemonOptions& options);

int runDaemon(const DaemonOptions& options);
int runDoctorOnce(const DaemonOptions& options);
int runAttackOnce(const DaemonOptions& options);

}  // namespace oc
