# A person attaches to Work of the real Claude Code in a container, in a real terminal emulator (tmux), from outside: its two
# questions, the session of the runs, typing, another size, Ctrl-Z, the detach key, its exit, and kill -9 of either end.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib_docker.sh"
. "$OPEN_CONDUIT_SOURCE/tests/claude/lib.sh"

if [ -z "${OPEN_CONDUIT_TEST_CLAUDE_IMAGE:-}" ] || [ -z "${OPEN_CONDUIT_TEST_MODEL:-}" ] || ! command -v tmux >/dev/null; then
  skip "attaching to Claude Code" "tmux, a Docker Engine and a made-up internet are needed, which tests/run starts as root"
  exit
fi
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib_terminal.sh"

docker_context tests
new_repository "$checkout"
use_public_model
# As one who has met it before: else it asks for a theme and a way to sign in first.
mkdir "$world/seed"
echo '{"hasCompletedOnboarding": true, "theme": "dark"}' >"$world/seed/.claude.json"
claude_binding claude docker \
  "{\"config\": {\"home_seed\": \"$world/seed\", \"secret_env\": {\"key\": \"CLAUDE_CODE_OAUTH_TOKEN\"}}}" | write_claude_config
check "the daemon starts" start_daemon

model '{"text": "The run was here."}'
check "a run of Claude Code ends" run_to_end demo/claude --title "Say where you were"
check "well" run_is outcome succeeded
session=$(run_field session)

# An answer to a question with two choices, the second of which is yes. It may be drawn anew, with its first choice, when it has
# just come.
says_yes_to() {
  until_true shows "$1" || return 1
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    if screen | grep -q '❯ *Yes'; then
      sleep 0.7
      if screen | grep -q '❯ *Yes'; then break; fi
    fi
    typed Down
    sleep 0.3
  done
  typed Enter
}
attach() {
  open_terminal open-conduit work attach "$work"
  if [ -n "${asks_twice:-}" ]; then
    says_yes_to "trust this folder" && says_yes_to "Yes, I accept" || { screen; return 1; }
  fi
  until_true shows "bypass permissions on"
}
# ask TEXT ANSWER: of the scripted model.
ask() {
  model "$(jq -nc --arg text "$2" '{text: $text}')"
  typed -l "$1"
  until_true shows "$1" || return 1
  typed Enter
  until_true shows "● $2"
}
mode() { stty -a -F "$(tmux display-message -p -t person '#{pane_tty}')"; }
is_raw() { has "$(mode)" -icanon; }

asks_twice=yes
check "B17 Claude asks its two questions, and works in bypass-permissions mode" attach
asks_twice=
check "B17 in the session of the runs" shows "The run was here."
check "B17 the terminal is in raw mode" is_raw
check "B17 it is typed to, and answers" ask "Wer ist da? grün €" "Nobody but me."
check "B17 the model was told, in UTF-8" request_has "Wer ist da? grün €"
check "B17 after what the run was told" request_has "Say where you were"
check "C13 signed in with the Work's secret" signed_in_with "Bearer $sign_in"
check "B17 without a toolbelt" refuses offers mcp__open_conduit__conduit_work_get
model '{"bash": "echo made >by-hand; git add by-hand; git commit -qm \"By hand\""}' '{"text": "Committed."}'
typed -l "Commit something" && until_true shows "Commit something" && typed Enter
check "B17 its tools run without a question" until_true shows "● Committed."
check "in the workspace" test -e "$XDG_DATA_HOME/open-conduit/works/$work/workspace/by-hand"
tmux resize-window -t person -x 60 -y 20
narrower() { is "$(screen | grep -m 1 '^─' | tr -d '\n' | wc -m)" 60; }
check "B17 it is resized" until_true narrower
tmux resize-window -t person -x 100 -y 30
typed C-z
# Stopped for good, it would show nothing more.
check "B17 Ctrl-Z, which stops it, leaves it going" ask "Still there?" "Still here."
typed -l "/exit" && until_true shows "/exit" && typed Enter
check "B17 it ends by its own word" until_true shows "status 0."
check "B17 the terminal is as it was" refuses is_raw
check "B17 its container is gone" until_true nothing_on_engine

check "B17 it is attached to again, without questions" attach
check "B17 in the same session" shows "Still here."
typed C-p C-q
check "B17 the detach key ends it" until_true shows "status 0."
check "B17 and its container" until_true nothing_on_engine

check "B17 and again" attach
kill -KILL "$(attach_pid)"
check "B17 kill -9 of the command line removes the container" until_true nothing_on_engine

check "B17 and again" attach
tmux kill-session -t person
check "B17 the terminal's death removes the container" until_true nothing_on_engine

model '{"text": "I know of that.", "last_has": "Still there?"}'
check "a run after all that" says_to_new_run "$work" "Do you remember?"
check "ends" await_end
check "well: it knows what was said at the terminal" run_is outcome succeeded
check "in the session" run_is session "$session"
check "and what was committed by hand is saved" checkout_has_commit "By hand"
