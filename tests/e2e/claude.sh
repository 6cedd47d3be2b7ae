# Real work by the real Claude Code against a scripted model: a turn that edits and commits, a message that reaches the live turn,
# the next turn in the same session, a daemon that is killed in the middle; and each end of a turn that is no success.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib_claude.sh"

new_repository "$checkout"
start_model
claude_config
check "the config is fine" open-conduit config check
check "the daemon starts" start_daemon

for kind in srt host; do
  binding=claude-$kind
  # ---- a whole turn, with a message in the midst of it
  rm -f "$world/tmp/go"
  model '{"bash": "echo two >>file && git add file && git commit -qm \"Edited by claude\" && git log -1 --format=%an:%s; touch busy; while [ ! -e go ]; do sleep 0.05; done"}' \
    '{"text": "I have done it.", "last_has": "Also mind the gap"}'
  check "$kind: a run starts" new_work "demo/$binding" --title 'Add a line' --body-file "$world/request"
  workspace=$(open-conduit work get "$work" --json | jq -r .workspace)
  check "$kind: its agent works" until_true test -e "$workspace/busy"
  check "$kind: a message is delivered" delivers "$work" 'Also mind the gap'
  check "$kind: it ends" await_end
  check "$kind: it succeeded" run_is outcome succeeded
  check "$kind: its commit arrived" checkout_has_commit "Edited by claude"
  check "$kind: its usage is known" is "$(run_field 'usage | .input_tokens, .output_tokens, .turns' | tr '\n' ' ')" "240 80 2 "
  check "$kind: its cost is known" test "$(run_field usage.cost_usd | tr -d '0.\n')" != ""
  session=$(run_field session)
  check "$kind: its session is known" test "${#session}" -gt 30
  check "$kind: the model was told title and body" request_has 'Add a line'
  check "$kind: the body came as quoted lines of the operator's" request_has '> Please add a second line.'
  check "$kind: the transcript is for people" has "$(open-conduit runs logs "$run")" "I have done it."
  check "$kind: the raw one is JSON" has "$(open-conduit runs logs --raw "$run")" '"type":"assistant"'

  # ---- the next turn
  first=$run
  model '{"text": "Still here.", "last_has": "I have done it."}'
  check "$kind: a message to Work without a run begins one" says_to_new_run "$work" 'One more thing'
  check "$kind: the second run ends" await_end
  check "$kind: the second run succeeded" run_is outcome succeeded
  check "$kind: in the same session" run_is session "$session"
  check "$kind: it was told the message" request_has 'One more thing'
  check "$kind: it is another run" test "$run" != "$first"

  # ---- the daemon is killed in the middle of a turn
  model '{"bash": "touch busy2; while [ ! -e go2 ]; do sleep 0.05; done; echo three >>file; git commit -qam \"After the kill\""}' \
    '{"text": "Survived."}'
  check "$kind: a third run begins" says_to_new_run "$work" 'Go on'
  check "$kind: it works" until_true test -e "$workspace/busy2"
  kill_daemon KILL
  check "$kind: the next daemon starts" start_daemon
  check "$kind: the turn goes on" run_is state running
  : >"$workspace/go2"
  check "$kind: it ends well" await_end
  check "$kind: it succeeded all the same" run_is outcome succeeded
  check "$kind: the commit arrived" checkout_has_commit "After the kill"
  check "$kind: the session stays" run_is session "$session"
  check "$kind: Work is finished" open-conduit work finish "$work"
done

# ---- signing in, where the operator's own claude is out of reach
signs_in_as() { # BINDING KEY
  model '{"text": "Signed in."}'
  run_to_end "demo/$1" --title 'Sign in' && run_is outcome succeeded &&
    { jq -e --arg key "$2" 'select(.key == $key)' "$world/requests" >/dev/null || { jq -c .key "$world/requests"; return 1; }; }
}
check "C13 claude signs in by a secret in CLAUDE_CODE_OAUTH_TOKEN" signs_in_as by-token "Bearer sk-ant-oat01-scripted"
check "C13 claude signs in by one /login with the binding's config directory" signs_in_as by-login "Bearer sk-ant-oat01-by-login"

# ---- the toolbelt, by MCP
for kind in srt host; do
  model '{"tool": "mcp__open_conduit__conduit_work_note", "input": {"text": "A note of the agent"}}' '{"text": "Noted."}'
  check "$kind: a run with a toolbelt ends" run_to_end "demo/tools-$kind" --title Tools
  check "$kind: it succeeded" run_is outcome succeeded
  check "D5 $kind: the model is offered the toolbelt's tools" offers mcp__open_conduit__conduit_work_get
  check "D5 $kind: and calls one" has "$(open-conduit work get "$work" --json | jq -r '.notes[].text')" "A note of the agent"
done

# ---- ends that are no success
model '{"fail": 400, "again": true}'
check "an API that fails" run_to_end demo/claude-srt --title Fails
check "is told as such" run_is reason api_error
check "with what it said" has "$(run_field message)" 400

model '{"bash": "echo 1"}' '{"bash": "echo 2"}' '{"bash": "echo 3"}'
check "more turns than allowed" run_to_end demo/few-turns --title Turns
check "are told as such" run_is reason max_turns
model '{"bash": "echo 1", "output_tokens": 4000}' '{"bash": "echo 2"}' '{"bash": "echo 3"}'
check "more cost than allowed" run_to_end demo/cheap --title Cost
check "is told as such" run_is reason budget

# The session's file is removed: the next turn begins anew, and says so.
model '{"text": "First."}'
check "a run to lose the session of" run_to_end demo/claude-srt --title Lose
rm -r "$claude_home/projects"
model '{"text": "Anew.", "last_has": "Lose"}'
check "a message after its session's file is gone" says_to_new_run "$work" 'And now?'
check "ends" await_end
check "as a lost session" run_is reason session_lost
run=$(open-conduit work get "$work" --json | jq -r '.runs[-1]')
check "and is tried again by itself" await_end
check "which succeeds in a new session" run_is outcome succeeded

# ---- what is refused before it begins
rm -rf "$claude_home"
check "without its CLAUDE_CONFIG_DIR" run_to_end demo/claude-srt
check "a sandboxed run is refused" run_is reason sandbox_denied
check "which names it" has "$(run_field message)" CLAUDE_CONFIG_DIR
mkdir "$claude_home"
check "where CLAUDE_CONFIG_DIR is not granted" run_to_end demo/ungranted
check "a sandboxed run is refused" run_is reason sandbox_denied
check "an unknown playbook" run_to_end demo/unbriefed
check "refuses the run" run_is reason playbook_unknown

# ---- commands beside the agent
check "exec is refused for sandboxed Work" exits 1 open-conduit work exec "$work" -- true
check "which says why" has "$(cat "$world/err")" attach_sandboxed
stop_model
