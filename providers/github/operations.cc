#include "operations.h"

#include <fmt/format.h>
#include <kj/debug.h>

#include "arguments.h"
#include "base/text.h"
#include "fields.h"
#include "proto/github_operations.h"

namespace oc::github {

namespace {

constexpr size_t mostArguments = 256u << 10;
constexpr size_t mostIssueBody = 128u << 10;
constexpr size_t mostListedBody = 6u << 10;

// In what we write, unseen by people: by it a write whose answer was lost is found again, and by it our own comments
// are known.
std::string markOfWork(const Binding& bound) { return fmt::format("<!-- open-conduit work={} ", bound.work); }
std::string markOfStatus(const Binding& bound) {
  return fmt::format("<!-- open-conduit-status work={} -->", bound.work);
}

bool isCallId(const std::string& id) {
  return !id.empty() && id.size() <= 32 &&
         std::all_of(id.begin(), id.end(), [](unsigned char c) { return std::isalnum(c); });
}

std::string newMark(const Binding& bound) {
  auto id = isCallId(bound.call) ? bound.call : newId("");
  return fmt::format("{}run={} id={} -->", markOfWork(bound), bound.run, id);
}

// How far back a write of the same call can be, in milliseconds: a call takes minutes at most.
int64_t sinceWhen(const Binding& bound) { return bound.again ? 900'000 : 120'000; }

std::string marked(const std::string& text, const std::string& mark) { return text + "\n\n" + mark; }

// First, where nothing that an agent writes can hide it: behind its text, a comment that is not closed would. Who read
// a body and sends it back changed has an earlier one in it.
std::string withOrigin(const Binding& bound, std::string text) {
  static constexpr std::string_view begin = "Made by Open Conduit: Work `", end = ".\n\n---\n\n";
  if (text.starts_with(begin)) {
    auto at = text.find(end);
    if (at == text.find('\n') - 1) text.erase(0, at + end.size());
  }
  return fmt::format("{}{}`, run `{}`{}{}", begin, bound.work, bound.run, end, text);
}

std::string encoded(const std::string& text) {
  std::string result;
  for (unsigned char c : text) {
    bool plain = std::isalnum(c) || c == '-' || c == '_' || c == '.' || c == '~';
    result += plain ? std::string(1, static_cast<char>(c)) : fmt::format("%{:02X}", c);
  }
  return result;
}

Json namesOf(const Json& list, const char* name) {
  auto names = Json::array();
  if (!list.is_array()) return names;
  for (auto& item : list) {
    if (names.size() < 100) names.push_back(textOf(item, name, 128));
  }
  return names;
}

Json issueOf(const Json& from) {
  return {{"number", numberOf(from, "number")},
          {"title", textOf(from, "title", 1024)},
          {"state", textOf(from, "state")},
          {"author", textOf(fieldOf(from, "user"), "login", 128)},
          {"body", wholeText(from, "body", mostIssueBody)},
          {"labels", namesOf(fieldOf(from, "labels"), "name")},
          {"assignees", namesOf(fieldOf(from, "assignees"), "login")},
          {"created_at", textOf(from, "created_at", 64)},
          {"updated_at", textOf(from, "updated_at", 64)},
          {"url", textOf(from, "html_url", 512)}};
}

Json commentOf(const Json& from) {
  auto body = wholeText(from, "body", mostListedBody);
  return {{"id", numberOf(from, "id")},
          {"author", textOf(fieldOf(from, "user"), "login", 128)},
          {"body", body},
          {"created_at", textOf(from, "created_at", 64)},
          {"updated_at", textOf(from, "updated_at", 64)},
          {"url", textOf(from, "html_url", 512)}};
}

Json reviewCommentOf(const Json& from) {
  auto result = commentOf(from);
  result["path"] = textOf(from, "path", 1024);
  auto& line = fieldOf(from, "line");
  if (line.is_number_unsigned()) result["line"] = line;
  auto parent = numberOf(from, "in_reply_to_id");
  if (parent != 0) result["in_reply_to"] = parent;
  return result;
}

template <Json (*one)(const Json&)>
Json listOf(const Json& from) {
  auto items = Json::array();
  if (!from.is_array()) return {{"items", items}};
  for (auto& item : from) {
    if (items.size() < 30) items.push_back(one(item));
  }
  return {{"items", items}};
}

Json pullOf(const Json& from) {
  auto& head = fieldOf(from, "head");
  return {{"number", numberOf(from, "number")},
          {"title", textOf(from, "title", 1024)},
          {"state", textOf(from, "state")},
          {"draft", flagOf(from, "draft")},
          {"merged", fieldOf(from, "merged_at").is_string()},
          {"mergeable_state", textOf(from, "mergeable_state", 64)},
          {"body", wholeText(from, "body", mostIssueBody)},
          {"head", textOf(head, "ref", 256)},
          {"head_sha", textOf(head, "sha", 64)},
          {"base", textOf(fieldOf(from, "base"), "ref", 256)},
          {"url", textOf(from, "html_url", 512)}};
}

Json checkOf(const Json& from) {
  auto& output = fieldOf(from, "output");
  return {{"name", textOf(from, "name", 256)},
          {"status", textOf(from, "status", 64)},
          {"conclusion", textOf(from, "conclusion", 64)},
          {"title", textOf(output, "title", 512)},
          {"summary", wholeText(output, "summary", 2048)},
          {"url", textOf(from, "html_url", 512)}};
}

Json checksOf(const Json& from) { return listOf<checkOf>(fieldOf(from, "check_runs")); }
Json labelsOf(const Json& from) { return {{"labels", namesOf(from, "name")}}; }

std::string pageQuery(const Json& arguments) { return fmt::format("?per_page=30&page={}", arguments.value("page", 1)); }

OrRefusal<uint64_t> idOf(const ApiAnswer& answer) {
  if (!answer.ok()) return answer.refusal;
  return numberOf(answer.body, "id");
}

Refusal refused(const std::string& what, const std::string& fix) { return {"github_refused", what, fix}; }

}  // namespace

// One call, with what it is bound to. It lives until its promise is done.
struct Operations::Context {
  Binding bound;
  Json arguments;
  Repository repository;
  std::string mark;

