#include "description_parts.h"
#include "shapes.h"

namespace oc::config {

using namespace shapes;

namespace {

constexpr double day = 24 * 3600;

// What every executor's config has.
std::vector<Field> commonConfig() {
  return {
      optional("branch", text(Format::Branch), "The branch that the work is done on.", "agent/{work}"),
      optional("workspace_mode", oneOf({"clone", "worktree"}),
               "The same as `resource.config.mode`; give it in one of the two places, or alike in both."),
      optional(
          "env", map(Format::EnvironmentName, text(Format::Text)),
          "Variables of the run's environment, as plain text. Claude Code in a process sandbox needs a `CLAUDE_CONFIG_DIR` here, a directory "
          "of its own that `write` lists, too.",
          Json::object()),
      optional(
          "secret_env", map(Format::Name, text(Format::EnvironmentName)),
          "Secrets of `secret_names`, and the variable that each goes into. One that is not here goes into the variable of its own "
          "name, if that is one in capital letters, as `GH_TOKEN` is.",
          Json::object()),
      optional(
          "home_seed", text(Format::HostPath),
          "In a container: a folder that is copied into the Work's empty home before its first run, without `.credentials.json`."),
  };
}

ShapePtr shellConfig() {
  auto fields = commonConfig();
  fields.insert(
      fields.begin(),
      required("command", list(text(Format::Text), 1, 1000),
               "The program and its arguments; no shell reads them. The request's title is in `OPEN_CONDUIT_TITLE`, "
               "its body in the file that `OPEN_CONDUIT_BODY_FILE` names."));
  return object("Config of the executor shell", "One command, run once.", std::move(fields));
}

ShapePtr claudeConfig() {
  auto fields = commonConfig();
  fields.insert(fields.begin(),
                optional("playbook", text(Format::Name), "What briefs the agent; `playbook list` shows them."));
  return object("Config of the executor claude-code", "", std::move(fields));
}

ShapePtr requiresShape() {
  return object(
      "Requires", "What the binding relies on; checked against what its executor and its resource can do.",
      {
          optional(
              "toolbelt", oneOf({"mcp"}),
              "The run's toolbelt, as an MCP server. In a process sandbox, its `sockets` have to list `{toolbelt}`."),
          optional("inject", boolean(), "Events reach a run that is live."),
          optional("resume", boolean(), "A later run of a Work goes on in the same session."),
          optional("workspace", boolean(), "There is a workspace."),
      });
}

ShapePtr resourceShape() {
  auto git = object(
      "Git resource", "",
      {
          required("checkout", text(Format::HostPath),
                   "Your own checkout; commits of runs are saved to branches of it."),
          optional(
              "mode", oneOf({"clone", "worktree"}),
              "`clone`: a repository of its own for each Work. `worktree`: shares the checkout's `.git`; only for bindings without a sandbox.",
              "clone"),
          optional("setup", list(text(Format::Text), 0, 1000),
                   "A command that is run on your machine in a new workspace; only for bindings without a sandbox.",
                   Json::array()),
      });
  return object("Resource", "What a run works on.",
                {
                    required("provider", oneOf({"git"}), "What kind it is."),
                    chosen("config", "provider", {{"git", git}}, "Depends on `provider`."),
                });
}

}  // namespace

ShapePtr bindingShape() {
  return object(
      "Binding", "Without `sandbox` and `container`, its runs can do whatever you can.",
      {
          required("name", text(Format::Name), "Unique within the scope."),
          required("executor", oneOf({"shell", "claude-code"}), "What does the work: a command, or Claude Code."),
          optional("connection", text(Format::Name), "The connection that its operations use."),
          optional("requires", requiresShape(), "What it relies on.", Json::object()),
          optional("operations", list(text(Format::Operation)),
                   "What its runs can call through their toolbelt, as far as the scope's authorization has it too.",
                   Json::array()),
          optional("secret_names", list(text(Format::Name)), "Secrets of the scope that its runs get.", Json::array()),
          chosen("config", "executor", {{"shell", shellConfig()}, {"claude-code", claudeConfig()}},
                 "Depends on `executor`."),
          optional("resource", resourceShape(), "What its runs work on."),
          optional("sandbox", sandboxShape(), "Runs in a process sandbox."),
          optional("container", containerShape(), "Runs in a container. Not together with `sandbox`."),
          optional("timeout", duration(1, 30 * day), "A run that takes longer is stopped. None: no such bound."),
          optional("stall_timeout", duration(1, 30 * day),
                   "A run without output for so long is stopped. None: no such bound."),
          optional(
              "retries", integer(0, 20),
              "How often a run that failed is tried again, if another try can help. Refusals are never tried again.",
              0),
          optional("max_runs", integer(1, 1000),
                   "Runs of this binding at once. None: only `settings.max_runs` bounds them."),
          optional("max_turns", integer(1, 10'000), "claude-code: how many turns a run has at most."),
          optional("max_budget_usd", number(0.01, 100'000), "claude-code: what a run may cost at most, in US dollars."),
      });
}

ShapePtr sandboxShape() {
  auto paths = list(text(Format::GrantPath));
  auto read = object(
      "Reading in a process sandbox",
      "Everything that you can read, but for what is denied; or with `only` nothing but what is listed.",
      {
          optional("deny", paths, "Not readable, besides the credentials that are denied anyway.", Json::array()),
          optional("allow", paths, "Exceptions beneath a deny. Only its exact path lifts a deny of Open Conduit's own.",
                   Json::array()),
          optional(
              "only", paths,
              "The strict mode: nothing is readable but this, what `write` has, the run's own places, and what programs need "
              "of the system. Not together with `deny` or `allow`. Credentials are denied all the same, unless named exactly."),
      });
  auto network =
      object("Network of a process sandbox", "",
             {optional("allow", list(text(Format::Host)), "The hosts that runs reach, and no others.", Json::array())});
  auto limits =
      object("Limits of a process sandbox", "Kept by control groups that the daemon was given; refused without.",
             {
                 optional("cpus", number(0.01, 4096), "Processors, also in parts: 0.5."),
                 optional("memory", text(Format::Memory), "Memory, swap included; srt's own counts as well."),
                 optional("pids", integer(16, 4'194'304), "Processes and threads, besides 64 for srt's own."),
             });
  auto srt =
      object("srt policy", "",
             {
                 optional("write", paths, "Where runs can write, and nowhere else.", Json::array()),
                 optional("read", read, "What runs can't read.", Json::object()),
                 optional("network", network, "What runs reach.", Json::object()),
                 optional("sockets", list(text(Format::SocketPath)),
                          "Unix sockets that runs can use. `{toolbelt}` is the run's own toolbelt.", Json::array()),
                 optional("unix_sockets", oneOf({"all"}),
                          "On Linux, where srt can't allow a socket by its path, `all` is needed for `sockets`: every "
                          "socket that a run can see is then usable, and those that lead out are hidden."),
                 optional("limits", limits, "What runs can use up.", Json::object()),
             });
  return object("Sandbox", "A process sandbox: lighter than a container, denies rather than allows.",
                {
                    required("provider", oneOf({"srt"}), "Anthropic's sandbox-runtime."),
                    chosen("config", "provider", {{"srt", srt}}, "The policy."),
                });
}

ShapePtr containerShape() {
  auto paths = list(text(Format::GrantPath));
  auto network = object(
      "Network of a container", "",
      {
          optional("allow", list(text(Format::Host)), "The hosts that runs reach, and no others.", Json::array()),
          optional("private", list(text(Format::Network)), "Private ranges that allowed names may resolve to.",
                   Json::array()),
      });
  auto limits = object("Limits", "",
                       {
                           optional("cpus", number(0.01, 4096), "Processors, also in parts: 0.5."),
                           optional("memory", text(Format::Memory), "Memory, swap included."),
                           optional("pids", integer(16, 4'194'304), "Processes and threads.", 4096),
                       });
  auto provider = object("What only Docker has", "",
                         {optional("context", text(Format::ContextName),
                                   "The Docker context of every call, whatever your CLI uses.", "default")});
  auto docker =
      object("docker policy", "",
             {
                 required("image", text(Format::Image), "What runs are started from. A tag alone is refused."),
                 optional("write", paths, "Paths of the host, mounted read-write at the same place.", Json::array()),
                 optional("read", paths, "Paths of the host, mounted read-only at the same place.", Json::array()),
                 optional("network", network, "What runs reach.", Json::object()),
                 optional("limits", limits, "What runs can use up.", Json::object()),
                 optional("provider", provider, "What only Docker has.", Json::object()),
             });
  return object("Container", "A container for each run, with nothing of the host but what is listed.",
                {
                    required("provider", oneOf({"docker"}), "Docker Engine 28 or later."),
                    chosen("config", "provider", {{"docker", docker}}, "The policy."),
                });
}

}  // namespace oc::config
