# The daemon is killed at each of its steps in turn: at its first sync of the database, at its second, and so on, until a run
# goes through without one. Each time, the next daemon makes a true end of what it finds.
#
# Every third sync of a run without a sandbox in the usual run of the tests; OPEN_CONDUIT_LONG=1: each one, srt's runs too, each
# file that is made, renamed or removed, each process that is started, and every fourth message to an instance (a quarter of an
# hour).
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib_kills.sh"

if ! strace -o /dev/null true 2>/dev/null; then
  skip "kills at each step" "strace may not trace here"
  exit
fi
new_repository "$checkout"
script='
  echo started >>starts
  echo "$OPEN_CONDUIT_TITLE" >>file && git commit -qam "$OPEN_CONDUIT_TITLE"'
write_config "$(binding sandboxed srt "$script")" "$(binding plain host "$script")"

# start_doomed CALLS N: a daemon that is killed when it comes to the N-th of these system calls. It may never answer.
start_doomed() {
  strace -qq -o /dev/null -e trace="$1" -e inject="$1:signal=KILL:when=$2" open-conduitd >>"$world/daemon.log" 2>&1 &
  tracer=$!
  for _ in $(seq 300); do
    daemon=$(open-conduit status --json 2>/dev/null | jq .pid)
    [ -z "$daemon" ] || return 0
    kill -0 "$tracer" 2>/dev/null || return 0
    sleep 0.1
  done
  return 1
}

is_dead() { ! kill -0 "$tracer" 2>/dev/null; }
dead_or_ended() { is_dead || has_ended; }
runs_of_title() { open-conduit runs list --json | jq -r --arg title "$title" '.[] | select(.title == $title) | .id'; }

# An earlier daemon may have begun to finish it.
is_finished() { until_true finish_once || { cat "$world/finish"; return 1; }; }
finish_once() {
  open-conduit work finish "$work" >"$world/finish" 2>&1
  is "$(open-conduit work get "$work" --json | jq -r .state)" finished
}

# Its end may come at any of the questions below, too: then the next one is asked again.
ended_just_now() { [ -z "$died" ] && is_dead; }
revive() {
  died=1
  wait "$tracer" 2>/dev/null
  daemon=
  check "$name: the next daemon starts" start_daemon
}
# asked COMMAND...: sets $answer.
asked() {
  answer=$("$@" 2>/dev/null)
  if ended_just_now; then
    revive
    answer=$("$@")
  fi
}
check_of_any() {
  checked=$1
  shift
  if "$@" >/dev/null 2>&1; then
    ended_just_now && revive
    echo "ok - $checked"
  else
    ended_just_now && revive
    check "$checked" "$@"
  fi
}
workspace_told() { open-conduit work get "$work" --json | jq -r .workspace; }

# round CALLS N BINDING: sets $died.
round() {
  title="Round $1 $2 $3" died= run= work= daemon=
  name="kill -9 at $1 number $2, $3"
  start_doomed "$1" "$2" || echo "not ok - $name: the daemon neither answers nor dies"
  made=
  if new_work "demo/$3" --title "$title" 2>"$world/err"; then made=1; fi
  check "$name: it dies, or the run ends" until_true dead_or_ended
  # Finishing has steps, too.
  is_dead || open-conduit work finish "$work" >/dev/null 2>&1
  is_dead || open-conduit status >/dev/null 2>&1 || until_true is_dead >/dev/null
  if is_dead; then
    died=1
    wait "$tracer" 2>/dev/null
    # It may have died before there was one.
    [ ! -e "$database" ] || database_is_sound || echo "not ok - $name: the database is sound"
    daemon=
    check "$name: the next daemon starts" start_daemon
  fi
  asked runs_of_title
  found=$answer
  if [ -n "$made" ]; then
    check "$name: the run that was promised is there, once" is "$found" "$run"
  else
    check "$name: what was not promised is there once at most" test "$(echo "$found" | wc -l)" -le 1
    run=$found
  fi
  if [ -n "$run" ]; then
    asked run_field work
    work=$answer
    asked workspace_told
    workspace=$answer
    check_of_any "$name: the run ends" await_end
    check_of_any "$name: its outcome is true" ended_truly
    check "$name: the agent was not started twice" started_at_most_once
    had_commit=
    if committed; then had_commit=1; fi
    check_of_any "$name: its Work can be finished" is_finished
    check "$name: no commit is lost" commit_is_not_lost
    check "$name: no process is left" until_true no_process_with "$run"
    check "$name: no file is left" nothing_is_left
    check "$name: no mount is left" no_mount_of_ours
  fi
  kill_daemon TERM
  if [ -z "$died" ]; then wait "$tracer" 2>/dev/null; fi
}

# each CALLS STEP BINDING: until a run goes through.
each() {
  number=1 deaths=0
  while [ $number -lt 400 ]; do
    round "$1" $number "$3"
    [ -n "$died" ] || break
    deaths=$((deaths + 1)) number=$((number + $2))
  done
  check "$1, $3: the last run went through without a kill" is "$died" ""
  echo "# $1, $3: $deaths kills, the last at number $((number - $2))"
}

# A first run, so that the database is there.
database=
check "the daemon starts" start_daemon
database=$(find "$XDG_STATE_HOME" -name '*.db' -o -name '*.sqlite*' | grep -v -- '-wal\|-shm' | head -n 1)
check "there is a database to look into" test -n "$database"
check "a run without a kill" run_to_end demo/plain --title Before
check "succeeds" run_is outcome succeeded
check "and is finished" exits 0 open-conduit work finish "$work"
home_before=$(find "$HOME" -path "$checkout" -prune -o -print | sort)
kill_daemon TERM
if [ -z "${OPEN_CONDUIT_LONG:-}" ]; then
  each fdatasync 3 plain
  check "there were syncs to be killed at" test $deaths -gt 3
else
  for kind in plain sandboxed; do
    each fdatasync 1 $kind
    check "there were syncs to be killed at, $kind" test $deaths -gt 10
    # Not every machine's library uses each of them.
    for call in fsync unlink unlinkat mkdir mkdirat rename renameat clone clone3 vfork; do each "?$call" 1 $kind; done
    # What it says to its instances.
    each writev 4 $kind
  done
fi
check "the daemon starts" start_daemon
check "after all of it a run succeeds" run_to_end demo/plain --title After
check "with its commit" checkout_has_commit After
check "the database is sound" database_is_sound
