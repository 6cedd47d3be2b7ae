#include "cli/client.h"
#include "cli/ui/views.h"
#include "commands.h"

namespace oc::cli {

void addStatus(Command& all, Choice& choice) {
  all.command("status", "The daemon, what it runs, and the protections in force", [&choice](World& world) {
    auto link = world.connect();
    auto answer = ask(world, link.control.statusRequest().send());
    if (choice.json) {
      print(world, statusDocument(answer.getStatus(), world.look.now));
    } else {
      world.out(statusView(world.look, answer.getStatus()));
    }
    return Done;
  });
}

}  // namespace oc::cli
