#include "secret_service.h"

#include <fmt/format.h>
#include <kj/debug.h>
#include <systemd/sd-bus.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "base/secret_source.h"
#include "base/text.h"

namespace oc::keyring {

namespace {

constexpr const char* service = "org.freedesktop.secrets";
constexpr const char* root = "/org/freedesktop/secrets";
constexpr const char* serviceInterface = "org.freedesktop.Secret.Service";
constexpr const char* collectionInterface = "org.freedesktop.Secret.Collection";
constexpr const char* itemInterface = "org.freedesktop.Secret.Item";
// No object: how the interface says "none".
constexpr const char* none = "/";

// How our items are found: any program of the user's can look for the same.
constexpr const char* applicationAttribute = "application";
constexpr const char* application = "open-conduit";
constexpr const char* nameAttribute = "name";

// A bus starts the service when it is first asked for, which takes a moment.
constexpr uint64_t answerLimitUs = 20'000'000;
constexpr size_t mostItems = 1000;

constexpr const char* headless =
    "on a machine without a desktop, use file:/path (mode 0600) in secret_refs, or start and unlock a keyring: docs/secrets.md";

// Thrown within this file, and a value outside of it.
Refusal unavailable(std::string what, std::string fix) {
  return {"secret_unavailable", std::move(what), std::move(fix)};
}

Refusal lockedRefusal(const std::string& what) {
  return unavailable(
      what, fmt::format("unlock it (log in on the desktop, or: gnome-keyring-daemon --unlock, with its password on "
                        "standard input); {}",
                        headless));
}

Refusal refusalOf(const sd_bus_error& error) {
  auto is = [&error](const char* name) { return sd_bus_error_has_name(&error, name) != 0; };
  if (is("org.freedesktop.DBus.Error.ServiceUnknown") || is("org.freedesktop.DBus.Error.NameHasNoOwner") ||
      (error.name != nullptr && std::string_view(error.name).starts_with("org.freedesktop.DBus.Error.Spawn."))) {
    return unavailable("no program offers a keyring (org.freedesktop.secrets) on the session bus",
                       fmt::format("install and start one, gnome-keyring for example; {}", headless));
  }
  if (is("org.freedesktop.Secret.Error.IsLocked")) return lockedRefusal("the keyring is locked");
  if (is("org.freedesktop.DBus.Error.NoReply") || is("org.freedesktop.DBus.Error.Timeout")) {
    return unavailable("the keyring did not answer within 20 seconds; it may be waiting for somebody", headless);
  }
  return unavailable(
      fmt::format("the keyring says: {}", printable(error.message != nullptr ? error.message : "nothing")), headless);
}

// sd-bus's own failures: a negative errno.
int check(int result, const char* what) {
  if (result < 0) {
    throw unavailable(fmt::format("the session bus: {}: {}", what, strerror(-result)), headless);
  }
  return result;
}

// A message, let go of when this goes away.
class Message {
 public:
  Message() = default;
  ~Message() { sd_bus_message_unref(message); }
  Message(Message&& other) noexcept : message(other.message) { other.message = nullptr; }
  KJ_DISALLOW_COPY(Message);
  sd_bus_message* get() { return message; }
  sd_bus_message** fill() { return &message; }

  void enter(char type, const char* contents) {
    check(sd_bus_message_enter_container(message, type, contents), "an answer");
  }
  void leave() { check(sd_bus_message_exit_container(message), "an answer"); }
  // False at the end of an array.
  bool tryEnter(char type, const char* contents) {
    return check(sd_bus_message_enter_container(message, type, contents), "an answer") > 0;
  }
  bool nextText(char type, std::string& to) {
    const char* text = nullptr;
    if (check(sd_bus_message_read_basic(message, type, &text), "an answer") == 0) return false;
    to = text;
    return true;
  }
  std::string text(char type) {
    std::string result;
    if (!nextText(type, result)) throw unavailable("the keyring's answer is too short", headless);
    return result;
  }

 private:
  sd_bus_message* message = nullptr;
};

}  // namespace

class SecretService::Conversation {
 public:
  explicit Conversation(kj::AutoCloseFd bus) : socket(kj::mv(bus)) {}
  ~Conversation() { sd_bus_close_unref(bus); }
  KJ_DISALLOW_COPY(Conversation);

  void open() {
    if (bus != nullptr) return;
    check(sd_bus_new(&bus), "opening it");
    int fd = socket.release();  // sd-bus closes it
    check(sd_bus_set_fd(bus, fd, fd), "opening it");
    check(sd_bus_set_bus_client(bus, 1), "opening it");
    check(sd_bus_negotiate_fds(bus, 0), "opening it");
    check(sd_bus_set_method_call_timeout(bus, answerLimitUs), "opening it");
    check(sd_bus_start(bus), "signing in");
    openSession();
  }

