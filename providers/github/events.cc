#include "events.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "fields.h"

namespace oc::github {

namespace {

constexpr size_t mostBodyBytes = 256u << 10;
// A message of an instance that carries calls may have 512 KiB.
constexpr size_t mostPageBytes = 384u << 10;
constexpr size_t shortBody = 2u << 10;
constexpr int mostMarkPages = 5;
constexpr size_t mostMarks = 100;

std::vector<std::string> listOf(const Json& from, const char* list, const char* name) {
  std::vector<std::string> result;
  auto& items = fieldOf(from, list);
  if (!items.is_array()) return result;
  for (auto& item : items) {
    if (result.size() < 100) result.push_back(textOf(item, name, 128));
  }
  std::sort(result.begin(), result.end());
  return result;
}

Event commonFrom(const Json& from) {
  Event event;
  event.id = numberOf(from, "id");
  event.createdAt = timeOf(textOf(from, "created_at", 64));
  event.updatedAt = timeOf(textOf(from, "updated_at", 64));
  event.body = wholeText(from, "body", mostBodyBytes);
  event.authorId = numberOf(fieldOf(from, "user"), "id");
  event.authorLogin = textOf(fieldOf(from, "user"), "login", 128);
  return event;
}

}  // namespace

Event issueFrom(const Json& from) {
  auto event = commonFrom(from);
  event.issue = numberOf(from, "number");
  event.title = textOf(from, "title", 1024);
  event.open = textOf(from, "state") == "open";
  event.pullRequest = !fieldOf(from, "pull_request").is_null();
  event.labels = listOf(from, "labels", "name");
  event.assignees = listOf(from, "assignees", "login");
  event.bodyHash = sha256Hex(canonicalJson(Json{{"title", event.title},
                                                {"body", event.body},
                                                {"open", event.open},
                                                {"labels", event.labels},
                                                {"assignees", event.assignees}}));
  if (event.issue == 0) event.id = 0;
  return event;
}

Event commentFrom(const Json& from) {
  auto event = commonFrom(from);
  event.isComment = true;
  event.bodyHash = sha256Hex(event.body);
  auto url = textOf(from, "issue_url");
  auto slash = url.rfind('/');
  auto digits = slash == std::string::npos ? std::string_view() : std::string_view(url).substr(slash + 1);
  auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), event.issue);
  if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size()) event.id = 0;
  return event;
}

void fitIntoMessage(std::vector<Event>& events) {
  size_t total = 0;
  for (auto& event : events) total += event.body.size() + 1024;
  for (auto& event : events) {
    if (total <= mostPageBytes) return;
    if (event.body.size() <= shortBody) continue;
    total -= event.body.size();
    event.body = shortened(event.body, shortBody);
    total += event.body.size();
    event.bodyCut = true;
  }
}

kj::Promise<ApiAnswer> Events::ask(std::string repo, ApiCall call) {
  return session.repository(repo).then(
      [this, call = std::move(call)](OrRefusal<Repository> repository) mutable -> kj::Promise<ApiAnswer> {
        if (repository.ok()) return session.call(repository.value(), std::move(call), false);
        ApiAnswer answer;
        answer.refusal = repository.refusal();
        return answer;
      });
}

kj::Promise<Page> Events::sweep(std::string repo, bool comments, int64_t since, uint32_t page, std::string etag) {
  ApiCall call;
  call.path = fmt::format("/issues{}sort=updated&direction=asc&per_page=100&page={}&since={}",
                          comments ? "/comments?" : "?state=all&", page, isoOf(since));
  call.etag = std::move(etag);
  call.what = fmt::format("{} of {}", comments ? "comments" : "issues", repo);
  return ask(repo, std::move(call)).then([comments, page](ApiAnswer answer) {
    Page result;
    result.refusal = answer.refusal;
    result.retryAfter = answer.retryAfter;
    result.notModified = answer.notModified;
    if (!answer.ok() || !answer.body.is_array()) return result;
    for (auto& item : answer.body) {
      auto event = comments ? commentFrom(item) : issueFrom(item);
      if (event.id != 0 && result.events.size() < 100) result.events.push_back(std::move(event));
    }
    fitIntoMessage(result.events);
    if (!answer.next.empty()) result.next = page + 1;
    // Of several pages the first can stay as it is while a later one changes.
    if (page == 1 && result.next == 0) result.etag = answer.etag;
    return result;
  });
}

