#include "denials.h"

#include <algorithm>

#include "base/text.h"

namespace oc::kit {

void DenialList::add(const Denial& denial) {
  Denial entry = {shortened(printable(denial.kind), 16), shortened(printable(denial.what), 1024),
                  shortened(printable(denial.why), 256)};
  bool known = std::any_of(denials.begin(), denials.end(),
                           [&](auto& other) { return other.kind == entry.kind && other.what == entry.what; });
  if (known || denials.size() >= most) return;
  denials.push_back(std::move(entry));
  for (auto& fulfiller : waiting) fulfiller->fulfill();
  waiting.clear();
}

kj::Promise<void> DenialList::whenMoreThan(size_t count) {
  if (denials.size() > count) return kj::READY_NOW;
  auto pair = kj::newPromiseAndFulfiller<void>();
  waiting.push_back(kj::mv(pair.fulfiller));
  return pair.promise.then([this, count]() { return whenMoreThan(count); });
}

}  // namespace oc::kit
