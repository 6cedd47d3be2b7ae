// Whatever the text, the config is read or refused, in bounded time, and what is refused has a problem with a place.
#include <kj/common.h>
#include <stdint.h>
#include <stdlib.h>

#include <string_view>

#include "base/host_pattern.h"
#include "base/json.h"
#include "daemon/config/load.h"
#include "daemon/config/quick_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace oc;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  // What is read in one pass is what another parser reads.
  if (auto quick = config::readSound(text)) {
    auto other = parseJson(text);
    if (other.is_discarded() || quick->toJson() != other) abort();
  }
  auto loaded = config::loadText(text, "config.json", {"/home/op"});
  if (loaded.config.has_value() == loaded.hasErrors()) abort();
  for (auto& diagnostic : loaded.diagnostics) {
    auto shown = config::render(diagnostic, "config.json");
    if (diagnostic.message.empty() || shown.find('\x1b') != std::string::npos) abort();
  }
  // A host's form is its own fixed point.
  std::string why;
  if (auto pattern = parseHostPattern(text.substr(0, 512), why)) {
    auto again = parseHostPattern(pattern->toString(), why);
    if (!again || !(*again == *pattern)) abort();
  } else if (why.empty()) {
    abort();
  }
  return 0;
}
