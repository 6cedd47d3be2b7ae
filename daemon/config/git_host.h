// Where the repositories of a GitHub are, by its API.
#pragma once

#include <string>

namespace oc::config {

// The host, with a port if there is one, of an `api_url`: "github.com" of "https://api.github.com", else the API's own.
// Empty where that is no URL.
std::string gitHostOf(const std::string& apiUrl);

}  // namespace oc::config
