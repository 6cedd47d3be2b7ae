// What a run's programs do with its toolbelt: each of these is a word of open-conduit-toolbelt, and returns its exit
// code. They connect to where OPEN_CONDUIT_TOOLBELT says (unix:/path or tcp:127.0.0.1:PORT), and show
// OPEN_CONDUIT_TOOLBELT_TOKEN.
#pragma once

#include <string>
#include <vector>

namespace oc::client {

// An MCP server on standard input and output: bytes go both ways, until either side is done. 1 when the toolbelt
// refused, and standard error says why.
int bridgeMcp();

// `OPERATION [JSON]`: prints the result as JSON. 0; 1 when the operation failed or was refused; 2 for a wrong use.
int callOperation(const std::vector<std::string>& words);

// `get`, `store` or `erase`, as git calls a credential helper. `get` answers for the Work's own repository, else with
// quit=1 and a line on standard error that says why; the others do nothing.
int gitCredential(const std::vector<std::string>& words);

}  // namespace oc::client
