# kill -9 of the github provider, and of the daemon, at each request of an issue's whole way: intake, status, token, push, pull request,
# comment, revocation, end. Afterwards there is one Work with one run, one pull request, one comment, one status comment, one commit; no
# event is lost; and no token lives but one that the killed process had alone.
#
# The fake GitHub holds a request while its asker is killed: as it comes, when nothing of it was done; or when it was done, and only the
# answer is missing. In tests/run it is each kind of request that writes, once; with OPEN_CONDUIT_LONG=1 it is every request that there
# is, both ways.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"

if [ -z "${OPEN_CONDUIT_TEST_GITHUB:-}" ]; then
  skip "kills between an issue and its pull request" "the fake GitHub is needed, which tests/run starts as root, with node"
  exit
fi
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib_github.sh"

# ---- an agent that tries again what was not done, and nothing else

agent='
tool() { "$OPEN_CONDUIT_TOOLBELT_PROGRAM" call "$@"; }
patiently() {
  while :; do
    said=$("$@" 2>&1) && { echo "$said"; return; }
    case $said in *"(try_again)"*) sleep 0.2 ;; *) echo "$said"; return 1 ;; esac
  done
}
echo x >>fix && git add fix && git commit -qm "$OPEN_CONDUIT_TITLE" || exit 2
tries=0
until git push -q origin HEAD; do
  tries=$((tries + 1))
  [ $tries -lt 20 ] || exit 3
  sleep 0.3
done
HUB=$(git remote get-url origin | cut -d/ -f3)
echo "seen: $(printf "protocol=https\nhost=%s\npath=acme/web.git\n\n" "$HUB" | "$OPEN_CONDUIT_TOOLBELT_PROGRAM" git-credential get | sed -n "s/^password=//p" | sha256sum)"
patiently tool github.pull.open "{\"title\": \"Fix\", \"body\": \"Fixed.\"}" || exit 4
patiently tool github.issue.comment "{\"body\": \"See the pull request.\"}" || exit 5'

furnish >"$world/furnished"
clone_as_alice
write_config "$(binding agent host "$agent" "$(jq -n --arg ca "$ca" '{connection: "github", operations: ["@github.author", "@github.workspace"],
  config: {branch: "agent/issue-{number}", env: {GIT_SSL_CAINFO: $ca}}}')")"
jq --arg api "$github_api" --arg ca "$ca" --arg world "$world" '
  .connections = [{id: "github", type: "github", secret_refs: {app_private_key: "file:\($world)/app.pem"},
    config: {auth: "app", app_id: "123456", git: "bot", api_url: $api, ca_file: $ca, poll_interval: "5s"}}]
  | .scopes[0] += {authorization: {connections: ["github"], operations: ["@github.author", "@github.workspace"]},
      extensions: [{name: "web", type: "github", connection: "github", config: {repo: "acme/web"}}],
      routes: [{name: "issues", handler: "github", binding: "agent", active_policy: "queue", config: {}}]}' "$config" >"$world/c" &&
  mv "$world/c" "$config"
check "the config is good" exits 0 open-conduit config check

# ---- the kill

provider_pid() { open-conduit status --json | jq -r '[.instances[] | select(.provider == "github")][0].pid'; }
begin_daemon() {
  open-conduitd >>"$world/daemon.log" 2>&1 &
  daemon=$!
  echo $daemon >"$world/daemon"
}
restart_if_dead() {
  kill -0 "$daemon" 2>/dev/null && return
  wait "$daemon" 2>/dev/null
  begin_daemon
}
# kill_at VICTIM STOP: kills it while the request that STOP (JSON) names is held. What it was is in $world/stopped.
kill_at() {
  curl -sS -d "$2" "http://$github:8002/" >"$world/stopping"
  jq -e .stopped "$world/stopping" >"$world/dropped" || return 0
  mv "$world/stopping" "$world/stopped"
  if [ "$1" = daemon ]; then kill -KILL "$(cat "$world/daemon")"; else kill -KILL "$(provider_pid)"; fi
  fake '{"op": "release"}' >"$world/dropped"
}

# ---- what must come of it

