# The real Claude Code, and a Messages API with a scripted model: on loopback, or on the made-up internet.
: "${OPEN_CONDUIT_TEST_CLAUDE:?run this by tests/run claude}"
claude_home=$HOME/claude-config
mkdir "$claude_home"
printf 'Please add a second line.\n' >"$world/request"
sign_in=sk-of-the-scripted
printf %s "$sign_in" >"$world/key"
printf sk-ant-oat01-scripted >"$world/token"
chmod 600 "$world/key" "$world/token"

# ---- the model

model_pid=
start_model() {
  model_files=$world/model
  mkdir "$model_files"
  : >"$model_files/script"
  : >"$model_files/requests"
  python3 "$OPEN_CONDUIT_SOURCE/tests/fakes/messages_api.py" "$model_files/port" "$model_files/script" "$model_files/requests" \
    >"$world/model.log" 2>&1 &
  model_pid=$!
  until_true test -s "$model_files/port"
  api=127.0.0.1:$(cat "$model_files/port") api_scheme=http
}

# The one that containers reach: it runs in the made-up internet (tests/public_network).
use_public_model() {
  model_files=$OPEN_CONDUIT_TEST_MODEL
  api=$OPEN_CONDUIT_TEST_PUBLIC:$(cat "$model_files/port") api_scheme=https
  cp "$model_files/ca.pem" "$world/model-ca.pem"
}

stop_model() {
  [ -n "$model_pid" ] || return 0
  kill "$model_pid" 2>/dev/null
  wait "$model_pid" 2>/dev/null || :  # its end by our signal is not the scenario's
  model_pid=
}
trap 'stop_model; leave_nothing' EXIT

# model STEP...: what the model says next; what it did not get to say is forgotten.
model() {
  : >"$model_files/requests"
  printf '%s\n' "$@" >"$model_files/script.new"
  mv "$model_files/script.new" "$model_files/script"
}

request_has() { jq -r '.said' "$model_files/requests" | grep -qF -- "$1" || { echo "no request has: $1"; return 1; }; }
offers() { jq -e --arg tool "$1" 'select(.tools | index($tool))' "$model_files/requests" >/dev/null || { jq -c .tools "$model_files/requests"; return 1; }; }
signed_in_with() { is "$(jq -r '.key' "$model_files/requests" | sort -u)" "$1"; }

# ---- bindings: KIND is srt, host or docker

