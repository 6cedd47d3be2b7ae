#include "intake.h"

#include <fmt/format.h>
#include <kj/debug.h>
#include <time.h>

#include <strings.h>

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "lost_instance.h"
#include "proto/convert.h"

namespace oc::hub {

namespace {

constexpr auto callLimit = 150 * kj::SECONDS;
// Changes that GitHub shows late: what was read is read again for so long.
constexpr int64_t overlapMs = 60'000;
constexpr uint32_t longestPauseSeconds = 900;
constexpr uint32_t mostPages = 1000;
constexpr auto rightsLast = 10 * kj::SECONDS;
constexpr size_t mostRights = 10'000;
constexpr size_t mostTitle = 1000;
constexpr size_t mostBody = 256u << 10;

int64_t nowMs() {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1000000;
}

bool contains(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

Refusal unavailable(kj::Exception&& exception) { return {"github_unavailable", describe(exception), "try again"}; }

}  // namespace

// As the provider told it: bounded and printable here once more.
struct Intake::Event {
  state::GitHubEventKey key;
  uint64_t issue = 0;
  int64_t createdAt = 0;
  std::string title, body;
  bool bodyCut = false;
  uint64_t authorId = 0;
  std::string authorLogin;
  bool open = true, pullRequest = false;
  std::vector<std::string> labels, assignees;

  static Event from(const std::string& repo, proto::GitHubEvent::Reader reader) {
    auto text = [](capnp::Text::Reader value, size_t limit) { return shortened(printable(toString(value)), limit); };
    Event event;
    event.key = {repo, reader.getKind() == proto::GitHubEventKind::COMMENT, reader.getId(), reader.getUpdatedAt(),
                 text(reader.getBodyHash(), 64)};
    event.issue = reader.getIssue();
    event.createdAt = reader.getCreatedAt();
    event.title = text(reader.getTitle(), mostTitle);
    event.body = shortened(printable(toString(reader.getBody()), true), mostBody);
    event.bodyCut = reader.getBodyCut();
    event.authorId = reader.getAuthorId();
    event.authorLogin = text(reader.getAuthorLogin(), 128);
    event.open = reader.getOpen();
    event.pullRequest = reader.getPullRequest();
    for (auto label : reader.getLabels()) event.labels.push_back(text(label, 128));
    for (auto assignee : reader.getAssignees()) event.assignees.push_back(text(assignee, 128));
    return event;
  }

  bool fits(const Route& route) const {
    bool labelled =
        std::all_of(route.labels.begin(), route.labels.end(), [this](auto& label) { return contains(labels, label); });
    bool assigned = route.assignees.empty() || std::any_of(route.assignees.begin(), route.assignees.end(),
                                                           [this](auto& one) { return contains(assignees, one); });
    return labelled && assigned;
  }

