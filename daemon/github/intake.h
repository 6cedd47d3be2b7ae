// From GitHub's events to Work and turns. One queue behind polling and webhooks; an event makes at most one turn,
// whatever comes twice, late or out of order, and whenever the daemon dies.
#pragma once

#include <kj/async-io.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "connection.h"
#include "daemon/state/github_store.h"

namespace oc::hub {

struct Route {
  std::string name, scope, binding;
  std::string activePolicy = "queue";          // inject, queue, ignore
  std::vector<std::string> labels, assignees;  // all of the labels, and one of the assignees; empty: any
};

// One repository whose issues become Work, by the first route that fits.
struct Source {
  std::string repo;  // "owner/name"
  std::vector<Route> routes;
  uint32_t intervalSeconds = 60;
};

struct NewWork {
  state::WorkRow work;
  state::RunRow run;
};

// What Work is to the intake. The scheduler's side.
class WorkSink {
 public:
  // The rows of new Work, for a title and a text that are GitHub's; its body's file is written, the database is not.
  virtual OrRefusal<NewWork> describe(const Route& route, uint64_t issue, const std::string& title,
                                      const std::string& body) = 0;
  // The rows are in the database: it may begin.
  virtual void added(const std::string& work) = 0;
  // They are not: the event was known already.
  virtual void dropped(const NewWork& work) = 0;
  // Gives a text to a Work, live or not, by its route's policy. Resolves when it is kept for good; the same `key` again
  // is the same turn.
  virtual kj::Promise<void> deliver(const std::string& work, const std::string& key, const std::string& text,
                                    const std::string& policy) = 0;
  // Its issue was closed: it is to end when its run has. One that has ended is no error.
  virtual void end(const std::string& work) = 0;
  // Has it not ended yet?
  virtual bool isOpen(const std::string& work) = 0;

 protected:
  ~WorkSink() = default;
};

class Intake final : private kj::TaskSet::ErrorHandler {
 public:
  Intake(Connection& connection, state::GitHubStore& store, WorkSink& sink, std::vector<Source> sources);

  // Polls each source, from now on, and delivers what waits since before.
  void start();
  // One whole look at a source, as polling does it; the refusal if it could not be finished. Nothing is lost then: the
  // next look begins where this one did.
  kj::Promise<Refusal> look(std::string repo);
  // GitHub may show a comment so much later than that its issue has changed.
  kj::Duration lateness = 60 * kj::SECONDS;

  // A webhook's event; breaks when it could not be taken, and it may come again.
  kj::Promise<void> take(std::string repo, proto::GitHubEvent::Reader event);

 private:
  struct Event;
  using Outcome = kj::Promise<Refusal>;

  const Source* sourceOf(const std::string& repo) const;
  kj::Promise<void> poll(size_t source, uint32_t failures);
  Outcome lookAt(const Source& source, bool comments);
  bool mayHaveComments(const Source& source);
  Outcome sweep(const Source& source, bool comments, uint32_t page, int64_t since, std::string etag, int64_t latest);
  Outcome inOrder(const Source& source, std::vector<Event> events, size_t index);
  Outcome queued(const Source& source, Event event);
  Outcome handle(const Source& source, Event event);
  Outcome withWholeBody(const Source& source, Event event);
  Outcome issue(const Source& source, Event event, bool ours);
  Outcome comment(const Source& source, Event event, bool ours);
  Outcome begin(const Source& source, const Route& route, Event event);
  kj::Promise<OrRefusal<bool>> maySteer(const Source& source, uint64_t userId, std::string login);
  kj::Promise<OrRefusal<bool>> mayStart(const Source& source, const Event& event);
  kj::Promise<OrRefusal<bool>> anyMaySteer(const Source& source, std::vector<std::pair<uint64_t, std::string>> people,
                                           size_t index);
  void deliverWaiting();
  kj::Promise<void> deliverTurns(std::vector<state::GitHubTurn> turns, size_t index);
  void taskFailed(kj::Exception&& exception) override;

  Connection& connection;
  state::GitHubStore& store;
  WorkSink& sink;
  std::vector<Source> sources;
  kj::Promise<void> tail = kj::READY_NOW;  // of the queue
  bool delivering = false, more = false;
  uint32_t retryAfter = 0;
  // Who may steer, by repository and user id, asked for a short while ago: somebody who writes much costs one question.
  struct Right {
    bool may;
    kj::TimePoint until;
  };
  std::map<std::pair<std::string, uint64_t>, Right> rights;
  // Until when a repository's comments are looked at, too. One that isn't there: always.
  std::map<std::string, kj::TimePoint> commentsUntil;
  std::mt19937 random{std::random_device{}()};
  kj::TaskSet tasks;
};

}  // namespace oc::hub
