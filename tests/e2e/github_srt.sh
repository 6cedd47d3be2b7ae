# GitHub without a container: in the process sandbox and without one, with "git": "bot". What git in a run signs in with, and what
# the agent reads of a push that was refused; a bot with an App of its own; and a connection that is changed while the daemon runs.
# tests/run sets OPEN_CONDUIT_TEST_GITHUB (the fake's address) and _CA.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"

if [ -z "${OPEN_CONDUIT_TEST_GITHUB:-}" ]; then
  skip "GitHub in the process sandbox" "the fake GitHub is needed, which tests/run starts as root, with node"
  exit
fi
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib_github.sh"

# ---- the agent: a shell that does what the test writes into its workspace, one thing after the other

agent='n=1
while [ ! -e stop ]; do
  if [ ! -e "do-$n" ]; then sleep 0.05; continue; fi
  echo "begin $n"
  ( . "./do-$n" ) 2>&1
  echo "end $n: $?"
  n=$((n + 1))
done'
asked=0
# ask COMMAND: what the agent printed is in $said.
ask() {
  asked=$((asked + 1))
  workspace=$XDG_DATA_HOME/open-conduit/works/$work/workspace
  until_true test -d "$workspace/.git" || return 1
  printf '%s\n' "$1" >"$workspace/.do" && mv "$workspace/.do" "$workspace/do-$asked"
  until_true log_has "end $asked: " || return 1
  said=$(log_of_run | sed -n "/^begin $asked\$/,/^end $asked: /p")
}
says() { ask "$1" && has "$said" "$2"; }
say_no() { ask "$1" && has_not "$said" "$2"; }
start_agent() {
  asked=0
  new_work "$1" --title "${2-A title}"
}
provider_pid() { open-conduit status --json | jq -r '[.instances[] | select(.provider == "github")][-1].pid'; }
end_agent() {
  touch "$XDG_DATA_HOME/open-conduit/works/$work/workspace/stop"
  await_end
}

# ---- two bindings, one with a sandbox

mkdir -p "$HOME/.config/gh"
echo "oauth_token: of the operator" >"$HOME/.config/gh/hosts.yml"
furnish >"$world/furnished"
clone_as_alice
github_binding() {
  binding "$1" "$2" "$agent" "$(jq -n --arg ca "$ca" '{connection: "github", operations: ["@github.author", "@github.workspace"],
    config: {env: {GIT_SSL_CAINFO: $ca}}}')" | jq --arg host "$github" 'if .sandbox then
      .sandbox.config |= (.sockets = ["{toolbelt}"] | .unix_sockets = "all" | .network.allow = [$host]) else . end'
}
write_config "$(github_binding sandboxed srt)" "$(github_binding plain host)"
# connected CONNECTION-CONFIG SECRET-REFS
connected() {
  jq --arg api "$github_api" --arg ca "$ca" --argjson config "$1" --argjson secrets "$2" '
    .connections = [{id: "github", type: "github", config: ({auth: "app", api_url: $api, ca_file: $ca, poll_interval: "1h"} + $config),
      secret_refs: $secrets}]
    | .scopes[0] += {authorization: {connections: ["github"], operations: ["@github.author", "@github.workspace"]},
        extensions: [{name: "web", type: "github", connection: "github", config: {repo: "acme/web"}}]}' "$config" >"$world/c" &&
    mv "$world/c" "$config"
}
app_key=$(jq -n --arg file "$world/app.pem" '{app_private_key: "file:\($file)"}')
connected '{"app_id": "123456", "git": "bot"}' "$app_key"
check "the config is good" exits 0 open-conduit config check
check "and nothing is missing in it" has_not "$(cat "$world/out" "$world/err")" "warning"
check "the daemon starts" start_daemon

# ---- C9

bot="conduit[bot] <$(bot_id conduit)+conduit[bot]@users.noreply."
for kind in sandboxed plain; do
  start_agent "demo/$kind"
  check "B16 $kind: git pushes" says 'echo x >>fix; git add fix; git commit -qm "A fix"; git push -q origin HEAD && echo "it is pushed"' "it is pushed"
  check "B16 $kind: as the bot" says 'git log -1 --format="%an <%ae>, %cn <%ce>"' "$bot"
  check "B14 $kind: with a token that was minted" is "$(live_git_tokens)" 1
  check "B14 $kind: of one repository" is "$(git_tokens | jq '.[-1].repoIds | length')" 1
  [ $kind = plain ] || check "C9 $kind: ~/.config/gh stays denied" say_no 'cat ~/.config/gh/hosts.yml' "of the operator"
  [ $kind = sandboxed ] || check "C9 $kind: where nothing denies it, it is there" says 'cat ~/.config/gh/hosts.yml' "of the operator"
  check "E4 $kind: an operation on an issue says that there is none" says \
    'open-conduit-toolbelt call github.issue.comment "{\"body\": \"x\"}"' "issue"
  check "$kind: the run ends" end_agent
  check "$kind: well" run_is outcome succeeded
  check "B14 $kind: the token is dead within a second" dead_within_a_second
  check "C7 $kind: its commit is in the checkout" checkout_has_commit "A fix"
