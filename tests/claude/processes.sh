# Real work by the real Claude Code under srt and without a sandbox, against a scripted model: a turn that edits and commits, a
# message that reaches the live turn, the next turn in the same session, a daemon that is killed in the middle; and each end of a
# turn that is no success.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"
. "$OPEN_CONDUIT_SOURCE/tests/claude/lib.sh"

new_repository "$checkout"
start_model
mkdir "$HOME/host-config" "$HOME/login-config"
jq -n '{claudeAiOauth: {accessToken: "sk-ant-oat01-by-login", refreshToken: "sk-ant-ort01-by-login", subscriptionType: "max",
        expiresAt: ((now + 86400) * 1000 | floor), scopes: ["user:inference", "user:profile"]}}' >"$HOME/login-config/.credentials.json"
chmod 600 "$HOME/login-config/.credentials.json"
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
  claude_binding misbriefed srt '{"config": {"playbook": "misspelt"}}'
} | write_claude_config
check "the config is fine" open-conduit config check
check "the daemon starts" start_daemon

for kind in srt host; do
  turn_with_message "$kind" "claude-$kind"
  next_turn "$kind"
  survives_the_daemon "$kind"
  stops_and_hears_ten "$kind"
  check "$kind: Work is finished" open-conduit work finish "$work"
done
for kind in srt host; do uses_toolbelt "$kind" "tools-$kind"; done

# ---- signing in, where the operator's own claude is out of reach
signs_in_as() { # BINDING KEY
  model '{"text": "Signed in."}'
  run_to_end "demo/$1" --title 'Sign in' && run_is outcome succeeded && signed_in_with "$2"
}
check "C13 claude signs in by a secret in CLAUDE_CODE_OAUTH_TOKEN" signs_in_as by-token "Bearer sk-ant-oat01-scripted"
check "C13 claude signs in by one /login with the binding's config directory" signs_in_as by-login "Bearer sk-ant-oat01-by-login"

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

# It is cut off in the midst of its last line, as a full disk or a power cut would leave it.
session=$(run_field session)
file=$(find "$claude_home/projects" -name "$session.jsonl")
truncate -s -20 "$file"
model '{"text": "Still here.", "last_has": "Anew."}'
check "a message after its session's file was truncated" says_to_new_run "$work" 'And after that?'
check "ends" await_end
check "well" run_is outcome succeeded
check "in the same session" run_is session "$session"
: >"$file"
model '{"text": "Anew once more."}'
check "a message after its session's file was emptied" says_to_new_run "$work" 'And now?'
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
mkdir "$XDG_CONFIG_HOME/open-conduit/playbooks"
printf 'Do {title}.\nOn {brunch}.\n' >"$XDG_CONFIG_HOME/open-conduit/playbooks/misspelt.md"
check "a playbook with an unknown variable" run_to_end demo/misbriefed
check "refuses the run" run_is reason playbook_invalid
check "naming the line, the variable and one that there is" is "$(run_field message | sed 's/.*line/line/'); $(run_field fix)" \
  'line 2: there is no variable {brunch}; did you mean {branch}?'

# ---- commands beside the agent
check "exec is refused for sandboxed Work" exits 1 open-conduit work exec "$work" -- true
check "which says why" has "$(cat "$world/err")" attach_sandboxed
