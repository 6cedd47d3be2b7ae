// What a run of a binding could read, write, reach and call, after every default, denial and lift; each line with the
// rule that made it. By the code that makes a run's policy, for a run that there is not. Starts nothing, changes
// nothing.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/places.h"
#include "base/refusal.h"
#include "daemon/config/model.h"

namespace oc::explain {

struct Line {
  std::string area;  // read, write, host, socket, call, secret, environment, workspace, limit, container
  bool allowed = true;
  std::string what;  // a path, host, operation, …; the run's own places as {workspace}, {run}, {home}, {toolbelt}
  std::string rule;  // a field of the binding, or a sentence
};

struct Answer {
  bool yes = false;
  std::string why;
};

class Explanation {
 public:
  virtual ~Explanation() noexcept(false) = default;

  virtual const std::vector<Line>& lines() const = 0;
  // Grants that come to nothing and the like, each with why.
  virtual const std::vector<std::string>& notes() const = 0;

  // `path` as in a policy: "/…", "~/…", "{workspace}…", "{run}…". Refuses (`path_invalid`) what is none.
  virtual OrRefusal<Answer> mayRead(const std::string& path) const = 0;
  virtual OrRefusal<Answer> mayWrite(const std::string& path) const = 0;
  // "host" is asked for port 443, "host:port" for that port. Refuses (`host_invalid`) what is none.
  virtual OrRefusal<Answer> mayReach(const std::string& host) const = 0;
  virtual Answer mayCall(const std::string& operation) const = 0;
};

struct Setting {
  const config::Config& config;
  const config::Binding& binding;
  const Places& places;
  const std::map<std::string, std::string>& environ;  // the daemon's own
};

// Refuses what a run would be refused for, as far as it shows without one (`sandbox_denied`, `secret_denied`, …). The
// setting must outlive the explanation.
OrRefusal<std::unique_ptr<Explanation>> explain(const Setting& setting);

}  // namespace oc::explain
