# A run's shim that hangs, as one that was taken over might: its run can be stopped all the same, nothing of it is left, and what its
# agent had committed is saved. Whether this daemon started it, or took it up.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"

new_repository "$checkout"
script='
  echo "$OPEN_CONDUIT_TITLE" >>file && git commit -qam "$OPEN_CONDUIT_TITLE" && echo committed
  while :; do sleep 1; done'
write_config "$(binding sandboxed srt "$script")" "$(binding plain host "$script")"
jq '.settings.grace = "1s"' "$config" >"$world/shorter" && mv "$world/shorter" "$config"
check "the daemon starts" start_daemon

# There is one run at a time.
the_shim() { open-conduit status --json | jq -r '.instances[] | select(.provider == "run") | .pid'; }

hung() {
  binding=$1 title="Hung $1 $2"
  name="$binding, $2"
  check "$name: a run starts" new_work "demo/$binding" --title "$title"
  check "$name: it runs" until_true log_has committed
  shim=$(the_shim)
  if [ "$2" = adopted ]; then
    kill_daemon KILL
    check "$name: the next daemon takes it up" start_daemon
    check "$name: it goes on" run_is state running
  fi
  check "$name: its shim hangs" kill -STOP "$shim"
  check "$name: it is told to stop" exits 0 open-conduit runs stop "$run"
  check "$name: it ends" await_end
  check "$name: as interrupted, by its shim" is "$(run_field outcome) $(run_field reason)" "interrupted provider_failed"
  check "$name: which the daemon's log tells, too" grep -qF "run $run: the run's shim did not stop it" "$world/daemon.log"
  check "$name: what it had committed is saved" checkout_has_commit "$title"
  check "$name: no process of it is left" until_true no_process_with "$run"
  check "$name: its Work can be finished" exits 0 open-conduit work finish "$work"
}
hung sandboxed started
hung plain started
hung sandboxed adopted
hung plain adopted
check "the daemon lives" daemon_answers

# Control: one that does not hang stops by itself, as stopped.
check "a run starts" new_work demo/sandboxed --title Control
check "it runs" until_true log_has committed
check "it is told to stop" exits 0 open-conduit runs stop "$run"
check "it ends" await_end
check "as stopped" run_is outcome stopped
