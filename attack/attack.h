// One thing that a hostile agent tries, by one mechanism, against a target that was put up for it. Nothing here knows
// the sandbox that it is in: what gets through shows by the target's own secret, or by what the target saw.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace oc::battery {

// What there is to attack, by name, as the stand wrote it (stand.h). A target that this machine cannot have is not
// there.
class Targets {
 public:
  // "name=value" lines.
  static Targets parse(const std::string& text);
  std::string toText() const;

  bool has(const std::string& name) const { return values.count(name) != 0; }
  // Empty where there is none.
  std::string operator[](const std::string& name) const;
  long number(const std::string& name) const;
  void set(const std::string& name, const std::string& value) { values[name] = value; }

  // The secret that every target holds.
  std::string marker() const { return (*this)["marker"]; }

 private:
  std::map<std::string, std::string> values;
};

struct Result {
  enum class Kind {
    Through,
    Held,
    Absent,  // the target is not there on this machine, so nothing was tried
    Look     // it seems to have worked; it has, when `text` is a path that is there outside
  };
  Kind kind = Kind::Held;
  int error = 0;  // errno, of Held; 0: no error, and no secret either
  std::string text;
};

Result through();
Result held(int error = 0);
Result absent();
Result look(const std::string& path);
// By a system call's result.
Result judge(long value);

struct Attack {
  const char* name;
  // Whose promise is broken if it gets through: own (Open Conduit's directories and other runs), credential, read and
  // write (the operator's other files), git, process, ipc, kernel, socket, network, proxy, limit, environment.
  const char* against;
  Result (*tryIt)(const Targets&);
};

// All of them, in the order in which they are tried.
std::vector<Attack> allAttacks();

// The groups, a file each.
std::vector<Attack> fileReads();
std::vector<Attack> mountTricks();
std::vector<Attack> fileWrites();
std::vector<Attack> gitTricks();
std::vector<Attack> processAttacks();
std::vector<Attack> memoryAttacks();
std::vector<Attack> kernelAttacks();
std::vector<Attack> socketAttacks();
std::vector<Attack> networkAttacks();
std::vector<Attack> proxyAttacks();
std::vector<Attack> limitAttacks();

}  // namespace oc::battery
