# A person attaches to Work, in a real terminal emulator (tmux), on a real Docker Engine and on the host.
# Needs what container.sh needs, and tmux.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"

if ! command -v tmux >/dev/null; then
  skip "attach" "tmux is needed"
  exit
fi

. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib_docker.sh"
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib_terminal.sh"

attach() {
  open_terminal open-conduit work attach "$1"
  until_true shows '$ ' || { screen; return 1; }
}

new_repository "$checkout"

# ---- on the host

write_config "$(binding plain host 'echo did it')" "$(binding boxed srt 'echo did it')" \
  "$(binding slow host 'while [ ! -e go-on ]; do sleep 0.1; done')"
check "the daemon starts" start_daemon
check "unsandboxed Work runs" run_to_end demo/plain
SHELL=/bin/sh
PS1='$ '
export SHELL PS1
check "B17 unsandboxed Work is attached to on the host" attach "$work"
typed 'pwd; echo "$OPEN_CONDUIT_WORK"; printf %s at-; echo work' Enter
check "it is the workspace" until_true shows "works/$work/workspace"
check "with the Work's environment" until_true shows "at-work"
check "B17 a second one is refused" exits 1 script -qec "open-conduit work attach $work" /dev/null
check "as busy" grep -q work_busy "$world/out"
waiting=$(open-conduit work say "$work" "go on" --json | jq -r .run)
check "a run that comes meanwhile waits" is "$(run=$waiting run_field state)" queued
typed 'exit 3' Enter
check "B17 its exit status is passed on" until_true shows "status 3."
run=$waiting
check "and then the run goes on" await_end

# However the command line ends: the next run would find what it leaves.
sleeper=600000$(od -An -N2 -tu2 /dev/urandom | tr -d ' ')
sleeps() { refuses no_process_with "$sleeper"; }
for how in TERM HUP KILL; do
  check "B17 it is attached to again" attach "$work"
  typed "stty raw -echo; exec sleep $sleeper" Enter
  check "what it runs is there" until_true sleeps
  kill -"$how" "$(attach_pid)"
  check "B17 SIG$how ends what it runs" until_true no_process_with "$sleeper"
  check "the command line is gone" until_true shows "status "
  [ "$how" = KILL ] || check "B17 SIG$how gives the terminal back" until_true shows "icanon"
  [ "$how" = KILL ] || check "as it was" refuses shows "-icanon"
done
check "B17 and again" attach "$work"
typed 'stty raw -echo; kill -KILL $$' Enter
check "B17 the death of its program is told" until_true shows "status 137."
check "B17 and leaves the terminal as it was" until_true shows "icanon"
check "which is no raw one" refuses shows "-icanon"
open_terminal bash --norc --noprofile -i
typed "PS1='person> '" Enter "open-conduit work attach $work &" Enter
check "B17 in the background it waits for its terminal" until_true shows "person> "
is_stopped() { has "$(ps -o stat= -p "$(pgrep -f "work attach $work")")" T; }
until_true is_stopped
typed 'fg' Enter
says() { afresh 'printf %s in-; echo front' Enter; sleep 0.3; shows "in-front"; }
check "B17 which it gets once it is in front" until_true says
typed 'kill -STOP $$' Enter
check "B17 a stop of its program is its own" until_true shows "Stopped"
typed 'fg' Enter
check "B17 and so is its going on" until_true says
typed 'exit 6' Enter
sleep 1
typed 'exit' Enter
check "B17 with its exit status" until_true shows "status 6."
check "B17 attaching needs a terminal" exits 1 open-conduit work attach "$work"
check "and says so" grep -q no_terminal "$world/err"

check "Work in a process sandbox runs" run_to_end demo/boxed
check "C8 it is not attached to" exits 1 script -qec "open-conduit work attach $work" /dev/null
check "C8 as attach_sandboxed" grep -q attach_sandboxed "$world/out"

new_work demo/slow
check "a run lives" until_true run_is state running
check "B17 while it lives, attaching is refused" exits 1 script -qec "open-conduit work attach $work" /dev/null
check "B17 as busy" grep -q work_busy "$world/out"
: >"$XDG_DATA_HOME/open-conduit/works/$work/workspace/go-on"
await_end

