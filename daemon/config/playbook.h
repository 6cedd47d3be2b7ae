// Playbooks: what briefs an agent. A text with variables in braces, {title} for one; a brace that is meant as such is
// doubled, and braces around anything but one lower-case word are just braces.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/places.h"
#include "base/refusal.h"

namespace oc::config {

struct Playbook {
  std::string name;
  std::string text;
  std::string file;          // empty: built in
  std::string problem = {};  // of allPlaybooks: why it cannot be used
};

constexpr const char* defaultPlaybook = "work-issue";

// The operator's own lie in CONFIG/playbooks/NAME.md, at most 256 KiB each, and one of the same name goes before a
// built-in one. Refuses (`playbook_unknown`, `playbook_invalid`).
OrRefusal<Playbook> findPlaybook(const Places& places, const std::string& name);
// By name. One that cannot be used says why, and still goes before a built-in one.
std::vector<Playbook> allPlaybooks(const Places& places);

// What a playbook's variables may be: {title}, {body}, {author}, {number}, {branch}, {work}, {run}, {scope}, {binding},
// {base} (the branch that it begins at, or the commit where it is none).
struct Briefing {
  std::string title, body, author, number, branch, work, run, scope, binding, base;
};

// Text from outside as data: each line behind "> ", under a line that says who wrote it.
std::string quotedText(const std::string& author, const std::string& text);

// {title} comes as a quoted string and {body} as quoted lines, whoever wrote them; the others are words of ours.
// Refuses
// (`playbook_invalid`) a variable that there is not, naming it and its line.
OrRefusal<std::string> renderPlaybook(const Playbook& playbook, const Briefing& briefing);

}  // namespace oc::config
