# The terminal UI in a real terminal: tmux is the person.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"

command -v tmux >/dev/null || { skip "the terminal UI" "tmux is needed"; exit; }
new_repository "$checkout"
write_config "$(binding plain host 'n=0; while :; do n=$((n + 1)); echo "tick $n"; sleep 0.2; done')"
check "the daemon starts" start_daemon

screen() { tmux -S "$world/tmux.sock" "$@"; }
shows() { has "$(screen capture-pane -p -t ui)" "$1"; }
end_screen() { screen kill-server 2>/dev/null; leave_nothing; }
trap end_screen EXIT
screen -f /dev/null new-session -d -s ui -x 100 -y 20 "env LANG=C.UTF-8 open-conduit"
# Keeps tmux's server there between two terminals.
screen new-session -d -s keeper 'sleep 1000'

new_work demo/plain --title "Ticks for ever"
check "G1 a bare open-conduit on a terminal is the UI, and shows a run" until_true shows "Ticks for ever"
screen send-keys -t ui l
check "its log grows before one's eyes" until_true shows "tick 3"
screen send-keys -t ui Escape
check "and back" until_true shows "q quit"
screen send-keys -t ui Enter
check "what the run is" until_true shows "demo/plain"
screen resize-window -t ui -x 60 -y 12
check "it takes another size" until_true shows "esc back"
screen send-keys -t ui s
check "it asks before it stops a run" until_true shows "stop $run?"
screen send-keys -t ui n
check "and does nothing on a no" run_is outcome null
screen send-keys -t ui s
until_true shows "stop $run?" >/dev/null
screen send-keys -t ui y
check "G1 a run can be stopped from it" until_true run_is outcome stopped
kill_daemon TERM
check "it says that the daemon went away" until_true shows "went away"
check "the daemon starts again" start_daemon
check "and finds it again" until_true shows "stopped"
screen send-keys -t ui Escape
screen send-keys -t ui q
ui_is_gone() { ! screen has-session -t ui; }
check "q ends it" until_true ui_is_gone
# as_terminal SETTING...: the UI on a terminal that is said to be such a one; its end is on the screen.
as_terminal() {
  screen -f /dev/null new-session -d -s ui -x 100 -y 20 "env $* open-conduit 2>&1; echo \"status \$?.\"; sleep 1000"
}
for setting in "-u TERM" "TERM=dumb" "TERM=nothing-known"; do
  as_terminal "$setting"
  check "a terminal that cannot be drawn on is wrong usage: $setting" until_true shows "status 2."
  check "and told in a sentence: $setting" shows "this terminal cannot be drawn on: TERM is"
  screen kill-session -t ui
done
as_terminal LC_ALL=C
check "without a locale its signs are what they are" until_true shows "↑↓ choose"
check "without a terminal it says so" exits 2 open-conduit ui
