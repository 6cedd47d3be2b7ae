// A fuzzer's input as a list of decisions. Behind its end every decision is 0.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <string>
#include <vector>

namespace oc::fuzz {

class Input {
 public:
  // `words` are texts that mean something to who is spoken to.
  Input(const uint8_t* data, size_t size, std::vector<std::string> words = {})
      : next(data), end(data + size), words(std::move(words)) {}

  bool done() const { return next == end; }
  uint8_t byte() { return done() ? 0 : *next++; }
  // 0 … bound-1.
  size_t below(size_t bound) { return byte() % bound; }
  // Small ones mostly, and those where things end: what lies around powers of two.
  uint64_t number();
  // A few bytes as they are, one of them many times, or one of the words.
  std::string bytes();

 private:
  const uint8_t* next;
  const uint8_t* end;
  std::vector<std::string> words;
};

}  // namespace oc::fuzz
