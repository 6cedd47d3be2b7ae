// What the Engine could not or would not do, as refusals: its own words, and what a person can do about it.
#pragma once

#include <string>

#include "base/refusal.h"
#include "engine.h"

namespace oc::docker {

// `doing` completes "the engine could not …". `context` is the Docker context's name, for commands to type; empty:
// none.
Refusal refusalOf(const Answer& answer, const std::string& doing, const std::string& context);

// Nothing when the answer to `GET /version` is that of an Engine that has all we need.
std::optional<Refusal> refuseVersion(const Answer& answer);

// The Engine is not there any more, or its answer made no sense.
Refusal engineGone(const kj::Exception& exception);

// Of an image that could not be pulled, and why in the engine's words. A person's own pull signs in as they do.
Refusal pullRefusal(const std::string& reference, const std::string& message, const std::string& context);

// "docker pull REFERENCE", with the context where it is not the default.
std::string pullCommand(const std::string& reference, const std::string& context);
// "docker image ls --no-trunc", likewise.
std::string imagesCommand(const std::string& context);

// An answer that lacks what it must have.
Refusal malformedAnswer(const std::string& what);

}  // namespace oc::docker
