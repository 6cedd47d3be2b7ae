# What a run was refused is told, and a person can make a change of its policy out of it.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"

new_repository "$checkout"
ask='for host in "$@"; do curl -sS -m 20 -o /dev/null "$host"; done; true'
script="set -- https://first.example.org/ http://second.example.org:8080/ https://first.example.org/; $ask"
write_config "$(binding sandboxed srt "$script")" "$(binding quiet srt true)" "$(binding plain host "$script")"
check "the daemon starts" start_daemon
check "an agent that asks for hosts that it may not reach ends well" run_to_end demo/sandboxed
check "and succeeds" run_is outcome succeeded
refused=$(run_field 'denied | map("\(.kind) \(.what) \(.why)") | join(", ")')
check "F2 what was refused is in the run, each once, in its order" is "$refused" \
  "host first.example.org:443 not_allowed, host second.example.org:8080 not_allowed"
check "a person sees it as well" has "$(open-conduit runs get "$run")" "second.example.org:8080"
kill_daemon KILL
check "another daemon has it too" start_daemon
check "it is still there" is "$(run_field 'denied | length')" 2

cp "$config" "$world/before"
check "a change of the binding is suggested" exits 0 open-conduit policy suggest "$run" --json
suggestion=$(cat "$world/out")
check "with its place in the file" is "$(printf '%s' "$suggestion" | jq -r .field)" \
  "scopes[0].bindings[0].sandbox.config.network.allow"
check "nothing was applied" cmp "$config" "$world/before"
check "the host is not reached before" exits 1 open-conduit config explain demo/sandboxed --host first.example.org
printf '%s' "$suggestion" | jq '[.patch[].value]' >"$world/entries"
jq --slurpfile more "$world/entries" '.scopes[0].bindings[0].sandbox.config.network.allow += $more[0]' "$world/before" >"$config"
check "a person who applies it has a sound config" exits 0 open-conduit config check
check "in which the host is reached" exits 0 open-conduit config explain demo/sandboxed --host first.example.org
check "at that port only" exits 1 open-conduit config explain demo/sandboxed --host first.example.org:80
check "there is nothing left to suggest" is "$(open-conduit policy suggest "$run" --json | jq '.patch | length')" 0
check "a person is told so" has "$(open-conduit policy suggest "$run")" "allows it by now"
check "the daemon takes it" exits 0 open-conduit reload
run_again() { run_to_end demo/sandboxed; }
check "the next run" run_again
check "is refused nothing" is "$(run_field 'denied | length')" 0
run_to_end demo/quiet
check "a run that asked for nothing has no denials" is "$(run_field 'denied | length')" 0
check "and no suggestion" has "$(open-conduit policy suggest "$run")" "nothing that it was refused is known"
run_to_end demo/plain
check "a binding without a sandbox refuses nothing" exits 1 open-conduit policy suggest "$run"
