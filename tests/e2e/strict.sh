# The strict mode, through the daemon: honest work goes on, what is not listed cannot be read, and the plain mode beside
# it shows that it is there. What config explain says of both is what happens.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"

new_repository "$checkout"
mkdir "$HOME/listed" "$HOME/unlisted" "$HOME/granted" "$HOME/.ssh"
for file in listed/file unlisted/file granted/file .ssh/id_ed25519 notes; do echo "$file" >"$HOME/$file"; done
ln -s "$HOME/unlisted" "$HOME/listed/way"
asked="$HOME/listed/file $HOME/unlisted/file $HOME/listed/way/file $HOME/granted/file $HOME/.ssh/id_ed25519 $HOME/notes
  $HOME/.gitconfig $checkout/file /usr/bin/git /etc/passwd /etc/fstab /var/lib/dpkg/status $config $XDG_STATE_HOME/open-conduit/operator-token"
script='
  for path in '$(echo $asked)'; do
    if cat "$path" >/dev/null 2>&1; then echo "can read $path"; else echo "cannot read $path"; fi
  done
  for path in "'$HOME'/granted/made" "'$HOME'/listed/made" "'$HOME'/made" made; do
    if echo made 2>/dev/null >"$path"; then echo "writable: $path"; fi
  done
  echo two >>file && git checkout -q -b other && git checkout -q - && git commit -qam "From $0" && git log --oneline | wc -l &&
    git fsck 2>/dev/null && git gc -q && git status --short && git show --format=%an -s && printf "worked\n"'
with() { jq -n --argjson read "$1" --arg granted "$HOME/granted" '{sandbox: {config: {write: ["{workspace}", $granted], read: $read}}}'; }
named() { binding "$1" srt "$script" "$2" | jq --arg name "$1" '.config.command += [$name] | .config.env = {GIT_AUTHOR_NAME: "Agent",
  GIT_AUTHOR_EMAIL: "agent@example.org", GIT_COMMITTER_NAME: "Agent", GIT_COMMITTER_EMAIL: "agent@example.org"}'; }
write_config "$(named plain "$(with '{}')")" "$(named strict "$(with "{\"only\": [\"~/listed\", \"~/not-there\"]}")")"
check "config check takes it" exits 0 open-conduit config check
check "the daemon starts" start_daemon

# as_explained MODE: each answer of config explain is what the run met.
as_explained() {
  for path in $asked; do
    open-conduit config explain "demo/$1" --path "$path" --json >"$world/answer"
    if log_has "can read $path"; then seen=true; else seen=false; fi
    is "$path $(jq '.answers[] | select(.question == "read") | .yes' "$world/answer")" "$path $seen" || return 1
  done
}

for mode in plain strict; do
  check "$mode: a run ends" run_to_end "demo/$mode"
  check "$mode: it succeeded" run_is outcome succeeded
  check "$mode: git worked in it" log_has worked
  check "$mode: its commit arrived" checkout_has_commit "From $mode"
  check "C1 $mode: what is granted could be written" test -s "$HOME/granted/made"
  check "C1 $mode: and what is listed to be read could not" refuses log_has "writable: $HOME/listed/made"
  # Where nothing is listed lies an empty file system, in which it may write what it likes.
  check "C1 $mode: nor the home" test ! -e "$HOME/made"
  check "C1 $mode: nor what is listed, seen from outside" test ! -e "$HOME/listed/made"
  rm -f "$HOME/granted/made"
  check "C2 $mode: credentials could not be read" log_has "cannot read $HOME/.ssh/id_ed25519"
  check "A8 $mode: nor our own" log_has "cannot read $XDG_STATE_HOME/open-conduit/operator-token"
  for path in "$HOME/listed/file" "$HOME/granted/file" /usr/bin/git /etc/passwd; do
    check "C2 $mode: $path could be read" log_has "can read $path"
  done
  check "G4 $mode: config explain says what the run met" as_explained "$mode"
  eval "${mode}_log=\$(log_of_run)"
done
for path in "$HOME/unlisted/file" "$HOME/listed/way/file" "$HOME/notes" "$HOME/.gitconfig" "$checkout/file" /etc/fstab /var/lib/dpkg/status; do
  check "C2 strict: what is not listed could not be read: $path" has "$strict_log" "cannot read $path"
  check "control: in the plain mode it could: $path" has "$plain_log" "can read $path"
done
check "an entry that does not exist is in the run's notes" has "$(open-conduit runs get "$run")" "not-there"
check "the plan has the mode" has "$(open-conduit runs policy "$run")" '"denyRead"'
check "config explain shows the strict mode's rule" has "$(open-conduit config explain demo/strict)" "read.only lists all that is readable"
check "and the plain mode's" has "$(open-conduit config explain demo/plain)" "a process sandbox denies rather than allows"

write_config "$(named strict "$(with '{"only": ["~/listed"], "deny": ["~/listed/way"]}')")"
check "F1 read.only beside read.deny is refused by config check" exits 1 open-conduit config check
