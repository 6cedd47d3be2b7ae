# An upgrade in the middle of a run: to a build of the same version, which takes the run up, and to one that speaks another version
# of the protocol, which has it stopped. Either way its commits are saved, and the shim of before leaves nothing.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"

other=$OPEN_CONDUIT_PROGRAMS/tests/other-version
new_repository "$checkout"
# Commits, and then waits for the file that the test makes.
script='
  echo "$OPEN_CONDUIT_TITLE" >>file && git commit -qam "$OPEN_CONDUIT_TITLE" && echo committed
  while [ ! -e go-on ]; do sleep 0.05; done
  echo later >>file && git commit -qam "$OPEN_CONDUIT_TITLE, later"'
write_config "$(binding sandboxed srt "$script")" "$(binding plain host "$script")"

with_path() { (PATH=$1:$PATH && shift && "$@"); }
start_other_daemon() {
  (PATH=$other:$PATH && exec open-conduitd) >>"$world/daemon.log" 2>&1 &
  daemon=$!
  until_true other_daemon_answers || { tail -n 20 "$world/daemon.log"; return 1; }
}
other_daemon_answers() { is "$(with_path "$other" open-conduit status --json | jq .pid)" "$daemon"; }
# For what is asked of the other daemon, the other command line.
as_other() {
  before=$PATH PATH=$other:$PATH
  "$@"
  code=$?
  PATH=$before
  return $code
}

upgraded_by() {
  binding=$1 signal=$2 title="Upgrade $1 $2"
  check "$binding, $signal: the daemon starts" start_daemon
  check "$binding, $signal: a run starts" new_work "demo/$binding" --title "$title"
  check "$binding, $signal: it runs" until_true log_has committed
  shim=$(open-conduit status --json | jq -r '.instances[] | select(.provider == "run") | .pid')
  kill_daemon "$signal"
  check "$binding, $signal: its shim lives on without a daemon" kill -0 "$shim"
  check "$binding, $signal: the daemon of another version starts" start_other_daemon
  check "$binding, $signal: it ends the run" as_other await_end
  check "$binding, $signal: as interrupted" as_other run_is outcome interrupted
  check "$binding, $signal: since nobody could talk to it" as_other run_is reason orphaned
  check "$binding, $signal: which its notes explain" has "$(as_other run_field notes)" "version 2 of the protocol"
  check "$binding, $signal: what it had committed is saved" checkout_has_commit "$title"
  check "$binding, $signal: it did not go on" refuses checkout_has_commit "$title, later"
  check "$binding, $signal: the shim of before is gone" until_true refuses kill -0 "$shim"
  check "$binding, $signal: no process of the run is left" until_true no_process_with "$run"
  check "$binding, $signal: the command line of before is refused" exits 1 open-conduit runs list
  check "$binding, $signal: and told both versions" has "$(cat "$world/err")" "speaks version 2 of the control protocol, not 1"
  check "$binding, $signal: a run of the new version" as_other new_work "demo/$binding" --title "New $title"
  workspace=$(as_other open-conduit work get "$work" --json | jq -r .workspace)
  : >"$workspace/go-on"
  check "$binding, $signal: ends" as_other await_end
  check "$binding, $signal: and succeeds" as_other run_is outcome succeeded
  kill_daemon TERM
}

# Control: a build of the same version takes the run up, and it goes on.
check "the daemon starts" start_daemon
title="Same version"
check "a run starts" new_work demo/sandboxed --title "$title"
check "it runs" until_true log_has committed
kill_daemon KILL
check "control: the next daemon, of the same version, starts" start_daemon
: >"$(open-conduit work get "$work" --json | jq -r .workspace)/go-on"
check "control: the run ends" await_end
check "control: as it would have" run_is outcome succeeded
check "control: with what it did later" checkout_has_commit "$title, later"
kill_daemon TERM

upgraded_by sandboxed TERM
upgraded_by sandboxed KILL
upgraded_by plain TERM

# And back: what a newer one has begun, an older one ends as well.
check "the daemon of another version starts" start_other_daemon
title="Downgrade"
check "a run starts" as_other new_work demo/sandboxed --title "$title"
check "it runs" as_other until_true log_has committed
kill_daemon KILL
check "the older daemon starts" start_daemon
check "it ends the run" await_end
check "as interrupted" run_is outcome interrupted
check "what it had committed is saved" checkout_has_commit "$title"
check "no process of the run is left" until_true no_process_with "$run"
kill_daemon TERM

# The programs were replaced beneath a daemon that goes on: it starts none of another version.
half=$world/half
mkdir "$half"
ln -s "$other"/open-conduit-* "$half/"
cp "$OPEN_CONDUIT_PROGRAMS/open-conduitd" "$half/"
start_half() {
  "$half/open-conduitd" >>"$world/daemon.log" 2>&1 &
  daemon=$!
  until_true daemon_answers
}
check "a daemon among programs of another version starts" start_half
check "a run of it ends" run_to_end demo/plain --title "Half"
check "as refused" run_is outcome refused
check "in words that say what to do" has "$(run_field message) $(run_field fix)" "of another version than the daemon; reinstall them together"
check "the daemon lives" daemon_answers