  // Items of this name; every one of ours when it is empty. What is locked is unlocked where that takes nobody.
  std::vector<std::string> find(const std::string& name) {
    auto call = begin(root, serviceInterface, "SearchItems");
    appendAttributes(call, name);
    auto answer = send(call);
    auto items = readPaths(answer), locked = readPaths(answer);
    if (locked.empty()) return items;
    unlock(locked, "the keyring is locked");
    items.insert(items.end(), locked.begin(), locked.end());
    return items;
  }

  SecretBytes valueOf(const std::string& item) {
    auto call = begin(item.c_str(), itemInterface, "GetSecret");
    check(sd_bus_message_append_basic(call.get(), 'o', session.c_str()), "asking");
    auto answer = send(call);
    check(sd_bus_message_sensitive(answer.get()), "an answer");
    answer.enter('r', "oayays");
    answer.text('o');
    const void* bytes = nullptr;
    size_t size = 0;
    check(sd_bus_message_read_array(answer.get(), 'y', &bytes, &size),
          "an answer");  // parameters: none without encryption
    check(sd_bus_message_read_array(answer.get(), 'y', &bytes, &size), "an answer");
    if (size == 0) throw unavailable("the secret is empty", "set it anew");
    if (size > mostSecretBytes) throw unavailable("the secret is larger than 64 KiB", "a secret is a token or a key");
    return SecretBytes(std::string_view(static_cast<const char*>(bytes), size));
  }

  std::string nameOf(const std::string& item) {
    sd_bus_error error = SD_BUS_ERROR_NULL;
    KJ_DEFER(sd_bus_error_free(&error));
    Message answer;
    int result =
        sd_bus_get_property(bus, service, item.c_str(), itemInterface, "Attributes", &error, answer.fill(), "a{ss}");
    if (result < 0) throw failureOf(error, result);
    std::string name;
    answer.enter('a', "{ss}");
    while (answer.tryEnter('e', "ss")) {
      auto key = answer.text('s'), value = answer.text('s');
      if (key == nameAttribute) name = value;
      answer.leave();
    }
    return name;
  }

  void create(const std::string& name, const SecretBytes& value) {
    auto collection = defaultCollection();
    unlock({collection}, "the keyring that new secrets go to is locked");
    auto call = begin(collection.c_str(), collectionInterface, "CreateItem");
    check(sd_bus_message_sensitive(call.get()), "asking");
    auto* message = call.get();
    auto label = "Open Conduit: " + name;
    check(sd_bus_message_open_container(message, 'a', "{sv}"), "asking");
    check(sd_bus_message_append(message, "{sv}", "org.freedesktop.Secret.Item.Label", "s", label.c_str()), "asking");
    check(sd_bus_message_append(message, "{sv}", "org.freedesktop.Secret.Item.Attributes", "a{ss}", 2,
                                applicationAttribute, application, nameAttribute, name.c_str()),
          "asking");
    check(sd_bus_message_close_container(message), "asking");
    check(sd_bus_message_open_container(message, 'r', "oayays"), "asking");
    check(sd_bus_message_append_basic(message, 'o', session.c_str()), "asking");
    check(sd_bus_message_append_array(message, 'y', nullptr, 0), "asking");
    check(sd_bus_message_append_array(message, 'y', value.view().data(), value.size()), "asking");
    check(sd_bus_message_append_basic(message, 's', "text/plain"), "asking");
    check(sd_bus_message_close_container(message), "asking");
    check(sd_bus_message_append(message, "b", 1), "asking");  // in the place of one with the same attributes
    auto answer = send(call);
    answer.text('o');
    requireNoPrompt(answer.text('o'), "the keyring wants somebody to agree before it stores a secret");
  }

  void erase(const std::string& item) {
    auto call = begin(item.c_str(), itemInterface, "Delete");
    auto answer = send(call);
    requireNoPrompt(answer.text('o'), "the keyring wants somebody to agree before it deletes a secret");
  }

 private:
  // Without encryption: who can listen on the session's bus can ask for the secret as well.
  void openSession() {
    auto call = begin(root, serviceInterface, "OpenSession");
    check(sd_bus_message_append(call.get(), "sv", "plain", "s", ""), "asking");
    auto answer = send(call);
    check(sd_bus_message_skip(answer.get(), "v"), "an answer");
    session = answer.text('o');
  }

  std::string defaultCollection() {
    auto call = begin(root, serviceInterface, "ReadAlias");
    check(sd_bus_message_append_basic(call.get(), 's', "default"), "asking");
    auto answer = send(call);
    auto collection = answer.text('o');
    if (collection == none) {
      throw unavailable("there is no default keyring to store a secret in",
                        fmt::format("make one: seahorse does, and gnome-keyring-daemon --unlock; {}", headless));
    }
    return collection;
  }

