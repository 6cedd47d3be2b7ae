# XDG directories that were moved beneath a folder which a policy lets runs write: runs work, and see nothing of ours.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"

new_repository "$checkout"
mkdir "$world/granted"
echo "a neighbour" >"$world/granted/neighbour"
script='
  cat "'$world'/granted/neighbour"; echo written >"'$world'/granted/made"
  for secret in "$@"; do
    cat "$secret" >/dev/null && echo "read $secret"
    mv "$(dirname "$secret")" "'$world'/granted/stolen" && echo "moved $secret"
  done
  echo two >>file && git commit -qam "From within"; exit 0'
# moves NAME PLACE: the directory of the variable lies in the granted folder from now on.
moves() {
  mv "$2" "$world/granted/${2##*/}" && eval "$1=$world/granted/${2##*/}"
}
for variable in XDG_STATE_HOME XDG_DATA_HOME XDG_RUNTIME_DIR XDG_CONFIG_HOME; do
  eval "place=\$$variable"
  check "$variable is moved" moves "$variable" "$place"
  config=$XDG_CONFIG_HOME/open-conduit/config.json
  secrets="$XDG_STATE_HOME/open-conduit/operator-token $config $XDG_RUNTIME_DIR/open-conduit/control.sock"
  write_config "$(binding boxed srt "set -- $secrets; $script" "{\"sandbox\": {\"config\": {\"write\": [\"{workspace}\", \"$world/granted\"]}}}")"
  rm -f "$world/granted/made"
  check "$variable: the daemon starts" start_daemon
  check "$variable: a run ends" run_to_end demo/boxed --title "$variable"
  check "$variable: it succeeded" run_is outcome succeeded
  check "$variable: its commit arrived" checkout_has_commit "From within"
  check "$variable: control: what lies beside can be read" log_has "a neighbour"
  check "$variable: control: and written" test -s "$world/granted/made"
  for secret in $secrets; do
    check "A8 $variable: it did not read $secret" refuses log_has "read $secret"
    check "A8 $variable: nor move it" refuses log_has "moved $secret"
    check "A8 $variable: which is there" test -e "$secret"
  done
  kill_daemon TERM
done
