// What happened on a repository's issues, as typed values.
#pragma once

#include <kj/async.h>

#include <string>
#include <vector>

#include "session.h"

namespace oc::github {

struct Event {
  bool isComment = false;
  uint64_t id = 0, issue = 0;
  int64_t createdAt = 0, updatedAt = 0;
  std::string title, body;
  bool bodyCut = false;
  std::string bodyHash;
  uint64_t authorId = 0;
  std::string authorLogin;
  bool open = true, pullRequest = false;
  std::vector<std::string> labels, assignees;
};

struct Page {
  bool notModified = false;
  std::vector<Event> events;
  std::string etag;
  uint32_t next = 0;
  Refusal refusal;
  uint32_t retryAfter = 0;
};

struct Mark {
  bool isLabel = true;
  std::string what;
  uint64_t actorId = 0;
  std::string actorLogin;
};

// From GitHub's JSON, of the API or of a webhook; an id of 0: it is none.
Event issueFrom(const Json& from);
Event commentFrom(const Json& from);

// Cuts bodies until all of it fits into one message.
void fitIntoMessage(std::vector<Event>& events);

class Events {
 public:
  explicit Events(Session& session) : session(session) {}

  kj::Promise<Page> sweep(std::string repo, bool comments, int64_t since, uint32_t page, std::string etag);
  kj::Promise<OrRefusal<Event>> one(std::string repo, bool comment, uint64_t number);

  template <typename T>
  struct Limited {
    T value{};
    Refusal refusal;
    uint32_t retryAfter = 0;
  };
  kj::Promise<Limited<bool>> maySteer(std::string repo, std::string login, uint64_t userId);
  kj::Promise<Limited<std::vector<Mark>>> attention(std::string repo, uint64_t issue);

 private:
  struct Replay;
  kj::Promise<Limited<std::vector<Mark>>> readMarks(Repository repository, std::string path, kj::Own<Replay> replay,
                                                    int pages);
  kj::Promise<ApiAnswer> ask(std::string repo, ApiCall call);

  Session& session;
};

}  // namespace oc::github
