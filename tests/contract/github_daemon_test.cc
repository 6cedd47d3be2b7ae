// The daemon's side of a connection, with the real provider and a fake GitHub: what runs get, and that it dies with
// them.
#include <signal.h>

#include "daemon/github/from_config.h"
#include "daemon/github/owner.h"
#include "github_fixture.h"

namespace oc {
namespace {

using hub::Connection;
using hub::ConnectionSpec;
using hub::RunScope;
using test::FakeGitHub;

#define NEEDS_NODE() \
  if (!test::hasNode()) OC_SKIP("node or openssl is missing")

supervisor::RestartPolicy quick() {
  supervisor::RestartPolicy policy;
  policy.first = 5 * kj::MILLISECONDS;
  return policy;
}

struct World {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  FakeGitHub fake;
  supervisor::Supervisor supervisor{io, getenv("OPEN_CONDUIT_PROGRAMS")};
  std::map<std::string, std::string> secrets;
  kj::Own<Connection> connection;
  kj::Own<hub::Owner> owner;

  World() {
    fake.furnish();
    secrets["keyring:key"] = fake.pem();
    ConnectionSpec spec;
    spec.id = "github";
    spec.api = fake.api();
    spec.caFile = fake.ca();
    spec.appId = "4711";
    spec.key = "keyring:key";
    connection = kj::heap<Connection>(supervisor, spec, readSecret(), quick());
    owner = kj::heap<hub::Owner>([](const std::string& work, const std::string&) -> OrRefusal<RunScope> {
      if (work == "w-none") return Refusal{"credential_refused", "not GitHub's", ""};
      return RunScope{"github", "acme/web", 1, "agent/issue-1", ""};
    });
    owner->add(*connection);
  }
  ~World() {
    owner = nullptr;
    connection = nullptr;
  }
  hub::ReadSecret readSecret() {
    return [this](std::string name, std::string reference) -> kj::Promise<OrRefusal<SecretBytes>> {
      auto found = secrets.find(reference);
      if (found == secrets.end())
        return OrRefusal<SecretBytes>(
            Refusal{"secret_unavailable", "the secret " + name + " cannot be read", "set it"});
      return OrRefusal<SecretBytes>(SecretBytes(found->second));
    };
  }
  OrRefusal<toolbelt::GitCredential> ask(const std::string& run, const std::string& path = "acme/web.git") {
    return owner->credential("w-1", run, "https", fake.host(), path).wait(io.waitScope);
  }
  std::string tokenOf(const std::string& run) {
    auto got = ask(run);
    // As whoever runs git does: one that fell into the death of a provider is asked for again.
    for (int tries = 0; !got.ok() && got.refusal().reason == "github_unavailable" && tries < 50; ++tries) {
      pause(100);
      got = ask(run);
    }
    INFO((got.ok() ? "" : got.refusal().what));
    REQUIRE(got.ok());
    CHECK(got.value().username == "x-access-token");
    return std::string(got.value().password.view());
  }
  bool live(const std::string& token) { return fake.token(token).at("live"); }
  void pause(int ms) { io.provider->getTimer().afterDelay(ms * kj::MILLISECONDS).wait(io.waitScope); }
  bool deadWithin(const std::string& token, int ms) {
    for (int waited = 0; waited < ms; waited += 20) {
      if (!live(token)) return true;
      pause(20);
    }
    return false;
  }
  size_t minted() {
    size_t count = 0;
    for (auto& token : fake.control({{"op", "tokens"}})) count += token.at("permissions").contains("contents") ? 1 : 0;
    return count;
  }
};

TEST_CASE("B14 a run's token is minted when git asks, kept for the run, and dead when the run has ended") {
  NEEDS_NODE();
  World world;
  CHECK(world.minted() == 0);
  auto token = world.tokenOf("r-1");
  CHECK(world.tokenOf("r-1") == token);
  CHECK(world.minted() == 1);
  auto other = world.tokenOf("r-2");
  CHECK(other != token);
  world.owner->runEnded("w-1", "r-1");
  CHECK(world.deadWithin(token, 1000));
  CHECK(world.live(other));
  auto after = world.ask("r-1");
  CHECK_FALSE(after.ok());
  CHECK(after.refusal().reason == "credential_refused");
  CHECK(world.minted() == 2);
  // A run that had none ends as well.
  world.owner->runEnded("w-1", "r-3");
  world.pause(50);
  CHECK(world.live(other));
}

TEST_CASE("B14 git that asks many times at once gets one token, and none that was being minted outlives its run") {
  NEEDS_NODE();
  World world;
  kj::Vector<kj::Promise<OrRefusal<toolbelt::GitCredential>>> asked;
  for (int i = 0; i < 20; ++i)
    asked.add(
        world.owner->credential("w-1", "r-1", "https", world.fake.host(), "acme/web.git").eagerlyEvaluate(nullptr));
  std::set<std::string> tokens;
  for (auto& one : asked) {
    auto got = one.wait(world.io.waitScope);
    REQUIRE(got.ok());
    tokens.insert(std::string(got.value().password.view()));
  }
  CHECK(tokens.size() == 1);
  CHECK(world.minted() == 1);

  world.fake.fault({{"kind", "delay"}, {"ms", 400}, {"path", "access_tokens"}, {"times", 1}});
  auto late =
      world.owner->credential("w-1", "r-2", "https", world.fake.host(), "acme/web.git").eagerlyEvaluate(nullptr);
  world.pause(100);
  world.owner->runEnded("w-1", "r-2");
  CHECK_FALSE(late.wait(world.io.waitScope).ok());
  for (int i = 0; i < 100 && world.owner->credentialsOf("github").live() > 1; ++i) world.pause(20);
  CHECK(world.owner->credentialsOf("github").live() == 1);
  size_t alive = 0;
  for (auto& token : world.fake.control({{"op", "tokens"}}))
    alive += token.at("live").get<bool>() && token.at("permissions").contains("contents") ? 1 : 0;
  CHECK(alive == 1);
}

TEST_CASE("B14 a token that is about to run out is not handed out any more") {
  NEEDS_NODE();
  World world;
  world.fake.control({{"op", "tokenSeconds"}, {"seconds", 299}});
  auto first = world.tokenOf("r-1");
  world.fake.control({{"op", "tokenSeconds"}, {"seconds", 3600}});
  auto second = world.tokenOf("r-1");
  CHECK(first != second);
  CHECK(world.tokenOf("r-1") == second);
  world.owner->runEnded("w-1", "r-1");
  CHECK(world.deadWithin(first, 1000));
  CHECK(world.deadWithin(second, 1000));
}

TEST_CASE("B14 the helper answers for the Work's repository on its host, and for nothing else") {
  NEEDS_NODE();
  World world;
  auto host = world.fake.host();
  struct Row {
    std::string protocol, host, path;
    bool granted;
  };
  std::vector<Row> rows = {{"https", host, "acme/web.git", true},
                           {"https", host, "acme/web", true},
                           {"https", host, "ACME/Web.git", true},
                           {"https", host, "acme/web.git/", true},
                           {"http", host, "acme/web.git", false},
                           {"ssh", host, "acme/web.git", false},
                           {"https", "github.com", "acme/web", false},
                           {"https", host + ".evil.example", "acme/web", false},
                           {"https", host, "acme/secret.git", false},
                           {"https", host, "acme/web.git/../secret.git", false},
                           {"https", host, "acme/web/../secret", false},
                           {"https", host, "/acme/web", false},
                           {"https", host, "acme/webs", false},
                           {"https", host, "", false},
                           {"https", host, "acme/web.git.git", false},
                           {"https", host, "acme/web\nhost=evil", false},
                           {"https", "", "acme/web", false},
                           {"", host, "acme/web", false}};
  for (auto& row : rows) {
    INFO(row.protocol << " " << row.host << " " << row.path);
    auto got = world.owner->credential("w-1", "r-1", row.protocol, row.host, row.path).wait(world.io.waitScope);
    CHECK(got.ok() == row.granted);
    if (!got.ok()) {
      CHECK(got.refusal().reason == "credential_refused");
      CHECK_THAT(got.refusal().what, !hasText("\n"));
    }
  }
  CHECK_FALSE(world.owner->credential("w-none", "r-9", "https", host, "acme/web").wait(world.io.waitScope).ok());
  CHECK(world.minted() == 1);
}

TEST_CASE("B14 a provider that is killed is started again, and the new one revokes what the dead one minted") {
  NEEDS_NODE();
  World world;
  auto token = world.tokenOf("r-1");
  auto before = world.connection->pid();
  REQUIRE(before != 0);
  REQUIRE(kill(before, SIGKILL) == 0);
  world.owner->runEnded("w-1", "r-1");  // while nobody is there
  CHECK(world.deadWithin(token, 5000));
  CHECK(world.connection->pid() != before);
  CHECK(world.tokenOf("r-2") != token);

  // In the middle of a mint: the next one is asked, and git learns nothing of it.
  world.fake.fault({{"kind", "delay"}, {"ms", 500}, {"path", "access_tokens"}, {"times", 1}});
  auto asked =
      world.owner->credential("w-1", "r-3", "https", world.fake.host(), "acme/web.git").eagerlyEvaluate(nullptr);
  world.pause(100);
  REQUIRE(kill(world.connection->pid(), SIGKILL) == 0);
  auto got = asked.wait(world.io.waitScope);
  REQUIRE(got.ok());
  CHECK(world.tokenOf("r-3") == std::string(got.value().password.view()));
}

TEST_CASE("B14 what GitHub does not revoke at once is revoked later, and a stopping daemon leaves none") {
  NEEDS_NODE();
  World world;
  auto token = world.tokenOf("r-1");
  world.fake.fault({{"kind", "status"}, {"status", 500}, {"method", "DELETE"}, {"times", 4}});
  world.owner->runEnded("w-1", "r-1");
  CHECK(world.deadWithin(token, 15000));

  auto second = world.tokenOf("r-2"), third = world.tokenOf("r-3");
  world.owner->close().wait(world.io.waitScope);
  CHECK_FALSE(world.live(second));
  CHECK_FALSE(world.live(third));
  CHECK_FALSE(world.ask("r-2").ok());
  CHECK(world.owner->credentialsOf("github").live() == 0);
}

TEST_CASE("E4 operations go to the run's own issue, through the daemon, which reads nothing of them") {
  NEEDS_NODE();
  World world;
  world.fake.issue();
  auto called =
      world.owner->call("w-1", "r-1", "github.issue.comment", R"({"body":"Hello"})", {}).wait(world.io.waitScope);
  REQUIRE(called.ok());
  CHECK_FALSE(called.value().isError);
  CHECK(world.fake.world().at("comments").size() == 1);
  auto wrong = world.owner->call("w-1", "r-1", "github.issue.comment", "not JSON", {}).wait(world.io.waitScope);
  REQUIRE(wrong.ok());
  CHECK(wrong.value().isError);
}

TEST_CASE("a connection that cannot be signed in says why, without the key, and is up when that was mended") {
  NEEDS_NODE();
  World world;
  world.secrets["keyring:broken"] = "hunter2-hunter2";
  ConnectionSpec spec = world.connection->spec();
  spec.id = "broken";
  spec.key = "keyring:broken";
  auto policy = quick();
  policy.attempts = 2;
  Connection broken(world.supervisor, spec, world.readSecret(), policy);
  auto client = broken.client().wait(world.io.waitScope);
  REQUIRE_FALSE(client.ok());
  CHECK_THAT(client.refusal().what, hasText("no PEM") && !hasText("hunter2"));
  auto lines = broken.examine({"acme/web"}, {"issues=write"}).wait(world.io.waitScope);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].level == "FAIL");
  world.secrets["keyring:broken"] = world.fake.pem();
  broken.retry();
  CHECK(broken.client().wait(world.io.waitScope).ok());
  for (auto& line : broken.examine({"acme/web"}, {"issues=write", "contents=write"}).wait(world.io.waitScope)) {
    INFO(line.what);
    CHECK(line.level == "ok");
  }
}

