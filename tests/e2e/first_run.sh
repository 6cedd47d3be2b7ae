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
check "the config is good" exits 0 open-conduit config check
check "doctor finds nothing that stops a run" exits 0 open-conduit doctor
check "the daemon starts" start_daemon
check "its state is its owner's alone" is "$(stat -c %a "$XDG_STATE_HOME/open-conduit")" 700

printf 'a body\n' >"$world/body"
check "A2 a sandboxed run ends" run_to_end demo/sandboxed --title "A title" --body-file "$world/body"
check "it succeeded" run_is outcome succeeded
check "title and body reached it" log_has "title: A title"
check "and the body" log_has "body: a body"
check "C7 its commit is in the checkout" checkout_has_commit "Second, by sandboxed"
check "on the branch that runs get names" git -C "$checkout" rev-parse -q --verify "refs/heads/$(run_field branch)"
check "the checkout's own branch did not move" is "$(git -C "$checkout" log --format=%s main | head -n 1)" First
check "C2 it did not read the key" refuses log_has "read the key"
check "C1 it did not write outside" refuses log_has "wrote outside"
check "nothing was written outside" test ! -e "$HOME/outside-sandboxed"
check "A8 it did not read the operator token" refuses log_has "read the token"
check "A8 it did not read the config" refuses log_has "read the config"
check "B19 the pinned policy is the one that was hashed" \
  is "$(open-conduit runs policy "$run" --json | sha256sum | cut -d' ' -f1)" "$(run_field policy.sha256)"
check "its kind is srt" run_is policy.kind srt
first=$work

check "A4 another binding of the scope runs without a sandbox" run_to_end demo/plain --title plain
check "A1 it succeeded" run_is outcome succeeded
check "its commit is in the checkout" checkout_has_commit "Second, by plain"
# The positive controls of the denials above.
check "A1 without a sandbox the key can be read" log_has "read the key"
check "A1 without a sandbox it writes outside" test -e "$HOME/outside-plain"

check "work finish removes the workspace" exits 0 open-conduit work finish "$first"
check "of that Work alone" test ! -e "$XDG_DATA_HOME/open-conduit/works/$first/workspace"
check "and the other's is there" test -d "$XDG_DATA_HOME/open-conduit/works/$work/workspace"
check "a finished Work says so" is "$(open-conduit work get "$first" --json | jq -r .state)" finished