done

# ---- what is refused has a name

start_agent demo/sandboxed
repo_id=$(world_of | jq .id)
push='echo x >>fix; git add fix; git commit -qm "Another fix"; git push -q origin HEAD && echo "it is pushed"'
check "a first push" says "$push" "it is pushed"
branch=$(open-conduit work get "$work" --json | jq -r .branch)
clone_as_alice "$world/alice"
git -C "$world/alice" checkout -q "$branch" && git -C "$world/alice" commit -q --allow-empty -m "Alice's" &&
  git_as_alice "$world/alice" push -q origin "$branch"
check "non-fast-forward is said" says "$push" "fetch first"
check "and mended" says 'git pull -q --rebase origin "$OPEN_CONDUIT_BRANCH" && git push -q origin HEAD && echo "it is pushed"' "it is pushed"
reject() { fake "$(jq -n --arg text "$1" '{op: "rejectPushes", repo: "acme/web", text: $text}')" >/dev/null; }
reject "error: GH006: Protected branch update failed for refs/heads/main."
check "a protected branch is said" says 'git push -q origin HEAD:main' "GH006: Protected branch"
reject "error: GH013: Repository rule violations found for refs/heads/x. - GITHUB PUSH PROTECTION"
check "push protection is said" says "$push" "GITHUB PUSH PROTECTION"
reject ""
check "another repository is said, and which one is this run's" says \
  "git push -q https://$github/acme/secret.git HEAD" "this run is for acme/web"
fake '{"op": "dieInPush"}' >/dev/null
check "a token that died in the middle is said" says "$push" "the server refused the credential"
sleep 30
check "the next push has another token" says "$push" "it is pushed"
fake '{"op": "rename", "repo": "acme/web", "to": "acme/site"}' >/dev/null
check "a push to a renamed repository arrives" says "$push" "it is pushed"
check "and the agent reads where it is" has "$said" "This repository moved. Please use the new location"
check "it is there by its new name, too" says \
  "git remote set-url --push origin https://$github/acme/site.git; $push; git remote set-url --push --delete origin ." "it is pushed"
renamed_has() { is "$(fake '{"op": "get", "repo": "acme/site"}' | jq .id)" "$1"; }
check "in the repository of before" renamed_has "$repo_id"
check "E4 operations follow, too" says 'open-conduit-toolbelt call github.pull.open "{\"title\": \"Fix\", \"body\": \"Fixed\"}"' '"number"'
fake '{"op": "rename", "repo": "acme/site", "to": "acme/web"}' >/dev/null
check "the run ends" end_agent
check "B14 with all its tokens dead" dead_within_a_second

start_agent demo/sandboxed
fake "$(jq -n --argjson id "$installation" '{op: "setPermissions", id: $id, permissions: {contents: "read", issues: "write", pull_requests: "write", checks: "read"}}')" >/dev/null
check "an App without the permission is said" says "$push" "permissions requested are not granted"
check "by its reason" has "$said" "github_"
fake "$(jq -n --argjson id "$installation" '{op: "suspend", id: $id}')" >/dev/null
check "a suspended App is said" says "$push" "suspended"
fake "$(jq -n --argjson id "$installation" '{op: "uninstall", id: $id}')" >/dev/null
check "one that is not installed any more is said" says "$push" "not installed"
check "the run ends" end_agent

# ---- a bot with an App of its own, on a reload

install_app 123456 '{"contents": "read", "issues": "write", "pull_requests": "write", "checks": "read"}'
add_app 777 pusher "$world/bot.pem"
install_app 777 '{"contents": "write"}'
before=$(provider_pid)
connected '{"app_id": "123456", "bot_app_id": "777"}' \
  "$(printf '%s' "$app_key" | jq --arg file "$world/bot.pem" '. + {bot_private_key: "file:\($file)"}')"
check "a changed connection is taken on a reload" exits 0 kill -HUP "$daemon"
another_provider() { [ "$(provider_pid)" != "$before" ]; }
check "it has an instance of its own" until_true another_provider
start_agent demo/sandboxed
check "B16 the bot's App mints, whatever git says" says "$push" "it is pushed"
check "B14 its token may write contents, and nothing else" is \
  "$(git_tokens | jq -c '[.[] | select(.live)][-1].permissions | del(.metadata)')" '{"contents":"write"}'
check "the run ends" end_agent
check "B14 and its token is dead" dead_within_a_second
kill_daemon TERM
check "B14 no token lives on after the daemon, of either connection" none_lives
