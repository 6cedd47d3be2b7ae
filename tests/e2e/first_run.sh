# A first run, end to end, in a sandbox and without.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"

mkdir "$HOME/.ssh"
echo secret >"$HOME/.ssh/id_ed25519"
new_repository "$checkout"
work_script='
  echo "title: $OPEN_CONDUIT_TITLE"; echo "body: $(cat "$OPEN_CONDUIT_BODY_FILE")"
  echo two >>file && git commit -qam "Second, by $0" && echo committed
  cat "'$HOME'/.ssh/id_ed25519" && echo "read the key"
  echo x >"'$HOME'/outside-$0" && echo "wrote outside"
  cat "'$XDG_STATE_HOME'/open-conduit/operator-token" >/dev/null && echo "read the token"
  cat "'$config'" >/dev/null && echo "read the config"
  exit 0'
# $0 of the script is the binding's name.
named() { jq --arg name "$1" '.config.command += [$name]'; }
write_config "$(binding sandboxed srt "$work_script" | named sandboxed)" \
  "$(binding plain host "$work_script" | named plain)"