TEST_CASE("B16 C9 git in a run commits as the bot, asks our helper alone, and by the repository's path") {
  NEEDS_NODE();
  World world;
  auto facts = world.connection->facts("acme/web").wait(world.io.waitScope);
  REQUIRE(facts.ok());
  auto token = world.tokenOf("r-1");
  auto& directory = world.fake.directory;
  writeFileAtomically(
      directory + "/helper",
      "#!/bin/sh\ncat >>" + directory + "/asked\necho username=x-access-token\necho password=" + token + "\n", 0755);
  // A helper of the operator's must not be asked, nor be given the token to keep.
  writeFileAtomically(directory + "/gitconfig",
                      "[credential]\n\thelper = \"!touch " + directory +
                          "/others; :\"\n[user]\n\tname = Operator\n\temail = op@example.org\n",
                      0600);
  std::string exports;
  for (auto& [name, value] :
       hub::gitEnvironment(&facts.value().git, world.connection->gitHost(), directory + "/helper")) {
    exports += "export " + name + "='" + value + "'\n";
  }
  auto ran = test::shell(
      exports + "export HOME=" + directory + " GIT_CONFIG_GLOBAL=" + directory +
      "/gitconfig GIT_SSL_CAINFO=" + world.fake.ca() + "\ncd " + directory + " && git clone -q " + world.fake.git() +
      "/acme/web.git clone && cd clone && git commit -q --allow-empty -m x && "
      "git log -1 --format='%an <%ae> %cn <%ce>' && git push -q origin HEAD:refs/heads/agent/x && echo pushed");
  CHECK_THAT(ran.output, hasText("pushed"));
  auto bot = "conduit[bot] <" + std::to_string(world.fake.botId) + "+conduit[bot]@users.noreply.localhost>";
  CHECK_THAT(ran.output, hasText(bot + " " + bot));
  CHECK_THAT(readFile(directory + "/asked", 65536), hasText("path=acme/web.git"));
  CHECK(access((directory + "/others").c_str(), F_OK) != 0);
}

