// Names to addresses, by c-ares and DNS alone: no hosts file, no search domains, no libc.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "address.h"
#include "loop.h"

struct ares_channeldata;

namespace oc::gateway {

class Resolver {
 public:
  struct Answer {
    std::vector<Address> addresses;
    bool noSuchName = false;  // the server said so; otherwise it didn't answer, or with an error
    std::string error;        // for a person; empty when there are addresses
  };
  using Done = std::function<void(const Answer&)>;

  // A question that is being asked. Going away, it is not answered.
  class Question {
   public:
    Question(Resolver& resolver, std::string name, Done done);
    ~Question();
    KJ_DISALLOW_COPY(Question);

   private:
    friend class Resolver;
    Resolver& resolver;
    std::string name;
    Done done;
  };

  // The servers of /etc/resolv.conf, as it is now. Throws when there is none to be had.
  explicit Resolver(Loop& loop);
  ~Resolver();
  KJ_DISALLOW_COPY(Resolver);

  // An answer that still holds: for as long as its records say, and a minute at most. Null where there is none.
  const Answer* remembered(const std::string& name);

  // `done` comes in a later turn, unless the question goes away before. Who asks for a name that is being asked for
  // shares the answer.
  std::unique_ptr<Question> ask(const std::string& name, Done done);

 private:
  struct Server;
  struct Lookup;
  struct Known {
    Answer answer;
    int64_t until;
  };

  void answered(const std::string& name, const Answer& answer, int64_t milliseconds);
  void send(const std::string& name);
  void tell();
  void setAlarm();
  void socketChanged(int fd, bool readable, bool writable);
  void process(int readable, int writable);

  Loop& loop;
  Timer alarm, telling;
  ares_channeldata* channel = nullptr;
  std::map<int, std::unique_ptr<Server>> servers;  // by descriptor
  std::multimap<std::string, Question*> questions;
  std::set<std::string> sent;
  std::vector<std::pair<std::string, Answer>> done;  // answered, and nobody told yet
  std::map<std::string, Known> known;
};

}  // namespace oc::gateway