# ---- in a container

if [ -z "${OPEN_CONDUIT_TEST_ENGINE:-}" ] || [ -z "${OPEN_CONDUIT_TEST_IMAGE:-}" ]; then
  skip "B17 in a container" "a Docker Engine is needed, which tests/run starts as root"
  exit
fi
kill_daemon TERM

docker_context tests
container_binding() {
  binding "$1" host "$2" "${3-}" | jq --arg image "$OPEN_CONDUIT_TEST_IMAGE" '
    . + {container: {provider: "docker", config: {image: $image, write: ["{workspace}"], read: ["~/.gitconfig"],
         network: {allow: []}, limits: {pids: 100}, provider: {context: "tests"}}}}'
}
attached_container() {
  engine_get "/containers/json?filters=$(ours_filter)" |
    jq -r '.[] | select(.Labels["io.openconduit.role"] == "attach") | .Id'
}
nothing_of_attachments() {
  is "$(ls "$XDG_DATA_HOME/open-conduit/runs" | grep '^a-'; ls "$XDG_RUNTIME_DIR/open-conduit" | grep '^a-')" ""
}

printf %s "a-planted-secret" >"$HOME/token"
chmod 600 "$HOME/token"
write_config "$(container_binding contained 'echo x >made-by-the-run; echo y >~/in-the-home' \
  '{"secret_names": ["token"], "operations": ["@conduit.work"],
    "config": {"secret_env": {"token": "TOKEN"}, "env": {"COLOUR": "green"}}}')" \
  "$(container_binding slowly 'while [ ! -e go-on ]; do sleep 0.1; done')"
jq '.scopes[0].secret_refs = {token: ("file:" + env.HOME + "/token")}
  | .scopes[0].authorization = {operations: ["@conduit.work"]}' "$config" >"$config.new" && mv "$config.new" "$config"
check "the config is good" exits 0 open-conduit config check
check "the daemon starts again" start_daemon
check "Work in a container runs" run_to_end demo/contained
check "and succeeded" run_is outcome succeeded

check "B17 it is attached to in a container" attach "$work"
inspected=$(engine_get "/containers/$(attached_container)/json")
check "B17 of its own, with the role attach" test -n "$(attached_container)"
check "B17 of the same image" is "$(printf %s "$inspected" | jq -r .Image)" \
  "$(open-conduit runs policy "$run" --json | jq -r .sandbox.image.id)"
check "B17 with the same limits" is "$(printf %s "$inspected" | jq .HostConfig.PidsLimit)" 100
check "B2 and no network" is "$(printf %s "$inspected" | jq -r .HostConfig.NetworkMode)" none
check "B13 the sign-in is not in its environment for all to see" has_not "$inspected" a-planted-secret
typed 'stty size; ls; ls ~; echo "secret $TOKEN, $COLOUR, $TERM."; echo "toolbelt-$(env | grep -c TOOLBELT)."; printf %s has-; echo spoken' Enter
check "it answers" until_true shows "has-spoken"
check "B17 at the terminal's size" shows "30 100"
check "B17 in the workspace" shows "made-by-the-run"
check "B17 with the Work's home" shows "in-the-home"
check "B17 with its sign-in and its environment" shows "secret a-planted-secret, green, "
check "B17 without a toolbelt" shows "toolbelt-0."
tmux resize-window -t person -x 77 -y 22
has_size() { afresh 'stty size' Enter; sleep 0.3; shows "22 77"; }
check "B17 it is resized" until_true has_size
afresh "printf 'gr\\303\\274n \\342\\202\\254\\n'" Enter
check "B17 UTF-8 comes through" until_true shows "grün €"
afresh 'cat' Enter 'grün' Enter
comes_back() { is "$(screen | grep -cx grün)" 2; }
check "and goes in" until_true comes_back
# Ctrl-C discards what was typed before it was seen.
interrupts() { typed C-c; sleep 0.3; afresh 'printf %s cat-; echo ended' Enter; sleep 0.3; shows "cat-ended"; }
check "B17 Ctrl-C is the program's" until_true interrupts
afresh 'printf %s sleep-; echo begins; sleep 500' Enter
until_true shows "sleep-begins"
stops() { typed C-z; sleep 0.3; shows "Stopped"; }
check "B17 Ctrl-Z is the program's" until_true stops
afresh 'curl -sS --max-time 5 -o /dev/null -w "status %{http_code}\n" http://example.com/' Enter
check "B2 its network is the run's" until_true shows "status 403"
afresh 'head -c 30000000 /dev/zero | tr "\0" "x" | fold -w 70; printf %s all-; echo shown' Enter
check "much output comes through" until_true shows "all-shown"