TEST_CASE("doctor asks for the permissions that the bindings' operations need, and no others") {
  config::Config config;
  config::Connection connection;
  connection.id = connection.type = "github";
  connection.auth = "app";
  connection.appId = "1";
  config.connections.push_back(connection);
  config::Scope scope;
  scope.id = "web";
  config::Binding binding;
  binding.connection = "github";
  binding.operations = {"github.issue.get"};
  scope.bindings.push_back(binding);
  config.scopes.push_back(scope);
  CHECK(hub::permissionsNeeded(config, "github") == std::vector<std::string>{"issues=read"});
  config.scopes[0].bindings[0].operations = {"@github.author", "@github.workspace"};
  CHECK(hub::permissionsNeeded(config, "github") ==
        std::vector<std::string>{"checks=read", "contents=write", "issues=write", "pull_requests=write"});
  CHECK(hub::permissionsNeeded(config, "another").empty());
  config::Extension extension;
  extension.type = "github";
  extension.connection = "github";
  extension.repo = "acme/web";
  config.scopes[0].extensions.push_back(extension);
  config.scopes[0].routes.push_back({"issues", "github", "agent", "inject", {"agent"}, {}});
  auto sources = hub::sourcesOf(config, "github");
  REQUIRE(sources.size() == 1);
  CHECK(sources[0].routes.at(0).activePolicy == "inject");
  CHECK(sources[0].routes.at(0).labels == std::vector<std::string>{"agent"});
  CHECK(sources[0].intervalSeconds == 60);
}