# A bound for what is broken. What is printed are expectations that do not hold.
settles() {
  for _ in $(seq 100); do
    restart_if_dead
    what_is_wrong >"$world/wrong" 2>&1
    [ -s "$world/wrong" ] || return 0
    ! grep -q "not \"succeeded\"" "$world/wrong" || break
    sleep 0.2
  done
  cat "$world/wrong"
  [ -z "$run" ] || log_of_run
  return 1
}
what_is_wrong() {
  find_work "$title" || { echo "there is no Work of it"; return; }
  has_ended >"$world/dropped" || { echo "its run has not ended"; return; }
  run_is outcome succeeded
  [ -z "$former" ] || is "$(open-conduit work get "$former" --json | jq -r .state)" finished
  is "$(works_titled "$title") Work" "1 Work"
  is "$(open-conduit work get "$work" --json | jq '.runs | length') runs" "1 runs"
  is "$(pulls) pull requests" "1 pull requests"
  is "$(comments_with "See the pull request.") comments of the agent" "1 comments of the agent"
  is "$(comments_with "open-conduit-status work=") status comments" "1 status comments"
  is "$(comments_with "done.") that say done" "1 that say done"
  is "$(git -C "$checkout" log --all --format=%s | grep -cxF "$title") commits" "1 commits"
  tokens_are_dead
}
# The killed process's alone cannot be revoked: those that a daemon had handed out, and one whose making nobody has heard of.
tokens_are_dead() {
  [ "$victim" = provider ] || return 0
  for token in $(new_tokens); do
    hash=$(printf %s "$token" | sha256sum)
    log_has "seen: $hash" && echo "the token that the agent saw lives"
    grep -q access_tokens "$world/stopped" 2>/dev/null || echo "a token lives"
  done
}
new_tokens() { git_tokens | jq -r '.[] | select(.live) | .token' | grep -vxF "$known_tokens"; }

# way VICTIM STOP: an issue goes its whole way, and VICTIM is killed at STOP. Then it is closed, which the next way's daemon has to see.
ways=0 former=
way() {
  victim=$1 ways=$((ways + 1)) title="Issue $ways" run= work=
  rm -f "$world/stopped"
  known_tokens=$(git_tokens | jq -r '.[] | select(.live) | .token')
  [ -n "$known_tokens" ] || known_tokens=none
  new_issue "$title"
  kill_at "$victim" "$2" &
  killer=$!
  begin_daemon
  settles >"$world/settled"
  settled=$?
  fake '{"op": "release"}' >"$world/dropped"
  wait "$killer"
  where=$(jq -r '.method + " " + .path' "$world/stopped" 2>/dev/null | sed 's/[0-9]\{1,\}/N/g')
  check "$victim killed at ${where:-no request}${3+, $3}: one of each, none lost" shown "$settled"
  [ $# = 3 ] || check "$victim: it was killed there" test -n "$where"
  close_issue
  former=$work
  kill_daemon TERM
}
shown() {
  cat "$world/settled"
  return "$1"
}
every_request() {
  for after in false true; do
    request=1
    while way "$1" "{\"op\": \"stopAt\", \"request\": $request, \"after\": $after}" "request $request, $([ $after = true ] && echo done || echo lost)"; [ -e "$world/stopped" ]; do
      request=$((request + 1))
    done
    check "$1: there were more than ten requests" test "$request" -gt 10
  done
}

if [ -n "${OPEN_CONDUIT_LONG:-}" ]; then
  every_request provider
  every_request daemon
else
  for victim in provider daemon; do
    # The first comment is the status, the second the agent's; the token is git's.
    for one in 'GET 1 /issues\\?' 'POST 1 /issues/[0-9]+/comments' 'GET 1 git-receive-pack' 'POST 1 git-receive-pack' 'POST 1 /pulls' \
      'POST 2 /issues/[0-9]+/comments' 'DELETE 1 /installation/token' 'PATCH 1 /issues/comments'; do
      set -- $one
      way $victim "{\"op\": \"stopAt\", \"request\": $2, \"after\": true, \"method\": \"$1\", \"path\": \"$3\"}"
    done
  done
fi
victim=
begin_daemon
work_of_before() { is "$(open-conduit work get "$former" --json | jq -r .state)" finished; }
check "the last issue's end is seen, too" until_true work_of_before