  void unlock(const std::vector<std::string>& objects, const std::string& otherwise) {
    auto call = begin(root, serviceInterface, "Unlock");
    check(sd_bus_message_open_container(call.get(), 'a', "o"), "asking");
    for (auto& path : objects) check(sd_bus_message_append_basic(call.get(), 'o', path.c_str()), "asking");
    check(sd_bus_message_close_container(call.get()), "asking");
    auto answer = send(call);
    auto unlocked = readPaths(answer);
    requireNoPrompt(answer.text('o'), otherwise);
    if (unlocked.size() < objects.size()) throw lockedRefusal(otherwise);
  }

  // A prompt that is not called for shows nothing; it is told that it won't be.
  void requireNoPrompt(const std::string& prompt, const std::string& otherwise) {
    if (prompt == none) return;
    auto call = begin(prompt.c_str(), "org.freedesktop.Secret.Prompt", "Dismiss");
    check(sd_bus_message_set_expect_reply(call.get(), 0), "asking");
    sd_bus_send(bus, call.get(), nullptr);
    sd_bus_flush(bus);
    throw lockedRefusal(otherwise);
  }

  Message begin(const char* path, const char* interface, const char* method) {
    Message call;
    check(sd_bus_message_new_method_call(bus, call.fill(), service, path, interface, method), "asking");
    return call;
  }

  Message send(Message& call) {
    sd_bus_error error = SD_BUS_ERROR_NULL;
    KJ_DEFER(sd_bus_error_free(&error));
    Message answer;
    int result = sd_bus_call(bus, call.get(), 0, &error, answer.fill());
    if (result < 0) throw failureOf(error, result);
    return answer;
  }

  static Refusal failureOf(const sd_bus_error& error, int result) {
    if (sd_bus_error_is_set(&error)) return refusalOf(error);
    return unavailable(fmt::format("the session bus: {}", strerror(-result)), headless);
  }

  static void appendAttributes(Message& call, const std::string& name) {
    auto* message = call.get();
    int result = name.empty() ? sd_bus_message_append(message, "a{ss}", 1, applicationAttribute, application)
                              : sd_bus_message_append(message, "a{ss}", 2, applicationAttribute, application,
                                                      nameAttribute, name.c_str());
    check(result, "asking");
  }

  static std::vector<std::string> readPaths(Message& answer) {
    std::vector<std::string> paths;
    answer.enter('a', "o");
    for (std::string path; answer.nextText('o', path);) {
      if (paths.size() < mostItems) paths.push_back(path);
    }
    answer.leave();
    return paths;
  }

  kj::AutoCloseFd socket;
  sd_bus* bus = nullptr;
  std::string session;
};

namespace {

template <typename T, typename Step>
OrRefusal<T> attempt(Step&& step) {
  try {
    return step();
  } catch (const Refusal& refusal) {
    return refusal;
  }
}

}  // namespace

SecretService::SecretService(kj::AutoCloseFd bus) : conversation(std::make_unique<Conversation>(kj::mv(bus))) {}
SecretService::~SecretService() = default;

OrRefusal<SecretBytes> SecretService::get(const std::string& name) {
  return attempt<SecretBytes>([&]() -> OrRefusal<SecretBytes> {
    conversation->open();
    auto items = conversation->find(name);
    if (items.empty()) {
      return unavailable(fmt::format("the keyring has no secret {}", name),
                         fmt::format("open-conduit secret set {}", name));
    }
    return conversation->valueOf(items.front());
  });
}

OrRefusal<bool> SecretService::set(const std::string& name, const SecretBytes& value) {
  return attempt<bool>([&]() -> OrRefusal<bool> {
    conversation->open();
    bool replaced = !conversation->find(name).empty();
    conversation->create(name, value);
    // More than one can be there, in several collections: what is read later must be this one.
    for (auto& item : conversation->find(name)) {
      if (equalSecrets(conversation->valueOf(item).view(), value.view())) continue;
      if (!replaced) return unavailable("the keyring gives back something else than it was given", headless);
      conversation->erase(item);
    }
    auto items = conversation->find(name);
    if (items.empty() || !equalSecrets(conversation->valueOf(items.front()).view(), value.view())) {
      return unavailable("the keyring does not give back what it was given", headless);
    }
    return replaced;
  });
}

OrRefusal<bool> SecretService::remove(const std::string& name) {
  return attempt<bool>([&]() -> OrRefusal<bool> {
    conversation->open();
    auto items = conversation->find(name);
    for (auto& item : items) conversation->erase(item);
    return !items.empty();
  });
}

OrRefusal<std::vector<std::string>> SecretService::list() {
  return attempt<std::vector<std::string>>([&]() -> OrRefusal<std::vector<std::string>> {
    conversation->open();
    std::set<std::string> names;
    for (auto& item : conversation->find("")) {
      auto name = conversation->nameOf(item);
      if (!name.empty()) names.insert(name);
    }
    return std::vector<std::string>(names.begin(), names.end());
  });
}

}  // namespace oc::keyring
