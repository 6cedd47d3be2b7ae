# kill -9 in the middle of a save, when git holds the lock of the Work's branch in the operator's checkout: what it leaves of the
# lock is removed, since the daemon knows that it was killed. A lock that was there without a kill is the operator's.
#
# The lock is put there by hand, as a git is too quick to be met with it; git then waits for it, and is killed meanwhile.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib_kills.sh"

new_repository "$checkout"
script='sleep 0.5; echo "$OPEN_CONDUIT_TITLE" >>file && git commit -qam "$OPEN_CONDUIT_TITLE"'
write_config "$(binding plain host "$script")"

# begin TITLE: a run whose save will meet a lock
begin() {
  title=$1
  new_work demo/plain --title "$title"
  branch=$(open-conduit work get "$work" --json | jq -r .branch)
  lock=$checkout/.git/refs/heads/$branch.lock
  mark=$XDG_DATA_HOME/open-conduit/works/$work/saving
  mkdir -p "$(dirname "$lock")"
  : >"$lock"
}

receivers() { open-conduit status --json | jq -r '.instances[] | select(.provider == "git") | .pid'; }
kill_receivers() {
  for pid in $(receivers); do kill -KILL "$pid" 2>/dev/null; done
}
is_saved() {
  run_is outcome succeeded && checkout_has_commit "$title" && [ ! -e "$lock" ] && [ ! -e "$mark" ]
}

check "the daemon starts" start_daemon

begin "Nobody is killed"
check "a lock that is there without a kill: the run ends" await_end
check "it says save_failed" run_is reason save_failed
check "and the lock is let alone" test -e "$lock"
check "no mark is left of a save that was answered" test ! -e "$mark"
check "the Work cannot be finished while it is there" exits 1 open-conduit work finish "$work"
open-conduit work finish "$work" >"$world/finish" 2>&1 &
finishing=$!
check "a save at the Work's end begins" until_true test -e "$mark"
kill_receivers
wait $finishing
check "kill -9 of its git: the next one finishes the Work" exits 0 open-conduit work finish "$work"
check "with its commit" checkout_has_commit "$title"
check "and without the lock" test ! -e "$lock"

begin "Git is killed"
check "the save begins" until_true test -e "$mark"
kill_receivers
check "kill -9 of git: the run ends" await_end
check "saved, without a lock and a mark" is_saved
check "its log tells of it" log_has "a git that was killed had left"

begin "The daemon is killed"
check "the save begins" until_true test -e "$mark"
kill_daemon KILL
check "kill -9 of the daemon: the next one starts" start_daemon
check "the run ends" await_end
check "saved, without a lock and a mark" is_saved

begin "The Work is removed"
rm -f "$lock"
check "its run ends" await_end
check "well" run_is outcome succeeded
workspace=$(open-conduit work get "$work" --json | jq -r .workspace)
mkdir "$workspace/many"
(cd "$workspace/many" && for i in $(seq 20000); do echo "f$i"; done | xargs touch)
open-conduit work finish "$work" >"$world/finish" 2>&1 &
finishing=$!
check "its removal begins" until_true test -e "${mark%saving}removing"
kill_daemon KILL
wait $finishing
kill_removers() { for pid in $(processes_with "$workspace"); do kill -KILL "$pid" 2>/dev/null; done; }
kill_removers
rm -rf "$workspace/.git"
check "kill -9 in the middle of it: the next daemon starts" start_daemon
is_finished() { is "$(open-conduit work get "$work" --json | jq -r .state)" finished; }
check "and finishes the Work, which was saved before" until_true is_finished
check "with its commit" checkout_has_commit "$title"
check "nothing of it is left" test ! -e "$(dirname "$workspace")"

check "the checkout is sound" git -C "$checkout" fsck --strict