kj::Promise<OrRefusal<Event>> Events::one(std::string repo, bool comment, uint64_t number) {
  ApiCall call;
  call.path = fmt::format("/issues/{}{}", comment ? "comments/" : "", number);
  call.what = fmt::format("{} {} of {}", comment ? "comment" : "issue", number, repo);
  return ask(repo, std::move(call)).then([comment](ApiAnswer answer) -> OrRefusal<Event> {
    if (!answer.ok()) return answer.refusal;
    auto event = comment ? commentFrom(answer.body) : issueFrom(answer.body);
    if (event.id == 0) return Refusal{"github_unavailable", "GitHub's answer is no issue and no comment", ""};
    return event;
  });
}

kj::Promise<Events::Limited<bool>> Events::maySteer(std::string repo, std::string login, uint64_t userId) {
  bool usual = !login.empty() && std::all_of(login.begin(), login.end(),
                                             [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_'; });
  // No App's bot has rights by a name; others' tokens are not people.
  if (!usual) return Limited<bool>{};
  ApiCall call;
  call.path = "/collaborators/" + login + "/permission";
  call.what = fmt::format("the rights of {} in {}", login, repo);
  return ask(repo, std::move(call)).then([userId](ApiAnswer answer) {
    Limited<bool> result;
    if (answer.status == 404) return result;
    result.refusal = answer.refusal;
    result.retryAfter = answer.retryAfter;
    auto permission = textOf(answer.body, "permission", 64);
    bool same = numberOf(fieldOf(answer.body, "user"), "id") == userId;
    result.value = answer.ok() && same && (permission == "admin" || permission == "write" || permission == "maintain");
    return result;
  });
}

// What stands on an issue now is what was put on it and not taken off again.
struct Events::Replay {
  std::vector<Mark> marks;

  void play(const Json& event) {
    auto kind = textOf(event, "event", 64);
    bool label = kind == "labeled" || kind == "unlabeled", assign = kind == "assigned" || kind == "unassigned";
    if (!label && !assign) return;
    Mark mark;
    mark.isLabel = label;
    mark.what = label ? textOf(fieldOf(event, "label"), "name", 128) : textOf(fieldOf(event, "assignee"), "login", 128);
    mark.actorId = numberOf(fieldOf(event, "actor"), "id");
    mark.actorLogin = textOf(fieldOf(event, "actor"), "login", 128);
    std::erase_if(marks, [&mark](auto& other) { return other.isLabel == mark.isLabel && other.what == mark.what; });
    if (kind == "labeled" || kind == "assigned") marks.push_back(std::move(mark));
    if (marks.size() > mostMarks) marks.erase(marks.begin());
  }
};

kj::Promise<Events::Limited<std::vector<Mark>>> Events::attention(std::string repo, uint64_t issue) {
  return session.repository(repo).then(
      [this, issue](OrRefusal<Repository> repository) -> kj::Promise<Limited<std::vector<Mark>>> {
        if (!repository.ok()) return Limited<std::vector<Mark>>{{}, repository.refusal(), 0};
        return readMarks(repository.value(), fmt::format("/issues/{}/events?per_page=100", issue), kj::heap<Replay>(),
                         mostMarkPages);
      });
}

kj::Promise<Events::Limited<std::vector<Mark>>> Events::readMarks(Repository repository, std::string path,
                                                                  kj::Own<Replay> replay, int pages) {
  ApiCall call;
  call.path = path;
  call.what = "the events of an issue of " + repository.fullName;
  return session.call(repository, std::move(call), false)
      .then([this, repository, replay = kj::mv(replay),
             pages](ApiAnswer answer) mutable -> kj::Promise<Limited<std::vector<Mark>>> {
        if (!answer.ok()) return Limited<std::vector<Mark>>{{}, answer.refusal, answer.retryAfter};
        if (answer.body.is_array()) {
          for (auto& event : answer.body) replay->play(event);
        }
        if (answer.next.empty() || pages <= 1) return Limited<std::vector<Mark>>{std::move(replay->marks), {}, 0};
        return readMarks(repository, answer.next, kj::mv(replay), pages - 1);
      });
}

}  // namespace oc::github
