# A run outlives the daemon, and the next one takes it up.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"

new_repository "$checkout"
# Counts until the file that the test makes in its workspace is there; then commits.
script='
  n=0
  while [ ! -e go-on ]; do n=$((n + 1)); echo "line $n"; sleep 0.05; done
  echo "last line $n"
  echo two >>file && git commit -qam "After it all"
  sleep 1'
write_config "$(binding sandboxed srt "$script")" "$(binding plain host "$script")"
check "the daemon starts" start_daemon

lines_in_order() {
  log_of_run | awk '/^line /{ if ($2 != ++n) { print "line " $2 " where " n " should be"; exit 1 } }
    /^last line /{ last = $3 } END { if (last != n) { print "the last line counts " last ", the log has " n; exit 1 } }'
}

killed_by() {
  binding=$1 signal=$2
  check "$binding, $signal: a run starts" new_work "demo/$binding"
  check "$binding, $signal: it runs" until_true log_has "line 3"
  workspace=$(open-conduit work get "$work" --json | jq -r .workspace)
  kill_daemon "$signal"
  check "$binding, $signal: without a daemon the CLI says so" exits 3 open-conduit runs list
  check "$binding, $signal: the next daemon starts" start_daemon
  check "$binding, $signal: the run goes on" run_is state running
  check "$binding, $signal: its output goes on" until_true log_has "line $(($(log_of_run | grep -c .) + 3))"
  : >"$workspace/go-on"
  check "$binding, $signal: it ends" await_end
  check "$binding, $signal: it succeeded, once" run_is outcome succeeded
  check "$binding, $signal: its first attempt is its only one" run_is attempt 1
  check "$binding, $signal: its log has each line once, in order" lines_in_order
  check "$binding, $signal: its commit arrived" checkout_has_commit "After it all"
  git -C "$checkout" branch -q -D "$(run_field branch)"
}
killed_by sandboxed KILL
killed_by plain KILL
killed_by sandboxed TERM

# Ends while nobody looks.
check "a run starts" new_work demo/sandboxed
check "it runs" until_true log_has "line 3"
workspace=$(open-conduit work get "$work" --json | jq -r .workspace)
kill_daemon KILL
: >"$workspace/go-on"
# The script is on its command line.
check "its agent ends without a daemon" until_true no_process_with 'echo "last line'
check "the next daemon starts" start_daemon
check "it learns how the run ended" await_end
check "it succeeded" run_is outcome succeeded
check "its commit arrived" checkout_has_commit "After it all"
check "nothing of the run is left" until_true no_process_with "$run"
