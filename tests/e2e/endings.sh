# Ending a run ends all of it, whatever it does.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"

new_repository "$checkout"
# A marker in the command lines of what it starts, so that a survivor can be found.
marker=survivor-$$
stubborn='
  echo two >>file && git commit -qam "Before the end, $0"
  trap "" TERM HUP INT
  (setsid sh -c "trap \"\" TERM HUP; while :; do sleep 1; : '$marker'; done" &) &
  setsid sh -c "trap \"\" TERM; while :; do sleep 1; : '$marker'; done" >/dev/null 2>&1 </dev/null &
  echo agent-is-up
  while :; do sleep 1; : '$marker'; done'
quick='{"timeout": "2s"}'
with_name() { jq --arg name "$1" '.config.command += [$name]'; }
write_config "$(binding sandboxed srt "$stubborn" | with_name sandboxed)" \
  "$(binding plain host "$stubborn" | with_name plain)" \
  "$(binding late-sandboxed srt "$stubborn" "$quick" | with_name late-sandboxed)" \
  "$(binding late-plain host "$stubborn" "$quick" | with_name late-plain)" \
  "$(binding leaves host '(setsid sh -c "while :; do sleep 1; : '$marker'; done" >/dev/null 2>&1 </dev/null &); echo gone')"
# The stubborn ones ignore TERM: no need to wait the usual ten seconds for them.
jq '.settings.grace = "1s"' "$config" >"$config.new" && mv "$config.new" "$config"
check "the daemon starts" start_daemon

for kind in sandboxed plain; do
  check "$kind: a run starts" new_work "demo/$kind"
  check "$kind: it runs" until_true log_has agent-is-up
  check "$kind: there is something to be ended" refuses no_process_with "$marker"
  check "$kind: stop is taken" exits 0 open-conduit runs stop "$run"
  check "$kind: it ends" await_end
  check "$kind: as stopped" run_is outcome stopped
  check "$kind: nothing of it is left" no_process_with "$marker"
  check "$kind: its commit arrived" checkout_has_commit "Before the end, $kind"
  check "$kind: a second stop is refused" exits 1 open-conduit runs stop "$run"

  check "$kind: a run over its timeout ends" run_to_end "demo/late-$kind"
  check "$kind: it did not succeed" refuses run_is outcome succeeded
  check "$kind: it says that time was up" has "$(run_field reason) $(run_field message)" time
  check "$kind: nothing of it is left" no_process_with "$marker"
done

check "a run that leaves a process behind ends" run_to_end demo/leaves
check "it succeeded" run_is outcome succeeded
check "and what it left is gone" no_process_with "$marker"

check "a run starts" new_work demo/sandboxed
check "it runs" until_true log_has agent-is-up
check "work cancel ends it" exits 0 open-conduit work cancel "$work"
check "as stopped" run_is outcome stopped
check "its workspace is gone" test ! -e "$XDG_DATA_HOME/open-conduit/works/$work/workspace"
check "nothing of it is left" no_process_with "$marker"
work_is() { is "$(open-conduit work get "$work" --json | jq -r .state)" "$1"; }
check "and the Work is cancelled" work_is cancelled

# Its run is writing what it knows of the Work just then.
for kind in sandboxed late-plain; do
  new_work "demo/$kind"
  check "$kind: work cancel of one that is being prepared" exits 0 open-conduit work cancel "$work"
  check "$kind: cancels it" work_is cancelled
  check "$kind: with its run" run_is outcome stopped
done
