#include "input.h"

namespace oc::fuzz {

uint64_t Input::number() {
  auto kind = byte();
  if (kind < 128) return kind;
  if (kind < 192) return (uint64_t(1) << (kind % 64)) + byte() - 128;
  uint64_t value = 0;
  for (int i = 0; i < kind % 8; ++i) value = value << 8 | byte();
  return value;
}

std::string Input::bytes() {
  auto kind = byte();
  if (kind >= 192) return std::string(size_t(1) << (kind % 18), static_cast<char>(byte()));
  if (kind >= 128 && !words.empty()) return words[kind % words.size()];
  std::string result;
  for (int i = 0; i < kind % 32 && !done(); ++i) result += static_cast<char>(byte());
  return result;
}

}  // namespace oc::fuzz
