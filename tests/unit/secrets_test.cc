// Where secrets come from, and who is given which.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/secret_source.h"
#include "base/session_bus.h"
#include "daemon/work/secrets.h"
#include "providers/keyring/job.h"
#include "providers/kit/kit.h"
#include "tests/catch.h"

using namespace oc;

namespace {

struct Folder {
  Folder() {
    char name[] = "/tmp/oc-secrets-XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    path = name;
  }
  ~Folder() { removeTree(path); }
  std::string file(const std::string& text, unsigned mode = 0600) {
    auto name = path + "/secret";
    unlink(name.c_str());
    writeFileAtomically(name, text, mode);
    return name;
  }
  std::string path;
};

std::string value(const OrRefusal<SecretBytes>& read) {
  return read.ok() ? std::string(read.value().view()) : read.refusal().reason + ": " + read.refusal().what;
}

// readSecretInput with `text` on standard input.
std::string typed(const std::string& text) {
  auto pipe = makePipe();
  int before = dup(STDIN_FILENO);
  REQUIRE(dup2(pipe.first.get(), STDIN_FILENO) == STDIN_FILENO);
  std::string result;
  pid_t writer = fork();
  if (writer == 0) {
    writeAll(pipe.second.get(), text);
    _exit(0);
  }
  pipe.second = nullptr;
  result = value(readSecretInput("not shown"));
  dup2(before, STDIN_FILENO);
  close(before);
  pipe.first = nullptr;
  waitpid(writer, nullptr, 0);
  return result;
}

config::Scope scope() {
  config::Scope scope;
  scope.secretRefs = {{"token", "env:A"}, {"GH_TOKEN", "env:B"}, {"other", "env:C"}};
  return scope;
}

}  // namespace

TEST_CASE("D3 a secret's file is 0600, ours, no link, and at most 64 KiB") {
  Folder folder;
  CHECK(value(readSecretFile(folder.file("hunter2\n"))) == "hunter2");
  CHECK(value(readSecretFile(folder.file("hunter2\r\n"))) == "hunter2");
  CHECK(value(readSecretFile(folder.file("hunter2\n\n"))) == "hunter2\n");
  CHECK(value(readSecretFile(folder.file("hunter2\r"))) == "hunter2\r");
  CHECK(value(readSecretFile(folder.file("a\nb"))) == "a\nb");
  CHECK(value(readSecretFile(folder.file(std::string(64 << 10, 'x')))) == std::string(64 << 10, 'x'));

  CHECK_THAT(value(readSecretFile(folder.file(std::string((64 << 10) + 1, 'x')))), hasText("larger than 64 KiB"));
  CHECK_THAT(value(readSecretFile(folder.file("x", 0640))), hasText("only you can read"));
  CHECK_THAT(value(readSecretFile(folder.file("x", 0604))), hasText("only you can read"));
  CHECK_THAT(value(readSecretFile(folder.file(""))), hasText("is empty"));
  CHECK_THAT(value(readSecretFile(folder.file("\n"))), hasText("is empty"));
  CHECK_THAT(value(readSecretFile(folder.path + "/none")), hasText("No such file"));
  CHECK_THAT(value(readSecretFile(folder.file(std::string("a\0b", 3)))), hasText("NUL"));
  for (auto path : {folder.path, std::string("/dev/zero"), std::string("/dev/null")}) {
    CHECK_THAT(value(readSecretFile(path)), hasText("is no file"));
    CHECK(readSecretFile(path).refusal().fix.find("chmod") == std::string::npos);
  }
  CHECK_THAT(readSecretFile(folder.file("x", 0640)).refusal().fix, hasText("chmod 600"));
  if (geteuid() != 0) CHECK_THAT(readSecretFile("/etc/passwd").refusal().fix, hasText("a copy that is yours"));
  auto file = folder.file("x"), link = folder.path + "/link";
  REQUIRE(symlink(file.c_str(), link.c_str()) == 0);
  CHECK_THAT(value(readSecretFile(link)), hasText("is a link"));
  auto pipe = folder.path + "/pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THAT(value(readSecretFile(pipe)), hasText("is no file"));
}

TEST_CASE("B13 a secret that no container's file or variable can hold is told before there is a container") {
  auto why = [](std::string_view text) {
    std::map<std::string, SecretBytes> values;
    values.emplace("TOKEN", SecretBytes(text));
    return work::whyNoSecretsFile(values);
  };
  CHECK(why("hunter2").reason == "");
  CHECK(why("\x1b[2J\n=\"").reason == "");
  for (auto text : {std::string_view("\xff\xfe"), std::string_view("a\0b", 3)}) {
    CHECK(why(text).reason == "secret_unavailable");
    CHECK_THAT(why(text).what, hasText("TOKEN"));
    CHECK_THAT(why(text).fix, hasText("base64"));
  }
}

TEST_CASE("D3 a secret from standard input loses one newline and nothing else") {
  CHECK(typed("hunter2") == "hunter2");
  CHECK(typed("hunter2\n") == "hunter2");
  CHECK(typed("hunter2\r\n") == "hunter2");
  CHECK(typed(" a \n b \n\n") == " a \n b \n");
  CHECK(typed(std::string(64 << 10, 'x')) == std::string(64 << 10, 'x'));
  CHECK_THAT(typed(""), hasText("nothing was given"));
  CHECK_THAT(typed("\n"), hasText("nothing was given"));
  CHECK_THAT(typed(std::string("a\0b", 3)), hasText("NUL"));
  CHECK_THAT(typed(std::string((64 << 10) + 2, 'x')), hasText("larger than 64 KiB"));
}

