# What cannot be enforced does not run, and the run says why.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"

new_repository "$checkout"
script='echo two >>file && git commit -qam "It ran"'
srt_folder=$world/no-srt
write_config "$(binding sandboxed srt "$script")"
check "the daemon starts without srt" start_daemon
check "A7 a refused run exits with 1" exits 1 open-conduit work new --binding demo/sandboxed --wait
check "its reason and fix are on stderr" grep -q 'sandbox_unavailable' "$world/err"
run=$(open-conduit runs list --json | jq -r '.[0].id')
check "F2 its outcome is refused" run_is outcome refused
check "F2 its reason is sandbox_unavailable" run_is reason sandbox_unavailable
check "F2 it names a fix" refuses run_is fix null
check "nothing ran" refuses checkout_has_commit "It ran"
check "doctor fails, too" exits 1 open-conduit doctor

unset srt_folder
write_config "$(binding sandboxed srt "$script")" "$(binding links srt "$script")" \
  "$(binding state srt "$script" '{"sandbox": {"config": {"write": ["{workspace}", "'"$XDG_STATE_HOME"'/open-conduit"]}}}')" \
  "$(binding nowhere host "$script" | jq --arg c "$world/nowhere" '.resource.config.checkout = $c')"
check "SIGHUP reads the config again" kill -HUP "$daemon"
runs_again() { run_to_end demo/sandboxed && run_is outcome succeeded; }
check "the next run has srt, and succeeds" until_true runs_again
check "A8 a policy that reaches into the state is refused" exits 1 open-conduit work new --binding demo/state --wait
run=$(open-conduit runs list --json | jq -r '.[0].id')
check "F1 as sandbox_denied" run_is reason sandbox_denied
# Of another binding, which nothing runs: its agent could put another srt in this one's place.
mkdir "$HOME/tools"
ln -s "$OPEN_CONDUIT_TEST_SRT" "$HOME/tools/srt"
cp "$config" "$world/config.before"
srt_folder=$HOME/tools/srt
write_config "$(binding sandboxed srt "$script")"
run=
check "srt behind a link is one" exits 0 open-conduit reload
check "and runs start by it" exits 0 open-conduit work new --binding demo/sandboxed --wait
ran=$(open-conduit runs list --json | jq -r '.[0].work')
check "F5 a command of the machine's is refused for its Work" exits 1 open-conduit work exec "$ran" -- true
check "F5 as attach_sandboxed" grep -q attach_sandboxed "$world/err"
check "F5 without naming a way that is refused, too" refuses grep -q 'work attach' "$world/err"
write_config "$(binding sandboxed srt "$script")" \
  "$(binding other srt "$script" '{"sandbox": {"config": {"write": ["{workspace}", "~/tools"]}}}')"
check "a policy lets agents replace it" exits 0 open-conduit reload
check "A7 what runs outside of the sandbox and agents could have written is not run" exits 1 \
  open-conduit work new --binding demo/sandboxed --wait
check "F1 as sandbox_denied" grep -q 'sandbox_denied' "$world/err"
check "naming who could" grep -q '~/tools is granted to demo/other' "$world/err"
check "config explain says so" exits 1 open-conduit config explain demo/sandboxed
check "in the same words" grep -q '~/tools is granted to demo/other' "$world/err"
unset srt_folder
cp "$world/config.before" "$config"
check "the config of before is read" exits 0 open-conduit reload

check "a checkout that is not there is refused" exits 1 open-conduit work new --binding demo/nowhere --wait
check "and named" grep -q "$world/nowhere" "$world/err"
check "a binding that is not there is refused" exits 1 open-conduit work new --binding demo/nothing
check "and named" grep -q "demo/nothing" "$world/err"
