#include "denial_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "proto/rpc.h"

namespace oc::srt {

namespace {

constexpr size_t maxLine = 4096;

// At most 64 different ones, so an agent that keeps trying costs nothing here.
constexpr auto module = R"js(
import { writeSync } from 'node:fs';
const most = 64, told = new Set();
const say = line => { try { writeSync(FD, line.replace(/\n/g, ' ').slice(0, 1300) + '\n'); } catch {} };
const refused = /^deny network-outbound (.*):(\d+) \((.*)\)$/;
try {
  const { SandboxManager } = await import(LIBRARY);
  let seen = 0;
  const store = SandboxManager.getSandboxViolationStore();
  store.subscribe(all => {
    const count = store.getTotalCount();
    const fresh = count > seen ? all.slice(-(count - seen)) : [];
    seen = count;
    for (const { line } of fresh) {
      const [, name, port, why] = refused.exec(line) ?? [];
      if (!name || told.size >= most) continue;
      const host = (name.includes(':') && !name.startsWith('[') ? `[${name}]` : name).slice(0, 255);
      const what = `${host}:${port}`;
      if (told.has(what)) continue;
      told.add(what);
      say(['host', what, why].map(text => text.replaceAll('\t', ' ')).join('\t'));
    }
  });
} catch (error) {
  say(`!${error}`);
}
)js";

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

std::string percentEncoded(const std::string& text) {
  std::string result;
  for (unsigned char c : text) {
    bool plain = c < 128 && (isalnum(c) || c == '-' || c == '_' || c == '.' || c == '~' || c == '/');
    result += plain ? std::string(1, static_cast<char>(c)) : fmt::format("%{:02X}", c);
  }
  return result;
}

// srt's words, where the gateway has one for the same.
std::string reasonOf(const std::string& said) { return said == "host is not on the allow list" ? "not_allowed" : said; }

}  // namespace

std::string tellDenials(const std::string& cli) {
  auto library = "file://" + percentEncoded(cli.substr(0, cli.rfind('/')) + "/index.js");
  auto text = replaced(replaced(module, "FD", std::to_string(denialDescriptor)), "LIBRARY", Json(library).dump());
  return "data:text/javascript," + percentEncoded(text);
}

DenialPipe::DenialPipe(kj::UnixEventPort& port, kit::DenialList& list, FdPair ends)
    : list(list),
      readEnd(kj::mv(ends.first)),
      writeEnd(kj::mv(ends.second)),
      observer(port, readEnd.get(), kj::UnixEventPort::FdObserver::OBSERVE_READ),
      reading(nullptr) {
  KJ_SYSCALL(fcntl(readEnd.get(), F_SETFL, O_NONBLOCK));
  reading = readOn().eagerlyEvaluate([](kj::Exception&& exception) { logWarning("{}", describe(exception)); });
}

kj::Promise<void> DenialPipe::readOn() {
  readWhatIsThere();
  if (ended) return kj::READY_NOW;
  return observer.whenBecomesReadable().then([this]() { return readOn(); });
}

void DenialPipe::readWhatIsThere() {
  char buffer[4096];
  ssize_t n;
  while ((n = read(readEnd.get(), buffer, sizeof(buffer))) > 0) {
    for (char c : kj::arrayPtr(buffer, n)) {
      if (c == '\n') {
        take(partial);
        partial.clear();
      } else if (partial.size() < maxLine) {
        partial += c;
      }
    }
  }
  ended = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

void DenialPipe::take(const std::string& line) {
  if (line.starts_with('!')) {
    logWarning("srt does not tell what it refuses: {}", printable(shortened(line.substr(1), 200)));
    return;
  }
  auto first = line.find('\t'), last = line.rfind('\t');
  if (first == std::string::npos || first == last) return;
  list.add({line.substr(0, first), line.substr(first + 1, last - first - 1), reasonOf(line.substr(last + 1))});
}

}  // namespace oc::srt