  // What made the Work: later edits change nothing of it.
  std::string snapshot() const {
    return canonicalJson(Json{{"issue", issue},
                              {"id", key.id},
                              {"title", title},
                              {"author", authorLogin},
                              {"author_id", authorId},
                              {"updated_at", key.updatedAt},
                              {"body_sha256", key.bodyHash},
                              {"labels", labels},
                              {"assignees", assignees}});
  }
};

Intake::Intake(Connection& connection, state::GitHubStore& store, WorkSink& sink, std::vector<Source> sources)
    : connection(connection), store(store), sink(sink), sources(std::move(sources)), tasks(*this) {}

void Intake::start() {
  deliverWaiting();
  for (size_t i = 0; i < sources.size(); ++i) tasks.add(poll(i, 0));
}

const Source* Intake::sourceOf(const std::string& repo) const {
  for (auto& source : sources) {
    bool same = source.repo.size() == repo.size() && strcasecmp(source.repo.c_str(), repo.c_str()) == 0;
    if (same) return &source;
  }
  return nullptr;
}

// ---- polling

kj::Promise<void> Intake::poll(size_t index, uint32_t failures) {
  return look(sources[index].repo).then([this, index, failures](Refusal refusal) {
    auto& source = sources[index];
    bool failed = !refusal.reason.empty();
    if (failed) logWarning("{} could not be read, and is tried again: {}", source.repo, refusal.what);
    uint64_t seconds = source.intervalSeconds;
    if (failed) seconds = std::min<uint64_t>(longestPauseSeconds, seconds << std::min(failures + 1, 6u));
    seconds = std::max<uint64_t>(seconds, std::exchange(retryAfter, 0));
    // Many repositories, and many daemons, do not ask in the same moment.
    std::uniform_int_distribution<uint64_t> jitter(seconds * 900, seconds * 1100);
    return connection.timer().afterDelay(jitter(random) * kj::MILLISECONDS).then([this, index, failures, failed]() {
      return poll(index, failed ? failures + 1 : 0);
    });
  });
}

// A comment changes its issue, so while no issue does, one question is enough.
kj::Promise<Refusal> Intake::look(std::string repo) {
  auto* source = sourceOf(repo);
  KJ_REQUIRE(source != nullptr, "no such source");
  return pastLostInstances<Refusal>(connection.timer(), [this, source](bool) { return lookAt(*source, false); })
      .then([this, source](Refusal refusal) -> Outcome {
        if (!refusal.reason.empty() || !mayHaveComments(*source)) return refusal;
        auto began = connection.timer().now();
        auto looked =
            pastLostInstances<Refusal>(connection.timer(), [this, source](bool) { return lookAt(*source, true); });
        return looked.then([this, source, began](Refusal refusal) {
          // What an earlier daemon did not get to see has been seen from here on.
          if (refusal.reason.empty()) commentsUntil.emplace(source->repo, began + lateness);
          return refusal;
        });
      })
      .catch_([](kj::Exception&& exception) { return unavailable(kj::mv(exception)); });
}

bool Intake::mayHaveComments(const Source& source) {
  auto until = commentsUntil.find(source.repo);
  return until == commentsUntil.end() || connection.timer().now() < until->second;
}

Intake::Outcome Intake::lookAt(const Source& source, bool comments) {
  auto cursor = store.cursor(source.repo, comments);
  if (!cursor) {
    // What was before we came is nobody's order to us.
    cursor = state::GitHubCursor{(nowMs() - overlapMs) / 1000 * 1000, ""};
    store.setCursor(source.repo, comments, *cursor);
  }
  return sweep(source, comments, 1, cursor->since, cursor->etag, 0);
}

// One page after the other. How far it was read is noted when all of it has been.
Intake::Outcome Intake::sweep(const Source& source, bool comments, uint32_t page, int64_t since, std::string etag,
                              int64_t latest) {
  return connection.client().then(
      [this, &source, comments, page, since, etag, latest](OrRefusal<proto::GitHub::Client> client) -> Outcome {
        if (!client.ok()) return client.refusal();
        auto request = client.value().sweepRequest();
        request.setRepo(toText(source.repo));
        request.setKind(comments ? proto::GitHubEventKind::COMMENT : proto::GitHubEventKind::ISSUE);
        request.setSince(since);
        request.setPage(page);
        request.setEtag(toText(page == 1 ? etag : std::string()));
        auto asked = request.send().then([this, &source, comments, page, since, latest](auto&& answer) -> Outcome {
          auto refusal = oc::read(answer.getRefusal());
          retryAfter = std::max(retryAfter, std::min<uint32_t>(answer.getRetryAfter(), 3600));
          if (!refusal.reason.empty()) return refusal;
          if (answer.getNotModified()) return Refusal();
          // Also when the rest of this look fails.
          if (!comments) commentsUntil.erase(source.repo);
          std::vector<Event> events;
          int64_t newest = latest;
          for (auto reader : answer.getEvents()) {
            events.push_back(Event::from(source.repo, reader));
            newest = std::max(newest, reader.getUpdatedAt());
          }
          auto next = answer.getNext() > page ? answer.getNext() : 0;
          auto fresh = shortened(printable(toString(answer.getEtag())), 256);
          return inOrder(source, std::move(events), 0)
              .then([this, &source, comments, since, newest, next, fresh](Refusal refusal) -> Outcome {
                if (!refusal.reason.empty()) return refusal;
                if (next != 0 && next <= mostPages) return sweep(source, comments, next, since, "", newest);
                auto from = std::max(since, newest - overlapMs);
                // An ETag belongs to the very question that it was the answer to.
                store.setCursor(source.repo, comments, {from, from == since ? fresh : ""});
                return Refusal();
              });
        });
        return withDeadline(connection.timer(), callLimit * 10, "open-conduit-github", kj::mv(asked));
      });
}

Intake::Outcome Intake::inOrder(const Source& source, std::vector<Event> events, size_t index) {
  while (index < events.size() && store.seen(events[index].key)) ++index;
  if (index >= events.size()) return Refusal();
  auto event = events[index];
  return queued(source, std::move(event))
      .then([this, &source, events = std::move(events), index](Refusal refusal) mutable -> Outcome {
        if (!refusal.reason.empty()) return refusal;
        return inOrder(source, std::move(events), index + 1);
      });
}

// ---- webhooks

kj::Promise<void> Intake::take(std::string repo, proto::GitHubEvent::Reader reader) {
  auto* source = sourceOf(repo);
  if (source == nullptr) return kj::READY_NOW;  // a hook of a repository that is not ours
  return queued(*source, Event::from(source->repo, reader)).then([](Refusal refusal) {
    if (!refusal.reason.empty()) fail(refusal.what);
  });
}

// ---- the queue

Intake::Outcome Intake::queued(const Source& source, Event event) {
  auto done = kj::newPromiseAndFulfiller<Refusal>();
  auto turn = [this, &source, event = std::move(event), fulfiller = kj::mv(done.fulfiller)]() mutable {
    auto& ref = *fulfiller;
    auto handled =
        pastLostInstances<Refusal>(connection.timer(), [this, &source, event](bool) { return handle(source, event); });
    return handled
        .then([&ref](Refusal refusal) { ref.fulfill(kj::mv(refusal)); },
              [&ref](kj::Exception&& exception) { ref.fulfill(unavailable(kj::mv(exception))); })
        .attach(kj::mv(fulfiller));
  };
  tail =
      tail.then(kj::mv(turn)).eagerlyEvaluate([](kj::Exception&& exception) { logError("{}", describe(exception)); });
  return kj::mv(done.promise);
}

Intake::Outcome Intake::handle(const Source& source, Event event) {
  if (store.seen(event.key)) return Refusal();
  return connection.facts(source.repo)
      .then([this, &source, event = std::move(event)](OrRefusal<RepositoryFacts> facts) mutable -> Outcome {
        if (!facts.ok()) return facts.refusal();
        bool ours = event.authorId == facts.value().git.id || event.authorId == facts.value().speaker.id;
        if (event.bodyCut) return withWholeBody(source, std::move(event));
        return event.key.comment ? comment(source, std::move(event), ours) : issue(source, std::move(event), ours);
      });
}

// A list does not have room for every long text. What it says now is what counts: an event that has changed since comes
// again.
Intake::Outcome Intake::withWholeBody(const Source& source, Event event) {
  return connection.client().then(
      [this, &source, event = std::move(event)](OrRefusal<proto::GitHub::Client> client) mutable -> Outcome {
        if (!client.ok()) return client.refusal();
        auto request = client.value().eventRequest();
        request.setRepo(toText(source.repo));
        request.setKind(event.key.comment ? proto::GitHubEventKind::COMMENT : proto::GitHubEventKind::ISSUE);
        request.setNumber(event.key.comment ? event.key.id : event.issue);
        auto asked = request.send().then([this, &source, event = std::move(event)](auto&& answer) mutable -> Outcome {
          auto refusal = oc::read(answer.getRefusal());
          bool gone = refusal.reason == "github_denied" || refusal.reason == "github_gone";
          if (gone) return store.noteEvent(event.key), Refusal();
          if (!refusal.reason.empty()) return refusal;
          auto whole = Event::from(source.repo, answer.getEvent());
          whole.bodyCut = false;
          bool same = whole.key.id == event.key.id && whole.key.bodyHash == event.key.bodyHash;
          if (!same) store.noteEvent(event.key);
          return handle(source, std::move(whole));
        });
        return withDeadline(connection.timer(), callLimit, "open-conduit-github", kj::mv(asked));
      });
}

// ---- what an event means

Intake::Outcome Intake::issue(const Source& source, Event event, bool ours) {
  auto latest = store.latestOf(source.repo, event.issue);
  bool hasOpenWork = latest && sink.isOpen(latest->work);
  if (!event.open) {
    if (!latest || latest->closed) return store.noteEvent(event.key), Refusal();
    // Whoever closed it: there is nothing to be done any more. Written after it was asked for: asked twice is as once.
    sink.end(latest->work);
    store.noteClosed(event.key, latest->work);
    return Refusal();
  }
  // Work that has ended is begun anew only when its issue was closed and opened again.
  bool done = latest && !hasOpenWork && !latest->closed;
  const Route* route = nullptr;
  for (auto& one : source.routes) {
    if (route == nullptr && event.fits(one)) route = &one;
  }
  if (event.pullRequest || ours || hasOpenWork || done || route == nullptr)
    return store.noteEvent(event.key), Refusal();
  return mayStart(source, event).then([this, &source, route, event](OrRefusal<bool> may) mutable -> Outcome {
    if (!may.ok()) return may.refusal();
    if (!may.value()) return store.noteEvent(event.key), Refusal();
    return begin(source, *route, std::move(event));
  });
}

Intake::Outcome Intake::begin(const Source& source, const Route& route, Event event) {
  auto text = fmt::format("{}\n\n(Issue #{} of {}, by @{})\n", event.body, event.issue, source.repo, event.authorLogin);
  auto made = sink.describe(route, event.issue, event.title, text);
  if (!made.ok()) {
    // The config or the daemon's state forbids it: the same event would be refused again.
    logWarning("issue {} of {} makes no Work: {}", event.issue, source.repo, made.refusal().what);
    if (made.refusal().reason == "draining") return made.refusal();
    return store.noteEvent(event.key), Refusal();
  }
  auto& rows = made.value();
  state::GitHubWork origin{rows.work.id,     connection.spec().id, source.repo, event.issue, route.name,
                           event.snapshot(), event.key.updatedAt,  false,       0,           ""};
  if (store.addWork(event.key, rows.work, rows.run, origin)) {
    sink.added(rows.work.id);
  } else {
    sink.dropped(rows);
  }
  return Refusal();
}

Intake::Outcome Intake::comment(const Source& source, Event event, bool ours) {
  // An edit is no new turn, whoever makes it.
  bool known = store.seenBefore(source.repo, true, event.key.id);
  auto latest = store.latestOf(source.repo, event.issue);
  bool concerns = latest && sink.isOpen(latest->work) && event.createdAt >= latest->triggeredAt;
  if (ours || known || !concerns) return store.noteEvent(event.key), Refusal();
  return maySteer(source, event.authorId, event.authorLogin)
      .then([this, &source, event, origin = *latest](OrRefusal<bool> may) -> Outcome {
        if (!may.ok()) return may.refusal();
        if (!may.value()) return store.noteEvent(event.key), Refusal();
        std::string policy = "queue";
        for (auto& route : source.routes) {
          if (route.name == origin.route) policy = route.activePolicy;
        }
        auto text = fmt::format("@{} commented on issue #{} of {}:\n\n{}\n", event.authorLogin, event.issue,
                                source.repo, event.body);
        store.addTurn(event.key,
                      {0, origin.work, fmt::format("github:{}:comment:{}", source.repo, event.key.id), text, policy});
        deliverWaiting();
        return Refusal();
      });
}

// ---- who may

kj::Promise<OrRefusal<bool>> Intake::maySteer(const Source& source, uint64_t userId, std::string login) {
  using May = OrRefusal<bool>;
  auto known = rights.find({source.repo, userId});
  if (known != rights.end() && connection.timer().now() < known->second.until) return May(known->second.may);
  return connection.client().then(
      [this, &source, userId, login](OrRefusal<proto::GitHub::Client> client) -> kj::Promise<May> {
        if (!client.ok()) return May(client.refusal());
        auto request = client.value().permissionRequest();
        request.setRepo(toText(source.repo));
        request.setLogin(toText(login));
        request.setUserId(userId);
        auto asked = request.send().then([this, repo = source.repo, userId](auto&& answer) -> May {
          auto refusal = oc::read(answer.getRefusal());
          retryAfter = std::max(retryAfter, std::min<uint32_t>(answer.getRetryAfter(), 3600));
          if (!refusal.reason.empty()) return refusal;
          if (rights.size() >= mostRights) rights.clear();
          rights.insert_or_assign({repo, userId}, Right{answer.getMaySteer(), connection.timer().now() + rightsLast});
          return answer.getMaySteer();
        });
        return withDeadline(connection.timer(), callLimit, "open-conduit-github", kj::mv(asked));
      });
}

kj::Promise<OrRefusal<bool>> Intake::anyMaySteer(const Source& source,
                                                 std::vector<std::pair<uint64_t, std::string>> people, size_t index) {
  using May = OrRefusal<bool>;
  if (index >= people.size() || index >= 20) return May(false);
  auto [id, login] = people[index];
  return maySteer(source, id, login)
      .then([this, &source, people = std::move(people), index](May may) mutable -> kj::Promise<May> {
        if (!may.ok() || may.value()) return may;
        return anyMaySteer(source, std::move(people), index + 1);
      });
}

// The author, or whoever labelled or assigned it as it is now.
kj::Promise<OrRefusal<bool>> Intake::mayStart(const Source& source, const Event& event) {
  using May = OrRefusal<bool>;
  return maySteer(source, event.authorId, event.authorLogin)
      .then([this, &source, issue = event.issue, author = event.authorId](May may) -> kj::Promise<May> {
        if (!may.ok() || may.value()) return may;
        return connection.client().then(
            [this, &source, issue, author](OrRefusal<proto::GitHub::Client> client) -> kj::Promise<May> {
              if (!client.ok()) return May(client.refusal());
              auto request = client.value().attentionRequest();
              request.setRepo(toText(source.repo));
              request.setIssue(issue);
              auto asked = request.send().then([this, &source, author](auto&& answer) -> kj::Promise<May> {
                auto refusal = oc::read(answer.getRefusal());
                retryAfter = std::max(retryAfter, std::min<uint32_t>(answer.getRetryAfter(), 3600));
                if (!refusal.reason.empty()) return May(refusal);
                std::vector<std::pair<uint64_t, std::string>> people;
                for (auto mark : answer.getMarks()) {
                  std::pair person(mark.getActorId(), shortened(printable(toString(mark.getActorLogin())), 128));
                  if (person.first != author && std::find(people.begin(), people.end(), person) == people.end())
                    people.push_back(person);
                }
                return anyMaySteer(source, std::move(people), 0);
              });
              return withDeadline(connection.timer(), callLimit, "open-conduit-github", kj::mv(asked));
            });
      });
}

// ---- turns

// What is in the database and not delivered yet, in order. One round at a time.
void Intake::deliverWaiting() {
  if (delivering) {
    more = true;
    return;
  }
  auto turns = store.waitingTurns();
  if (turns.empty()) return;
  delivering = true;
  tasks.add(deliverTurns(std::move(turns), 0).then([this]() {
    delivering = false;
    if (std::exchange(more, false)) deliverWaiting();
  }));
}

kj::Promise<void> Intake::deliverTurns(std::vector<state::GitHubTurn> turns, size_t index) {
  if (index >= turns.size()) return kj::READY_NOW;
  auto& turn = turns[index];
  auto seq = turn.seq;
  return kj::evalNow([&]() { return sink.deliver(turn.work, turn.key, turn.text, turn.policy); })
      .then([this, seq]() { store.turnDelivered(seq); },
            [](kj::Exception&& exception) {
              logWarning("a turn could not be delivered, and is kept: {}", describe(exception));
            })
      .then([this, turns = std::move(turns), index]() mutable { return deliverTurns(std::move(turns), index + 1); });
}

void Intake::taskFailed(kj::Exception&& exception) { logError("{}", describe(exception)); }

}  // namespace oc::hub
