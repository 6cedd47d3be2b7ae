# Saving back never overwrites what the operator did meanwhile.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"

new_repository "$checkout"
script='while [ ! -e go-on ]; do sleep 0.05; done; echo two >>file && git commit -qam "By the agent" && echo committed'
write_config "$(binding sandboxed srt "$script" '{"config": {"branch": "agent/fixed"}}')" \
  "$(binding fails host 'echo two >>file && git commit -qam "Before it failed"; exit 3')" \
  "$(binding bad-branch host 'true' '{"config": {"branch": "agent/{work}/main"}}')"
check "the daemon starts" start_daemon

check "a run starts" new_work demo/sandboxed
running() { run_is state running; }
check "it runs" until_true running
workspace=$(open-conduit work get "$work" --json | jq -r .workspace)
branch=$(run_field branch)
# The operator commits to the very branch meanwhile, from a worktree of theirs.
git -C "$checkout" branch -q "$branch" main 2>/dev/null
git -C "$checkout" worktree add -q "$world/theirs" "$branch"
echo mine >"$world/theirs/mine" && git -C "$world/theirs" add mine && git -C "$world/theirs" commit -q -m "By the operator"
git -C "$checkout" worktree remove --force "$world/theirs"
: >"$workspace/go-on"
check "it ends" await_end
check "C7 the operator's commit is still the branch's tip" \
  is "$(git -C "$checkout" log -1 --format=%s "$branch")" "By the operator"
check "C7 the agent's commit is kept" checkout_has_commit "By the agent"
kept=$(git -C "$checkout" log --all --format='%S %s' | sed -n 's/ By the agent$//p' | head -n 1)
check "under a name that the run tells" sh -c "open-conduit runs get $run | grep -qF '${kept#refs/heads/}'"

check "a run that fails ends" run_to_end demo/fails
check "it failed" run_is outcome failed
check "its exit code is told" run_is exit_code 3
check "its commits are saved all the same" checkout_has_commit "Before it failed"
