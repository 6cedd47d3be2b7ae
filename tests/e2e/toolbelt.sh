# A run's toolbelt, from inside of srt and without a sandbox: what both sides list is there, and nothing else.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"

new_repository "$checkout"
toolbelt='{"operations": ["@conduit.work"], "requires": {"toolbelt": "mcp"}}'
in_srt='{"sandbox": {"config": {"sockets": ["{toolbelt}"], "unix_sockets": "all"}}}'
both() { printf '%s\n%s' "$toolbelt" "$in_srt" | jq -s '.[0] * .[1]'; }
# authorized LIST: what the scope's authorization lists.
authorized() { jq --argjson list "$1" '.scopes[0].authorization.operations = $list' "$config" >"$world/c" && mv "$world/c" "$config"; }

speak='
  hello="{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"test\",\"version\":\"1\"}}}"
  printf "%s\n" "$hello" "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}" \
    "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}" \
    "{\"jsonrpc\":\"2.0\",\"id\":\"three\",\"method\":\"tools/call\",\"params\":{\"name\":\"conduit.work.get\",\"arguments\":{}}}" |
    open-conduit-toolbelt mcp
  echo "it ended: $?"
  open-conduit-toolbelt call conduit.work.note "{\"text\":\"Noted by $0\"}"
  open-conduit-toolbelt call conduit.work.get >work.json && echo "got: $(cat work.json)"
  open-conduit-toolbelt call github.issue.comment "{}" || echo "no comment"
  printf "protocol=https\nhost=github.com\n\n" | open-conduit-toolbelt git-credential get
  OPEN_CONDUIT_TOOLBELT_TOKEN=$(printf %064d 0) open-conduit-toolbelt call conduit.work.get || echo "no entry"
  echo "PROGRAM: $OPEN_CONDUIT_TOOLBELT_PROGRAM"'
