// fmt comes as a shared library alone, and a static program needs it, too. Its header-only form, compiled here once,
// defines what the library would: the formatting that all of base's calls end in.
#define FMT_HEADER_ONLY
#include <fmt/format.h>

namespace {

using Format = std::string (*)(fmt::string_view, fmt::format_args);
[[gnu::used]] Format volatile formatting = &fmt::vformat;

}  // namespace
