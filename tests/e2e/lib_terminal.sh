# A real terminal emulator, tmux, that a scenario types into and looks at. It ends with the scenario.
TMUX_TMPDIR=$world/tmp
export TMUX_TMPDIR
unset TMUX
end_terminals() { tmux kill-server 2>/dev/null; leave_nothing; }
trap end_terminals EXIT

# Keeps tmux's server there between two terminals.
tmux -f /dev/null new-session -d -s keeper 'sleep 1000'

# open_terminal COMMAND...: a new one of 100 columns and 30 rows, whose shell runs it and shows its exit status.
open_terminal() {
  tmux kill-session -t person 2>/dev/null
  tmux -f /dev/null new-session -d -s person -x 100 -y 30 "$*; echo \"status \$?.\"; stty -a | tr ' ' '\n' | grep -x -e -icanon -e icanon; sleep 1000"
}
typed() { tmux send-keys -t person "$@"; }
# The same on an empty screen.
afresh() { tmux send-keys -R -t person && typed "$@"; }
screen() { tmux capture-pane -p -J -t person; }
shows() { screen | grep -qF -- "$1" || { screen; return 1; }; }
attach_pid() { tmux list-panes -t person -F '#{pane_pid}' | xargs -I{} pgrep -f -P {} 'work attach'; }
