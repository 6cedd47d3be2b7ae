# What scenarios with the fake GitHub share: an organization, its App, and somebody who may start agents. A scenario sources lib.sh
# and lib_docker.sh first; tests/run sets OPEN_CONDUIT_TEST_GITHUB (the fake's address) and _CA.
github=$OPEN_CONDUIT_TEST_GITHUB
github_api=https://$github/api/v3
ca=$world/ca.pem
cp "$OPEN_CONDUIT_TEST_GITHUB_CA" "$ca"

# ---- the fake

fake() { curl -sS --max-time 20 -d "$1" "http://$github:8002/"; }
# add_app ID SLUG KEY-FILE: with a key of its own.
add_app() {
  openssl genrsa -out "$3" 2048 2>/dev/null
  chmod 600 "$3"
  openssl rsa -in "$3" -pubout 2>/dev/null |
    jq -Rs --argjson id "$1" --arg slug "$2" '{op: "addApp", id: $id, slug: $slug, owner: "acme", publicKey: .}' >"$world/app.json"
  fake "@$world/app.json" >"$world/app-$2.json"
}
bot_id() { jq .botId "$world/app-$1.json"; }
# install_app ID PERMISSIONS: sets $installation.
install_app() {
  installation=$(fake "$(jq -n --argjson id "$1" --argjson permissions "$2" \
    '{op: "install", appId: $id, repos: ["acme/web", "acme/secret"], permissions: $permissions}')" | jq .id)
}
furnish() {
  fake '{"op": "reset"}'
  fake '{"op": "addUser", "login": "alice"}'
  fake '{"op": "addUser", "login": "mallory"}'
  fake '{"op": "addRepo", "fullName": "acme/web"}'
  fake '{"op": "addRepo", "fullName": "acme/secret"}'
  fake '{"op": "collaborator", "repo": "acme/web", "login": "alice", "permission": "write"}'
  add_app 123456 conduit "$world/app.pem"
  install_app 123456 '{"contents": "write", "issues": "write", "pull_requests": "write", "checks": "read"}'
}
# clone_as_alice [DIR]: her clone of acme/web, in $checkout unless said; her token is not in it.
clone_as_alice() {
  alices=$(fake '{"op": "userToken", "login": "alice", "permissions": {"contents": "write", "metadata": "read"}}' | jq -r .token)
  GIT_SSL_CAINFO=$ca git clone -q "https://x-access-token:$alices@$github/acme/web.git" "${1-$checkout}"
  git -C "${1-$checkout}" remote set-url origin "https://$github/acme/web.git"
  fake '{"op": "forget"}' >/dev/null
}
# git_as_alice DIR WORD...
git_as_alice() {
  folder=$1
  shift
  GIT_SSL_CAINFO=$ca git -C "$folder" -c "url.https://x-access-token:$alices@$github/.insteadOf=https://$github/" "$@"
}
new_issue() {  # TITLE [USER]
  number=$(fake "$(jq -n --arg title "$1" --arg user "${2:-alice}" '{op: "issue", repo: "acme/web", title: $title, body: "It breaks.", user: $user}')" | jq .number)
}
world_of() { fake '{"op": "get", "repo": "acme/web"}'; }
# Of the current issue: its open pull requests, and what the App's bot wrote.
pulls() { world_of | jq --arg branch "agent/issue-$number" '[.pulls[] | select(.head.ref == $branch)] | length'; }
comments_with() { world_of | jq --arg number "$number" --arg text "$1" \
  '[.comments[] | select((.issue_url | endswith("/" + $number)) and (.body | contains($text)))] | length'; }
is_said_once() { is "$(comments_with "$1")" 1; }
git_tokens() { fake '{"op": "tokens"}' | jq -c '[.[] | select((.token | startswith("ghs_")) and .permissions.contents == "write")]'; }
token_of_run() { git_tokens | jq -r '[.[] | select(.live)][-1].token'; }
live_git_tokens() { git_tokens | jq '[.[] | select(.live)] | length'; }
none_lives() { is "$(live_git_tokens)" 0; }
dead_within_a_second() {
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    if none_lives >/dev/null; then return; fi
    sleep 0.1
  done
  none_lives
}

# guides_example SEED IMAGE FILTER: the guide's config, word for word but for endpoints, context, image and paths, and without
# containers that are started ahead, so that what is on an engine is a run's; FILTER is jq's.
guides_example() {
  jq --arg api "$github_api" --arg ca "$ca" --arg github "$github" --arg seed "$1" --arg checkout "$checkout" --arg world "$world" \
    --arg image "$2" --argjson cpus "$(nproc)" '
    .settings.prepared_containers = 0
    | .connections[0].config += {api_url: $api, ca_file: $ca, poll_interval: "5s"}
    | .connections[0].secret_refs.app_private_key = "file:\($world)/app.pem"
    | .scopes[0].secret_refs["claude-token"] = "file:\($world)/claude-token"
    | .scopes[0].bindings[0] |= (.config.home_seed = $seed | .resource.config.checkout = $checkout
        | .container.config |= (.image = $image | .provider.context = "tests" | .limits.cpus = $cpus
            | .network.allow |= map(if . == "github.com" then $github else . end)))
    | '"$3" "$OPEN_CONDUIT_SOURCE/tests/fixtures/config/container.json" >"$config"
}

# ---- what comes of issues

# The Work of the current issue, and its first run.
find_work() {  # TITLE
  work=$(open-conduit work list --json --limit 0 | jq -r --arg title "$1" '[.[] | select(.title == $title)][0].id // empty')
  [ -n "$work" ] || return 1
  run=$(open-conduit work get "$work" --json | jq -r '.runs[0] | if type == "object" then .id else . end')
}
works_titled() { open-conduit work list --json --limit 0 | jq --arg title "$1" '[.[] | select(.title == $title)] | length'; }
work_is() { is "$(open-conduit work get "$work" --json | jq -r .state)" "$1"; }
say_on_issue() {  # USER TEXT
  fake "$(jq -n --argjson number "$number" --arg user "$1" --arg body "$2" '{op: "comment", repo: "acme/web", number: $number, user: $user, body: $body}')"
}
close_issue() {
  fake "$(jq -n --argjson number "$number" '{op: "close", repo: "acme/web", number: $number, by: "alice"}')" >/dev/null
}
