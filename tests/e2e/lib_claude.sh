# The real Claude Code, and a Messages API with a scripted model on loopback.
: "${OPEN_CONDUIT_TEST_CLAUDE:?run this by tests/run claude}"
claude_home=$HOME/claude-config
mkdir "$claude_home"
printf 'Please add a second line.\n' >"$world/request"
printf 'sk-scripted' >"$world/key"
printf 'sk-ant-oat01-scripted' >"$world/token"
chmod 600 "$world/key" "$world/token"

start_model() {
  : >"$world/script"
  : >"$world/requests"
  python3 "$OPEN_CONDUIT_SOURCE/tests/fakes/messages_api.py" "$world/port" "$world/script" "$world/requests" >"$world/model.log" 2>&1 &
  model_pid=$!
  until_true test -s "$world/port"
  port=$(cat "$world/port")
}

stop_model() {
  kill "$model_pid" 2>/dev/null
  wait "$model_pid" 2>/dev/null || :  # its end by our signal is not the scenario's
}
trap 'stop_model; leave_nothing' EXIT

# model STEP...: what the model says next; what it did not get to say is forgotten.
model() {
  : >"$world/requests"
  printf '%s\n' "$@" >"$world/script.new"
  mv "$world/script.new" "$world/script"
}

request_has() { jq -r '.said' "$world/requests" | grep -qF -- "$1" || { echo "no request has: $1"; return 1; }; }

offers() { jq -e --arg tool "$1" 'select(.tools | index($tool))' "$world/requests" >/dev/null || { jq -c .tools "$world/requests"; return 1; }; }

# claude_binding NAME KIND [MORE]
claude_binding() {
  binding "$1" "$2" true | jq --arg port "$port" --arg dir "$claude_home" --arg kind "$2" --argjson more "${3-null}" '
    .executor = "claude-code" | del(.config.command)
    | .config += {playbook: "work-issue",
                  env: {CLAUDE_CONFIG_DIR: $dir, ANTHROPIC_BASE_URL: "http://127.0.0.1:\($port)"},
                  secret_env: {key: "ANTHROPIC_API_KEY"}}
    | .secret_names = ["key"]
    | if $kind == "srt" then .sandbox.config = {write: ["{workspace}", $dir], network: {allow: ["127.0.0.1:\($port)"]}} else . end
    | . * ($more // {})'
}

claude_config() {
  {
    claude_binding claude-srt srt
    claude_binding claude-host host "{\"config\": {\"env\": {\"CLAUDE_CONFIG_DIR\": \"$HOME/host-config\"}}}"
    claude_binding few-turns srt '{"max_turns": 2}'
    claude_binding cheap srt '{"max_budget_usd": 0.01}'
    claude_binding ungranted srt '{"sandbox": {"config": {"write": ["{workspace}"]}}}'
    for kind in srt host; do
      claude_binding "tools-$kind" "$kind" '{"operations": ["@conduit.work"], "requires": {"toolbelt": "mcp"}}' |
        jq --arg dir "$HOME/host-config" 'if .sandbox then .sandbox.config += {sockets: ["{toolbelt}"], unix_sockets: "all"}
          else .config.env.CLAUDE_CONFIG_DIR = $dir end'
    done
    # As a person signs in there: by a token of `claude setup-token`, or by one /login, whose file lies in the config directory.
    claude_binding by-token srt '{"secret_names": ["token"]}' | jq '.config.secret_env = {token: "CLAUDE_CODE_OAUTH_TOKEN"}'
    claude_binding by-login srt | jq --arg dir "$HOME/login-config" '.secret_names = [] | .config.secret_env = {}
      | .config.env.CLAUDE_CONFIG_DIR = $dir | .sandbox.config.write = ["{workspace}", $dir]'
    claude_binding unbriefed srt '{"config": {"playbook": "nobody-wrote-it"}}'
  } | jq -s --arg srt "$OPEN_CONDUIT_TEST_SRT" --arg claude "$OPEN_CONDUIT_TEST_CLAUDE" --arg key "file:$world/key" \
    --arg token "file:$world/token" '
    {version: 1, settings: {grace: 5, extensions: {srt: {package_dir: $srt}, claude: {program: $claude}}}, connections: [],
     scopes: [{id: "demo", name: "demo", secret_refs: {key: $key, token: $token},
               authorization: {operations: ["@conduit.work"]}, bindings: .}]}' >"$config"
  mkdir -p "$HOME/host-config" "$HOME/login-config"
  jq -n '{claudeAiOauth: {accessToken: "sk-ant-oat01-by-login", refreshToken: "sk-ant-ort01-by-login", subscriptionType: "max",
          expiresAt: ((now + 86400) * 1000 | floor), scopes: ["user:inference", "user:profile"]}}' >"$HOME/login-config/.credentials.json"
  chmod 600 "$HOME/login-config/.credentials.json"
}

# The agent acknowledges a message when its tool has ended: the tool ends when the agent has the message.
delivers() {
  open-conduit work say "$1" "$2" --json >"$world/said" &
  saying=$!
  until_true has_queued_message
  : >"$workspace/go"
  wait "$saying" || return 1
  is "$(jq -r .delivered "$world/said")" true
}
has_queued_message() { [ "$(open-conduit runs logs --raw "$run" | grep -c '"state":"queued"')" -ge 2 ]; }

says_to_new_run() {
  open-conduit work say "$1" "$2" --json >"$world/said" || return 1
  run=$(jq -r .run "$world/said")
  is "$(jq -r .delivered "$world/said")" false
}