named() { jq --arg name "$1" '.config.command += [$name]'; }
write_config "$(binding sandboxed srt "$speak" "$(both)" | named sandboxed)" \
  "$(binding plain host "$speak" "$toolbelt" | named plain)" \
  "$(binding finishing srt 'open-conduit-toolbelt call conduit.work.finish "{\"summary\":\"All done\"}"' "$(both)")" \
  "$(binding waiting srt 'printenv OPEN_CONDUIT_TOOLBELT_TOKEN >t; mv t token; while [ ! -e go ]; do sleep 0.1; done
       open-conduit-toolbelt call conduit.work.get; echo "it ended: $?"' "$(both)")" \
  "$(binding thief srt 'open-conduit-toolbelt call conduit.work.get; echo "own: $?"; read -r place token <"$OPEN_CONDUIT_BODY_FILE"
       OPEN_CONDUIT_TOOLBELT=$place OPEN_CONDUIT_TOOLBELT_TOKEN=$token open-conduit-toolbelt call conduit.work.get; echo "other: $?"
       OPEN_CONDUIT_TOOLBELT_TOKEN=$token open-conduit-toolbelt call conduit.work.get; echo "mixed: $?"' "$(both)")" \
  "$(binding none srt 'echo "here: ${OPEN_CONDUIT_TOOLBELT-nothing}"' '{"operations": ["conduit.work.get"]}')"
authorized '["@conduit.work"]'
printf "The whole request\n" >"$world/body"
check "the config is good" exits 0 open-conduit config check
check "the daemon starts" start_daemon

for kind in sandboxed plain; do
  check "D5 a $kind run with a toolbelt ends" run_to_end "demo/$kind" --title "A title" --body-file "$world/body"
  check "it succeeded" run_is outcome succeeded
  check "D5 its agent lists the tools by MCP" log_has '"name":"conduit.work.note"'
  check "D5 and calls one" log_has '"id":"three"'
  check "whose answer has the title" log_has 'A title'
  check "and the body" log_has 'The whole request'
  check "the bridge ends with its input" log_has 'it ended: 0'
  check "the note is kept with the Work" has "$(open-conduit work get "$work" --json | jq -r '.notes[].text')" "Noted by $kind"
  check "and shown" has "$(open-conduit work get "$work")" "Noted by $kind"
  check "D4 what nobody lists is refused" log_has "no comment"
  check "and the agent is told why" log_has "operation_denied"
  check "B14 git gets no credential" log_has "quit=1"
  check "another token is refused" log_has "no entry"
  check "its socket is gone" test ! -e "$XDG_DATA_HOME/open-conduit/runs/$run/toolbelt.sock"
  check "the plan names the operations" is \
    "$(open-conduit runs policy "$run" --json | jq -c .toolbelt.operations)" \
    '["conduit.work.finish","conduit.work.get","conduit.work.note"]'
  check "and not the token" is "$(open-conduit runs policy "$run" --json | grep -cE '[0-9a-f]{64}')" 0
done

check "D4 a run that is told nothing of others" run_to_end demo/none --title none
check "whose sandbox lets it use no socket says so" has "$(open-conduit runs get "$run")" "no Unix socket"
check "a run waits" new_work demo/waiting --title other
check "and lives" until_true run_is state running
other=$run other_work=$work
until_true test -S "$XDG_DATA_HOME/open-conduit/runs/$other/toolbelt.sock"
# Another run's socket, with one's own token and with the other's; and the token of a run that is over.
until_true test -s "$XDG_DATA_HOME/open-conduit/works/$work/workspace/token"
stolen=$(cat "$XDG_DATA_HOME/open-conduit/works/$work/workspace/token")
check "the other's token is one" is "${#stolen}" 64
printf '%s %s' "unix:$XDG_DATA_HOME/open-conduit/runs/$other/toolbelt.sock" "$stolen" >"$world/body"
check "A8 a run that knows another's socket and token" run_to_end demo/thief --title thief --body-file "$world/body"
check "has its own" log_has "own: 0"
check "A8 and does not reach the other's" log_has "other: 1"
check "D5 whose token is worth nothing at its own" log_has "mixed: 1"
check "D5 without a sandbox: another's socket wants its own token" exits 1 env OPEN_CONDUIT_TOOLBELT="unix:$XDG_DATA_HOME/open-conduit/runs/$other/toolbelt.sock" \
  OPEN_CONDUIT_TOOLBELT_TOKEN="$(printf %064d 1)" open-conduit-toolbelt call conduit.work.get
check "and the control: with it, it opens" exits 0 env OPEN_CONDUIT_TOOLBELT="unix:$XDG_DATA_HOME/open-conduit/runs/$other/toolbelt.sock" \
  OPEN_CONDUIT_TOOLBELT_TOKEN="$stolen" open-conduit-toolbelt call conduit.work.get
run=$other work=$other_work
: >"$XDG_DATA_HOME/open-conduit/works/$work/workspace/go"
check "the other ends" await_end
check "D5 and its token opens nothing any more" exits 1 env OPEN_CONDUIT_TOOLBELT="unix:$XDG_DATA_HOME/open-conduit/runs/$other/toolbelt.sock" \
  OPEN_CONDUIT_TOOLBELT_TOKEN="$stolen" open-conduit-toolbelt call conduit.work.get

check "a run that says that its Work is done ends" run_to_end demo/finishing --title finishing
work_is() { is "$(open-conduit work get "$work" --json | jq -r ".$1")" "$2"; }
check "and the Work is finished" until_true work_is state finished
check "with its summary" has "$(open-conduit work get "$work")" "All done"

check "a run waits" new_work demo/waiting --title waiting
check "and lives" until_true run_is state running
workspace=$XDG_DATA_HOME/open-conduit/works/$work/workspace
check "and its agent" until_true test -s "$workspace/token"
check "its socket is its owner's alone" is "$(stat -c %a "$XDG_DATA_HOME/open-conduit/runs/$run/toolbelt.sock")" 600
kill_daemon KILL
authorized '[]'
check "another daemon starts, whose config allows nothing" start_daemon
check "it has taken the run up" until_true run_is state running
: >"$workspace/go"
check "it ends" await_end
check "B20 with the operations of its pinned plan" log_has "it ended: 0"
check "D4 a new run of that binding is refused" run_to_end demo/waiting --title again
check "since nothing is offered" run_is reason toolbelt_empty
check "and says which of the two is missing" has "$(open-conduit runs get "$run")" "authorization does not list it"