TEST_CASE("D3 the session bus is found in its address list") {
  using Sockets = std::vector<BusSocket>;
  CHECK(busSockets("unix:path=/run/user/1000/bus,guid=ab", "") == Sockets{{"/run/user/1000/bus", false}});
  CHECK(busSockets("unix:guid=ab,abstract=/tmp/dbus-x", "") == Sockets{{"/tmp/dbus-x", true}});
  CHECK(busSockets("tcp:host=x,port=1;unix:path=/a;unix:path=/b%20c", "") == Sockets{{"/a", false}, {"/b c", false}});
  CHECK(busSockets("unix:runtime=yes", "/run/user/7") == Sockets{{"/run/user/7/bus", false}});
  for (auto none : {"", ";", "unix:", "unix:path=", "unix:path=%zz", "unix:path=%00", "unix:path=a%2",
                    "unixexec:path=/bin/sh", "unix:path"}) {
    CHECK(busSockets(none, "").empty());
  }
}

TEST_CASE("D3 without a session bus the refusal says what to do on a machine without a desktop") {
  Folder folder;
  struct Row {
    std::map<std::string, std::string> environ;
    const char* what;
  } rows[] = {
      {{}, "neither DBUS_SESSION_BUS_ADDRESS nor XDG_RUNTIME_DIR"},
      {{{"DBUS_SESSION_BUS_ADDRESS", "tcp:host=x"}}, "names no Unix socket"},
      {{{"XDG_RUNTIME_DIR", folder.path}}, "No such file"},
      {{{"DBUS_SESSION_BUS_ADDRESS", "unix:path=" + folder.path + "/" + std::string(120, 'x')}}, "too long"},
  };
  for (auto& row : rows) {
    auto dialed = dialSessionBus(row.environ);
    REQUIRE_FALSE(dialed.ok());
    CHECK(dialed.refusal().reason == "secret_unavailable");
    CHECK_THAT(dialed.refusal().what, hasText(row.what));
    CHECK_THAT(dialed.refusal().fix, hasText("file:/path"));
  }
  // Control: one that listens is dialed.
  auto path = folder.path + "/bus";
  int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  kj::AutoCloseFd owned(listening);
  struct sockaddr_un address {};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, path.c_str(), path.size() + 1);
  REQUIRE(bind(listening, reinterpret_cast<struct sockaddr*>(&address), sizeof(address)) == 0);
  REQUIRE(listen(listening, 1) == 0);
  CHECK(dialSessionBus({{"XDG_RUNTIME_DIR", folder.path}}).ok());
  CHECK(dialSessionBus({{"DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent;unix:path=" + path}}).ok());
}

TEST_CASE("D3 a run is given what its scope defines and its binding selects") {
  config::Binding binding;
  auto variables = [&]() {
    auto selected = work::selectSecrets(scope(), binding);
    if (!selected.ok())
      return selected.refusal().reason + ": " + selected.refusal().what + " / " + selected.refusal().fix;
    std::string text;
    for (auto& secret : selected.value()) text += secret.name + "=" + secret.variable + "(" + secret.reference + ") ";
    return text;
  };
  CHECK(variables() == "");
  binding.secretNames = {"token", "GH_TOKEN", "other"};
  binding.secretEnv = {{"token", "TOKEN"}};
  CHECK(variables() == "token=TOKEN(env:A) GH_TOKEN=GH_TOKEN(env:B) ");
  binding.secretEnv = {{"GH_TOKEN", "X"}};
  CHECK(variables() == "GH_TOKEN=X(env:B) ");

  binding.secretNames = {"token"};
  binding.secretEnv = {{"other", "OTHER"}};
  CHECK_THAT(variables(),
             hasText("secret_denied: the secret other is not given to this run: the binding does not select it"));
  CHECK_THAT(variables(), hasText("the binding's secret_names"));
  binding.secretNames = {"unknown"};
  binding.secretEnv = {};
  CHECK_THAT(variables(), hasText("the scope does not define it"));
  CHECK_THAT(variables(), hasText("the scope's secret_refs"));
}

TEST_CASE("D3 the keyring provider's job is one action on one name") {
  using keyring::parseJob;
  CHECK(parseJob({"get", "claude-token"}).name == "claude-token");
  CHECK(parseJob({"list"}).action == keyring::Action::List);
  CHECK(keyring::jobWords(parseJob({"rm", "a"})) == std::vector<std::string>{"rm", "a"});
  for (auto& words : std::vector<std::vector<std::string>>{{},
                                                           {"get"},
                                                           {"get", "a", "b"},
                                                           {"list", "a"},
                                                           {"steal", "a"},
                                                           {"get", ""},
                                                           {"get", "a/b"},
                                                           {"get", "-a"},
                                                           {"get", "a b"},
                                                           {"get", std::string(65, 'a')},
                                                           {"get", "a\n"}}) {
    CHECK_THROWS_AS(parseJob(words), kit::UsageError);
  }
}
