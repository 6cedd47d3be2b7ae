# Every call of a provider's lockdown, made to fail in turn: nothing is served, and the message names the step.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"

trace=$world/trace
answer=$world/answer

# Starts a provider by hand with the CALL's Nth use failing in it, and its answer kept.
with_fault() {
  strace -f -qq -o "$trace" -e trace="$1" -e inject="$1:error=$3:when=$2" open-conduit-git check >"$answer" 2>&1
}
was_injected() { grep -q INJECTED "$trace"; }

# required CALL WORD [FIRST]: however often it is made, its failure stops the provider and is named by WORD. FIRST is the
# first use that is ours: the C library makes some calls before main.
required() {
  first=${3:-1} use=${3:-1}
  while [ $use -le 6 ]; do
    if with_fault "$1" $use EPERM; then
      was_injected || break
      echo "it served although $1 failed (use $use)"; cat "$answer"; return 1
    fi
    was_injected || { echo "it failed by itself:"; cat "$answer"; return 1; }
    ! grep -q '^version' "$answer" || { echo "it answered all the same"; return 1; }
    grep -qi -- "$2" "$answer" || { echo "the message does not name $2 (use $use):"; cat "$answer"; return 1; }
    use=$((use + 1))
  done
  [ $use -gt $first ] || { echo "$1 is never called"; return 1; }
}

# wanted CALL WORD: without it the provider serves, and says what is missing.
wanted() {
  with_fault "$1" 1 "$3" || { cat "$answer"; return 1; }
  was_injected || { echo "$1 is never called"; return 1; }
}

check "control: without a fault the provider answers" open-conduit-git check
check "A7 G3 no provider without its resource limits" required prlimit64 rlimit 2
check "A7 G3 no provider whose descriptors cannot be closed" required close_range close_range
check "A7 G3 no provider that keeps capabilities" required capset cap_
check "A7 G3 no provider without Landlock's ruleset" required landlock_create_ruleset landlock
check "A7 G3 no provider without all of Landlock's rules" required landlock_add_rule landlock_add_rule
check "A7 G3 no provider that Landlock does not restrict" required landlock_restrict_self landlock_restrict_self
# The library probes the kernel first; every use from the second on includes the one that loads the filter.
no_filter() {
  if with_fault seccomp 2+ EPERM; then cat "$answer"; return 1; fi
  was_injected && grep -qi seccomp "$answer" && ! grep -q '^version' "$answer"
}
check "A7 G3 no provider without its seccomp filter" no_filter
check "A7 G3 no provider without a socket to its starter" required socketpair socketpair
check "A7 G3 a provider that cannot be executed is told" required execve execve
check "A7 G3 no provider whose process cannot be watched" required pidfd_open pidfd_open
check "G3 a machine without namespaces of one's own still has providers" wanted unshare namespace ENOSPC

# One of many calls of a name is told by what it is given. The use of it, in the process that has it.
use_of() {
  strace -f -qq -o "$trace.clean" -e trace="$1" open-conduit-git check >"$answer" 2>&1
  awk -v given="$2" '{ ++uses[$1] } index($0, given) && !found { found = 1; print uses[$1] }' "$trace.clean"
}
# required_use CALL GIVEN WORD
required_use() {
  use=$(use_of "$1" "$2")
  [ -n "$use" ] || { echo "$1 with $2 is never called"; return 1; }
  if with_fault "$1" "$use" EPERM; then echo "it served although $2 failed"; return 1; fi
  grep INJECTED "$trace" | grep -qF "$2" || { echo "another call failed:"; grep INJECTED "$trace"; return 1; }
  ! grep -q '^version' "$answer" || { echo "it answered all the same"; return 1; }
  grep -qi -- "$3" "$answer" || { echo "the message does not name $3:"; cat "$answer"; return 1; }
}
check "A7 G3 no provider that can be looked into" required_use prctl PR_SET_DUMPABLE PR_SET_DUMPABLE
check "A7 G3 no provider whose lockdown the kernel does not confirm: dumpable" required_use prctl PR_GET_DUMPABLE "does not confirm"
check "A7 G3 no provider whose lockdown the kernel does not confirm: new privileges" required_use prctl PR_GET_NO_NEW_PRIVS "does not confirm"
check "A7 G3 no provider whose lockdown the kernel does not confirm: the filter" required_use prctl PR_GET_SECCOMP "does not confirm"
check "A7 G3 a provider that cannot be forked is told" required clone fork

# srt's parent launches nothing without its namespaces and mounts, and what srt and bubblewrap do for an agent is as closed.
if [ -n "${OPEN_CONDUIT_TEST_SRT:-}" ]; then
  cli=$OPEN_CONDUIT_TEST_SRT/node_modules/@anthropic-ai/sandbox-runtime/dist/cli.js
  check_srt() { "$@" open-conduit-srt check --cli "$cli" >"$answer" 2>&1; }
  ran() { grep -q "^ok *canary" "$answer"; }
  check "control: without a fault srt's canary runs" check_srt env
  check "control: it did" ran
  # closed CALL MOST: whichever use of it fails, the canary does not run, or what is missing is said.
  closed() {
    use=1
    while [ $use -le "$2" ]; do
      if check_srt strace -f -qq -o "$trace" -e trace="$1" -e inject="$1:error=EPERM:when=$use"; then
        was_injected || break
        echo "all was well although $1 failed (use $use)"
        grep INJECTED "$trace"
        return 1
      fi
      was_injected || { echo "it failed by itself:"; cat "$answer"; return 1; }
      grep -q "FAIL\|did not start\|fork" "$answer" || { cat "$answer"; return 1; }
      ! ran || { echo "the canary ran all the same (use $use)"; return 1; }
      use=$((use + 1))
    done
    [ $use -gt 1 ] || { echo "$1 is never called"; return 1; }
  }
  check "A7 no agent without its namespaces" closed unshare 8
  check "A7 no agent without its mounts" closed mount 6
  check "A7 no agent without its own processes" closed clone 6
fi
