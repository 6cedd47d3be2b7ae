#include "transcript.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/json.h"
#include "base/text.h"
#include "times.h"

namespace oc::cli {

namespace {

constexpr size_t mostLine = 1u << 20;
constexpr size_t mostFolded = 160;  // characters of what is folded to a line
constexpr size_t mostText = 64u << 10;
constexpr size_t mostOfFailure = 6;  // lines

std::string textOf(const Json& object, const char* key) {
  auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

double numberOf(const Json& object, const char* key) {
  auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

int64_t countOf(const Json& object, const char* key) {
  return static_cast<int64_t>(std::clamp(numberOf(object, key), 0.0, 1e12));
}

// One line, with the number of lines that it had when there were more.
std::string folded(const std::string& text) {
  auto lines = std::count(text.begin(), text.end(), '\n') + (text.empty() || text.ends_with('\n') ? 0 : 1);
  std::string first;
  for (size_t at = 0; at < text.size() && first.find_first_not_of(" \t\r") == std::string::npos;) {
    auto end = std::min(text.find('\n', at), text.size());
    first = text.substr(at, end - at);
    at = end + 1;
  }
  auto result = oc::cli::line(fitted(printable(first), mostFolded));
  return lines > 1 ? fmt::format("{}   ({} lines)", result, lines) : result;
}

// What failed is looked at: its first lines, each on one.
std::string beginningOf(const std::string& text) {
  std::string result;
  size_t lines = 0, rest = 0;
  for (size_t at = 0; at < text.size();) {
    auto end = std::min(text.find('\n', at), text.size());
    auto one = text.substr(at, end - at);
    at = end + 1;
    if (one.find_first_not_of(" \t\r") == std::string::npos) continue;
    if (lines == mostOfFailure) {
      ++rest;
      continue;
    }
    result += (lines++ == 0 ? "" : "\n    ") + oc::cli::line(fitted(printable(one), mostFolded));
  }
  return rest == 0 ? result : fmt::format("{}\n    ({} more lines)", result, rest);
}

// Claude Code's own words come in a tag.
std::string withoutTag(const std::string& text) {
  constexpr std::string_view begin = "<tool_use_error>", end = "</tool_use_error>";
  if (!text.starts_with(begin) || text.size() < begin.size() + end.size()) return text;
  auto last = text.rfind(end);
  return last == std::string::npos ? text : text.substr(begin.size(), last - begin.size());
}

// The field that says most of a tool's use, else all of its input.
std::string inputOf(const Json& input) {
  if (!input.is_object()) return "";
  for (auto* key : {"command", "file_path", "path", "pattern", "url", "query", "description", "prompt"}) {
    auto text = textOf(input, key);
    if (!text.empty()) return folded(text);
  }
  return input.empty() ? "" : folded(input.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string contentText(const Json& content) {
  if (content.is_string()) return content.get<std::string>();
  std::string text;
  if (!content.is_array()) return text;
  for (auto& block : content) {
    if (!block.is_object()) continue;
    auto kind = textOf(block, "type");
    if (kind == "text") {
      text += textOf(block, "text") + "\n";
    } else {
      text += "(" + kind + ")\n";
    }
  }
  return text;
}

std::string spoken(const std::string& text, const char* indent) {
  return indent + paragraph(shortened(text, mostText), 0) + "\n";
}

// The number of an escape `\uXXXX` that begins here; 0: none does.
unsigned escapeAt(std::string_view text) {
  if (text.size() < 6 || !text.starts_with("\\u")) return 0;
  unsigned code = 0;
  auto [end, error] = std::from_chars(text.data() + 2, text.data() + 6, code, 16);
  return error == std::errc() && end == text.data() + 6 ? code : 0;
}

// Halves of a surrogate pair, which JavaScript prints where it has cut a text in the midst of a character, are no JSON
// to others.
std::string withoutHalves(std::string_view line) {
  std::string result;
  for (size_t at = 0; at < line.size();) {
    auto code = escapeAt(line.substr(at)), next = code == 0 ? 0 : escapeAt(line.substr(at + 6));
    bool pair = code >= 0xD800 && code <= 0xDBFF && next >= 0xDC00 && next <= 0xDFFF;
    bool half = code >= 0xD800 && code <= 0xDFFF && !pair;
    size_t length = pair ? 12 : code != 0 ? 6 : line[at] == '\\' ? 2 : 1;
    result += half ? "\\ufffd" : line.substr(at, length);
    at += length;
  }
  return result;
}

class Event {
 public:
  Event(const Look& look, const Json& event) : look(look), event(event) {}

  std::string render() const {
    auto type = textOf(event, "type");
    if (type == "assistant") return blocks(false);
    if (type == "user") return blocks(true);
    if (type == "system") return system();
    if (type == "result") return result();
    return "";  // what concerns only programs
  }

 private:
  std::string dim(const std::string& text) const { return tinted(look, Tint::Dim, text); }

  std::string system() const {
    auto subtype = textOf(event, "subtype");
    if (subtype == "init") {
      return dim(fmt::format("· claude {}, {}, session {}", line(textOf(event, "claude_code_version")),
                             line(textOf(event, "model")), line(textOf(event, "session_id")))) +
             "\n" + servers();
    }
    if (subtype == "api_retry") {
      auto status = countOf(event, "error_status");
      return tinted(look, Tint::Caution,
                    fmt::format("! the API answered {} ({}), try {}", status == 0 ? "nothing" : fmt::to_string(status),
                                line(textOf(event, "error")), countOf(event, "attempt"))) +
             "\n";
    }
    return "";
  }

  std::string servers() const {
    std::string text;
    auto found = event.find("mcp_servers");
    if (found == event.end() || !found->is_array()) return text;
    for (auto& server : *found) {
      if (!server.is_object() || textOf(server, "status") == "connected") continue;
      text += tinted(look, Tint::Caution,
                     fmt::format("! MCP server {}: {}", line(textOf(server, "name")), line(textOf(server, "status")))) +
              "\n";
    }
    return text;
  }

  std::string blocks(bool fromUser) const {
    auto message = event.find("message");
    if (message == event.end() || !message->is_object()) return "";
    auto content = message->find("content");
    if (content == message->end()) return "";
    // Beneath a tool that is an agent of its own.
    bool nested = !textOf(event, "parent_tool_use_id").empty();
    if (content->is_string())
      return fromUser ? told(content->get<std::string>()) : spoken(content->get<std::string>(), "\n");
    std::string text;
    if (!content->is_array()) return text;
    for (auto& block : *content) {
      if (block.is_object()) text += (nested ? "  " : "") + this->block(block, fromUser);
    }
    return text;
  }

  std::string block(const Json& block, bool fromUser) const {
    auto kind = textOf(block, "type");
    if (kind == "text") return fromUser ? told(textOf(block, "text")) : spoken(textOf(block, "text"), "\n");
    if (kind == "thinking") return dim("  (thinks) " + folded(textOf(block, "thinking"))) + "\n";
    if (kind == "tool_use") {
      auto input = block.find("input");
      return tinted(look, Tint::Bold, "→ " + line(textOf(block, "name"))) + "  " +
             (input == block.end() ? "" : inputOf(*input)) + "\n";
    }
    if (kind == "tool_result") {
      auto content = block.find("content");
      auto error = block.find("is_error");
      bool failed = error != block.end() && error->is_boolean() && error->get<bool>();
      auto all = content == block.end() ? "" : contentText(*content);
      auto text = failed ? beginningOf(withoutTag(all)) : folded(all);
      return tinted(look, failed ? Tint::Bad : Tint::Dim,
                    (failed ? "  ✗ " : "  ← ") + (text.empty() ? "(nothing)" : text)) +
             "\n";
    }
    return "";
  }

  std::string told(const std::string& text) const { return tinted(look, Tint::Dim, "« " + folded(text)) + "\n"; }

  std::string result() const {
    auto error = event.find("is_error");
    bool failed =
        (error != event.end() && error->is_boolean() && error->get<bool>()) || textOf(event, "subtype") != "success";
    auto text =
        fmt::format("\n{} after {} turns, {}, ${:.4f}", failed ? "✗ failed" : "✓ done", countOf(event, "num_turns"),
                    span(static_cast<int64_t>(std::clamp(numberOf(event, "duration_ms"), 0.0, 1e12))),
                    std::clamp(numberOf(event, "total_cost_usd"), 0.0, 1e9));
    // An API that failed is told with the subtype of a success.
    auto kind = textOf(event, "subtype") == "success" ? "" : line(textOf(event, "subtype")) + " ";
    if (failed) text += "   " + kind + folded(textOf(event, "result"));
    return tinted(look, failed ? Tint::Bad : Tint::Good, text) + "\n";
  }

  const Look& look;
  const Json& event;
};

}  // namespace

std::string Transcript::feed(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    auto end = bytes.find('\n');
    auto piece = bytes.substr(0, end);
    length += piece.size();
    if (line.size() < mostLine) line += piece.substr(0, mostLine - line.size());
    if (end == std::string_view::npos) break;
    text += endLine();
    bytes.remove_prefix(end + 1);
  }
  return text;
}

std::string Transcript::finish() { return length == 0 ? "" : endLine(); }

std::string Transcript::endLine() {
  auto text = length > mostLine
                  ? tinted(look, Tint::Dim, fmt::format("(a line of {} bytes: --raw shows it)", length)) + "\n"
                  : render(line);
  line.clear();
  length = 0;
  return text;
}

std::string Transcript::render(std::string_view whole) const {
  if (whole.starts_with('{')) {
    auto event = parseJson(whole);
    if (event.is_discarded()) event = parseJson(withoutHalves(whole));
    if (event.is_object() && !textOf(event, "type").empty()) {
      try {
        return Event(look, event).render();
      } catch (const Json::exception&) {
        // Of a shape that nobody expected: as it is.
      }
    }
  }
  return oc::cli::line(shortened(whole, 4096)) + "\n";
}

// ---- a log of any kind

namespace {

constexpr size_t mostHeld = 64u << 10;

bool isClaudes(std::string_view line) {
  return line.find("\"type\"") != std::string_view::npos && line.find("\"session_id\"") != std::string_view::npos;
}

}  // namespace

std::string LogView::plain(std::string_view bytes) { return look.terminal ? filter.feed(bytes) : std::string(bytes); }

std::string LogView::feed(std::string_view bytes) {
  std::string text;
  while (kind == Kind::Unknown && !bytes.empty()) {
    bool holds = !held.empty() || (atLineStart && bytes[0] == '{');
    auto end = bytes.find('\n');
    auto piece = bytes.substr(0, end == std::string_view::npos ? end : end + 1);
    atLineStart = end != std::string_view::npos;
    if (holds) {
      held += piece;
      if (atLineStart || held.size() > mostHeld) text += decide(false);
    } else {
      text += plain(piece);
    }
    bytes.remove_prefix(piece.size());
  }
  if (bytes.empty()) return text;
  return text + (kind == Kind::Transcript ? transcript.feed(bytes) : plain(bytes));
}

std::string LogView::decide(bool last) {
  kind = isClaudes(held) ? Kind::Transcript : Kind::Plain;
  auto bytes = std::move(held);
  held.clear();
  if (kind == Kind::Transcript) return (look.terminal ? filter.finish() : "") + transcript.feed(bytes);
  auto text = plain(bytes);
  if (last && look.terminal) text += filter.finish();
  return text;
}

std::string LogView::finish() {
  if (kind == Kind::Transcript) return transcript.finish();
  if (!held.empty()) return decide(true) + (kind == Kind::Transcript ? transcript.finish() : "");
  return look.terminal ? filter.finish() : "";
}

}  // namespace oc::cli
