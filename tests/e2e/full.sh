# No room, no inodes, no descriptors, no processes, no memory: the run ends with the reason, the daemon lives, and works again
# when there is some.
#
# State and data lie on small file systems, in mount and user namespaces of an ordinary user.
case ${1-} in
  '')
    base=$(mktemp -d "${TMPDIR:-/tmp}/f.XXXXXX") && mkdir "$base/state" "$base/data" "$base/tmp" || exit 1
    trap 'rm -rf "$base"' EXIT
    if ! unshare --user --map-current-user --mount --keep-caps true 2>"$base/why"; then
      echo "not ok - a full disk needs namespaces: $(cat "$base/why")"
      exit
    fi
    unshare --user --map-current-user --mount --keep-caps sh "$0" --mount "$base"
    exit
    ;;
  --mount)
    mount -t tmpfs -o size=8m,nr_inodes=300,mode=700 state "$2/state" && mount -t tmpfs -o size=24m,nr_inodes=3000,mode=700 data "$2/data" || {
      echo "not ok - small file systems can be mounted"
      exit 1
    }
    exec setpriv --ambient-caps=-all --inh-caps=-all sh "$0" --inside "$2"
    ;;
esac
base=$2 TMPDIR=$2/tmp
export TMPDIR
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"
XDG_STATE_HOME=$base/state XDG_DATA_HOME=$base/data

new_repository "$checkout"
commits='echo "$OPEN_CONDUIT_TITLE" >>file && git commit -qam "$OPEN_CONDUIT_TITLE"'
write_config "$(binding plain host "$commits")" "$(binding sandboxed srt "$commits")" \
  "$(binding waits host "echo begun; while [ ! -e go-on ]; do sleep 0.05; done; $commits")" \
  "$(binding fills host "cat /dev/zero >zero; $commits")" \
  "$(binding litters host "mkdir many && i=0; while : >many/\$i; do i=\$((i + 1)); done; $commits")"

# ---- taking and giving back

take_room() { cat /dev/zero >"$1/filler" 2>/dev/null; }
take_inodes() {
  mkdir "$1/filler"
  i=0
  while (: >"$1/filler/$i") 2>/dev/null; do i=$((i + 1)); done
}
give_back() { rm -rf "$1/filler"; }
limit_daemon() { prlimit --pid "$daemon" "--$1=$2:"; }
unlimit_daemon() { prlimit --pid "$daemon" "--$1=$(prlimit --pid "$daemon" "--$1" --noheadings --raw --output HARD):"; }

# ---- what must be true

# A daemon that died is started again, so that the rest can be told.
daemon_lives() {
  daemon_is_there && return 0
  echo "it died"
  start_daemon
  return 1
}
daemon_is_there() { kill -0 "$daemon" && daemon_answers; }
says_why() {
  case "$(run_field outcome) $(run_field reason)" in
    succeeded*) return 0 ;;
    *' '|*' null') echo "no reason: $(run_field outcome)" && return 1 ;;
  esac
  # A person has to know what was lacking.
  [ -n "$(run_field message)" ] || { echo "no message for $(run_field reason)" && return 1; }
  echo "# $name: $(run_field outcome) $(run_field reason): $(run_field message)" >>"$world/told"
}
works_again() {
  name=$1
  check "$name: the daemon lives" daemon_lives
  count=$((${count:-0} + 1))
  check "$name: with room, a run ends" run_to_end demo/plain --title "Again $count"
  check "$name: and succeeds" run_is outcome succeeded
  check "$name: its commit arrived" checkout_has_commit "Again $count"
  check "$name: its Work can be finished" exits 0 open-conduit work finish "$work"
}
# A run while there is nothing: it may be refused at the door, or end with a reason.
run_without() {
  name=$1
  shift
  run=
  if new_work "$@" --title "$name" 2>"$world/refused"; then
    check "$name: the run ends" await_end
    check "$name: it says why" says_why
  else
    check "$name: the refusal says something" test -s "$world/refused"
    echo "# $name: $(cat "$world/refused")" >>"$world/told"
  fi
  check "$name: the daemon lives" daemon_lives
}
clear_work() {
  for one in $(open-conduit work list --json | jq -r '.[] | select(.state == "open") | .id'); do
    open-conduit work cancel --discard "$one" >"$world/err" 2>&1 || { echo "$one: $(cat "$world/err")"; return 1; }
  done
}

check "the daemon starts" start_daemon
works_again "at first"

for what in room inodes; do
  take_$what "$XDG_DATA_HOME"
  run_without "data without $what" demo/plain
  run_without "data without $what, in srt" demo/sandboxed
  give_back "$XDG_DATA_HOME"
  check "data without $what: what is left can be cancelled" clear_work
  works_again "data with $what again"

  take_$what "$XDG_STATE_HOME"
  run_without "state without $what" demo/plain
  head -c 100000 /dev/urandom | base64 >"$world/body"
  run_without "state without $what, a body" demo/plain --body-file "$world/body"
  give_back "$XDG_STATE_HOME"
  check "state without $what: what is left can be cancelled" clear_work
  works_again "state with $what again"

  # In the middle of a run.
  for place in state data; do
    if [ $place = state ]; then folder=$XDG_STATE_HOME; else folder=$XDG_DATA_HOME; fi
    name="$place without $what in the middle"
    check "$name: a run starts" new_work demo/waits --title "Middle $what $place"
    check "$name: it runs" until_true log_has begun
    workspace=$(open-conduit work get "$work" --json | jq -r .workspace)
    # Its mark has to be made, too.
    : >"$workspace/go-on.new"
    take_$what "$folder"
    mv "$workspace/go-on.new" "$workspace/go-on"
    sleep 1
    check "$name: the daemon lives" daemon_lives
    give_back "$folder"
    check "$name: with room, the run ends" await_end
    check "$name: it says why" says_why
    if [ $place = state ]; then check "$name: its commit arrived" checkout_has_commit "Middle $what $place"; fi
    check "$name: what is left can be cancelled" clear_work
    works_again "$place with $what after the middle"
  done
done

# The agent takes it all.
for binding in fills litters; do
  run_without "the agent $binding" demo/$binding
  check "the agent $binding: its Work can be cancelled" clear_work
  works_again "after the agent that $binding"
done

# The daemon's own limits, from where nothing works to where all does.
for n in 8 12 14 16 18 20 22 24 26 28 30 34 38 44 50; do
  limit_daemon nofile $n
  run=
  name="$n descriptors"
  new_work demo/plain --title "$name" 2>"$world/refused" || run=
  # Whether it is at its end cannot be asked meanwhile.
  sleep 1
  unlimit_daemon nofile
  check "$name: the daemon lives" until_true daemon_is_there
  daemon_is_there || start_daemon
  if [ -n "$run" ]; then
    check "$name: the run ends" await_end
    check "$name: it says why" says_why
  fi
done
check "descriptors: what is left can be cancelled" clear_work
works_again "with descriptors again"
for n in 1 2 4 6 8 10 12 16 20; do
  limit_daemon nproc $n
  run_without "$n processes" demo/plain
  unlimit_daemon nproc
done
check "processes: what is left can be cancelled" clear_work
works_again "with processes again"
for more in 0 1 2 4 8 16; do
  size=$(awk '/^VmSize/ { print $2 * 1024 }' "/proc/$daemon/status")
  limit_daemon as $((size + more * 524288))
  run_without "$((more * 512)) KiB of memory" demo/plain
  unlimit_daemon as
done
check "memory: what is left can be cancelled" clear_work
works_again "with memory again"
# What a person was told.
sed 's/^[^#]/# &/' "$world/told" | sort -u