# Another process may stop the command line: its terminal is then as it was.
mode() { stty -a -F "$(tmux display-message -p -t person '#{pane_tty}')"; }
is_raw() { has "$(mode)" -icanon; }
kill -TSTP "$(attach_pid)"
check "B17 the terminal is given back while the command line is stopped" until_true refuses is_raw
kill -CONT "$(attach_pid)"
check "B17 and taken again" until_true is_raw
afresh 'printf %s still-; echo there' Enter
check "B17 with its session" until_true shows "still-there"
kill -STOP "$(attach_pid)"
stty sane -F "$(tmux display-message -p -t person '#{pane_tty}')"
kill -CONT "$(attach_pid)"
check "B17 and after SIGSTOP, which it cannot notice" until_true is_raw

waiting=$(open-conduit work say "$work" "go on" --json | jq -r .run)
check "a run that comes meanwhile waits" is "$(run=$waiting run_field state)" queued
check "and the Work is not finished meanwhile" exits 1 open-conduit work finish "$work"
check "but busy" grep -q work_busy "$world/err"
afresh 'exit 5' Enter 'exit 5' Enter
check "B17 its exit status is passed on" until_true shows "status 5."
check "B17 the terminal is as it was" until_true shows "icanon"
check "which is no raw one" refuses shows "-icanon"
run=$waiting
check "then the run begins, and ends" await_end
check "well" run_is outcome succeeded
check "B17 and nothing is left" nothing_on_engine
check "nor in the directories" nothing_of_attachments

check "it is attached to again" attach "$work"
typed C-p C-q
check "B17 the detach key ends it" until_true shows "status 0."
check "B17 and its container" until_true gone_from_engine

# One that always has more to show than it can. An attachment is refused for the moment in which the one before goes.
end_in_slow_terminal() {
  for _ in 1 2 3 4 5; do
    timeout 60 python3 "$OPEN_CONDUIT_SOURCE/tests/fakes/slow_terminal.py" "$1" open-conduit work attach "$work" 2>"$world/slow" && return
    sleep 1
  done
  cat "$world/slow"
}
check "B17 output without end in a slow terminal: Ctrl-C is the program's" \
  is "$(end_in_slow_terminal '\x03exit 7\r')" "it ended with 7"
check "B17 the detach key ends it" is "$(end_in_slow_terminal '\x10\x11')" "it ended with 0"
check "B17 SIGTERM ends it" is "$(end_in_slow_terminal '')" "it ended with -15"
check "B17 and each its container" until_true gone_from_engine

check "and again" attach "$work"
kill -KILL "$(attach_pid)"
check "B17 killing the command line removes the container" until_true gone_from_engine
check "and its directories" until_true nothing_of_attachments

check "and again" attach "$work"
kill -TERM "$(attach_pid)"
check "B17 SIGTERM gives the terminal back" until_true shows "icanon"
check "as it was" refuses shows "-icanon"
check "B17 and removes the container" until_true gone_from_engine

check "and again" attach "$work"
tmux kill-session -t person
check "B17 a terminal that is closed removes it" until_true gone_from_engine

check "and again" attach "$work"
kill_daemon KILL
check "the command line ends with its daemon" until_true shows "status"
check "the daemon starts after it was killed" start_daemon
check "B17 and removes what was left" until_true gone_from_engine
check "and from the directories" until_true nothing_of_attachments

new_work demo/slowly
check "a run in a container lives" until_true run_is state running
check "B17 while it lives, attaching is refused" exits 1 script -qec "open-conduit work attach $work" /dev/null
check "B17 as busy" grep -q work_busy "$world/out"
: >"$XDG_DATA_HOME/open-conduit/works/$work/workspace/go-on"
await_end
check "nothing is left" nothing_on_engine