  std::string issuePath(const std::string& rest = "") const { return fmt::format("/issues/{}{}", bound.issue, rest); }
  std::string issueWords() const { return fmt::format("issue {} of {}", bound.issue, repository.fullName); }
  std::string text(const char* name) const { return arguments.value(name, std::string()); }
};

const Operations::Entry Operations::entries[] = {
    {"github.issue.get", &Operations::getIssue, true},
    {"github.issue.comments", &Operations::issueComments, true},
    {"github.issue.comment", &Operations::comment, true},
    {"github.issue.comment.update", &Operations::updateComment, true},
    {"github.issue.label", &Operations::label, true},
    {"github.pull.open", &Operations::openPull, false},
    {"github.pull.update", &Operations::updatePull, false},
    {"github.pull.get", &Operations::getPull, false},
    {"github.pull.checks", &Operations::pullChecks, false},
    {"github.pull.comments", &Operations::pullComments, false},
    {"github.pull.reply", &Operations::replyToReview, false},
};

kj::Promise<OrRefusal<Json>> Operations::call(Binding bound, std::string operation, std::string arguments) {
  auto* known = findGitHubOperation(operation);
  const Entry* entry = nullptr;
  for (auto& one : entries) {
    if (operation == one.name) entry = &one;
  }
  if (known == nullptr || entry == nullptr) return Result(refused("there is no such operation of GitHub's", ""));
  if (arguments.size() > mostArguments) return Result(refused("the arguments have more than 256 KiB", ""));
  auto context = kj::heap<Context>();
  context->arguments = parseJson(arguments.empty() ? "{}" : arguments);
  auto wrong = wrongWith(context->arguments, parseJson(known->schema));
  if (!wrong.empty()) return Result(Refusal{"arguments_invalid", wrong, "see the operation's schema"});
  if (entry->needsIssue && bound.issue == 0)
    return Result(refused("this work was not made from an issue", "use the pull request's operations"));
  context->mark = newMark(bound);
  context->bound = std::move(bound);
  auto& ref = *context;
  return boundRepository(ref.bound)
      .then([this, &ref, perform = entry->perform](OrRefusal<Repository> repository) -> kj::Promise<Result> {
        if (!repository.ok()) return Result(repository.refusal());
        ref.repository = repository.value();
        return (this->*perform)(ref);
      })
      .attach(kj::mv(context));
}

// The repository that the Work was made for, and not one that has got its name since.
kj::Promise<OrRefusal<Repository>> Operations::boundRepository(const Binding& bound) {
  return session.repository(bound.repo)
      .then([id = bound.repositoryId, name = bound.repo](OrRefusal<Repository> found) -> OrRefusal<Repository> {
        if (!found.ok()) return found;
        if (id != 0 && found.value().id != id) {
          return refused("the repository " + name + " is another one than when this work began", "start new work");
        }
        return found;
      });
}

kj::Promise<ApiAnswer> Operations::ask(Context& context, ApiCall call) {
  return session.call(context.repository, std::move(call));
}

// A write that can be found by its mark: when the call was made before, only if it is not there.
kj::Promise<ApiAnswer> Operations::askOnce(Context& context, ApiCall call) {
  if (!context.bound.again) return ask(context, std::move(call));
  auto look = call.look;
  return look().then([this, &context, call = std::move(call)](kj::Maybe<Json> found) mutable -> kj::Promise<ApiAnswer> {
    ApiAnswer answer;
    KJ_IF_MAYBE (there, found) {
      if (there->is_discarded())
        answer.refusal = {"github_unavailable", "nobody can say whether " + call.what + " was made",
                          "look, and try again"};
      answer.status = 200;
      answer.body = std::move(*there);
      return answer;
    }
    return ask(context, std::move(call));
  });
}

kj::Promise<Operations::Result> Operations::shape(kj::Promise<ApiAnswer> answer, Json (*of)(const Json&)) {
  return answer.then([of](ApiAnswer got) -> Result {
    if (!got.ok()) return got.refusal;
    return of(got.body);
  });
}

// Among the latest of a list: what has the mark; a discarded value when nobody can say.
kj::Promise<kj::Maybe<Json>> Operations::findMarked(Repository repository, std::string path, std::string mark) {
  ApiCall call;
  call.path = path;
  call.what = "what was written before";
  return session.call(repository, std::move(call))
      .then([mark, this, repository](ApiAnswer answer) mutable -> kj::Promise<kj::Maybe<Json>> {
        if (!answer.ok() || !answer.body.is_array()) return kj::Maybe<Json>(Json(Json::value_t::discarded));
        for (auto& item : answer.body) {
          if (wholeText(item, "body", 1u << 20).find(mark) != std::string::npos) return kj::Maybe<Json>(item);
        }
        if (answer.next.empty()) return kj::Maybe<Json>();
        return findMarked(repository, answer.next, mark);
      });
}

// ---- issues

kj::Promise<Operations::Result> Operations::getIssue(Context& context) {
  ApiCall call;
  call.path = context.issuePath();
  call.what = context.issueWords();
  return shape(ask(context, std::move(call)), issueOf);
}

kj::Promise<Operations::Result> Operations::issueComments(Context& context) {
  ApiCall call;
  call.path = context.issuePath("/comments" + pageQuery(context.arguments));
  call.what = "comments on " + context.issueWords();
  return shape(ask(context, std::move(call)), listOf<commentOf>);
}

kj::Promise<Operations::Result> Operations::comment(Context& context) {
  ApiCall call;
  call.method = "POST";
  call.path = context.issuePath("/comments");
  call.what = "a comment on " + context.issueWords();
  call.body = Json{{"body", marked(context.text("body"), context.mark)}};
  auto recent = isoOf(clockMs() + session.api.clockAhead() * 1000 - sinceWhen(context.bound));
  call.look = [this, &context, recent]() {
    return findMarked(context.repository, context.issuePath("/comments?per_page=100&since=" + encoded(recent)),
                      context.mark);
  };
  return shape(askOnce(context, std::move(call)), commentOf);
}

kj::Promise<Operations::Result> Operations::updateComment(Context& context) {
  auto id = context.arguments.at("comment").get<uint64_t>();
  auto path = fmt::format("/issues/comments/{}", id);
  ApiCall look;
  look.path = path;
  look.what = fmt::format("comment {} on {}", id, context.issueWords());
  return ask(context, std::move(look)).then([this, &context, path](ApiAnswer answer) -> kj::Promise<Result> {
    if (!answer.ok()) return Result(answer.refusal);
    return session.identities(context.bound.repo)
        .then([this, &context, path, answer](OrRefusal<Identities> self) -> kj::Promise<Result> {
          if (!self.ok()) return Result(self.refusal());
          auto issue = textOf(answer.body, "issue_url");
          auto body = wholeText(answer.body, "body", 1u << 20);
          bool here = issue.ends_with(context.issuePath());
          bool ours = numberOf(fieldOf(answer.body, "user"), "id") == self.value().speaker.id;
          auto mark = body.rfind(markOfWork(context.bound));
          if (!here || !ours || mark == std::string::npos) {
            return Result(refused("that comment was not made by this work on its issue",
                                  "change only comments that github.issue.comment made"));
          }
          ApiCall call;
          call.method = "PATCH";
          call.path = path;
          call.what = "a comment on " + context.issueWords();
          call.twiceIsOnce = true;
          call.body =
              Json{{"body", marked(context.text("body"), body.substr(mark, body.find("-->", mark) + 3 - mark))}};
          return shape(ask(context, std::move(call)), commentOf);
        });
  });
}

kj::Promise<Operations::Result> Operations::label(Context& context) {
  auto add = context.arguments.value("add", Json::array());
  if (add.empty()) return unlabel(context, 0);
  ApiCall call;
  call.method = "POST";
  call.path = context.issuePath("/labels");
  call.what = "labels of " + context.issueWords();
  call.twiceIsOnce = true;
  call.body = Json{{"labels", add}};
  return ask(context, std::move(call)).then([this, &context](ApiAnswer answer) -> kj::Promise<Result> {
    if (!answer.ok()) return Result(answer.refusal);
    if (context.arguments.value("remove", Json::array()).empty()) return Result(labelsOf(answer.body));
    return unlabel(context, 0);
  });
}

kj::Promise<Operations::Result> Operations::unlabel(Context& context, size_t index) {
  auto remove = context.arguments.value("remove", Json::array());
  ApiCall call;
  call.what = "labels of " + context.issueWords();
  if (index >= remove.size()) {
    call.path = context.issuePath("/labels?per_page=100");
    return shape(ask(context, std::move(call)), labelsOf);
  }
  call.method = "DELETE";
  call.path = context.issuePath("/labels/" + encoded(remove[index].get<std::string>()));
  call.twiceIsOnce = true;
  return ask(context, std::move(call)).then([this, &context, index](ApiAnswer answer) -> kj::Promise<Result> {
    // A label that is not there has been removed.
    if (!answer.ok() && answer.status != 404) return Result(answer.refusal);
    return unlabel(context, index + 1);
  });
}

// ---- the pull request of the Work's branch

// Its number; 0 when there is none. One that is open goes before one that was closed, and a later one before an
// earlier.
kj::Promise<OrRefusal<uint64_t>> Operations::ownPull(Context& context, bool openOnly) {
  ApiCall call;
  call.path = fmt::format("/pulls?state={}&per_page=30&head={}", openOnly ? "open" : "all",
                          encoded(context.repository.owner() + ":" + context.bound.branch));
  call.what = "the pull request of " + context.bound.branch;
  return ask(context, std::move(call)).then([&context](ApiAnswer answer) -> OrRefusal<uint64_t> {
    if (!answer.ok()) return answer.refusal;
    uint64_t best = 0;
    bool bestOpen = false;
    if (!answer.body.is_array()) return best;
    for (auto& pull : answer.body) {
      // A server that does not know the filter would show everything.
      if (textOf(fieldOf(pull, "head"), "ref", 1024) != context.bound.branch) continue;
      bool open = textOf(pull, "state") == "open";
      auto number = numberOf(pull, "number");
      if (std::pair(open, number) > std::pair(bestOpen, best)) std::tie(bestOpen, best) = std::pair(open, number);
    }
    return best;
  });
}

kj::Promise<Operations::Result> Operations::getPull(Context& context) {
  return ownPull(context, false).then([this, &context](OrRefusal<uint64_t> number) -> kj::Promise<Result> {
    if (!number.ok()) return Result(number.refusal());
    if (number.value() == 0)
      return Result(
          Refusal{"github_denied", "this work's branch has no pull request yet", "github.pull.open opens it"});
    ApiCall call;
    call.path = fmt::format("/pulls/{}", number.value());
    call.what = fmt::format("pull request {}", number.value());
    return shape(ask(context, std::move(call)), pullOf);
  });
}

kj::Promise<Operations::Result> Operations::openPull(Context& context) {
  if (context.bound.branch.empty()) return Result(refused("this work has no branch", ""));
  return ownPull(context, true).then([this, &context](OrRefusal<uint64_t> number) -> kj::Promise<Result> {
    if (!number.ok()) return Result(number.refusal());
    if (number.value() != 0) return getPull(context);
    ApiCall call;
    call.method = "POST";
    call.path = "/pulls";
    call.what = "a pull request of " + context.bound.branch;
    auto base = context.bound.base.empty() ? context.repository.defaultBranch : context.bound.base;
    call.body = Json{{"title", context.text("title")},
                     {"head", context.bound.branch},
                     {"base", base},
                     {"body", withOrigin(context.bound, context.text("body"))},
                     {"draft", context.arguments.value("draft", false)}};
    call.look = [this, &context]() {
      return ownPull(context, true).then([](OrRefusal<uint64_t> found) -> kj::Maybe<Json> {
        if (!found.ok()) return Json(Json::value_t::discarded);
        if (found.value() == 0) return nullptr;
        return Json{{"number", found.value()}};
      });
    };
    return ask(context, std::move(call)).then([this, &context](ApiAnswer answer) -> kj::Promise<Result> {
      // Somebody was faster: then it is there.
      bool exists = answer.status == 422 && answer.refusal.what.find("already exists") != std::string::npos;
      if (!answer.ok() && !exists) {
        if (answer.status == 422 && answer.refusal.fix.empty())
          answer.refusal.fix = "push the branch first, with at least one commit of its own";
        return Result(answer.refusal);
      }
      return getPull(context);
    });
  });
}

kj::Promise<Operations::Result> Operations::updatePull(Context& context) {
  return ownPull(context, false).then([this, &context](OrRefusal<uint64_t> number) -> kj::Promise<Result> {
    if (!number.ok()) return Result(number.refusal());
    if (number.value() == 0)
      return Result(
          Refusal{"github_denied", "this work's branch has no pull request yet", "github.pull.open opens it"});
    ApiCall call;
    call.method = "PATCH";
    call.path = fmt::format("/pulls/{}", number.value());
    call.what = fmt::format("pull request {}", number.value());
    call.twiceIsOnce = true;
    auto body = Json::object();
    if (context.arguments.contains("title")) body["title"] = context.text("title");
    if (context.arguments.contains("body")) body["body"] = withOrigin(context.bound, context.text("body"));
    call.body = body;
    return shape(ask(context, std::move(call)), pullOf);
  });
}

kj::Promise<Operations::Result> Operations::pullChecks(Context& context) {
  return getPull(context).then([this, &context](Result pull) -> kj::Promise<Result> {
    if (!pull.ok()) return pull;
    ApiCall call;
    call.path =
        fmt::format("/commits/{}/check-runs?per_page=30", encoded(pull.value().value("head_sha", std::string())));
    call.what = "checks of this work's pull request";
    return shape(ask(context, std::move(call)), checksOf);
  });
}

kj::Promise<Operations::Result> Operations::pullComments(Context& context) {
  return ownPull(context, false).then([this, &context](OrRefusal<uint64_t> number) -> kj::Promise<Result> {
    if (!number.ok()) return Result(number.refusal());
    if (number.value() == 0) return Result(Json{{"items", Json::array()}});
    ApiCall call;
    call.path = fmt::format("/pulls/{}/comments{}", number.value(), pageQuery(context.arguments));
    call.what = fmt::format("review comments on pull request {}", number.value());
    return shape(ask(context, std::move(call)), listOf<reviewCommentOf>);
  });
}

kj::Promise<Operations::Result> Operations::replyToReview(Context& context) {
  return ownPull(context, false).then([this, &context](OrRefusal<uint64_t> number) -> kj::Promise<Result> {
    if (!number.ok()) return Result(number.refusal());
    if (number.value() == 0)
      return Result(
          Refusal{"github_denied", "this work's branch has no pull request yet", "github.pull.open opens it"});
    auto comments = fmt::format("/pulls/{}/comments", number.value());
    ApiCall call;
    call.method = "POST";
    call.path = fmt::format("{}/{}/replies", comments, context.arguments.at("comment").get<uint64_t>());
    call.what = fmt::format("a reply on pull request {}", number.value());
    call.body = Json{{"body", marked(context.text("body"), context.mark)}};
    call.look = [this, &context, comments]() {
      return findMarked(context.repository, comments + "?per_page=100", context.mark);
    };
    return shape(askOnce(context, std::move(call)), reviewCommentOf);
  });
}

// ---- the status comment

kj::Promise<OrRefusal<uint64_t>> Operations::setStatus(Binding boundParam, uint64_t comment, std::string text) {
  using Id = OrRefusal<uint64_t>;
  if (boundParam.issue == 0) return Id(refused("this work was not made from an issue", ""));
  auto context = kj::heap<Context>();
  context->bound = std::move(boundParam);
  context->mark = markOfStatus(context->bound);
  context->arguments = Json{{"body", shortened(printable(text, true), 16u << 10)}};
  auto& ref = *context;
  auto edit = [this, &ref](uint64_t id) {
    ApiCall call;
    call.method = "PATCH";
    call.path = fmt::format("/issues/comments/{}", id);
    call.what = "the status comment on " + ref.issueWords();
    call.twiceIsOnce = true;
    call.body = Json{{"body", marked(ref.text("body"), ref.mark)}};
    return ask(ref, std::move(call)).then([](ApiAnswer answer) { return idOf(answer); });
  };
  auto find = [this, &ref]() { return findMarked(ref.repository, ref.issuePath("/comments?per_page=100"), ref.mark); };
  auto make = [this, &ref, find]() {
    ApiCall call;
    call.method = "POST";
    call.path = ref.issuePath("/comments");
    call.what = "the status comment on " + ref.issueWords();
    call.body = Json{{"body", marked(ref.text("body"), ref.mark)}};
    call.look = find;
    return ask(ref, std::move(call)).then([](ApiAnswer answer) { return idOf(answer); });
  };
  return boundRepository(ref.bound)
      .then([this, &ref, comment, edit, make, find](OrRefusal<Repository> repository) -> kj::Promise<Id> {
        if (!repository.ok()) return Id(repository.refusal());
        ref.repository = repository.value();
        auto fallBack = [this, &ref, edit, make, find]() -> kj::Promise<Id> {
          // Only one of ours: anybody can write the mark.
          return session.identities(ref.bound.repo)
              .then([edit, make, find](OrRefusal<Identities> self) -> kj::Promise<Id> {
                if (!self.ok()) return Id(self.refusal());
                return find().then(
                    [edit, make, speaker = self.value().speaker.id](kj::Maybe<Json> found) -> kj::Promise<Id> {
                      KJ_IF_MAYBE (one, found) {
                        bool ours = one->is_object() && numberOf(fieldOf(*one, "user"), "id") == speaker;
                        if (ours) return edit(numberOf(*one, "id"));
                        if (one->is_discarded())
                          return Id(Refusal{"github_unavailable", "the issue's comments could not be read", ""});
                      }
                      return make();
                    });
              });
        };
        if (comment == 0) return fallBack();
        return edit(comment).then([fallBack](Id edited) -> kj::Promise<Id> {
          bool deleted = !edited.ok() && edited.refusal().reason == "github_denied";
          return deleted ? fallBack() : kj::Promise<Id>(edited);
        });
      })
      .attach(kj::mv(context));
}

}  // namespace oc::github
