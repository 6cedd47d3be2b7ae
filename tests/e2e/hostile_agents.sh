# Agents that make it hard to end their run, to save their commits, or to remove what they leave.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"

new_repository "$checkout"
commit='echo two >>file && git commit -qam "$OPEN_CONDUIT_TITLE"'
write_config \
  "$(binding shut srt "$commit && chmod 0 .git . ")" \
  "$(binding commondir srt "$commit && mkdir -p .git/commondir/x && chmod 0 .git .")" \
  "$(binding no-branch srt "$commit"' && git checkout -q --detach && git branch -q -D "$(git for-each-ref --format="%(refname:short)" refs/heads/agent)"')" \
  "$(binding pipe srt "$commit"' && o=$(git rev-parse HEAD) && f=.git/objects/$(echo $o | cut -c1-2)/$(echo $o | cut -c3-) && rm -f $f && mkfifo $f')" \
  "$(binding broad srt "$commit && echo x >$XDG_DATA_HOME/made" '{"sandbox": {"config": {"write": ["'"$XDG_DATA_HOME"'"]}}}')" \
  "$(binding tracer srt "$commit"'; exec python3 -c "import ctypes; exit(ctypes.CDLL(None).ptrace(16, 1, 0, 0) == 0)"' \
    '{"sandbox": {"config": {"unix_sockets": "all"}}}')"
check "the daemon starts" start_daemon

check "a run that shuts its directory ends" run_to_end demo/shut --title Shut
check "it succeeded" run_is outcome succeeded
check "its commit arrived" checkout_has_commit Shut
check "its Work can be finished" exits 0 open-conduit work finish "$work"

check "a run that hides a commondir ends" run_to_end demo/commondir --title Commondir
workspace=$(open-conduit work get "$work" --json | jq -r .workspace)
check "the commondir is gone" test ! -e "$workspace/.git/commondir"
check "its Work can be finished" exits 0 open-conduit work finish "$work"

# Commits that cannot be saved: no success, and nothing gives them up unasked.
for kind in no-branch pipe; do
  check "$kind: the run ends" run_to_end "demo/$kind" --title "Unsaved $kind"
  check "$kind: it is no success" run_is outcome failed
  check "$kind: it says that its commits were not saved" run_is reason save_failed
  check "$kind: finishing its Work is refused" exits 1 open-conduit work finish "$work"
  check "$kind: cancelling it, too" exits 1 open-conduit work cancel "$work"
  check "$kind: the refusal says how to give them up" grep -q -- --discard "$world/err"
  check "$kind: the workspace is there" test -d "$(open-conduit work get "$work" --json | jq -r .workspace)"
  check "$kind: with --discard it goes" exits 0 open-conduit work cancel --discard "$work"
done

check "C11 a run with a grant above its workspace ends" run_to_end demo/broad --title Broad
check "it succeeded" run_is outcome succeeded
check "its workspace was writable: its commit arrived" checkout_has_commit Broad
check "and so was what was granted" test -e "$XDG_DATA_HOME/made"

check "a run that traces the first process of its sandbox ends" run_to_end demo/tracer --title Tracer
check "it could not" run_is outcome succeeded
