# An agent that says it is Claude Code and behaves badly: each end is told apart, and none of them lasts.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"

new_repository "$checkout"
# Outside of the source, which the agent's binding could not start it from in every tree.
cp "$OPEN_CONDUIT_SOURCE/tests/fakes/bad_claude.py" "$world/claude"
chmod 755 "$world/claude"

bad() {
  more=${2-}
  [ -n "$more" ] || more='{}'
  binding "$1" host true "$more" | jq --arg case "$1" '
    .executor = "claude-code" | del(.config.command) | .config.env += {BAD_CASE: (.case // $case)} | del(.case)'
}
{
  for case in other-program old-version no-interpreter long-lines not-utf8 error-in-between hangs-after-result no-result killed \
    storm listens deaf; do
    bad "$case"
  done
  bad silent '{"stall_timeout": "1s"}'
  bad fails-thrice '{"retries": 1, "case": "fails"}'
} | jq -s --arg srt "$OPEN_CONDUIT_TEST_SRT" --arg claude "$world/claude" '
  {version: 1, settings: {grace: 2, extensions: {srt: {package_dir: $srt}, claude: {program: $claude}}}, connections: [],
   scopes: [{id: "demo", name: "demo", bindings: .}]}' >"$config"
check "the daemon starts" start_daemon

ends_as() {
  check "$1: it ends" run_to_end "demo/$1"
  check "$1: as $2" is "$(run_field outcome) $(run_field reason)" "$2"
}
ends_as other-program "failed agent_unsuited"
ends_as old-version "failed agent_unsuited"
check "a missing option is named" has "$(run_field message)" --replay-user-messages
ends_as no-interpreter "failed agent_missing"
ends_as silent "failed stalled"
ends_as no-result "failed agent_error"
ends_as killed "failed signal"
ends_as storm "failed retry_storm"
ends_as not-utf8 "succeeded null"
check "what is shown of it is harmless" is "$(open-conduit runs logs "$run" | tr -cd '\033' | wc -c)" 0
ends_as long-lines "succeeded null"
check "long lines: usage behind them is known" run_is usage.input_tokens 10
check "long lines: the transcript leaves them out" has "$(open-conduit runs logs "$run" | head -c 3000)" "--raw shows it"
ends_as error-in-between "succeeded null"
check "a line is not cut by the other stream" has "$(open-conduit runs logs "$run")" "whole"
ends_as hangs-after-result "succeeded null"
check "which is noted" has "$(run_field 'notes[]')" "after its last word"
check "nothing of it is left" until_true no_process_with "$world/claude"

# ---- tried again
ends_as fails-thrice "failed api_error"
check "it is tried again" has "$(run_field 'notes[]')" "tried again as run"
first=$run
check "runs wait waits for the last try" exits 1 open-conduit runs wait "$first"
check "and says that there are several" has "$(cat "$world/err")" "run $first failed and is tried again as"
run=$(open-conduit work get "$work" --json | jq -r '.runs[-1]')
check "the second try ends" await_end
check "it was the second" run_is attempt 2
check "which is the last" is "$(open-conduit work get "$work" --json | jq '.runs | length')" 2

# ---- messages: while it begins, ten at once, while it stops
up() { until_true test -e "$(open-conduit work get "$work" --json | jq -r .workspace)/up"; }
check "a run that listens" new_work demo/listens
open-conduit work say "$work" "while it begins" --json >"$world/early" &
early=$!
check "it is up" up
wait "$early"
check "a message while it begins reaches it" is "$(jq -r .delivered "$world/early")" true
saying=
for i in 0 1 2 3 4 5 6 7 8 9; do
  open-conduit work say "$work" "message $i" --json >"$world/said.$i" &
  saying="$saying $!"
done
wait $saying
check "ten at once are delivered" is "$(cat "$world"/said.* | jq -s 'map(select(.delivered)) | length')" 10
workspace=$(open-conduit work get "$work" --json | jq -r .workspace)
check "each of them once" is "$(sort "$workspace/heard" | uniq | wc -l) $(wc -l <"$workspace/heard")" "11 11"
check "a stop" open-conduit runs stop "$run"
open-conduit work say "$work" "while it stops" --json >"$world/late"
check "a message while it stops waits for another run" is "$(jq -r .delivered "$world/late")" false
check "it is stopped" await_end
check "as asked" run_is outcome stopped
run=$(jq -r .run "$world/late")
check "the next run begins with the message" until_true run_is state running
: >"$workspace/enough"
open-conduit work say "$work" "the last" >/dev/null
check "and ends" await_end

# ---- an agent that does not acknowledge
check "a run that is deaf" new_work demo/deaf
check "it is up" up
open-conduit work say "$work" "hello" --json >"$world/unheard" &
unheard=$!
sleep 0.5
: >"$(open-conduit work get "$work" --json | jq -r .workspace)/enough"
check "its end is not held up" await_end
wait "$unheard"
check "the message was not delivered" is "$(jq -r .delivered "$world/unheard")" false
check "and waits for the next run" test "$(jq -r .run "$world/unheard")" != "$run"
check "exec works in unsandboxed Work" is "$(open-conduit work exec "$work" -- sh -c 'ls enough')" enough
check "with its exit status" exits 7 open-conduit work exec "$work" -- sh -c 'exit 7'
check "a program that is not there exits as in a shell" exits 127 open-conduit work exec "$work" -- no-such-program
check "one that cannot be run as well" exits 126 open-conduit work exec "$work" -- ./enough
check "its words are as they were given" is "$(open-conduit work exec "$work" -- printf '%s|' '[a,b]' '[]' '' '{}' --)" '[a,b]|[]||{}|--|'
check "a closed pipe ends a program in it" is "$(open-conduit work exec "$work" -- sh -c 'yes | head -n 1' 2>&1)" y

# ---- messages of nothing
check "a message of blanks is refused" exits 1 sh -c 'printf "\n \n" | open-conduit work say "$1" -' sh "$work"
check "as nothing to say" grep -q request_invalid "$world/err"

# ---- texts as large as may be
check "a run that listens" new_work demo/listens
check "it is up" up
workspace=$(open-conduit work get "$work" --json | jq -r .workspace)
head -c 1048576 /dev/zero | tr '\0' a >"$world/large"
check "a message of 1 MiB is delivered" is "$(open-conduit work say "$work" - --json <"$world/large" | jq -r .delivered)" true
kill_daemon KILL
check "the next daemon starts" start_daemon
check "a run that was taken up again hears more than 1 MiB" is \
  "$(for i in 1 2 3; do open-conduit work say "$work" - --json <"$world/large"; done | jq -r .delivered | tr '\n' ' ')" "true true true "
check "it has all of them" is "$(wc -c <"$workspace/heard")" $((4 * 1048577))
check "it goes on" run_is state running
: >"$workspace/enough"
open-conduit work say "$work" "the last" >/dev/null
check "it ends" await_end
check "well" run_is outcome succeeded
rm "$workspace/enough" "$workspace/up"
run=$(open-conduit work say "$work" - --json <"$world/large" | jq -r .run)
check "a run begins with a message of 1 MiB" up
: >"$workspace/enough"
open-conduit work say "$work" "the last" >/dev/null
check "it ends" await_end
check "well" run_is outcome succeeded
head -c 262144 /dev/zero | tr '\0' '\n' >"$world/blank-lines"
check "a body of blank lines, which quoting makes longer" run_to_end demo/hangs-after-result --body-file "$world/blank-lines"
check "begins a run" run_is outcome succeeded
