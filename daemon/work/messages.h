// What a run begins with beside its Work's request: messages that came for the Work. They are kept beside the request's
// body until the Work ends, so that the same one is not taken twice.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/places.h"
#include "daemon/state/store.h"

namespace oc::work {

struct Message {
  std::string id;      // of the event that it came by; the same id again is the same message. Empty: none
  std::string author;  // who wrote it, from outside; empty: the operator
  std::string text;    // at most 1 MiB
};

// What one run has of them.
struct RunMessages {
  std::vector<Message> first;         // that it begins with
  std::vector<std::string> injected;  // ids of those that its live agent acknowledged
};

// Of one, and of all that a run begins with: they reach its shim as one text, in one message of at most 8 MiB, and
// quoting can make four bytes of one.
constexpr size_t mostMessageBytes = 1u << 20;
constexpr size_t mostMessagesOfRun = 100;

// Whether a run that begins with these can begin with one more.
bool hasRoomFor(const RunMessages& messages, const Message& more);

RunMessages readMessages(const Places& places, const std::string& run);
// Synced when it returns.
void writeMessages(const Places& places, const std::string& run, const RunMessages& messages);
void removeMessages(const Places& places, const std::string& run);

// The run of the Work that has the message of this id already.
std::optional<std::string> findMessage(state::Store& store, const Places& places, const std::string& work,
                                       const std::string& id);

}  // namespace oc::work
