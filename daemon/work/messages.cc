#include "messages.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <unistd.h>

#include <algorithm>

#include "base/fd.h"
#include "base/json.h"

namespace oc::work {

namespace {

// Escapes may make six bytes of one.
constexpr size_t mostFile = 8 * mostMessageBytes * mostMessagesOfRun;

std::string fileOf(const Places& places, const std::string& run) { return places.stateDir + "/bodies/" + run; }

}  // namespace

bool hasRoomFor(const RunMessages& messages, const Message& more) {
  if (messages.first.empty()) return true;
  auto bytes = more.text.size();
  for (auto& one : messages.first) bytes += one.text.size();
  return messages.first.size() < mostMessagesOfRun && bytes <= mostMessageBytes;
}

RunMessages readMessages(const Places& places, const std::string& run) {
  RunMessages result;
  auto fd = openIfThere(fileOf(places, run), O_RDONLY | O_NOFOLLOW);
  if (!fd) return result;
  auto json = parseJson(readAll(fd->get(), mostFile));
  KJ_REQUIRE(json.is_object(), "a run's messages are damaged", fileOf(places, run).c_str());
  for (auto& item : json.at("first")) result.first.push_back({item.at("id"), item.at("author"), item.at("text")});
  result.injected = json.at("injected").get<std::vector<std::string>>();
  return result;
}

void writeMessages(const Places& places, const std::string& run, const RunMessages& messages) {
  auto first = Json::array();
  for (auto& one : messages.first) first.push_back({{"id", one.id}, {"author", one.author}, {"text", one.text}});
  Json json = {{"first", first}, {"injected", messages.injected}};
  makePrivateDirectory(places.stateDir + "/bodies");
  writeFileAtomically(fileOf(places, run), json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void removeMessages(const Places& places, const std::string& run) { unlink(fileOf(places, run).c_str()); }

std::optional<std::string> findMessage(state::Store& store, const Places& places, const std::string& work,
                                       const std::string& id) {
  if (id.empty()) return std::nullopt;
  for (auto& run : store.runsOf(work)) {
    auto messages = readMessages(places, run.id);
    auto same = [&id](const Message& one) { return one.id == id; };
    bool begins = std::any_of(messages.first.begin(), messages.first.end(), same);
    bool had = std::find(messages.injected.begin(), messages.injected.end(), id) != messages.injected.end();
    if (begins || had) return run.id;
  }
  return std::nullopt;
}

}  // namespace oc::work
