# Places that links lead to: a home, XDG directories, srt's folder, the config. What is denied stays denied behind them.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"

new_repository "$checkout"
mkdir "$HOME/.ssh" "$world/dotfiles" "$world/real"
echo "a key" >"$HOME/.ssh/id_ed25519"
echo "a neighbour" >"$world/dotfiles/neighbour"
script='
  cat "'$world'/dotfiles/neighbour"
  cat "'$world'/dotfiles/config.json" >/dev/null && echo "read the config behind its link"
  echo x >>"'$world'/dotfiles/config.json" && echo "wrote the config behind its link"
  mv "'$world'/dotfiles/config.json" "'$world'/dotfiles/aside" && echo "moved the config"
  cat "'$config'" >/dev/null && echo "read the config"
  ls "'$XDG_STATE_HOME'/open-conduit" | grep state.db && echo "saw the state"
  for home in "'$HOME'" "'$world'/real/home"; do cat "$home/.ssh/id_ed25519" && echo "read the key"; done
  echo two >>file && git commit -qam "Behind links"; exit 0'
write_config "$(binding boxed srt "$script" "{\"sandbox\": {\"config\": {\"write\": [\"{workspace}\", \"$world/dotfiles\"]}}}")"
mv "$config" "$world/dotfiles/config.json"
ln -s "$world/dotfiles/config.json" "$config"

# holds WHAT: a run works, and keeps to its policy.
holds() {
  check "$1: doctor finds nothing that stops a run" exits 0 open-conduit doctor
  check "$1: the daemon starts" start_daemon
  check "$1: a run ends" run_to_end demo/boxed --title "$1"
  check "$1: it succeeded" run_is outcome succeeded
  check "$1: its commit arrived" checkout_has_commit "Behind links"
  check "$1: control: what lies beside the config can be read" log_has "a neighbour"
  for deed in "read the config behind its link" "wrote the config behind its link" "moved the config" "read the config" \
    "saw the state" "read the key"; do
    check "A8 C2 $1: it did not: $deed" refuses log_has "$deed"
  done
  kill_daemon TERM
}

# behind_link DIR: it lies elsewhere from now on, and a link is in its place.
behind_link() {
  name=${1##*/}
  mv "$1" "$world/real/$name" && ln -s "$world/real/$name" "$1"
}

holds "a linked config"
for place in "$XDG_DATA_HOME" "$XDG_STATE_HOME" "$XDG_RUNTIME_DIR" "$XDG_CONFIG_HOME" "$HOME"; do
  check "$place becomes a link" behind_link "$place"
  holds "with a link at ${place##*/}"
done

# srt in our own folder, by a link to a version of it.
cp -R "$OPEN_CONDUIT_TEST_SRT" "$XDG_DATA_HOME/open-conduit/srt-1"
ln -s srt-1 "$XDG_DATA_HOME/open-conduit/srt"
jq 'del(.settings.extensions)' "$world/dotfiles/config.json" >"$world/new" && cat "$world/new" >"$world/dotfiles/config.json"
holds "a linked srt"

# Who may write where a link lies could put another folder in its place.
mkdir "$world/around"
mv "$XDG_STATE_HOME" "$world/around/state"
XDG_STATE_HOME=$world/around/state
jq --arg around "$world/around" '.scopes[0].bindings[0].sandbox.config.write += [$around]' "$world/dotfiles/config.json" \
  >"$world/new" && cat "$world/new" >"$world/dotfiles/config.json"
check "the daemon starts with its state behind another link" start_daemon
check "A8 a write that could replace that link is refused" exits 1 open-conduit work new --binding demo/boxed --wait
check "A8 naming the link" grep -q "around/state, a link that leads to Open Conduit's own" "$world/err"
