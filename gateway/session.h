// One connection to the proxy: a head, a decision, and then bytes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "answer.h"
#include "proxy.h"
#include "request.h"

namespace oc::gateway {

class Session final {
 public:
  // `sendBuffer`: bytes towards the client that the kernel may hold at first; 0: as many as it likes.
  Session(Proxy& proxy, kj::AutoCloseFd client, int sendBuffer);
  ~Session();
  KJ_DISALLOW_COPY(Session);

  // Whether it is in the totals already.
  bool isNoted() const { return noted; }
  uint64_t up() const { return upward.moved(); }
  uint64_t down() const { return downward.moved(); }

  // Answers that there are too many, and closes.
  void refuseForNumber();
  // Goes on with what epoll knows already.
  void begin();

 private:
  // What concerns the request alone, and goes when bytes flow.
  struct Opening;
  enum class Stage { Head, Resolving, Dialing, Relaying, Lingering };

  class Side final : public Watcher {
   public:
    Side(Session& session, End& end) : session(session), end(end) {}
    void ready(uint32_t events) override;

   private:
    Session& session;
    End& end;
  };

  void advance();
  void readHead();
  bool mayWait();
  void decide(std::string_view head, std::string_view rest);
  void resolve();
  void resolved(const Resolver::Answer& answer);
  void dialNext();
  void dialed();
  void startRelaying();
  void relay();
  bool relayAnswerHead();
  void bodyBroken();
  void giveRoom();
  void passEndsOn();
  void lingerAfterAnswer();
  void startLingering();
  void linger();
  void late();

  void refuse(int status, std::string reason, const std::string& what, const std::string& why, const std::string& fix);
  void refuse(const Verdict& verdict);
  void dialFailed(int error);
  // Tells of the attempt, once.
  void note(std::string reason);
  // Destroys the session.
  void close(std::string reason);

  Proxy& proxy;
  int sendBuffer;
  size_t roomBytes = 0;  // of Proxy::roomBytes
  End client, server;
  Side clientSide, serverSide;
  Pump upward, downward;
  std::unique_ptr<Opening> opening;
  std::unique_ptr<AnswerReader> answers;  // while a plain request's answer has not begun
  Attempt attempt;
  Stage stage = Stage::Head;
  bool hungUp = false;      // the client is gone, not only silent
  bool halfClosed = false;  // the client says no more
  bool plain = false;       // no tunnel
  bool noted = false;
  bool connected = false;
  bool clientDone = false;  // no more is said to it
  bool serverDone = false;
  bool heldBack = false;  // what the client says waits for the server's 101
};

}  // namespace oc::gateway