TEST_CASE("B14 a connection that was changed is made anew, and what the earlier one minted lives as long as its run") {
  NEEDS_NODE();
  World world;
  auto early = world.tokenOf("r-1");
  ConnectionSpec spec = world.connection->spec();
  spec.gitAsBot = true;
  Connection changed(world.supervisor, spec, world.readSecret(), quick());
  world.owner->add(changed);
  auto other = world.tokenOf("r-2");
  CHECK(changed.pid() != world.connection->pid());
  CHECK(world.live(early));
  CHECK(world.owner->credentialsOf("github").live() == 1);
  world.owner->runEnded("w-1", "r-1");
  CHECK(world.deadWithin(early, 1000));
  CHECK(world.live(other));
  // Of neither the run gets another.
  CHECK_FALSE(world.ask("r-1").ok());
  world.owner->close().wait(world.io.waitScope);
  CHECK_FALSE(world.live(other));
  world.owner = nullptr;
}

TEST_CASE("B14 a connection that was removed is stopped when its last token is dead, and its own are revoked") {
  NEEDS_NODE();
  World world;
  world.fake.issue();
  REQUIRE(world.owner->call("w-1", "r-1", "github.issue.get", "{}", {}).wait(world.io.waitScope).ok());
  auto token = world.tokenOf("r-1");
  world.owner->remove("github", 10 * kj::MILLISECONDS);
  world.pause(200);
  CHECK(world.live(token));
  CHECK(world.connection->pid() != 0);
  CHECK_FALSE(world.ask("r-1").ok());
  world.owner->runEnded("w-1", "r-1");
  CHECK(world.deadWithin(token, 1000));
  for (int i = 0; i < 500 && world.connection->pid() != 0; ++i) world.pause(20);
  CHECK(world.connection->pid() == 0);
  for (auto& one : world.fake.control({{"op", "tokens"}})) {
    INFO(one.dump());
    CHECK_FALSE(one.at("live").get<bool>());
  }
  auto after = world.connection->client().wait(world.io.waitScope);
  REQUIRE_FALSE(after.ok());
  CHECK_THAT(after.refusal().what, hasText("changed in the config"));
}

