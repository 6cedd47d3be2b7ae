// open-conduit-github against a fake GitHub that keeps state: tokens, refusals, and what goes wrong on the way.
#include <set>

#include "github_fixture.h"

namespace oc {
namespace {

using test::FakeGitHub;
using test::GitHubInstance;
using test::shell;

#define NEEDS_NODE() \
  if (!test::hasNode()) OC_SKIP("node or openssl is missing")

struct World {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  FakeGitHub fake;
  GitHubInstance github{io, fake};

  World() {
    fake.furnish();
    REQUIRE(github.signIn(fake.pem()).reason.empty());
  }
  std::string push(const std::string& token, const std::string& repo, const std::string& branch) {
    return shell(
               "cd " + fake.directory + " && rm -rf clone && export GIT_SSL_CAINFO=" + fake.ca() +
               " GIT_TERMINAL_PROMPT=0 GIT_CONFIG_GLOBAL=/dev/null HOME=/nonexistent && git clone -q https://x-access-token:" +
               token + "@" + fake.host() + "/" + repo +
               ".git clone && cd clone && git -c user.name=A -c user.email=a@example.org commit -q --allow-empty -m x "
               "&& git push -q origin HEAD:refs/heads/" +
               branch + " && echo pushed")
        .output;
  }
};

TEST_CASE("B14 a minted token pushes to the one repository, can do nothing else, and is dead when it was revoked") {
  NEEDS_NODE();
  World world;
  auto token = world.github.mint(world.fake.repoId);
  REQUIRE(token.refusal.reason.empty());
  auto stands = world.fake.token(token.text);
  CHECK(stands.at("permissions") == Json{{"contents", "write"}, {"metadata", "read"}});
  CHECK(stands.at("repoIds") == Json{world.fake.repoId});
  CHECK_THAT(world.push(token.text, "acme/web", "agent/one"), hasText("pushed"));
  CHECK_THAT(world.push(token.text, "acme/secret", "agent/one"), !hasText("pushed"));
  // The App could: it is installed there. And the token cannot read issues.
  CHECK_THAT(world.push(world.github.mint(world.fake.otherId, "acme/secret").text, "acme/secret", "agent/one"),
             hasText("pushed"));
  CHECK_THAT(shell("curl -s --cacert " + world.fake.ca() + " -H 'authorization: token " + token.text + "' " +
                   world.fake.api() + "/repos/acme/web/issues")
                 .output,
             hasText("not accessible"));

  CHECK(world.github.revoke(token.text).reason.empty());
  CHECK_FALSE(world.fake.token(token.text).at("live").get<bool>());
  CHECK_THAT(world.push(token.text, "acme/web", "agent/two"), !hasText("pushed"));
  // Again: it is dead already, which is what was wanted.
  CHECK(world.github.revoke(token.text).reason.empty());
}

TEST_CASE("B14 a token's end is told by this machine's clock, whatever GitHub's says") {
  NEEDS_NODE();
  World world;
  world.fake.control({{"op", "skew"}, {"seconds", 1800}});
  auto token = world.github.mint(world.fake.repoId);
  REQUIRE(token.refusal.reason.empty());  // the JWT was made by GitHub's clock in the end
  auto seconds = (token.expiresAt - static_cast<int64_t>(time(nullptr)) * 1000) / 1000;
  CHECK(seconds > 3500);
  CHECK(seconds <= 3605);
  world.fake.control({{"op", "skew"}, {"seconds", -1800}});
  CHECK(world.github.mint(world.fake.repoId).refusal.reason.empty());
}

TEST_CASE("B16 the bot's App mints, where there is one, and the commits' author is its bot") {
  NEEDS_NODE();
  World world;
  auto& fake = world.fake;
  REQUIRE(shell("cd " + fake.directory +
                " && openssl genrsa -out bot.pem 2048 && openssl rsa -in bot.pem -pubout -out bot.pub")
              .code == 0);
  uint64_t bot =
      fake.control(
              {{"op", "addApp"}, {"id", 99}, {"slug", "robo"}, {"owner", "acme"}, {"publicKey", fake.pem("bot.pub")}})
          .at("botId");
  fake.control({{"op", "install"}, {"appId", 99}, {"repos", {"acme/web"}}, {"permissions", {{"contents", "write"}}}});
  GitHubInstance github(world.io, fake);
  auto request = github.client().signInRequest();
  auto credentials = request.initCredentials();
  credentials.initApp().setId("4711");
  credentials.getApp().setPrivateKey(toData(fake.pem()));
  credentials.setBotAppId("99");
  credentials.setBotPrivateKey(toData(fake.pem("bot.pem")));
  REQUIRE(read(request.send().wait(world.io.waitScope).getRefusal()).reason.empty());
  auto asked = github.client().identityRequest();
  asked.setRepo("acme/web");
  auto answer = asked.send().wait(world.io.waitScope);
  CHECK(read(answer.getRefusal()).what == "");
  CHECK(toString(answer.getGit().getName()) == "robo[bot]");
  CHECK(toString(answer.getGit().getEmail()) == std::to_string(bot) + "+robo[bot]@users.noreply.localhost");
  CHECK(answer.getSpeaker().getId() == fake.botId);
  auto token = github.mint(fake.repoId);
  REQUIRE(token.refusal.reason.empty());
  CHECK_THAT(world.push(token.text, "acme/web", "agent/bot"), hasText("pushed"));
  // The other App's mint is another one.
  CHECK(fake.countRequests("POST", "access_tokens") > 0);
}

TEST_CASE("E1 a key that is none is refused by what it is, and no answer repeats it") {
  NEEDS_NODE();
  kj::AsyncIoContext io = kj::setupAsyncIo();
  FakeGitHub fake;
  fake.furnish();
  auto& directory = fake.directory;
  REQUIRE(
      shell(
          "cd " + directory +
          " && openssl genrsa -out other.pem 2048 && openssl ecparam -genkey -name prime256v1 -out ec.pem && "
          "openssl genrsa -aes256 -passout pass:x -out locked.pem 2048 && head -5 app.pem > cut.pem && openssl genrsa -out small.pem 1024")
          .code == 0);
  struct Row {
    std::string pem, words;
  };
  std::vector<Row> rows = {{"", "no PEM"},
                           {"hunter2", "no PEM"},
                           {fake.pem("app.pub"), "public key"},
                           {readFile(fake.ca(), 1 << 20), "certificate"},
                           {fake.pem("ec.pem"), "no RSA key"},
                           {fake.pem("locked.pem"), "encrypted"},
                           {fake.pem("cut.pem"), "damaged"},
                           {fake.pem("small.pem"), "2048"},
                           {"-----BEGIN RSA PRIVATE KEY-----\n" + std::string(100000, 'A'), "no PEM"}};
  for (auto& row : rows) {
    INFO(row.words);
    GitHubInstance github(io, fake);
    auto refusal = github.signIn(row.pem);
    CHECK(refusal.reason == "github_credentials");
    CHECK_THAT(refusal.what, hasText(row.words));
    if (row.pem.size() > 8) CHECK_THAT(refusal.what + refusal.fix, !hasText(row.pem.substr(0, 40)));
  }
  // A key of another App: GitHub says so.
  GitHubInstance github(io, fake);
  REQUIRE(github.signIn(fake.pem("other.pem")).reason.empty());
  CHECK(github.mint(fake.repoId).refusal.reason == "github_credentials");
}

TEST_CASE("an App that is not installed, is suspended, or was uninstalled, is named as such") {
  NEEDS_NODE();
  World world;
  auto id = world.fake.installation;
  world.fake.control({{"op", "addRepo"}, {"fullName", "acme/elsewhere"}});
  CHECK_THAT(world.github.mint(1, "acme/elsewhere").refusal.what, hasText("not installed"));
  world.fake.control({{"op", "suspend"}, {"id", id}});
  CHECK_THAT(world.github.mint(world.fake.repoId).refusal.what, hasText("suspended"));
  world.fake.control({{"op", "suspend"}, {"id", id}, {"on", false}});
  CHECK(world.github.mint(world.fake.repoId).refusal.reason.empty());
  world.fake.control({{"op", "setPermissions"}, {"id", id}, {"permissions", {{"contents", "read"}}}});
  CHECK(world.github.mint(world.fake.repoId).refusal.reason == "github_invalid");
  world.fake.control({{"op", "uninstall"}, {"id", id}});
  CHECK_THAT(world.github.mint(world.fake.repoId).refusal.what, hasText("not installed"));
}

TEST_CASE("E4 an agent reads, comments, changes its own comment and labels, on its own issue alone") {
  NEEDS_NODE();
  World world;
  auto& fake = world.fake;
  auto issue = fake.issue("A bug\x1b[31m");
  auto other = fake.issue("Another");
  auto call = [&](const std::string& name, const Json& arguments) {
    return world.github.call(name, arguments, issue, fake.repoId);
  };
  auto read = call("github.issue.get", Json::object());
  CHECK_FALSE(read.isError);
  CHECK(read.value.at("number") == issue);
  CHECK_THAT(read.value.at("title").get<std::string>(), !hasText("\x1b"));

  auto made = call("github.issue.comment", {{"body", "Hello"}});
  CHECK_FALSE(made.isError);
  auto id = made.value.at("id").get<uint64_t>();
  auto changed = call("github.issue.comment.update", {{"comment", id}, {"body", "Hello again"}});
  CHECK_FALSE(changed.isError);
  CHECK_THAT(changed.value.at("body").get<std::string>(), beginsWith("Hello again"));

  uint64_t alices = fake.control({{"op", "comment"},
                                  {"repo", "acme/web"},
                                  {"number", issue},
                                  {"body", "mine <!-- open-conduit work=w-1 -->"},
                                  {"user", "alice"}})
                        .at("id");
  CHECK(call("github.issue.comment.update", {{"comment", alices}, {"body", "taken over"}}).error() == "github_refused");
  auto elsewhere =
      world.github.call("github.issue.comment", {{"body", "There"}}, other, fake.repoId).value.at("id").get<uint64_t>();
  CHECK(call("github.issue.comment.update", {{"comment", elsewhere}, {"body", "x"}}).error() == "github_refused");

  CHECK_FALSE(call("github.issue.label", {{"add", {"agent", "näher/x"}}}).isError);
  auto labels = call("github.issue.label", {{"remove", {"näher/x", "never there"}}});
  CHECK(labels.value.at("labels") == Json{"agent"});

  // No field of any operation names a repository, an issue or a branch.
  CHECK(call("github.issue.get", {{"repo", "acme/secret"}}).error() == "arguments_invalid");
  CHECK(call("github.issue.comment", {{"body", "x"}, {"issue", other}}).error() == "arguments_invalid");
  CHECK(call("github.issue.comment", {{"body", ""}}).error() == "arguments_invalid");
  CHECK(call("github.issue.comment", {{"body", 7}}).error() == "arguments_invalid");
  CHECK(call("github.git.credential", {{"protocol", "https"}, {"host", "h"}, {"path", "p"}}).error() ==
        "github_refused");
  CHECK(world.github.call("github.issue.get", Json::object(), 0, fake.repoId).error() == "github_refused");
  // The name belongs to another repository by now.
  CHECK(world.github.call("github.issue.get", Json::object(), issue, fake.otherId).error() == "github_refused");
}

TEST_CASE("E4 a pull request is opened once, says which run made it, and its checks and reviews are read") {
  NEEDS_NODE();
  World world;
  auto& fake = world.fake;
  auto issue = fake.issue();
  auto call = [&](const std::string& name, const Json& arguments) {
    return world.github.call(name, arguments, issue, fake.repoId);
  };
  CHECK(call("github.pull.get", Json::object()).isError);
  CHECK_THAT(call("github.pull.open", {{"title", "Fix"}}).value.at("fix").get<std::string>(), hasText("push"));
  REQUIRE_THAT(world.push(world.github.mint(fake.repoId).text, "acme/web", "agent/issue-1"), hasText("pushed"));
  auto pull = call("github.pull.open", {{"title", "Fix"}, {"body", "It was wrong."}});
  REQUIRE_FALSE(pull.isError);
  CHECK(pull.value.at("body") == "Made by Open Conduit: Work `w-1`, run `r-1`.\n\n---\n\nIt was wrong.");
  CHECK(call("github.pull.open", {{"title", "Fix"}}).value.at("number") == pull.value.at("number"));
  CHECK(fake.world().at("pulls").size() == 1);
  CHECK(call("github.pull.update", {{"title", "Mend"}}).value.at("title") == "Mend");
  CHECK(call("github.pull.update", Json::object()).error() == "arguments_invalid");
  // What an agent writes can hide what follows it on the page, so the run stands before it; and once.
  auto hiding = pull.value.at("body").get<std::string>() + "\n\n<!-- never closed";
  CHECK(call("github.pull.update", {{"body", hiding}}).value.at("body") == hiding);
  CHECK(call("github.pull.update", {{"body", "<!-- never closed"}}).value.at("body") ==
        "Made by Open Conduit: Work `w-1`, run `r-1`.\n\n---\n\n<!-- never closed");

  auto sha = pull.value.at("head_sha").get<std::string>();
  fake.control({{"op", "check"},
                {"repo", "acme/web"},
                {"sha", sha},
                {"name", "unit"},
                {"conclusion", "failure"},
                {"title", "2 failed"}});
  auto checks = call("github.pull.checks", Json::object());
  REQUIRE_FALSE(checks.isError);
  CHECK(checks.value.at("items")[0].at("conclusion") == "failure");
  uint64_t review = fake.control({{"op", "reviewComment"},
                                  {"repo", "acme/web"},
                                  {"number", pull.value.at("number")},
                                  {"body", "Why?"},
                                  {"user", "alice"}})
                        .at("id");
  CHECK(call("github.pull.comments", Json::object()).value.at("items")[0].at("id") == review);
  CHECK_FALSE(call("github.pull.reply", {{"comment", review}, {"body", "Because."}}).isError);
  CHECK(fake.world().at("reviewComments").size() == 2);
}

TEST_CASE("a write whose answer was lost is not done twice") {
  NEEDS_NODE();
  World world;
  auto& fake = world.fake;
  auto issue = fake.issue();
  size_t expected = 0;
  for (auto fault : {Json{{"kind", "reset"}}, Json{{"kind", "cut"}}, Json{{"kind", "html"}, {"status", 502}},
                     Json{{"kind", "status"}, {"status", 500}}}) {
    for (bool after : {true, false}) {
      INFO(fault.dump() << " after the effect: " << after);
      fault.update({{"method", "POST"}, {"path", "/comments$"}, {"times", 1}, {"after", after}});
      fake.fault(fault);
      CHECK_FALSE(world.github.call("github.issue.comment", {{"body", "Once"}}, issue, fake.repoId).isError);
      CHECK(fake.world().at("comments").size() == ++expected);
    }
  }
}

TEST_CASE("a call that is made again under its id, since who made it was lost, is done once") {
  NEEDS_NODE();
  World world;
  auto issue = world.fake.issue();
  auto comment = [&](const std::string& id, bool again) {
    return world.github
        .start("github.issue.comment", {{"body", "Once"}}, issue, world.fake.repoId, "agent/issue-1", id, again)
        .wait(world.io.waitScope);
  };
  auto comments = [&]() { return world.fake.world().at("comments").size(); };
  auto first = comment("abc", false);
  REQUIRE_FALSE(first.isError);
  // One that nothing is known of is done.
  CHECK_FALSE(comment("def", true).isError);
  CHECK(comments() == 2);
  auto again = comment("abc", true);
  CHECK_FALSE(again.isError);
  CHECK(again.value.at("id") == first.value.at("id"));
  CHECK(comments() == 2);
  // Control: without the word it is another.
  CHECK_FALSE(comment("abc", false).isError);
  CHECK(comments() == 3);
  // Nobody can say: it is not done.
  world.fake.fault({{"kind", "status"}, {"status", 404}, {"method", "GET"}, {"path", "/comments$"}, {"times", 1}});
  CHECK(comment("ghi", true).error() == "github_unavailable");
  CHECK(comments() == 3);
}

TEST_CASE("what GitHub answers wrongly is a refusal with a reason, and the next call works") {
  NEEDS_NODE();
  World world;
  auto& fake = world.fake;
  auto issue = fake.issue();
  REQUIRE_FALSE(world.github.call("github.issue.get", Json::object(), issue, fake.repoId).isError);
  struct Row {
    Json fault;
    std::string reason, words;
  };
  auto status = [](int code, const std::string& message = "No") {
    return Json{{"kind", "status"}, {"status", code}, {"message", message}};
  };
  auto denied = status(403, "Resource not accessible by integration");
  denied["headers"] = {{"x-accepted-github-permissions", "issues=read"}};
  auto invalid = status(422);
  invalid["body"] = {{"message", "Validation Failed"}, {"errors", {{{"field", "head"}, {"code", "invalid"}}}}};
  std::vector<Row> rows = {
      {denied, "github_denied", "issues=read"},
      {status(401, "Bad credentials"), "github_credentials", "Bad credentials"},
      {status(404), "github_denied", "not shown"},
      {status(409, "Conflict"), "github_conflict", "Conflict"},
      {status(410), "github_gone", "gone"},
      {invalid, "github_invalid", "head: invalid"},
      {Json{{"kind", "status"}, {"status", 418}, {"message", "a\x1b[31mb"}}, "github_invalid", "418"},
      {Json{{"kind", "secondary"}, {"retryAfter", 300}}, "github_limited", "rate limit"},
      {status(429), "github_limited", "rate limit"},
      {status(503), "github_unavailable", "503"},
      {Json{{"kind", "html"}, {"status", 502}}, "github_unavailable", "502"},
      {Json{{"kind", "html"}, {"status", 200}}, "github_unavailable", "no JSON"},
      {Json{{"kind", "cut"}}, "github_unavailable", ""},
      {Json{{"kind", "reset"}}, "github_unavailable", ""},
      {Json{{"kind", "huge"}, {"megabytes", 50}}, "github_unavailable", "larger"},
      {Json{{"kind", "deep"}, {"levels", 100000}}, "github_unavailable", "no JSON"},
      {Json{{"kind", "text"}, {"text", "{\"a\":\"\\ud800\"}"}}, "github_unavailable", "no JSON"},
      {Json{{"kind", "redirect"}, {"location", "https://evil.example.org/x"}}, "github_unavailable", "elsewhere"}};
  for (auto& row : rows) {
    INFO(row.fault.dump(-1, ' ', false, Json::error_handler_t::replace));
    // Each in an instance of its own: a limit holds for all that comes after.
    GitHubInstance github(world.io, fake);
    REQUIRE(github.signIn(fake.pem()).reason.empty());
    REQUIRE_FALSE(github.call("github.issue.get", Json::object(), issue, fake.repoId).isError);
    auto fault = row.fault;
    fault.update({{"method", "GET"}, {"path", "/issues/\\d+$"}, {"times", 10}});
    fake.fault(fault);
    auto answer = github.call("github.issue.get", Json::object(), issue, fake.repoId);
    CHECK(answer.isError);
    CHECK(answer.error() == row.reason);
    CHECK_THAT(answer.message(), hasText(row.words));
    CHECK_THAT(answer.message(), !hasText("\x1b"));
    fake.control({{"op", "clearFaults"}});
    if (row.reason != "github_limited")
      CHECK_FALSE(github.call("github.issue.get", Json::object(), issue, fake.repoId).isError);
  }
}

TEST_CASE("what passes by itself is waited for: a 5xx, a short limit, a token that GitHub does not know yet") {
  NEEDS_NODE();
  World world;
  auto& fake = world.fake;
  auto issue = fake.issue();
  fake.control({{"op", "freshTokenDelay"}, {"ms", 900}});
  CHECK_FALSE(world.github.call("github.issue.get", Json::object(), issue, fake.repoId).isError);
  fake.control({{"op", "freshTokenDelay"}, {"ms", 0}});
  fake.fault({{"kind", "status"}, {"status", 502}, {"path", "/issues/"}, {"times", 2}});
  CHECK_FALSE(world.github.call("github.issue.get", Json::object(), issue, fake.repoId).isError);
  fake.fault({{"kind", "secondary"}, {"status", 429}, {"retryAfter", 1}, {"path", "/comments"}, {"times", 1}});
  CHECK_FALSE(world.github.call("github.issue.comment", {{"body", "x"}}, issue, fake.repoId).isError);
  fake.fault({{"kind", "primary"}, {"seconds", 2}, {"path", "/issues/"}, {"times", 1}});
  CHECK_FALSE(world.github.call("github.issue.get", Json::object(), issue, fake.repoId).isError);
  CHECK(fake.world().at("comments").size() == 1);
}

TEST_CASE("a repository that was renamed or transferred is followed, for reading, writing and tokens") {
  NEEDS_NODE();
  World world;
  auto& fake = world.fake;
  auto issue = fake.issue();
  fake.control({{"op", "rename"}, {"repo", "acme/web"}, {"to", "newco/site"}});
  CHECK_FALSE(world.github.call("github.issue.comment", {{"body", "Still here"}}, issue, fake.repoId).isError);
  CHECK(fake.world("newco/site").at("comments").size() == 1);
  CHECK(world.github.mint(fake.repoId).refusal.reason.empty());
}

TEST_CASE("nothing trusts a certificate of somebody else's") {
  NEEDS_NODE();
  kj::AsyncIoContext io = kj::setupAsyncIo();
  FakeGitHub fake, impostor;
  fake.furnish();
  supervisor::Supervisor supervisor(io, getenv("OPEN_CONDUIT_PROGRAMS"));
  supervisor::LaunchSpec spec;
  spec.provider = "github";
  spec.job = {"connection", "--api", fake.api(), "--ca", impostor.ca()};
  auto instance = supervisor.start(spec).wait(io.waitScope);
  auto client = instance->as<proto::GitHub>();
  auto request = client.signInRequest();
  request.initCredentials().setToken(toData("ghp_0123456789"));
  request.send().wait(io.waitScope);
  auto asked = client.repositoryRequest();
  asked.setRepo("acme/web");
  auto refusal = read(asked.send().wait(io.waitScope).getRefusal());
  CHECK(refusal.reason == "github_unavailable");
  CHECK_THAT(refusal.what, hasText("certificate"));
  CHECK(fake.control({{"op", "requests"}}).empty());
}

TEST_CASE("each request has the headers that GitHub wants, and writes are a second apart") {
  NEEDS_NODE();
  World world;
  auto& fake = world.fake;
  auto issue = fake.issue();
  for (int i = 0; i < 3; ++i)
    REQUIRE_FALSE(world.github.call("github.issue.comment", {{"body", "x"}}, issue, fake.repoId).isError);
  std::vector<int64_t> times;
  for (auto& request : fake.control({{"op", "requests"}})) {
    CHECK(request.at("accept") == "application/vnd.github+json");
    CHECK(request.at("version") == "2022-11-28");
    CHECK_THAT(request.at("userAgent").get<std::string>(), beginsWith("open-conduit/"));
    if (request.at("method") == "POST" && request.at("path").get<std::string>().ends_with("/comments"))
      times.push_back(request.at("at"));
  }
  REQUIRE(times.size() == 3);
  // The fake notes when a request has come in: a few milliseconds of the way are allowed for.
  CHECK(times[1] - times[0] >= 950);
  CHECK(times[2] - times[1] >= 950);
}

TEST_CASE("D7 a sweep sees every change once: pages, ETags, and bodies that do not fit") {
  NEEDS_NODE();
  World world;
  auto& fake = world.fake;
  auto issue = fake.issue();
  auto client = world.github.client();
  auto sweep = [&](proto::GitHubEventKind kind, uint32_t page, const std::string& etag = "") {
    auto request = client.sweepRequest();
    request.setRepo("acme/web");
    request.setKind(kind);
    request.setPage(page);
    request.setEtag(toText(etag));
    return request.send().wait(world.io.waitScope);
  };
  auto first = sweep(proto::GitHubEventKind::ISSUE, 1);
  CHECK(first.getEvents().size() == 1);
  CHECK(first.getNext() == 0);
  auto etag = toString(first.getEtag());
  CHECK(sweep(proto::GitHubEventKind::ISSUE, 1, etag).getNotModified());
  fake.issue("Second");
  auto second = sweep(proto::GitHubEventKind::ISSUE, 1, etag);
  CHECK_FALSE(second.getNotModified());
  CHECK(second.getEvents().size() == 2);

  fake.control(
      {{"op", "comments"}, {"repo", "acme/web"}, {"number", issue}, {"user", "alice"}, {"body", "c"}, {"count", 1000}});
  std::set<uint64_t> ids;
  uint32_t page = 1;
  while (page != 0) {
    auto answer = sweep(proto::GitHubEventKind::COMMENT, page);
    for (auto event : answer.getEvents()) ids.insert(event.getId());
    if (answer.getNext() != 0) CHECK(answer.getEtag().size() == 0);
    page = answer.getNext();
  }
  CHECK(ids.size() == 1000);

  // Sixty issues with the largest bodies: more than one message may have.
  fake.control({{"op", "issues"},
                {"repo", "acme/web"},
                {"title", "big"},
                {"user", "alice"},
                {"body", std::string(65536, 'x')},
                {"count", 60}});
  auto big = sweep(proto::GitHubEventKind::ISSUE, 1);
  CHECK(big.getEvents().size() == 62);
  proto::GitHubEvent::Reader cut;
  for (auto event : big.getEvents()) {
    if (event.getBodyCut()) cut = event;
  }
  REQUIRE(cut.getBodyCut());
  auto whole = client.eventRequest();
  whole.setRepo("acme/web");
  whole.setNumber(cut.getIssue());
  auto answer = whole.send().wait(world.io.waitScope);
  CHECK(answer.getEvent().getBody().size() == 65536);
  CHECK(toString(answer.getEvent().getBodyHash()) == toString(cut.getBodyHash()));
}

TEST_CASE("E2 who may steer is by rights and by numeric id; who labelled what is known") {
  NEEDS_NODE();
  World world;
  auto& fake = world.fake;
  uint64_t alice = fake.control({{"op", "addUser"}, {"login", "carol"}}).at("id");
  fake.control({{"op", "collaborator"}, {"repo", "acme/web"}, {"login", "carol"}, {"permission", "maintain"}});
  auto may = [&](const std::string& login, uint64_t id) {
    auto request = world.github.client().permissionRequest();
    request.setRepo("acme/web");
    request.setLogin(toText(login));
    request.setUserId(id);
    auto answer = request.send().wait(world.io.waitScope);
    CHECK(read(answer.getRefusal()).what == "");
    return answer.getMaySteer();
  };
  CHECK(may("carol", alice));
  CHECK_FALSE(may("carol", alice + 1));
  CHECK_FALSE(may("mallory", 1));
  CHECK_FALSE(may("nobody-at-all", 1));
  CHECK_FALSE(may("conduit[bot]", fake.botId));
  CHECK_FALSE(may("../../x", 1));

  auto issue = fake.issue("x", "mallory");
  fake.control({{"op", "label"}, {"repo", "acme/web"}, {"number", issue}, {"label", "agent"}, {"by", "carol"}});
  auto request = world.github.client().attentionRequest();
  request.setRepo("acme/web");
  request.setIssue(issue);
  auto answer = request.send().wait(world.io.waitScope);
  REQUIRE(answer.getMarks().size() == 1);
  CHECK(toString(answer.getMarks()[0].getLabel()) == "agent");
  CHECK(answer.getMarks()[0].getActorId() == alice);
}

TEST_CASE("the status is one comment that is edited, found again by its mark, and made anew when somebody deleted it") {
  NEEDS_NODE();
  World world;
  auto& fake = world.fake;
  auto issue = fake.issue();
  // Somebody else's mark is not ours.
  fake.control({{"op", "comment"},
                {"repo", "acme/web"},
                {"number", issue},
                {"body", "<!-- open-conduit-status work=w-1 -->"},
                {"user", "mallory"}});
  auto set = [&](uint64_t comment, const std::string& text) {
    auto request = world.github.client().setStatusRequest();
    auto bound = request.initBound();
    bound.setRepo("acme/web");
    bound.setRepositoryId(fake.repoId);
    bound.setIssue(issue);
    bound.setWork("w-1");
    request.setComment(comment);
    request.setText(toText(text));
    auto answer = request.send().wait(world.io.waitScope);
    CHECK(read(answer.getRefusal()).what == "");
    return answer.getComment();
  };
  auto id = set(0, "queued");
  CHECK(id != 0);
  CHECK(set(id, "running") == id);
  CHECK(fake.world().at("comments").size() == 2);
  fake.control({{"op", "deleteComment"}, {"repo", "acme/web"}, {"id", id}});
  auto again = set(id, "done");
  CHECK(again != id);
  CHECK(fake.world().at("comments").size() == 2);
}

TEST_CASE("doctor's examination names each lack with its fix") {
  NEEDS_NODE();
  World world;
  auto& fake = world.fake;
  auto examine = [&]() {
    GitHubInstance github(world.io, fake);
    REQUIRE(github.signIn(fake.pem()).reason.empty());
    auto request = github.client().examineRequest();
    request.initRepos(1).set(0, "acme/web");
    auto needs = request.initNeeds(2);
    needs.set(0, "issues=write");
    needs.set(1, "contents=write");
    std::string text;
    auto answer = request.send().wait(world.io.waitScope);
    for (auto check : answer.getChecks()) {
      if (check.getOk()) continue;
      CHECK(check.getFix().size() != 0);
      text += toString(check.getWhat()) + "\n";
    }
    return text;
  };
  CHECK(examine() == "");
  fake.control({{"op", "setPermissions"},
                {"id", fake.installation},
                {"permissions", {{"issues", "read"}, {"contents", "write"}}}});
  CHECK_THAT(examine(), hasText("issues: write") && !hasText("contents"));
  fake.control({{"op", "skew"}, {"seconds", 200}});
  CHECK_THAT(examine(), hasText("200 s behind") || hasText("199 s behind") || hasText("201 s behind"));
  fake.control({{"op", "skew"}, {"seconds", 0}});
  fake.control({{"op", "uninstall"}, {"id", fake.installation}});
  CHECK_THAT(examine(), hasText("not installed"));
}

TEST_CASE("E1 by hand, with the same lockdown: a token, issues, an operation, and no secret on the command line") {
  NEEDS_NODE();
  kj::AsyncIoContext io = kj::setupAsyncIo();
  FakeGitHub fake;
  fake.furnish();
  auto issue = fake.issue("By hand");
  auto program = std::string(getenv("OPEN_CONDUIT_PROGRAMS")) + "/open-conduit-github --api " + fake.api() + " --ca " +
                 fake.ca() + " --app 4711 --key " + fake.directory + "/app.pem --repo acme/web ";
  auto token = shell(program + "token");
  CHECK(token.code == 0);
  CHECK(fake.token(token.output).at("permissions") == Json{{"contents", "write"}, {"metadata", "read"}});
  CHECK_THAT(shell(program + "issues").output, hasText("By hand"));
  CHECK_THAT(shell(program + "identity").output, hasText("conduit[bot]@users.noreply.localhost"));
  CHECK(shell(program + "check").code == 0);
  CHECK_THAT(shell(program + "call github.issue.get '{}' --issue " + std::to_string(issue)).output,
             hasText("It breaks."));
  CHECK(shell("printf %s " + token.output + " | " + program + "revoke").code == 0);
  CHECK_FALSE(fake.token(token.output).at("live").get<bool>());
  CHECK(shell(program + "juggle").code != 0);
  // What it kept for itself is revoked, too.
  for (auto& one : fake.control({{"op", "tokens"}})) CHECK_FALSE(one.at("live").get<bool>());
}

}  // namespace
}  // namespace oc
