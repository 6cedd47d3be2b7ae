#include "secret_source.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <signal.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "text.h"

namespace oc {

namespace {

Refusal unavailable(const std::string& path, const std::string& why, const std::string& fix) {
  return {"secret_unavailable", fmt::format("{} {}", printable(path), why), fix};
}

// Grows without leaving copies behind.
class Collected {
 public:
  std::string_view view() const { return bytes.view().substr(0, size); }
  // Until the end, or one byte more than a secret may have. False with errno when a read fails.
  bool readFrom(int fd, bool oneLine) {
    bytes = SecretBytes(std::string(mostSecretBytes + 1, '\0'));
    auto* buffer = const_cast<char*>(bytes.view().data());
    while (size < bytes.size()) {
      ssize_t n = read(fd, buffer + size, bytes.size() - size);
      if (n < 0) return false;
      if (n == 0) break;
      size += n;
      if (oneLine && buffer[size - 1] == '\n') break;
    }
    return true;
  }

 private:
  SecretBytes bytes;
  size_t size = 0;
};

std::string_view withoutNewline(std::string_view text) {
  if (!text.ends_with('\n')) return text;
  text.remove_suffix(1);
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

volatile sig_atomic_t arrived = 0;
void remember(int number) { arrived = number; }

// A terminal that does not show what is typed, until this goes away, however that comes.
class Unechoed {
 public:
  explicit Unechoed(int terminal) : terminal(terminal) {
    KJ_SYSCALL(tcgetattr(terminal, &before));
    struct sigaction action {};
    action.sa_handler = remember;  // without SA_RESTART: the read ends
    for (size_t i = 0; i < std::size(signals); ++i) sigaction(signals[i], &action, &handlers[i]);
    auto hidden = before;
    hidden.c_lflag &= ~(ECHO | ECHOE | ECHOK);
    hidden.c_lflag |= ECHONL | ICANON | ISIG;
    KJ_SYSCALL(tcsetattr(terminal, TCSAFLUSH, &hidden));
  }
  ~Unechoed() {
    tcsetattr(terminal, TCSAFLUSH, &before);
    for (size_t i = 0; i < std::size(signals); ++i) sigaction(signals[i], &handlers[i], nullptr);
  }
  KJ_DISALLOW_COPY(Unechoed);

 private:
  static constexpr int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP};
  int terminal;
  struct termios before;
  struct sigaction handlers[std::size(signals)];
};

bool readTerminal(const std::string& prompt, Collected& collected) {
  arrived = 0;
  bool done;
  {
    Unechoed unechoed(STDIN_FILENO);
    ssize_t ignored = write(STDERR_FILENO, prompt.data(), prompt.size());
    (void)ignored;
    done = collected.readFrom(STDIN_FILENO, true);
  }
  if (arrived != 0) {
    // As if we had not caught it, now that the terminal is as it was.
    raise(arrived);
    errno = EINTR;
    return false;
  }
  return done;
}

}  // namespace

OrRefusal<SecretBytes> readSecretFile(const std::string& path) {
  int raw = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (raw < 0) {
    auto error = errno;
    if (error == ELOOP) return unavailable(path, "is a link", "name the file itself");
    return unavailable(
        path, fmt::format("can't be read: {}", strerror(error)),
        error == EACCES ? "name a file of yours, in folders that you can enter" : "make the file, with mode 0600");
  }
  kj::AutoCloseFd fd(raw);
  struct stat stats;
  KJ_SYSCALL(fstat(raw, &stats), path);
  // No chmod of a folder or a device is to be typed.
  if (!S_ISREG(stats.st_mode)) return unavailable(path, "is no file", "name the file that has the secret in it");
  if (stats.st_uid != geteuid()) {
    return unavailable(path, "is not a file of yours that only you can read",
                       "make a copy that is yours, with mode 0600, and name that");
  }
  if ((stats.st_mode & 0077) != 0) {
    return unavailable(path, "is not a file of yours that only you can read", "chmod 600 " + shellQuote(path));
  }
  Collected collected;
  if (!collected.readFrom(raw, false)) return unavailable(path, fmt::format("can't be read: {}", strerror(errno)), "");
  if (collected.view().size() > mostSecretBytes) {
    return unavailable(path, "is larger than 64 KiB", "a secret is a token or a key; name the right file");
  }
  auto value = withoutNewline(collected.view());
  if (value.empty()) return unavailable(path, "is empty", "write the secret into it");
  if (value.find('\0') != std::string_view::npos) {
    return unavailable(path, "has a NUL in it, which no variable can have", "store it encoded, by base64 for example");
  }
  return SecretBytes(value);
}

OrRefusal<SecretBytes> readSecretInput(const std::string& prompt) {
  auto invalid = [](const std::string& what, const std::string& fix) { return Refusal{"secret_invalid", what, fix}; };
  Collected collected;
  bool isTerminal = isatty(STDIN_FILENO) == 1;
  bool done = isTerminal ? readTerminal(prompt, collected) : collected.readFrom(STDIN_FILENO, false);
  if (!done) return invalid(fmt::format("standard input can't be read: {}", strerror(errno)), "");
  if (collected.view().size() > mostSecretBytes) {
    return invalid("it is larger than 64 KiB", "a secret is a token or a key");
  }
  auto value = withoutNewline(collected.view());
  if (value.empty()) return invalid("nothing was given", "type it, or give it on standard input");
  if (value.find('\0') != std::string_view::npos) {
    return invalid("it has a NUL in it, which no environment variable can have", "encode it, by base64 for example");
  }
  return SecretBytes(value);
}

}  // namespace oc