TEST_CASE(
    "a key that was replaced behind the same name is noticed, and one that cannot be read is not taken for another") {
  NEEDS_NODE();
  World world;
  world.tokenOf("r-1");
  CHECK_FALSE(world.connection->hasOtherSecrets().wait(world.io.waitScope));
  world.secrets["keyring:key"] += "\n";
  CHECK(world.connection->hasOtherSecrets().wait(world.io.waitScope));
  world.secrets.clear();
  CHECK_FALSE(world.connection->hasOtherSecrets().wait(world.io.waitScope));
}

TEST_CASE("B14 a token that GitHub refuses early is given up, and git gets another; not without end") {
  NEEDS_NODE();
  World world;
  auto first = world.tokenOf("r-1");
  // GitHub may not know it yet.
  world.owner->credentialRejected("w-1", "r-2");
  world.owner->credentialRejected("w-1", "r-1");
  CHECK(world.tokenOf("r-1") == first);
  // When it should, the doubt counts.
  world.owner->credentialsOf("github").settling = 0 * kj::SECONDS;
  std::set<std::string> seen = {world.tokenOf("r-1")};
  CHECK(seen.count(first) == 0);
  for (int i = 0; i < 15; ++i) {
    world.owner->credentialRejected("w-1", "r-1");
    seen.insert(world.tokenOf("r-1"));
  }
  CHECK(seen.size() == 10);
  CHECK(world.deadWithin(first, 1000));
  world.owner->runEnded("w-1", "r-1");
  world.owner->credentialRejected("w-1", "r-1");
  CHECK_FALSE(world.ask("r-1").ok());
  for (auto& token : seen) CHECK(world.deadWithin(token, 1000));
}

TEST_CASE("B14 git that GitHub sent to a repository's new name gets its token there, and for no other name") {
  NEEDS_NODE();
  World world;
  auto token = world.tokenOf("r-1");
  world.fake.control({{"op", "rename"}, {"repo", "acme/web"}, {"to", "corp/site"}});
  auto there = world.ask("r-1", "corp/site.git");
  REQUIRE(there.ok());
  CHECK(std::string(there.value().password.view()) == token);
  CHECK(world.ask("r-1", "acme/web.git").ok());
  CHECK(world.ask("r-1", "acme/secret.git").refusal().reason == "credential_refused");
  CHECK(world.ask("r-1", "corp/none").refusal().reason == "credential_refused");
  // Names cost questions to GitHub, and a run has few of them.
  world.fake.control({{"op", "forget"}});
  for (int i = 0; i < 30; ++i) CHECK_FALSE(world.ask("r-1", "corp/guess-" + std::to_string(i)).ok());
  CHECK(world.fake.countRequests("GET", "guess-") <= 16);
}

TEST_CASE("B14 the first token of a run costs little more than GitHub's own time") {
  NEEDS_NODE();
  World world;
  world.tokenOf("r-0");  // the connection is up, and the repository is known
  auto& timer = world.io.provider->getTimer();
  auto began = timer.now();
  constexpr int count = 20;
  for (int i = 1; i <= count; ++i) world.tokenOf("r-" + std::to_string(i));
  auto each = (timer.now() - began) / count / kj::MICROSECONDS;
  WARN("a token takes " << each << " us, of it two exchanges with the fake");
}

}  // namespace
}  // namespace oc
