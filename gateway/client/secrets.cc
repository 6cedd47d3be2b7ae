#include "secrets.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "base/fd.h"

namespace oc::gateway {

namespace {

constexpr size_t mostBytes = 1 << 20;
constexpr size_t mostSecrets = 1024;

// The JSON library keeps copies of what it reads in memory that it does not wipe. This reads one flat object of texts
// from one place to another, and nothing else.
class FlatObject {
 public:
  FlatObject(std::string_view text, char* out) : rest(text), out(out) {}

  std::vector<char*> read() {
    std::vector<char*> entries;
    expect('{');
    if (next() == '}') return expect('}'), finish(entries);
    for (;;) {
      entries.push_back(out);
      readName(entries.back());
      expect(':');
      readText();
      *out++ = '\0';
      if (entries.size() > mostSecrets) fail("the secret file has too many entries");
      if (next() != ',') break;
      expect(',');
    }
    expect('}');
    return finish(entries);
  }

 private:
  [[noreturn]] static void broken() { fail("the secret file is no JSON object of texts"); }

  std::vector<char*> finish(std::vector<char*>& entries) {
    if (next() != '\0' || !rest.empty()) broken();
    return std::move(entries);
  }

  // The next character that is no white space, which stays; NUL at the end.
  char next() {
    while (!rest.empty() && strchr(" \t\r\n", rest.front()) != nullptr && rest.front() != '\0') rest.remove_prefix(1);
    return rest.empty() ? '\0' : rest.front();
  }

  void expect(char c) {
    if (next() != c || rest.empty()) broken();
    rest.remove_prefix(1);
  }

  char take() {
    if (rest.empty()) broken();
    char c = rest.front();
    rest.remove_prefix(1);
    return c;
  }

  void readName(char* begin) {
    readText();
    auto legal = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    bool name = begin != out && !(*begin >= '0' && *begin <= '9') && std::all_of(begin, out, legal);
    if (!name) fail("the secret file has a name that can't be a variable's");
    *out++ = '=';
  }

  void readText() {
    expect('"');
    for (;;) {
      char c = take();
      if (c == '"') return;
      if (c == '\\') {
        readEscape();
      } else if (static_cast<unsigned char>(c) < 0x20) {
        broken();
      } else {
        *out++ = c;
      }
    }
  }

  void readEscape() {
    constexpr std::string_view escapes = "\"\\/bfnrt", values = "\"\\/\b\f\n\r\t";
    char c = take();
    if (c == 'u') return writeUtf8(readCodePoint());
    auto at = escapes.find(c);
    if (at == std::string_view::npos) broken();
    *out++ = values[at];
  }

  unsigned readHex() {
    unsigned value = 0;
    for (int i = 0; i < 4; ++i) {
      constexpr std::string_view digits = "0123456789abcdefABCDEF";
      auto at = digits.find(take());
      if (at == std::string_view::npos) broken();
      value = value * 16 + static_cast<unsigned>(at < 16 ? at : at - 6);
    }
    return value;
  }

  unsigned readCodePoint() {
    auto first = readHex();
    if (first >= 0xDC00 && first < 0xE000) broken();
    if (first < 0xD800 || first >= 0xDC00) return first;
    if (take() != '\\' || take() != 'u') broken();
    auto second = readHex();
    if (second < 0xDC00 || second >= 0xE000) broken();
    return 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
  }

  // Never longer than the six characters of its escape.
  void writeUtf8(unsigned c) {
    if (c == 0) fail("the secret file has a NUL in a text, which no variable can have");
    if (c < 0x80) {
      *out++ = static_cast<char>(c);
      return;
    }
    int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    constexpr unsigned lead[] = {0, 0xC0, 0xE0, 0xF0};
    *out++ = static_cast<char>(lead[more] | (c >> (6 * more)));
    while (more-- > 0) *out++ = static_cast<char>(0x80 | ((c >> (6 * more)) & 0x3F));
  }

  std::string_view rest;
  char* out;
};

}  // namespace

WipedMemory::WipedMemory(size_t size) : bytes(size) {
  void* got = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (got == MAP_FAILED) fail("there is no memory for the secrets");
  memory = static_cast<char*>(got);
  // Limits may forbid the first; the second is for those who switch dumps on.
  mlock(memory, bytes);
  madvise(memory, bytes, MADV_DONTDUMP);
}

WipedMemory::~WipedMemory() {
  wipe();
  munmap(memory, bytes);
}

void WipedMemory::wipe() { explicit_bzero(memory, bytes); }

// Decoded, a text is never longer than it was; a name's '=' and a value's end take the place of quotes.
Secrets::Secrets(const std::string& file) : text(mostBytes + 1), decoded(mostBytes + 1) {
  int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) fail(fmt::format("the secret file {} can't be opened: {}", file, strerror(errno)));
  kj::AutoCloseFd opened(fd);
  struct stat status;
  KJ_SYSCALL(fstat(fd, &status));
  // Whatever it is, it doesn't stay.
  if (unlink(file.c_str()) < 0) fail(fmt::format("the secret file {} can't be deleted: {}", file, strerror(errno)));
  if (!S_ISREG(status.st_mode)) fail(fmt::format("the secret file {} is no file", file));
  KJ_SYSCALL(fstat(fd, &status));
  if (status.st_nlink != 0) fail(fmt::format("the secret file {} has another name, under which it would stay", file));
  size_t size = 0;
  for (ssize_t n; (n = ::read(fd, text.begin() + size, text.size() - size)) != 0; size += n) {
    if (n < 0) fail(fmt::format("the secret file {} can't be read: {}", file, strerror(errno)));
  }
  if (size > mostBytes) fail(fmt::format("the secret file {} is larger than {} bytes", file, mostBytes));
  parse(size);
  text.wipe();
}

void Secrets::parse(size_t size) { entries = FlatObject({text.begin(), size}, decoded.begin()).read(); }

bool Secrets::replace(std::string_view variable) const {
  auto name = variable.substr(0, variable.find('=') + 1);
  return !name.empty() && std::any_of(entries.begin(), entries.end(),
                                      [&](char* entry) { return std::string_view(entry).starts_with(name); });
}

void Secrets::wipe() {
  text.wipe();
  decoded.wipe();
  entries.clear();
}

}  // namespace oc::gateway
