# What an agent leaves in its workspace: told after each run, before somebody goes and looks; a hard link to the outside
# keeps the next run from beginning, whoever made it; and of the repository nothing comes home but the branch.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"

new_repository "$checkout"
mkdir "$checkout/.vscode" "$checkout/.githooks" && echo '{}' >"$checkout/.vscode/settings.json" && echo true >"$checkout/.githooks/pre-commit"
git -C "$checkout" add .vscode .githooks && git -C "$checkout" commit -qm "Editor settings"
echo "a secret" >"$HOME/secret"
script='
  echo "echo ran" >.envrc; echo "{ }" >.vscode/settings.json; mkdir -p .idea .husky sub/x; git init -q sub/nested; echo "gitdir: /tmp" >sub/x/.git
  echo x >.git/hooks/pre-commit; git config core.fsmonitor /bin/false; echo x >.git/config.worktree
  git branch private HEAD; git tag secret-tag; git update-ref refs/open-conduit/x HEAD; git notes add -m note HEAD 2>/dev/null
  git stash -q 2>/dev/null; git checkout -q -b other && echo other >other && git add other && git commit -qm "On another branch"
  git checkout -q - && echo two >file && git add file && git commit -qm "$OPEN_CONDUIT_TITLE"; exit 0'
write_config "$(binding boxed srt "$script")" "$(binding quiet srt 'echo three >file && git commit -qam Quiet')" "$(binding plain host "$script")"
check "the daemon starts" start_daemon

check "a run that leaves traps ends" run_to_end demo/boxed --title Trapped
check "it succeeded" run_is outcome succeeded
check "its commit arrived" checkout_has_commit Trapped
notes=$(open-conduit runs get "$run")
given=$(open-conduit work get "$work")
for trap in ".envrc: direnv runs it" ".idea: an editor" ".husky: a directory of hooks" ".vscode: an editor"; do
  check "runs get tells of it: $trap" has "$notes" "$trap"
  check "so does work get: $trap" has "$given" "$trap"
done
check "runs get says that there are more" has "$notes" "1 more, in work get"
for trap in sub/nested/.git sub/x/.git; do check "work get has all: $trap" has "$given" "$trap"; done
check "what the repository brought and nobody changed is not told of" has_not "$given" ".githooks"
check "C7 git's own files were not the agent's to write" has_not "$given" ".git/hooks"
check "C7 nor was its config" has_not "$given" "config.worktree"
# The refs: one branch came, and nothing else.
check "C7 no other ref left the workspace" is "$(git -C "$checkout" for-each-ref --format='%(refname)' | sort | tr '\n' ' ')" \
  "refs/heads/$(run_field branch) refs/heads/main "
check "C7 nor what only another branch had" refuses checkout_has_commit "On another branch"
refs_inside=$(git -C "$(open-conduit work get "$work" --json | jq -r .workspace)" for-each-ref --format='%(refname)')
for ref in refs/heads/private refs/tags/secret-tag refs/open-conduit/x refs/heads/other; do
  check "control: it is there in the workspace: $ref" has "$refs_inside" "$ref"
done
check "the checkout is sound" git -C "$checkout" fsck --strict
check "finishing its Work keeps the list" exits 0 open-conduit work finish "$work"
check "though the workspace is gone" has "$(open-conduit work get "$work")" ".envrc: direnv runs it"

check "a run that leaves nothing but the repository's own ends" run_to_end demo/quiet
check "nothing is told of it" has_not "$(open-conduit runs get "$run")" beware
check "control: without a sandbox nothing is said" run_to_end demo/plain --title Plain
check "since the agent could have done it by itself" has_not "$(open-conduit runs get "$run")" beware

# Hard links, after and before.
check "a first run ends" run_to_end demo/quiet --title Linked
workspace=$(open-conduit work get "$work" --json | jq -r .workspace)
ln "$HOME/secret" "$workspace/innocent"
check "C6 a next run is asked for" exits 0 open-conduit work say "$work" "go on" --json
run=$(jq -r .run "$world/out")
check "it ends" await_end
check "C6 it was refused" run_is outcome refused
check "F1 as sandbox_denied" run_is reason sandbox_denied
check "C6 naming the file" has "$(run_field message)" "$workspace/innocent has a hard link outside"
check "C6 and pnpm's setting" has "$(run_field fix)" "package-import-method=copy"
rm "$HOME/secret"
check "C6 control: without the name outside the next run is asked for" exits 0 open-conduit work say "$work" "go on" --json
run=$(jq -r .run "$world/out")
check "it ends" await_end
check "C6 and begins" refuses run_is outcome refused

echo "another" >"$HOME/another"
write_config "$(binding slow srt 'while [ ! -e go ]; do sleep 0.1; done; echo four >file; git commit -qam Four')"
check "the config is read again" exits 0 open-conduit reload
check "a run begins" new_work demo/slow
workspace=$(open-conduit work get "$work" --json | jq -r .workspace)
until_true test -d "$workspace/.git" && until_true run_is state running
ln "$HOME/another" "$workspace/late"
: >"$workspace/go"
check "it ends" await_end
check "C6 a link that came to be meanwhile is told afterwards" has "$(open-conduit runs get "$run")" "late has a hard link outside"
check "its commit arrived all the same" checkout_has_commit Four
check "its Work can be finished" exits 0 open-conduit work finish "$work"
check "C6 which tells of it, too" has "$(open-conduit work get "$work")" "late has a hard link outside"
check "what it linked to is as it was" is "$(cat "$HOME/another")" another
