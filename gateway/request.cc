#include "request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"

namespace oc::gateway {

namespace {

struct Header {
  std::string name;  // lower case
  std::string_view line;
  std::string_view value;
};

using Problem = std::optional<std::string>;

bool isToken(std::string_view text) {
  constexpr std::string_view others = "!#$%&'*+-.^_`|~";
  auto legal = [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || others.find(c) != others.npos;
  };
  return !text.empty() && std::all_of(text.begin(), text.end(), legal);
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (auto& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool isControl(char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7F; }

// The next element of a comma-separated list, lower case; `rest` shrinks.
std::string nextOfList(std::string_view& rest) {
  auto comma = std::min(rest.find(','), rest.size());
  auto element = lower(trimmed(rest.substr(0, comma)));
  rest.remove_prefix(std::min(comma + 1, rest.size()));
  return element;
}

bool listHas(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    if (nextOfList(list) == word) return true;
  }
  return false;
}

Problem readHeader(std::string_view line, Header& header) {
  if (line.front() == ' ' || line.front() == '\t') return "a header goes on in a second line";
  auto colon = line.find(':');
  if (colon == std::string_view::npos) return "a header has no ':'";
  if (!isToken(line.substr(0, colon))) return "a header's name has characters that it can't have";
  header = {lower(line.substr(0, colon)), line, trimmed(line.substr(colon + 1))};
  if (std::any_of(line.begin(), line.end(), isControl)) return "a header has a control character in it";
  return std::nullopt;
}

// The head's lines without their ends; nothing where an end is not CR LF, or the empty line at the end is missing.
std::optional<std::vector<std::string_view>> linesOf(std::string_view head) {
  std::vector<std::string_view> lines;
  bool ended = false;
  while (!ended) {
    auto end = head.find('\r');
    if (end == std::string_view::npos || end + 1 >= head.size() || head[end + 1] != '\n') return std::nullopt;
    auto line = head.substr(0, end);
    if (line.find('\n') != std::string_view::npos) return std::nullopt;
    head.remove_prefix(end + 2);
    ended = line.empty();
    if (!ended) lines.push_back(line);
  }
  if (!head.empty()) return std::nullopt;
  return lines;
}

class Reader {
 public:
  std::variant<Request, Malformed> read(std::string_view head) {
    auto problem = readAll(head);
    if (problem) return Malformed{status, *problem, named};
    return std::move(request);
  }

 private:
  Problem readAll(std::string_view head) {
    if (head.size() > mostHeadBytes) return tooLarge(fmt::format("the head has more than {} bytes", mostHeadBytes));
    if (head.find('\0') != std::string_view::npos) return "it has a NUL in it";
    auto lines = linesOf(head);
    if (!lines) return "a line doesn't end with CR LF, or has a CR or LF inside";
    if (lines->empty()) return "it begins with an empty line";
    if (lines->size() - 1 > mostHeaders) return tooLarge(fmt::format("it has more than {} headers", mostHeaders));
    if (auto problem = readRequestLine(lines->front())) return problem;
    for (size_t i = 1; i < lines->size(); ++i) {
      headers.emplace_back();
      if (auto problem = readHeader((*lines)[i], headers.back())) return problem;
    }
    if (auto problem = readBody()) return problem;
    if (auto problem = checkHost()) return problem;
    if (!request.connect) writeHead();
    return std::nullopt;
  }

  Problem tooLarge(std::string why) {
    status = 431;
    return why;
  }

  Problem readRequestLine(std::string_view line) {
    auto first = line.find(' '), last = line.rfind(' ');
    if (first == std::string_view::npos || first == last) return "the request line hasn't three parts";
    method = line.substr(0, first);
    auto target = line.substr(first + 1, last - first - 1), version = line.substr(last + 1);
    named = shortened(printable(target), 253);
    if (!isToken(method) || method.size() > 32) return "the method is no word of HTTP";
    if (version != "HTTP/1.1" && version != "HTTP/1.0") return "it isn't HTTP/1.1 or 1.0";
    http10 = version == "HTTP/1.0";
    if (target.empty() ||
        std::any_of(target.begin(), target.end(), [](char c) { return isControl(c) || c == ' ' || c == '\t'; })) {
      return "the request's target is empty, or has a space or control character in it";
    }
    request.connect = method == "CONNECT";
    return request.connect ? readAuthority(target, 0) : readAbsolute(target);
  }

  Problem readAuthority(std::string_view authority, uint16_t defaultPort) {
    named = shortened(printable(authority), 253);
    std::string why;
    auto target = parseTarget(authority, defaultPort, why);
    if (!target) return fmt::format("\"{}\" is no host and port: {}", named, why);
    request.target = *target;
    return std::nullopt;
  }

  Problem readAbsolute(std::string_view target) {
    constexpr std::string_view scheme = "http://";
    if (lower(target.substr(0, 8)) == "https://") return "https goes through a proxy by CONNECT";
    if (lower(target.substr(0, scheme.size())) != scheme) {
      return "this is a proxy: it takes CONNECT host:port, or a whole URL that begins with http://";
    }
    target.remove_prefix(scheme.size());
    auto end = std::min(target.find_first_of("/?#"), target.size());
    if (target.find('#') != std::string_view::npos) return "the URL has a '#' in it";
    path = target.substr(end);
    if (path.empty() || path.front() != '/') path.insert(path.begin(), '/');
    return readAuthority(target.substr(0, end), 80);
  }

  // The only header of that name; nothing where there are several.
  const Header* only(std::string_view name, bool& several) const {
    const Header* found = nullptr;
    for (auto& header : headers) {
      if (header.name != name) continue;
      several = several || found != nullptr;
      found = &header;
    }
    return found;
  }

  Problem readBody() {
    bool several = false;
    auto length = only("content-length", several), coding = only("transfer-encoding", several);
    if (several || (length && coding)) return "its length is given twice";
    if (request.connect) {
      bool empty = !coding && (!length || length->value == "0");
      if (!empty) return "a CONNECT has no body";
      return std::nullopt;
    }
    if (coding) {
      if (http10) return "HTTP/1.0 has no Transfer-Encoding";
      if (lower(coding->value) != "chunked") return "its Transfer-Encoding isn't just \"chunked\"";
      request.body = Body::Chunked;
    }
    return length ? readLength(length->value) : std::nullopt;
  }

  Problem readLength(std::string_view value) {
    // 18 digits fit into 64 bits.
    bool digits = !value.empty() && value.size() <= 18 &&
                  std::all_of(value.begin(), value.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!digits) return "its Content-Length is no number";
    request.bodyLength = std::stoull(std::string(value));
    if (request.bodyLength > 0) request.body = Body::Length;
    return std::nullopt;
  }

  Problem checkHost() {
    bool several = false;
    auto host = only("host", several);
    if (several) return "it has two Host headers";
    // A CONNECT's Host goes nowhere. A plain request's must say what its URL says: a server may believe either.
    if (request.connect || host == nullptr) return std::nullopt;
    std::string why;
    auto said = parseTarget(host->value, 80, why);
    if (!said || said->host != request.target.host || said->port != request.target.port) {
      return "its Host header names another host than its URL";
    }
    return std::nullopt;
  }

  bool isHopByHop(const std::string& name, const std::vector<std::string_view>& connection) const {
    static const std::array names = {
        "connection", "keep-alive", "proxy-connection", "proxy-authorization", "proxy-authenticate", "te",
        "upgrade",    "host",       "content-length",   "transfer-encoding"};
    if (std::find(names.begin(), names.end(), name) != names.end()) return true;
    return std::any_of(connection.begin(), connection.end(),
                       [&](std::string_view list) { return listHas(list, name); });
  }

  void writeHead() {
    std::vector<std::string_view> connection;
    std::string upgrade;
    for (auto& header : headers) {
      if (header.name == "connection") connection.push_back(header.value);
      if (header.name == "upgrade") upgrade = header.value;
    }
    bool asked = std::any_of(connection.begin(), connection.end(), [](auto list) { return listHas(list, "upgrade"); });
    request.upgrade = asked && !upgrade.empty() && request.body == Body::None && !http10;

    auto& head = request.head;
    auto& target = request.target;
    auto host = target.port == 80 ? target.toString().substr(0, target.toString().rfind(':')) : target.toString();
    head = fmt::format("{} {} HTTP/1.{}\r\nHost: {}\r\n", method, path, http10 ? 0 : 1, host);
    for (auto& header : headers) {
      if (isHopByHop(header.name, connection)) continue;
      head.append(header.line);
      head += "\r\n";
    }
    bool sayLength = request.body == Body::Length || (request.body == Body::None && hasLength());
    if (sayLength) head += fmt::format("Content-Length: {}\r\n", request.bodyLength);
    if (request.body == Body::Chunked) head += "Transfer-Encoding: chunked\r\n";
    head += request.upgrade ? "Connection: Upgrade\r\nUpgrade: " + upgrade + "\r\n\r\n" : "Connection: close\r\n\r\n";
  }

  bool hasLength() const {
    return std::any_of(headers.begin(), headers.end(), [](auto& header) { return header.name == "content-length"; });
  }

  Request request;
  std::string method, path, named;
  bool http10 = false;
  int status = 400;
  std::vector<Header> headers;
};

int hexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

size_t headSize(std::string_view text) {
  auto end = text.find("\r\n\r\n");
  return end == std::string_view::npos ? 0 : end + 4;
}

bool isHopeless(std::string_view text) {
  if (text.size() > mostHeadBytes || text.find('\0') != std::string_view::npos) return true;
  for (auto at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1)) {
    if (at == 0 || text[at - 1] != '\r') return true;
  }
  return text.starts_with("\r\n");
}

std::variant<Request, Malformed> parseRequest(std::string_view head) { return Reader().read(head); }

ChunkedBody::State ChunkedBody::step(char c) {
  switch (state) {
    case State::Size: {
      int digit = hexDigit(c);
      if (digit < 0) return c == '\r' && digits > 0 ? State::SizeLf : State::Broken;
      // Eight digits: no client of ours sends a chunk of more than 4 GiB.
      if (++digits > 8) return State::Broken;
      left = left * 16 + static_cast<unsigned>(digit);
      return State::Size;
    }
    case State::SizeLf:
      digits = 0;
      if (c != '\n') return State::Broken;
      return left > 0 ? State::Data : State::EndCr;
    case State::DataCr: return c == '\r' ? State::DataLf : State::Broken;
    case State::DataLf: return c == '\n' ? State::Size : State::Broken;
    case State::EndCr: return c == '\r' ? State::EndLf : State::Broken;
    case State::EndLf: return c == '\n' ? State::Ended : State::Broken;
    case State::Data:
    case State::Ended:
    case State::Broken: break;
  }
  return State::Broken;
}

size_t ChunkedBody::take(std::string_view bytes) {
  size_t at = 0;
  while (at < bytes.size() && !ended() && !broken()) {
    if (state == State::Data) {
      auto part = std::min<uint64_t>(left, bytes.size() - at);
      at += part;
      left -= part;
      if (left == 0) state = State::DataCr;
      continue;
    }
    state = step(bytes[at]);
    if (!broken()) ++at;
  }
  return at;
}

}  // namespace oc::gateway
