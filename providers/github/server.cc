#include "server.h"

#include <kj/debug.h>
#include <sodium.h>

#include "base/text.h"
#include "examine.h"
#include "proto/convert.h"

namespace oc::github {

namespace {

constexpr size_t mostResult = 256u << 10;

// The secret's bytes in the message that brought it: nobody reads them again.
void wipe(capnp::Data::Reader data) { sodium_memzero(const_cast<kj::byte*>(data.begin()), data.size()); }

Binding read(proto::GitHubBinding::Reader from) {
  return {toString(from.getRepo()),   from.getRepositoryId(),   from.getIssue(),
          toString(from.getBranch()), toString(from.getBase()), toString(from.getWork()),
          toString(from.getRun()),    toString(from.getCall()), from.getAgain()};
}

void write(proto::GitHubIdentity::Builder to, const Identity& from) {
  to.setLogin(toText(from.login));
  to.setId(from.id);
  to.setName(toText(from.name));
  to.setEmail(toText(from.email));
}

void writeList(capnp::List<capnp::Text>::Builder to, const std::vector<std::string>& from) {
  for (size_t i = 0; i < from.size(); ++i) to.set(i, toText(from[i]));
}

OrRefusal<std::unique_ptr<AppKey>> keyFrom(capnp::Data::Reader pem, const std::string& whose) {
  auto key = AppKey::read(std::string_view(reinterpret_cast<const char*>(pem.begin()), pem.size()), whose);
  wipe(pem);
  return key;
}

std::vector<std::string> textsFrom(capnp::List<capnp::Text>::Reader from, size_t limit) {
  std::vector<std::string> result;
  for (auto text : from) {
    if (result.size() < limit) result.push_back(toString(text));
  }
  return result;
}

}  // namespace

void write(proto::GitHubEvent::Builder to, const Event& from) {
  to.setKind(from.isComment ? proto::GitHubEventKind::COMMENT : proto::GitHubEventKind::ISSUE);
  to.setId(from.id);
  to.setIssue(from.issue);
  to.setCreatedAt(from.createdAt);
  to.setUpdatedAt(from.updatedAt);
  to.setTitle(toText(from.title));
  to.setBody(toData(from.body));
  to.setBodyCut(from.bodyCut);
  to.setBodyHash(toText(from.bodyHash));
  to.setAuthorId(from.authorId);
  to.setAuthorLogin(toText(from.authorLogin));
  to.setOpen(from.open);
  to.setPullRequest(from.pullRequest);
  writeList(to.initLabels(from.labels.size()), from.labels);
  writeList(to.initAssignees(from.assignees.size()), from.assignees);
}

GitHubServer::GitHubServer(kit::Context& context, Job jobParam)
    : context(context),
      job(std::move(jobParam)),
      api(context.io.provider->getTimer(), job),
      session(api, job),
      operations(session),
      events(session) {}

void GitHubServer::requireSignedIn() { KJ_REQUIRE(session.signedIn(), "this instance has not been signed in"); }

kj::Promise<void> GitHubServer::protections(ProtectionsContext call) {
  kit::answerProtections(context, call.getResults());
  return kj::READY_NOW;
}

kj::Promise<void> GitHubServer::signIn(SignInContext call) {
  KJ_REQUIRE(!session.signedIn(), "this instance was signed in already");
  auto from = call.getParams().getCredentials();
  auto refuse = [&call](const Refusal& refusal) { oc::write(call.getResults().initRefusal(), refusal); };
  auto& secrets = api.secrets;
  if (from.hasBotPrivateKey() && from.getBotPrivateKey().size() != 0) {
    auto key = keyFrom(from.getBotPrivateKey(), "the bot's App");
    if (!key.ok()) return refuse(key.refusal()), kj::READY_NOW;
    secrets.botKey = std::move(key.value());
    secrets.botAppId = toString(from.getBotAppId());
  }
  if (from.isToken()) {
    auto token = from.getToken();
    secrets.token = SecretBytes(std::string_view(reinterpret_cast<const char*>(token.begin()), token.size()));
    wipe(token);
    bool usable =
        secrets.token.size() != 0 && secrets.token.size() <= 4096 && !hasControlCharacters(secrets.token.view());
    if (!usable) {
      secrets.token = SecretBytes();
      refuse({"github_credentials", "the token is empty, too long, or has line breaks in it", "store the token alone"});
    }
    return kj::READY_NOW;
  }
  auto key = keyFrom(from.getApp().getPrivateKey(), "the App");
  if (!key.ok()) return refuse(key.refusal()), kj::READY_NOW;
  secrets.appKey = std::move(key.value());
  secrets.appId = toString(from.getApp().getId());
  return kj::READY_NOW;
}

kj::Promise<void> GitHubServer::repository(RepositoryContext call) {
  requireSignedIn();
  return session.repository(toString(call.getParams().getRepo())).then([call](OrRefusal<Repository> found) mutable {
    auto results = call.getResults();
    if (!found.ok()) return oc::write(results.initRefusal(), found.refusal());
    auto repository = results.initRepository();
    repository.setId(found.value().id);
    repository.setFullName(toText(found.value().fullName));
    repository.setDefaultBranch(toText(found.value().defaultBranch));
  });
}

kj::Promise<void> GitHubServer::mint(MintContext call) {
  requireSignedIn();
  auto params = call.getParams();
  return session.mint(toString(params.getRepo()), params.getRepositoryId())
      .then([call](OrRefusal<Minted> minted) mutable {
        auto results = call.getResults();
        if (!minted.ok()) return oc::write(results.initRefusal(), minted.refusal());
        results.setToken(toData(minted.value().token.view()));
        results.setExpiresAt(minted.value().expiresAt);
      });
}

kj::Promise<void> GitHubServer::revoke(RevokeContext call) {
  requireSignedIn();
  auto data = call.getParams().getToken();
  SecretBytes token(std::string_view(reinterpret_cast<const char*>(data.begin()), data.size()));
  wipe(data);
  return session.revoke(token).then([call](Refusal refusal) mutable {
    if (!refusal.reason.empty()) oc::write(call.getResults().initRefusal(), refusal);
  });
}

kj::Promise<void> GitHubServer::identity(IdentityContext call) {
  requireSignedIn();
  return session.identities(toString(call.getParams().getRepo())).then([call](OrRefusal<Identities> found) mutable {
    auto results = call.getResults();
    if (!found.ok()) return oc::write(results.initRefusal(), found.refusal());
    write(results.initGit(), found.value().git);
    write(results.initSpeaker(), found.value().speaker);
  });
}

kj::Promise<void> GitHubServer::call(CallContext call) {
  requireSignedIn();
  auto params = call.getParams();
  return operations.call(read(params.getBound()), toString(params.getOperation()), toString(params.getArguments()))
      .then([call](OrRefusal<Json> outcome) mutable {
        auto results = call.getResults();
        // What GitHub refuses is the agent's to know and to act on: a result, and not the daemon's refusal.
        Json value = outcome.ok() ? outcome.value()
                                  : Json{{"error", outcome.refusal().reason},
                                         {"message", outcome.refusal().what},
                                         {"fix", outcome.refusal().fix}};
        auto text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
        bool tooLarge = text.size() > mostResult;
        if (tooLarge)
          text = R"({"error":"result_too_large","message":"GitHub's answer is larger than a tool's result can be"})";
        results.setResult(toData(text));
        results.setIsError(!outcome.ok() || tooLarge);
      });
}

kj::Promise<void> GitHubServer::sweep(SweepContext call) {
  requireSignedIn();
  auto params = call.getParams();
  return events
      .sweep(toString(params.getRepo()), params.getKind() == proto::GitHubEventKind::COMMENT, params.getSince(),
             std::max(1u, params.getPage()), toString(params.getEtag()))
      .then([call](Page page) mutable {
        auto results = call.getResults();
        if (!page.refusal.reason.empty()) oc::write(results.initRefusal(), page.refusal);
        results.setRetryAfter(page.retryAfter);
        results.setNotModified(page.notModified);
        results.setEtag(toText(page.etag));
        results.setNext(page.next);
        auto list = results.initEvents(page.events.size());
        for (size_t i = 0; i < page.events.size(); ++i) write(list[i], page.events[i]);
      });
}

kj::Promise<void> GitHubServer::event(EventContext call) {
  requireSignedIn();
  auto params = call.getParams();
  return events.one(toString(params.getRepo()), params.getKind() == proto::GitHubEventKind::COMMENT, params.getNumber())
      .then([call](OrRefusal<Event> found) mutable {
        auto results = call.getResults();
        if (!found.ok()) return oc::write(results.initRefusal(), found.refusal());
        write(results.initEvent(), found.value());
      });
}

kj::Promise<void> GitHubServer::permission(PermissionContext call) {
  requireSignedIn();
  auto params = call.getParams();
  return events.maySteer(toString(params.getRepo()), toString(params.getLogin()), params.getUserId())
      .then([call](Events::Limited<bool> answer) mutable {
        auto results = call.getResults();
        if (!answer.refusal.reason.empty()) oc::write(results.initRefusal(), answer.refusal);
        results.setRetryAfter(answer.retryAfter);
        results.setMaySteer(answer.value);
      });
}

kj::Promise<void> GitHubServer::attention(AttentionContext call) {
  requireSignedIn();
  auto params = call.getParams();
  return events.attention(toString(params.getRepo()), params.getIssue())
      .then([call](Events::Limited<std::vector<Mark>> answer) mutable {
        auto results = call.getResults();
        if (!answer.refusal.reason.empty()) oc::write(results.initRefusal(), answer.refusal);
        results.setRetryAfter(answer.retryAfter);
        auto list = results.initMarks(answer.value.size());
        for (size_t i = 0; i < answer.value.size(); ++i) {
          auto& mark = answer.value[i];
          if (mark.isLabel) {
            list[i].setLabel(toText(mark.what));
          } else {
            list[i].setAssignee(toText(mark.what));
          }
          list[i].setActorId(mark.actorId);
          list[i].setActorLogin(toText(mark.actorLogin));
        }
      });
}

kj::Promise<void> GitHubServer::setStatus(SetStatusContext call) {
  requireSignedIn();
  auto params = call.getParams();
  return operations.setStatus(read(params.getBound()), params.getComment(), toString(params.getText()))
      .then([call](OrRefusal<uint64_t> comment) mutable {
        if (!comment.ok()) return oc::write(call.getResults().initRefusal(), comment.refusal());
        call.getResults().setComment(comment.value());
      });
}

kj::Promise<void> GitHubServer::examine(ExamineContext call) {
  requireSignedIn();
  auto params = call.getParams();
  return github::examine(session, textsFrom(params.getRepos(), 64), textsFrom(params.getNeeds(), 64))
      .then([call](std::vector<Check> checks) mutable {
        auto list = call.getResults().initChecks(checks.size());
        for (size_t i = 0; i < checks.size(); ++i) {
          list[i].setWhat(toText(checks[i].what));
          list[i].setFix(toText(checks[i].fix));
          list[i].setOk(checks[i].ok);
          list[i].setWanted(checks[i].wanted);
        }
      });
}

kj::Promise<void> GitHubServer::signOut(SignOutContext) { return session.signOut(); }

}  // namespace oc::github
