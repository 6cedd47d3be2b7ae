#include "engine.h"

#include <fmt/format.h>
#include <kj/debug.h>
#include <kj/encoding.h>

#include <optional>

#include "base/error.h"
#include "base/text.h"

namespace oc::docker {

namespace {

constexpr size_t mostAnswerBytes = 4u << 20;
constexpr size_t mostLineBytes = 64u << 10;
constexpr size_t mostMessageBytes = 600;

std::string versioned(const std::string& path) { return fmt::format("/v{}.{}{}", leastApiMajor, leastApiMinor, path); }

Answer understand(unsigned status, std::string_view text) {
  Answer answer;
  answer.status = status;
  answer.body = parseJson(text);
  if (!answer.good()) {
    auto& body = answer.body;
    bool told = body.is_object() && body.contains("message") && body["message"].is_string();
    answer.message =
        shortened(printable(told ? body["message"].get<std::string>() : std::string(text)), mostMessageBytes);
    if (answer.message.empty()) answer.message = fmt::format("it gave no reason (HTTP status {})", status);
  }
  return answer;
}

// What is left of an answer of lines, between reads.
struct LineReader {
  kj::Own<kj::AsyncInputStream> body;
  kj::Function<void(const Json&)> onLine;
  std::string line;
  kj::byte buffer[16384];

  kj::Promise<void> readAll() {
    return body->tryRead(buffer, 1, sizeof(buffer)).then([this](size_t n) -> kj::Promise<void> {
      for (size_t i = 0; i < n; ++i) {
        if (buffer[i] == '\n') {
          take();
        } else {
          line.push_back(static_cast<char>(buffer[i]));
        }
      }
      KJ_REQUIRE(line.size() <= mostLineBytes, "the engine's answer has a line that is too long");
      if (n > 0) return readAll();
      take();
      return kj::READY_NOW;
    });
  }

  void take() {
    if (!line.empty()) onLine(parseJson(line));
    line.clear();
  }
};

// Whoever has it may use the connection; the next one's turn comes when it goes.
struct Turn {
  explicit Turn(kj::Own<kj::PromiseFulfiller<void>> over) : over(kj::mv(over)) {}
  ~Turn() { over->fulfill(); }
  KJ_DISALLOW_COPY(Turn);

  kj::Own<kj::PromiseFulfiller<void>> over;
};

}  // namespace

std::string encoded(const std::string& text) {
  auto result = kj::encodeUriComponent(kj::arrayPtr(text.data(), text.size()));
  return std::string(result.begin(), result.size());
}

std::string labelFilter(const std::vector<std::string>& labels) {
  Json filter = {{"label", labels}};
  return "filters=" + encoded(filter.dump());
}

struct Engine::Impl {
  explicit Impl(kj::Own<kj::AsyncIoStream> raw)
      : stream(kj::mv(raw)), client(kj::newHttpClient(headerTable, *stream)) {}

  kj::HttpHeaderTable headerTable;
  kj::Own<kj::AsyncIoStream> stream;
  kj::Own<kj::HttpClient> client;
  kj::ForkedPromise<void> last = kj::Promise<void>(kj::READY_NOW).fork();
  std::optional<Answer> versionKnown, infoKnown;

  kj::Promise<Answer> once(std::optional<Answer>& known, const std::string& path) {
    if (known) return *known;
    return call(kj::HttpMethod::GET, path, "").then([&known](Answer answer) {
      if (answer.good()) known = answer;
      return answer;
    });
  }

  kj::Promise<kj::HttpClient::Response> send(kj::HttpMethod method, const std::string& path, std::string body) {
    kj::HttpHeaders headers(headerTable);
    headers.set(kj::HttpHeaderId::HOST, "engine");
    if (!body.empty()) headers.set(kj::HttpHeaderId::CONTENT_TYPE, "application/json");
    auto request = client->request(method, kj::StringPtr(path.c_str(), path.size()), headers, uint64_t(body.size()));
    // KJ has no writing of nothing.
    auto written = body.empty() ? kj::Promise<void>(kj::READY_NOW) : request.body->write(body.data(), body.size());
    return written.attach(kj::mv(request.body), kj::mv(body)).then([response = kj::mv(request.response)]() mutable {
      return kj::mv(response);
    });
  }

  // Resolves when all before it have been answered, whether well or not.
  kj::Promise<kj::Own<Turn>> turn() {
    auto over = kj::newPromiseAndFulfiller<void>();
    auto mine = last.addBranch();
    last = over.promise.fork();
    auto turn = kj::heap<Turn>(kj::mv(over.fulfiller));
    return mine.then([turn = kj::mv(turn)]() mutable { return kj::mv(turn); });
  }

  kj::Promise<Answer> call(kj::HttpMethod method, std::string path, std::string body) {
    return turn().then([this, method, path = kj::mv(path), body = kj::mv(body)](kj::Own<Turn> over) mutable {
      return send(method, path, kj::mv(body))
          .then([](kj::HttpClient::Response response) { return readWhole(kj::mv(response)); })
          .attach(kj::mv(over));
    });
  }

  static kj::Promise<Answer> readWhole(kj::HttpClient::Response response) {
    auto status = response.statusCode;
    auto text = response.body->readAllText(mostAnswerBytes);
    return text.attach(kj::mv(response.body)).then([status](kj::String text) {
      return understand(status, std::string_view(text.begin(), text.size()));
    });
  }
};

Engine::Engine(kj::Own<kj::AsyncIoStream> stream) : impl(kj::heap<Impl>(kj::mv(stream))) {}
Engine::~Engine() noexcept(false) = default;

kj::Promise<Answer> Engine::version() { return impl->once(impl->versionKnown, "/version"); }

kj::Promise<Answer> Engine::info() { return impl->once(impl->infoKnown, versioned("/info")); }

kj::Promise<Answer> Engine::get(const std::string& path) {
  return impl->call(kj::HttpMethod::GET, versioned(path), "");
}

kj::Promise<Answer> Engine::post(const std::string& path, const Json& body) {
  return impl->call(kj::HttpMethod::POST, versioned(path), body.is_null() ? "" : body.dump());
}

kj::Promise<Answer> Engine::remove(const std::string& path) {
  return impl->call(kj::HttpMethod::DELETE, versioned(path), "");
}

kj::Promise<WaitingAnswer> Engine::postAndWait(const std::string& path) {
  return impl->turn().then([this, path = versioned(path)](kj::Own<Turn> over) mutable {
    return impl->send(kj::HttpMethod::POST, path, "")
        .then([over = kj::mv(over)](kj::HttpClient::Response response) mutable {
          return WaitingAnswer{Impl::readWhole(kj::mv(response)).attach(kj::mv(over))};
        });
  });
}

kj::Promise<Answer> Engine::postForLines(const std::string& path, kj::Function<void(const Json&)> onLine) {
  return impl->turn().then([this, path = versioned(path), onLine = kj::mv(onLine)](kj::Own<Turn> over) mutable {
    return impl->send(kj::HttpMethod::POST, path, "")
        .then([onLine = kj::mv(onLine)](kj::HttpClient::Response response) mutable -> kj::Promise<Answer> {
          if (response.statusCode >= 300) return Impl::readWhole(kj::mv(response));
          auto status = response.statusCode;
          auto reader = kj::heap<LineReader>();
          reader->body = kj::mv(response.body);
          reader->onLine = kj::mv(onLine);
          auto done = reader->readAll();
          return done.attach(kj::mv(reader)).then([status]() {
            Answer answer;
            answer.status = status;
            return answer;
          });
        })
        .attach(kj::mv(over));
  });
}

}  // namespace oc::docker
