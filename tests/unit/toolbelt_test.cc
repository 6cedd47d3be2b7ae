// A run's toolbelt, and what its agent may send it.
#include "tests/toolbelt_world.h"

#include <set>

#include "tests/catch.h"

namespace oc {
namespace {

using test::repeated;
using Operations = std::vector<test::FakeOperation>;
using test::ToolbeltWorld;

int codeOf(const Json& answer) { return answer.value("error", Json::object()).value("code", 0); }
std::string reasonIn(const std::string& line) {
  auto message = parseJson(line);
  return message.is_object() ? message.value("error", Json::object()).value("reason", "") : "";
}
std::string textOf(const Json& answer) { return answer["result"]["content"][0]["text"]; }

// ---- the door

TEST_CASE("D5 only the run's own token opens its toolbelt") {
  ToolbeltWorld world;
  auto wrong = world.token;
  wrong.back() = wrong.back() == 'a' ? 'b' : 'a';
  for (auto& token : {wrong, std::string(), world.token + "0", world.token.substr(0, 63), std::string(64, '0')}) {
    auto agent = world.connect();
    agent->ask({{"open_conduit", 1}, {"token", token}, {"channel", "mcp"}});
    CHECK(reasonIn(agent->line()) == "token_invalid");
    CHECK(agent->line() == "(end)");
  }
  auto agent = world.mcp();
  agent->ask({{"jsonrpc", "2.0"}, {"id", 1}, {"method", "ping"}});
  CHECK(agent->answer()["result"] == Json::object());
  CHECK(world.daemon.called.empty());
}

TEST_CASE("D5 a first line that is none gets one line, and the end") {
  ToolbeltWorld world;
  auto token = R"("token":")" + world.token + "\"";
  for (auto& hello :
       {std::string("x"), std::string("[]"), std::string("{}"), R"({"open_conduit":2,"channel":"mcp",)" + token + "}",
        R"({"open_conduit":1,"channel":"root",)" + token + "}", R"({"open_conduit":1,)" + token + "}",
        R"({"open_conduit":"1","channel":"mcp",)" + token + "}", repeated("[", 5000), std::string(10000, 'x'),
        std::string("\xff\xfe\x00", 3)}) {
    auto agent = world.connect();
    agent->say(hello);
    CHECK(reasonIn(agent->line()) == "hello_invalid");
    CHECK(agent->line() == "(end)");
  }
}

TEST_CASE("D5 at most sixteen connections, and an ended one makes room") {
  ToolbeltWorld world;
  std::vector<kj::Own<test::AgentEnd>> agents;
  for (int i = 0; i < 16; ++i) agents.push_back(world.mcp());
  auto more = world.connect();
  CHECK(reasonIn(more->line()) == "too_many_connections");
  agents.pop_back();
  world.settle();
  auto last = world.mcp();
  last->ask({{"jsonrpc", "2.0"}, {"id", 1}, {"method", "ping"}});
  CHECK(last->answer()["id"] == 1);
}

// ---- MCP with a handshake

TEST_CASE("D5 MCP of 2025-11-25: initialize, tools/list in a fixed order, tools/call") {
  ToolbeltWorld world(
      Operations{{"z.last"}, {"conduit.work.get"}, {"a.first"}, {"github.git.credential", test::anyObject, true}});
  auto agent = world.channel("mcp");
  agent->ask({{"jsonrpc", "2.0"}, {"id", 0}, {"method", "tools/list"}});
  CHECK(codeOf(agent->answer()) == -32600);
  agent->ask(
      {{"jsonrpc", "2.0"}, {"id", 1}, {"method", "initialize"}, {"params", {{"protocolVersion", "2025-11-25"}}}});
  auto hello = agent->answer()["result"];
  CHECK(hello["protocolVersion"] == "2025-11-25");
  CHECK(hello["capabilities"] == Json{{"tools", Json::object()}});
  CHECK(hello["serverInfo"]["name"] == "open-conduit");
  agent->ask({{"jsonrpc", "2.0"}, {"method", "notifications/initialized"}});
  agent->ask({{"jsonrpc", "2.0"}, {"id", 2}, {"method", "tools/list"}, {"params", Json::object()}});
  auto tools = agent->answer()["result"]["tools"];
  REQUIRE(tools.size() == 3);
  CHECK(tools[0]["name"] == "a.first");
  CHECK(tools[1]["name"] == "conduit.work.get");
  CHECK(tools[2]["name"] == "z.last");
  CHECK(tools[0]["inputSchema"] == Json{{"type", "object"}});
  agent->ask(ToolbeltWorld::call("three", "conduit.work.get"));
  auto answer = agent->answer();
  CHECK(answer["id"] == "three");
  CHECK(answer["result"]["isError"] == false);
  CHECK_FALSE(answer["result"].contains("resultType"));
  auto work = parseJson(textOf(answer));
  CHECK(work["title"] == "A title");
  CHECK_THAT(work["body"].get<std::string>(), beginsWith("The request"));
}

TEST_CASE("D5 a version that is not known gets the newest with a handshake, a known one itself") {
  ToolbeltWorld world;
  for (auto [asked, given] :
       {std::pair("2024-11-05", "2024-11-05"), {"2025-06-18", "2025-06-18"}, {"1999-01-01", "2025-11-25"}}) {
    auto agent = world.channel("mcp");
    agent->ask({{"jsonrpc", "2.0"}, {"id", 1}, {"method", "initialize"}, {"params", {{"protocolVersion", asked}}}});
    CHECK(agent->answer()["result"]["protocolVersion"] == given);
    agent->ask({{"jsonrpc", "2.0"}, {"id", 2}, {"method", "initialize"}, {"params", {{"protocolVersion", asked}}}});
    CHECK(codeOf(agent->answer()) == -32600);
  }
}

TEST_CASE("D5 unknown tools are -32602, unknown methods -32601, whatever is like them") {
  ToolbeltWorld world(Operations{{"test.do"}, {"github.git.credential", test::anyObject, true}});
  auto agent = world.mcp();
  for (std::string name : {"test.Do", "test.do ", " test.do", "test.do\n", "TEST.DO", "test.d\xd0\xbe", "test․do",
                           "test", "", "github.git.credential", "conduit.work.get"}) {
    agent->ask(ToolbeltWorld::call(1, name));
    CHECK(codeOf(agent->answer()) == -32602);
  }
  agent->ask(ToolbeltWorld::call(1, std::string("test.do\0", 8)));
  CHECK(codeOf(agent->answer()) == -32602);
  for (auto method : {"tools/Call", "resources/list", "prompts/list", "logging/setLevel", "server/nothing", ""}) {
    agent->ask({{"jsonrpc", "2.0"}, {"id", 1}, {"method", method}});
    CHECK(codeOf(agent->answer()) == -32601);
  }
  CHECK(world.daemon.called.empty());
  agent->ask(ToolbeltWorld::call(1, "test.do"));
  CHECK(textOf(agent->answer()) == R"({"fine":true})");
}

TEST_CASE("D5 arguments that do not keep to the schema reach nobody, and the model reads why") {
  ToolbeltWorld world(Operations{
      {"test.do", R"({"type":"object","properties":{"text":{"type":"string","maxLength":3},"n":{"type":"integer"}},
                                      "required":["text"],"additionalProperties":false})"}});
  auto agent = world.mcp();
  for (auto& [arguments, place] : std::vector<std::pair<Json, std::string>>{{Json::object(), "text"},
                                                                            {{{"text", 1}}, "text"},
                                                                            {{{"text", "four"}}, "text"},
                                                                            {{{"text", "a"}, {"n", 1.5}}, "n"},
                                                                            {{{"text", "a"}, {"n", "1"}}, "n"},
                                                                            {{{"text", "a"}, {"more", 1}}, "more"}}) {
    agent->ask(ToolbeltWorld::call(1, "test.do", arguments));
    auto answer = agent->answer();
    CHECK(answer["result"]["isError"] == true);
    CHECK_THAT(textOf(answer), hasText(place));
  }
  agent->ask(ToolbeltWorld::call(1, "test.do", Json::array()));
  CHECK(codeOf(agent->answer()) == -32602);
  CHECK(world.daemon.called.empty());
  agent->ask(ToolbeltWorld::call(1, "test.do", {{"text", "abc"}, {"n", 7}}));
  CHECK(agent->answer()["result"]["isError"] == false);
  CHECK(world.daemon.called == std::vector<std::string>{R"(test.do {"n":7,"text":"abc"})"});
}

TEST_CASE("D5 a schema that says more than is checked is refused") {
  for (std::string keyword :
       {R"("pattern":"a*")", R"("$ref":"#")", R"("format":"uri")", R"("unevaluatedProperties":false)"}) {
    CHECK_THROWS_AS(ToolbeltWorld(Operations{{"test.do", R"({"type":"object","properties":{"x":{)" + keyword + "}}}"}}),
                    kj::Exception);
  }
  ToolbeltWorld fine(Operations{
      {"test.do",
       R"({"type":"object","properties":{"x":{"anyOf":[{"type":"null"},{"type":"string","minLength":1}]}}})"}});
  auto agent = fine.mcp();
  agent->ask(ToolbeltWorld::call(1, "test.do", {{"x", ""}}));
  CHECK(agent->answer()["result"]["isError"] == true);
  agent->ask(ToolbeltWorld::call(1, "test.do", {{"x", nullptr}}));
  CHECK(agent->answer()["result"]["isError"] == false);
}

TEST_CASE("D5 a failing operation is a result with isError") {
  ToolbeltWorld world;
  world.daemon.isError = true;
  world.daemon.answer = R"({"message":"no"})";
  auto agent = world.mcp();
  agent->ask(ToolbeltWorld::call(1, "test.do"));
  auto answer = agent->answer();
  CHECK(answer["result"]["isError"] == true);
  CHECK(textOf(answer) == R"({"message":"no"})");
}

TEST_CASE("D5 a result that is too large, or no text, is an error and not sent") {
  ToolbeltWorld world;
  auto agent = world.mcp();
  for (auto& answer : {std::string(257u << 10, 'x'), std::string("\xff\xfe")}) {
    world.daemon.answer = answer;
    agent->ask(ToolbeltWorld::call(1, "test.do"));
    auto line = agent->line();
    CHECK(line.size() < 1000);
    CHECK(parseJson(line)["result"]["isError"] == true);
  }
  world.daemon.answer = std::string(255u << 10, '\x01');
  agent->ask(ToolbeltWorld::call(1, "test.do"));
  CHECK(textOf(agent->answer()).size() == 255u << 10);
}

// ---- MCP without a handshake

Json modern(const Json& id, const std::string& method, Json params = Json::object(),
            const Json& version = "2026-07-28") {
  params["_meta"] = {{"io.modelcontextprotocol/protocolVersion", version},
                     {"io.modelcontextprotocol/clientCapabilities", Json::object()}};
  return {{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", params}};
}

TEST_CASE("D5 MCP of 2026-07-28: nothing comes first, and each answer says that it is complete") {
  ToolbeltWorld world;
  auto agent = world.channel("mcp");
  agent->ask(modern(1, "tools/call", {{"name", "test.do"}, {"arguments", Json::object()}}));
  auto called = agent->answer()["result"];
  CHECK(called["resultType"] == "complete");
  CHECK(called["isError"] == false);
  agent->ask(modern(2, "tools/list"));
  auto list = agent->answer()["result"];
  CHECK(list["tools"].size() == 2);
  CHECK(list["cacheScope"] == "private");
  CHECK(list["ttlMs"].is_number_unsigned());
  agent->ask(modern(3, "server/discover"));
  auto found = agent->answer()["result"];
  CHECK(found["supportedVersions"][0] == "2026-07-28");
  CHECK(found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "open-conduit");
}

TEST_CASE(
    "D5 MCP of 2026-07-28: an unknown version is -32022 with the known ones, a request without its _meta -32602") {
  ToolbeltWorld world;
  auto agent = world.channel("mcp");
  agent->ask(modern(1, "tools/list", Json::object(), "2031-01-01"));
  auto unknown = agent->answer();
  CHECK(codeOf(unknown) == -32022);
  CHECK(unknown["error"]["data"]["supported"][0] == "2026-07-28");
  CHECK(unknown["error"]["data"]["requested"] == "2031-01-01");
  agent->ask(modern(2, "tools/list", Json::object(), 2026));
  CHECK(codeOf(agent->answer()) == -32602);
  agent->ask({{"jsonrpc", "2.0"}, {"id", 3}, {"method", "server/discover"}});
  CHECK(codeOf(agent->answer()) == -32602);
  auto bare = modern(4, "tools/list");
  bare["params"]["_meta"].erase("io.modelcontextprotocol/clientCapabilities");
  agent->ask(bare);
  CHECK(codeOf(agent->answer()) == -32602);
  for (auto method : {"ping", "initialize", "subscriptions/listen"}) {
    agent->ask(modern(5, method));
    CHECK(codeOf(agent->answer()) == -32601);
  }
}

// ---- what is under way

TEST_CASE("D5 calls go on beside each other, and are answered as they end") {
  ToolbeltWorld world;
  auto agent = world.mcp();
  world.daemon.holds = true;
  agent->ask(ToolbeltWorld::call(1, "test.do"));
  agent->ask(ToolbeltWorld::call(2, "test.do"));
  agent->ask({{"jsonrpc", "2.0"}, {"id", 3}, {"method", "ping"}});
  CHECK(agent->answer()["id"] == 3);
  agent->ask(ToolbeltWorld::call(1, "test.do"));
  CHECK(codeOf(agent->answer()) == -32600);  // that id is under way
  world.daemon.release();
  std::set<Json> ids = {agent->answer()["id"], agent->answer()["id"]};
  CHECK(ids == std::set<Json>{1, 2});
}

TEST_CASE("D5 a cancelled call is never answered, and its id is free again") {
  ToolbeltWorld world;
  auto agent = world.mcp();
  world.daemon.holds = true;
  agent->ask(ToolbeltWorld::call(7, "test.do"));
  world.settle();
  agent->ask(
      {{"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}, {"params", {{"requestId", "7"}}}});  // another id
  agent->ask(
      {{"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}, {"params", {{"requestId", 7}, {"reason", "x"}}}});
  agent->ask({{"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}, {"params", {{"requestId", 7}}}});
  world.settle();
  world.daemon.release();
  CHECK(agent->isQuiet());
  world.daemon.holds = false;
  agent->ask(ToolbeltWorld::call(7, "test.do"));
  CHECK(agent->answer()["id"] == 7);
}

TEST_CASE("D5 who has said all still gets the answers") {
  ToolbeltWorld world;
  auto agent = world.mcp();
  world.daemon.holds = true;
  agent->ask(ToolbeltWorld::call(1, "test.do"));
  agent->end();
  world.settle();
  world.daemon.release();
  CHECK(agent->answer()["id"] == 1);
  CHECK(agent->line() == "(end)");
}

TEST_CASE("D5 arrays of messages, as the version has them") {
  ToolbeltWorld world;
  auto batch = Json::array({ToolbeltWorld::call(1, "test.do"),
                            {{"jsonrpc", "2.0"}, {"method", "notifications/x"}},
                            {{"jsonrpc", "2.0"}, {"id", 2}, {"method", "ping"}},
                            5});
  auto newer = world.mcp("2025-11-25");
  newer->ask(batch);
  CHECK(codeOf(newer->answer()) == -32600);
  auto older = world.mcp("2025-03-26");
  older->ask(batch);
  auto answers = older->answer();
  REQUIRE(answers.is_array());
  CHECK(answers.size() == 3);
  older->ask(Json::array());
  CHECK(codeOf(older->answer()) == -32600);
  older->ask(Json::array({{{"jsonrpc", "2.0"}, {"method", "notifications/x"}}}));
  CHECK(older->isQuiet());
  auto many = Json::array();
  for (int i = 0; i < 1000; ++i) many.push_back(ToolbeltWorld::call(i, "test.do"));
  older->ask(many);
  CHECK(codeOf(older->answer()) == -32600);
  // All its calls cancelled: nothing to say.
  world.daemon.holds = true;
  older->ask(Json::array({ToolbeltWorld::call(9, "test.do")}));
  older->ask({{"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}, {"params", {{"requestId", 9}}}});
  world.settle();
  world.daemon.release();
  CHECK(older->isQuiet());
}

// ---- bad input

TEST_CASE("D5 what is no message is told so, and the conversation goes on") {
  ToolbeltWorld world;
  auto agent = world.mcp();
  for (auto& [line, code] : std::vector<std::pair<std::string, int>>{
           {"{", -32700},
           {"nothing", -32700},
           {"\xff\xfe", -32700},
           {std::string("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi\xff\"}"), -32700},
           {repeated("[", 10000) + repeated("]", 10000), -32700},
           {repeated("{\"a\":", 10000) + "1" + repeated("}", 10000), -32700},
           {"NaN", -32700},
           {"5", -32600},
           {"\"x\"", -32600},
           {"{}", -32600},
           {R"({"jsonrpc":"1.0","id":1,"method":"ping"})", -32600},
           {R"({"jsonrpc":"2.0","id":1})", -32600},
           {R"({"jsonrpc":"2.0","id":1,"method":5})", -32600},
           {R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]})", -32602},
           {R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}})", -32602},
           {R"({"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}})", -32602}}) {
    agent->say(line);
    auto answer = agent->answer();
    INFO(line.substr(0, 100));
    CHECK(codeOf(answer) == code);
  }
  for (auto quiet : {"", "   ", "\t\r", R"({"jsonrpc":"2.0","id":1,"result":{}})",
                     R"({"jsonrpc":"2.0","method":"tools/call","params":{"name":"test.do"}})"}) {
    agent->say(quiet);
  }
  CHECK(agent->isQuiet());
  agent->ask({{"jsonrpc", "2.0"}, {"id", 1}, {"method", "ping"}});
  CHECK(agent->answer()["id"] == 1);
  CHECK(world.daemon.called.empty());
}

TEST_CASE("D5 ids of each JSON type") {
  ToolbeltWorld world;
  auto agent = world.mcp();
  for (std::string id : {"0", "-7", "9007199254740993", "18446744073709551615", "\"\"", "\"x\"", "\"\\u0000\""}) {
    agent->say(R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":"ping"})");
    CHECK(agent->answer()["id"] == parseJson(id));
  }
  for (std::string id : {std::string("null"), std::string("true"), std::string("1.5"), std::string("1e400"),
                         std::string("{}"), std::string("[1]"), "\"" + std::string(1000, 'x') + "\""}) {
    agent->say(R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":"ping"})");
    auto answer = agent->answer();
    CHECK(answer["id"].is_null());
    CHECK((codeOf(answer) == -32600 || codeOf(answer) == -32700));
  }
}

TEST_CASE("D5 a message of 10 MB is passed over, and half a message waits") {
  ToolbeltWorld world;
  auto agent = world.mcp();
  auto reading = [&]() { return agent->answer(); };
  agent->write(R"({"jsonrpc":"2.0","id":1,"method":")" + std::string(10u << 20, 'x') + "\"}\n");
  CHECK(codeOf(reading()) == -32600);
  agent->ask({{"jsonrpc", "2.0"}, {"id", 2}, {"method", "ping"}});
  CHECK(reading()["id"] == 2);
  agent->write(R"({"jsonrpc":"2.0","id":3,)");
  CHECK(agent->isQuiet());
  agent->say(R"("method":"ping"})");
  CHECK(reading()["id"] == 3);
}

// Says all of it while somebody else reads what comes back, so that neither waits for the other.
TEST_CASE("D5 ten thousand calls in a burst are all answered, sixty-four at a time") {
  ToolbeltWorld world;
  auto agent = world.mcp();
  std::string burst;
  for (int i = 0; i < 10'000; ++i) burst += ToolbeltWorld::call(i, "test.do").dump() + "\n";
  auto writing = agent->stream->write(burst.data(), burst.size()).eagerlyEvaluate(nullptr);
  std::set<Json> ids;
  for (int i = 0; i < 10'000; ++i) ids.insert(agent->answer()["id"]);
  CHECK(ids.size() == 10'000);
  CHECK(world.daemon.called.size() == 10'000);
  writing.wait(world.io.waitScope);

  world.daemon.holds = true;
  burst.clear();
  for (int i = 0; i < 1000; ++i) burst += ToolbeltWorld::call(i, "test.do").dump() + "\n";
  auto more = agent->stream->write(burst.data(), burst.size()).eagerlyEvaluate(nullptr);
  world.settle();
  CHECK(world.daemon.mostHeld == 64);
}

TEST_CASE("D5 a client that never reads is not read from, and nobody else waits for it") {
  ToolbeltWorld world;
  world.daemon.answer = std::string(200u << 10, 'x');
  auto deaf = world.mcp();
  size_t written = 0;
  std::string burst;
  for (int i = 0; i < 10'000; ++i) burst += ToolbeltWorld::call(i, "test.do").dump() + "\n";
  auto writing =
      deaf->stream->write(burst.data(), burst.size()).then([&]() { written = burst.size(); }).eagerlyEvaluate(nullptr);
  world.settle();
  world.settle();
  auto called = world.daemon.called.size();
  CHECK(called >= 1);
  CHECK(called <= 64 + 8);  // 200 KiB each: what it has to hold for it is bounded
  CHECK(written == 0);
  auto other = world.mcp();
  other->ask(ToolbeltWorld::call(1, "test.do"));
  CHECK(other->answer()["id"] == 1);
  // The positive control: when it reads, it gets all.
  world.daemon.answer = "1";
  for (int i = 0; i < 10'000; ++i) REQUIRE(deaf->line() != "(nothing)");
  CHECK(world.daemon.called.size() == 10'001);
}

// ---- ends

TEST_CASE("D5 without a daemon calls fail as something to try again, and another daemon answers") {
  ToolbeltWorld world;
  auto agent = world.mcp();
  world.server->detach();
  agent->ask(ToolbeltWorld::call(1, "test.do"));
  auto answer = agent->answer();
  CHECK(answer["result"]["isError"] == true);
  CHECK_THAT(textOf(answer), hasText("Try again"));
  world.attach();
  agent->ask(ToolbeltWorld::call(2, "test.do"));
  CHECK(agent->answer()["result"]["isError"] == false);
}

TEST_CASE("D5 when the run has ended every connection is closed, and the token opens nothing") {
  ToolbeltWorld world;
  world.daemon.holds = true;
  auto agent = world.mcp(), idle = world.mcp();
  agent->ask(ToolbeltWorld::call(1, "test.do"));
  world.settle();
  world.server->revoke();
  CHECK(parseJson(agent->line())["result"]["isError"] == true);
  CHECK(agent->line() == "(end)");
  CHECK(idle->line() == "(end)");
  auto replay = world.connect();
  CHECK(reasonIn(replay->line()) == "run_ended");
  world.attach();  // a daemon that comes later changes nothing
  auto again = world.connect();
  CHECK(reasonIn(again->line()) == "run_ended");
}

TEST_CASE("D5 an ended run's agent is refused before the daemon has said so") {
  ToolbeltWorld world;
  world.alive = false;
  auto agent = world.connect();
  CHECK(reasonIn(agent->line()) == "run_ended");
}

// ---- the other channels

TEST_CASE("D5 the call channel answers one call") {
  ToolbeltWorld world(Operations{{"test.do", R"({"type":"object","additionalProperties":false})"},
                                 {"github.git.credential", test::anyObject, true}});
  auto ask = [&world](const std::string& line) {
    auto agent = world.channel("call");
    agent->say(line);
    auto answer = agent->line();
    CHECK(agent->line() == "(end)");
    return answer;
  };
  CHECK(ask(R"({"operation":"test.do"})") == R"({"isError":false,"result":{"fine":true}})");
  CHECK(reasonIn(ask(R"({"operation":"test.do","arguments":{"x":1}})")) == "arguments_invalid");
  CHECK(reasonIn(ask(R"({"operation":"test.other"})")) == "operation_denied");
  CHECK(reasonIn(ask(R"({"operation":"github.git.credential"})")) == "operation_denied");
  CHECK(reasonIn(ask(R"({"operation":5})")) == "operation_denied");
  CHECK(reasonIn(ask("[]")) == "request_invalid");
  CHECK(reasonIn(ask(repeated("[", 10'000))) == "request_invalid");
  auto huge = world.channel("call");
  std::string line(2u << 20, 'x');
  auto writing = huge->stream->write(line.data(), line.size()).catch_([](kj::Exception&&) {}).eagerlyEvaluate(nullptr);
  CHECK(reasonIn(huge->line()) == "request_invalid");
  CHECK(world.daemon.called.size() == 1);
  world.daemon.answer = "no JSON";
  CHECK(ask(R"({"operation":"test.do"})") == R"({"isError":false,"result":"no JSON"})");
}

TEST_CASE("B14 a run without the operation gets no credential") {
  ToolbeltWorld without;
  auto denied = without.channel("git-credential");
  denied->say(R"({"protocol":"https","host":"github.com","path":"o/r.git"})");
  CHECK(reasonIn(denied->line()) == "operation_denied");
  CHECK(without.daemon.called.empty());
}

TEST_CASE("B14 the credential's channel gives it to a run that has the operation") {
  ToolbeltWorld world(Operations{{"github.git.credential", test::anyObject, true}});
  auto agent = world.channel("git-credential");
  agent->say(R"({"protocol":"https","host":"github.com","path":"o/r.git"})");
  CHECK(agent->line() == R"({"password":"a-password","username":"x-access-token"})");
  // git was refused with it.
  auto again = world.channel("git-credential");
  again->say(R"({"protocol":"https","host":"github.com","path":"o/r.git","rejected":true})");
  CHECK(again->line() == R"({"rejected":true})");
  CHECK(world.daemon.called ==
        std::vector<std::string>{"gitCredential github.com", "github.git.credential.rejected {}"});
}

}  // namespace
}  // namespace oc
