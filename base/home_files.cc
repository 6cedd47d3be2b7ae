#include "home_files.h"

#include "paths.h"

namespace oc {

const std::vector<std::string>& startupFiles() {
  static const std::vector<std::string> files = {
      // shells
      ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv",
      ".zprofile", ".zlogin", ".zlogout", ".config/fish", ".inputrc", ".config/direnv",
      // sessions
      ".pam_environment", ".xprofile", ".xsession", ".xsessionrc", ".xinitrc", ".config/autostart", ".config/systemd",
      ".config/environment.d", ".local/share/applications", ".local/share/dbus-1", ".local/share/systemd",
      "Library/LaunchAgents",
      // programs that are found by name
      "bin", ".local/bin", ".cargo/bin",
      // git, editors, terminals, package managers
      ".gitconfig", ".config/git", ".config/nvim", ".vim", ".vimrc", ".emacs", ".emacs.d", ".config/emacs",
      ".tmux.conf", ".config/tmux", ".vscode", ".config/Code", ".npmrc", ".cargo/config", ".cargo/config.toml",
      ".gdbinit", ".config/gdb",
      // docker starts what these name; and the engine that our own containers are made on is looked up in them.
      ".docker/config.json", ".docker/cli-plugins", ".docker/contexts"};
  return files;
}

const std::vector<std::string>& credentialFiles() {
  static const std::vector<std::string> files = {
      ".ssh",
      ".gnupg",
      ".aws",
      ".azure",
      ".config/gcloud",
      ".kube",
      ".config/gh",
      ".docker/config.json",
      ".netrc",
      ".git-credentials",
#ifdef __APPLE__
      "Library/Keychains",
#endif
  };
  return files;
}

std::string startupFileTouched(const std::string& home, const std::string& path) {
  if (home.empty()) return "";
  for (auto& name : startupFiles()) {
    auto file = home + "/" + name;
    if (isAtOrUnder(path, file) || isAtOrUnder(file, path)) return file;
  }
  return "";
}

}  // namespace oc
