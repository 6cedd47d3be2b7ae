// The parts of an explanation.
#pragma once

#include <memory>
#include <optional>

#include "daemon/sandbox/srt_settings.h"
#include "explain.h"

namespace oc::explain {

using Lines = std::vector<Line>;

// A run that is not there: its places have these ids in them, and are shown as placeholders.
class PlannedRun {
 public:
  explicit PlannedRun(const Setting& setting);

  const sandbox::RunPlace& place() const { return run; }
  std::string home() const;  // of a container
  // With the run's own places as placeholders and the operator's home as ~.
  std::string shown(const std::string& path) const;
  // Absolute; nothing for what is no path of a policy.
  std::optional<std::string> absolute(const std::string& path) const;

 private:
  const Places& places;
  sandbox::RunPlace run;
};

// Files and sockets, by the kind of the sandbox.
class Files {
 public:
  virtual ~Files() noexcept(false) = default;
  virtual Lines lines() const = 0;
  virtual std::vector<std::string> notes() const = 0;
  virtual Answer mayRead(const std::string& path) const = 0;
  virtual Answer mayWrite(const std::string& path) const = 0;
};

OrRefusal<std::unique_ptr<Files>> explainFiles(const Setting& setting, const PlannedRun& run);

// Operations, secrets, environment: what the binding selects and its scope allows.
OrRefusal<Lines> explainAuthority(const Setting& setting);
Answer mayCall(const Setting& setting, const std::string& operation);

}  // namespace oc::explain
