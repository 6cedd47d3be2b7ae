// Memory that this program frees is wiped, whoever used it: values of secrets pass through messages and strings that
// know nothing of them.
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#ifndef OPEN_CONDUIT_SANITIZED  // sanitizers have their own

namespace {

// What is freed by C code, above malloc's per-thread cache: messages' segments begin at 8 KiB.
[[maybe_unused]] const int perturbing = mallopt(M_PERTURB, 0x5a);

void wipeAndFree(void* memory) noexcept {
  if (memory == nullptr) return;
  explicit_bzero(memory, malloc_usable_size(memory));
  free(memory);
}

}  // namespace

// The forms for arrays and with sizes call this one.
void operator delete(void* memory) noexcept { wipeAndFree(memory); }
void operator delete(void* memory, size_t) noexcept { wipeAndFree(memory); }

#endif
