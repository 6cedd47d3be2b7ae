// What a compromised provider says to the daemon: its RPC connection, spoken by hand.
#pragma once

#include <string>
#include <vector>

#include "proto/convert.h"

namespace oc::attack {

// Each is said on `connection`, after the handshake; most of them after an answer that gets it started.
const std::vector<std::string>& allSpeeches();

// Returns when it has said all, or was cut off. `truth` is what it would say of its protections.
void speak(int connection, const std::string& what, const Protections& truth);

}  // namespace oc::attack
