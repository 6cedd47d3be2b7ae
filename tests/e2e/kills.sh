# kill -9 of each process that takes part in a run, at whatever moment. Whatever it was: the run ends with a true outcome,
# no commit is lost, no agent is started twice, the database is sound, and nothing is left.
#
# Three kills of each in the usual run of the tests; OPEN_CONDUIT_LONG=1: ten of each, under load.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib_kills.sh"

rounds=3 load=
if [ -n "${OPEN_CONDUIT_LONG:-}" ]; then rounds=10 load=2; fi

new_repository "$checkout"
# Says in a file of its workspace that it was started, commits, and takes long enough to be killed in between.
script='
  echo started >>starts
  sleep 0.2
  echo "$OPEN_CONDUIT_TITLE" >>file && git commit -qam "$OPEN_CONDUIT_TITLE" && echo committed
  sleep 0.2'
write_config "$(binding sandboxed srt "$script")" "$(binding plain host "$script")"

# ---- who is to be killed: the pids of one kind of process that belong to the run -------------------------------

of_provider() {
  open-conduit status --json | jq -r --arg provider "$1" '.instances[] | select(.provider == $provider) | .pid'
}

victims() {
  case $1 in
    daemon) echo "$daemon" ;;
    both) echo "$daemon" && of_provider run ;;
    shim) of_provider run ;;
    parent) of_provider srt && of_provider host ;;
    git) of_provider git ;;
    # srt's own program; the provider has its path on its command line, too.
    srt)
      for pid in $(processes_with dist/cli.js); do
        grep -q '^open-conduit' "/proc/$pid/comm" 2>/dev/null || echo "$pid"
      done
      ;;
  esac
}

# Kills one kind at some moment of the run, and counts whom.
strike() {
  for _ in $(seq 40); do
    found=$(victims "$1")
    [ -z "$found" ] || break
    sleep 0.02
  done
  for victim in $found; do
    if kill -KILL "$victim" 2>/dev/null; then struck=$((struck + 1)); fi
  done
}

# ---- rounds ----------------------------------------------------------------------------------------------------

round() {
  who=$1 number=$2 title="Round $1 $2 $3"
  name="kill -9 of $who, $3, round $2"
  check "$name: a run starts" new_work "demo/$3" --title "$title"
  workspace=$(open-conduit work get "$work" --json | jq -r .workspace)
  # The first round's victim is waited for from the beginning, so that there is one.
  [ "$number" = 1 ] || sleep "0.$(awk -v seed="$number$$" 'BEGIN { srand(seed); printf "%03d", rand() * 999 }')"
  strike "$who"
  if [ "$who" = daemon ] || [ "$who" = both ]; then
    wait "$daemon" 2>/dev/null
    database_is_sound || echo "not ok - $name: the database is sound"
    check "$name: the next daemon starts" start_daemon
  fi
  check "$name: the daemon lives" daemon_answers
  check "$name: the run ends" await_end
  check "$name: its outcome is true" ended_truly
  check "$name: the agent was not started twice" started_at_most_once
  had_commit=
  if committed; then had_commit=1; fi
  check "$name: its Work can be finished" exits 0 open-conduit work finish "$work"
  check "$name: no commit is lost" commit_is_not_lost
  check "$name: no process is left" until_true no_process_with "$run"
  check "$name: no file is left" nothing_is_left
  check "$name: no mount is left" no_mount_of_ours
}

check "the daemon starts" start_daemon
database=$(find "$XDG_STATE_HOME" -name '*.db' -o -name '*.sqlite*' | grep -v -- '-wal\|-shm' | head -n 1)
check "there is a database to look into" test -n "$database"
burners=
for _ in $(seq ${load:-0}); do
  sh -c 'while :; do :; done' &
  burners="$burners $!"
done
check "a run without a kill" run_to_end demo/sandboxed --title Before
check "succeeds" run_is outcome succeeded
check "and is finished" exits 0 open-conduit work finish "$work"
home_before=$(find "$HOME" -path "$checkout" -prune -o -print | sort)
for who in daemon shim both parent git srt; do
  struck=0
  for number in $(seq $rounds); do round $who "$number" sandboxed; done
  if [ $who != srt ]; then round $who 1 plain; fi
  check "kill -9 of $who: one was there to be killed" test $struck -gt 0
done
check "the database is sound" database_is_sound
check "after all of it a run succeeds" run_to_end demo/sandboxed --title After
check "with its commit" checkout_has_commit After
for pid in $burners; do kill -KILL "$pid"; done