# claude_binding NAME KIND [MORE]
claude_binding() {
  claude_kind=$2
  [ "$claude_kind" = srt ] || claude_kind=host
  binding "$1" "$claude_kind" true | jq --arg api "$api" --arg scheme "$api_scheme" --arg ca "$world/model-ca.pem" --arg dir "$claude_home" --arg kind "$2" \
    --arg image "${OPEN_CONDUIT_TEST_CLAUDE_IMAGE:-}" --argjson more "${3-null}" '
    .executor = "claude-code" | del(.config.command)
    | .config += {playbook: "work-issue",
                  env: {CLAUDE_CONFIG_DIR: $dir, ANTHROPIC_BASE_URL: "\($scheme)://\($api)"},
                  secret_env: {key: "ANTHROPIC_API_KEY"}}
    | .secret_names = ["key"]
    | if $kind == "srt" then .sandbox.config = {write: ["{workspace}", $dir], network: {allow: [$api]}} else . end
    | if $kind == "docker" then del(.config.env.CLAUDE_CONFIG_DIR) | .config.env.NODE_EXTRA_CA_CERTS = $ca | .container = {provider: "docker", config: {
        image: $image, write: ["{workspace}"], read: ["~/.gitconfig", $ca], network: {allow: [$api]}, provider: {context: "tests"}}}
      else . end
    | . * ($more // {})'
}

# Bindings on standard input.
write_claude_config() {
  jq -s --arg srt "$OPEN_CONDUIT_TEST_SRT" --arg claude "$OPEN_CONDUIT_TEST_CLAUDE" --arg key "file:$world/key" \
    --arg token "file:$world/token" '
    {version: 1, settings: {grace: 5, prepared_containers: 0, extensions: {srt: {package_dir: $srt}, claude: {program: $claude}}}, connections: [],
     scopes: [{id: "demo", name: "demo", secret_refs: {key: $key, token: $token},
               authorization: {operations: ["@conduit.work"]}, bindings: .}]}' >"$config"
}

# ---- messages

# The agent acknowledges a message when its tool has ended: the tool ends when the agent has the message.
delivers() {
  open-conduit work say "$1" "$2" --json >"$world/said" &
  saying=$!
  until_true has_queued_message
  : >"$workspace/go"
  wait "$saying" || return 1
  is "$(jq -r .delivered "$world/said")" true
}
# How many messages the agent has, the first one included.
has_messages() { [ "$(open-conduit runs logs --raw "$run" | grep -c '"state":"queued"')" -ge "$1" ]; }
has_queued_message() { has_messages 2; }

says_to_new_run() {
  open-conduit work say "$1" "$2" --json >"$world/said" || return 1
  run=$(jq -r .run "$world/said")
  is "$(jq -r .delivered "$world/said")" false
}

# ---- what each kind of binding has to do: turns of one Work, in this order

# turn_with_message KIND BINDING: a whole turn, with a message in the midst of it.
turn_with_message() {
  model '{"bash": "echo two >>file && git add file && git commit -qm \"Edited by claude\" && git log -1 --format=%an:%s; touch busy; while [ ! -e go ]; do sleep 0.05; done"}' \
    '{"text": "I have done it.", "last_has": "Also mind the gap"}'
  check "$1: a run starts" new_work "demo/$2" --title 'Add a line' --body-file "$world/request"
  workspace=$(open-conduit work get "$work" --json | jq -r .workspace)
  check "$1: its agent works" until_true test -e "$workspace/busy"
  check "$1: a message is delivered" delivers "$work" 'Also mind the gap'
  check "$1: it ends" await_end
  check "$1: it succeeded" run_is outcome succeeded
  check "$1: its commit arrived" checkout_has_commit "Edited by claude"
  check "$1: its usage is known" is "$(run_field 'usage | .input_tokens, .output_tokens, .turns' | tr '\n' ' ')" "240 80 2 "
  check "$1: its cost is known" test "$(run_field usage.cost_usd | tr -d '0.\n')" != ""
  session=$(run_field session)
  check "$1: its session is known" test "${#session}" -gt 30
  check "C13 $1: it signed in with the Work's secret" signed_in_with "$sign_in"
  check "$1: the model was told title and body" request_has 'Add a line'
  check "$1: the body came as quoted lines of the operator's" request_has '> Please add a second line.'
  check "$1: the transcript is for people" has "$(open-conduit runs logs "$run")" "I have done it."
  check "$1: the raw one is JSON" has "$(open-conduit runs logs --raw "$run")" '"type":"assistant"'
}

# The branch that the Work began from moves on meanwhile.
next_turn() {
  first=$run
  git -C "$checkout" commit -q --allow-empty -m "Meanwhile"
  model '{"text": "Still here.", "last_has": "I have done it."}'
  check "$1: a message to Work without a run begins one" says_to_new_run "$work" 'One more thing'
  check "$1: the second run ends" await_end
  check "$1: the second run succeeded" run_is outcome succeeded
  check "$1: in the same session" run_is session "$session"
  check "$1: it was told the message" request_has 'One more thing'
  check "$1: and that its base has moved on" request_has "main has moved on: it has 1 commit that $(run_field branch) has not"
  check "$1: it is another run" test "$run" != "$first"
}

# A turn in which the daemon is killed.
survives_the_daemon() {
  model '{"bash": "touch busy2; while [ ! -e go2 ]; do sleep 0.05; done; echo three >>file; git commit -qam \"After the kill\""}' \
    '{"text": "Survived."}'
  check "$1: a third run begins" says_to_new_run "$work" 'Go on'
  check "$1: it works" until_true test -e "$workspace/busy2"
  kill_daemon KILL
  check "$1: the next daemon starts" start_daemon
  check "$1: the turn goes on" run_is state running
  : >"$workspace/go2"
  check "$1: it ends well" await_end
  check "$1: it succeeded all the same" run_is outcome succeeded
  check "$1: the commit arrived" checkout_has_commit "After the kill"
  check "$1: the session stays" run_is session "$session"
}

# A stop in the midst of a tool, and ten messages at once for the turn after it. `sleeper` is the time that the tool sleeps for, which
# nothing else does.
stops_and_hears_ten() {
  sleeper=60$(od -An -N2 -tu2 /dev/urandom | tr -d ' ')
  model "{\"bash\": \"touch busy3; sleep $sleeper\"}" '{"text": "Never said."}'
  check "$1: a fourth run begins" says_to_new_run "$work" 'Sleep'
  check "$1: it works" until_true test -e "$workspace/busy3"
  check "$1: there is a process to end" refuses no_process_with "sleep $sleeper"
  check "$1: it is stopped" open-conduit runs stop "$run"
  check "$1: it ends" await_end
  check "$1: as asked" run_is outcome stopped
  check "$1: nothing of it is left" until_true no_process_with "sleep $sleeper"
  model '{"bash": "touch busy4; while [ ! -e go4 ]; do sleep 0.05; done"}' '{"text": "Heard them."}'
  check "$1: a fifth run begins" says_to_new_run "$work" 'Listen'
  check "$1: it works" until_true test -e "$workspace/busy4"
  saying=
  for i in 0 1 2 3 4 5 6 7 8 9; do
    open-conduit work say "$work" "message $i of ten" --json >"$world/ten.$i" &
    saying="$saying $!"
  done
  check "$1: ten messages at once come to the agent" until_true has_messages 11
  : >"$workspace/go4"
  wait $saying
  check "$1: all are delivered" is "$(cat "$world"/ten.* | jq -s 'map(select(.delivered)) | length')" 10
  check "$1: it ends" await_end
  check "$1: well" run_is outcome succeeded
  for i in 0 9; do check "$1: the model was told number $i" request_has "message $i of ten"; done
  check "$1: in the same session" run_is session "$session"
}

# uses_toolbelt KIND BINDING: by MCP.
uses_toolbelt() {
  model '{"tool": "mcp__open_conduit__conduit_work_note", "input": {"text": "A note of the agent"}}' '{"text": "Noted."}'
  check "$1: a run with a toolbelt ends" run_to_end "demo/$2" --title Tools
  check "$1: it succeeded" run_is outcome succeeded
  check "D5 $1: the model is offered the toolbelt's tools" offers mcp__open_conduit__conduit_work_get
  check "D5 $1: and calls one" has "$(open-conduit work get "$work" --json | jq -r '.notes[].text')" "A note of the agent"
}
