# Runs in containers, on a real Docker Engine, by the daemon.
# Needs what lib_docker.sh says, and OPEN_CONDUIT_TEST_PUBLIC (an address that stands for the internet, with a web server).
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib_docker.sh"

if [ -z "${OPEN_CONDUIT_TEST_ENGINE:-}" ] || [ -z "${OPEN_CONDUIT_TEST_IMAGE:-}" ]; then
  skip "containers" "a Docker Engine is needed, which tests/run starts as root"
  exit
fi

docker_context tests

mkdir "$HOME/.ssh"
ln -s "$world" "$HOME/innocent"
echo secret >"$HOME/.ssh/id_ed25519"
new_repository "$checkout"
script='
  echo "title: $OPEN_CONDUIT_TITLE"; echo "body: $(cat "$OPEN_CONDUIT_BODY_FILE")"; echo "home: $HOME"
  echo two >>file && git commit -qam "Second, by a container" && echo committed
  cat "'$HOME'/.ssh/id_ed25519" && echo "read the key"
  ls "'$XDG_STATE_HOME'" && echo "read the state"
  echo x >/outside && echo "wrote the root"
  curl -sS --max-time 5 http://example.com/ ; curl -sS --max-time 5 -o /dev/null -w "status %{http_code}\n" http://example.com/
  grep -h Cap /proc/self/status; echo "uid: $(id -u)"; echo "secret: $TOKEN"
  grep -rs "a-planted"-secret /open-conduit /proc/1/environ && echo "the secret can be found"
  printf "url=https://github.com/o/r\n\n" | git credential fill | grep password | tr a-z A-Z
  /open-conduit/bin/open-conduit-toolbelt --help >/dev/null && echo "the client is there"
  echo "[user]" >>.git/config && echo "wrote the config"
  exit 0'
printf %s "a-planted-secret" >"$HOME/token"
printf %s "a-personal-token" >"$HOME/github-token"
chmod 600 "$HOME/token" "$HOME/github-token"
with_secret='{"secret_names": ["token", "GH_TOKEN"], "config": {"secret_env": {"token": "TOKEN"}}}'
public=${OPEN_CONDUIT_TEST_PUBLIC:-}
reach='
  curl -sS --max-time 10 -o /dev/null -w "allowed %{http_code}\n" "http://'$public':8000/"
  curl -sS --max-time 10 -o /dev/null -w "other port %{http_code}\n" "http://'$public':8001/"
  exit 0'
make_image 'rm -f "$(command -v git)" /etc/ssl/certs/ca-certificates.crt'
no_image=sha256:$(printf '0%.0s' $(seq 64))
write_config "$(container_binding boxed "$script" "$with_secret")" \
  "$(container_binding reaching "$reach" "{\"container\": {\"config\": {\"network\": {\"allow\": [\"$public:8000\"]}}}}")" \
  "$(container_binding failing 'exit 7')" \
  "$(container_binding high 'exit 137')" \
  "$(container_binding long 'echo begun; while [ ! -e go-on ]; do sleep 0.1; done; echo went on; echo x >>file; git commit -qam "After all"' "$with_secret")" \
  "$(container_binding absent 'true' '{"container": {"config": {"write": ["{workspace}", "~/absent"]}}}')" \
  "$(container_binding stateful 'true' '{"container": {"config": {"read": ["~/.ssh", "~/innocent"]}}}')" \
  "$(container_binding unknown 'true' '{"container": {"config": {"image": "'"$no_image"'"}}}')" \
  "$(container_binding foreign 'true' '{"container": {"config": {"image": "'"${OPEN_CONDUIT_TEST_FOREIGN_IMAGE:-$no_image}"'"}}}')" \
  "$(container_binding shellless 'true' '{"container": {"config": {"image": "'"$OPEN_CONDUIT_GATEWAY_IMAGE"'"}}}')" \
  "$(container_binding gitless 'command -v git || echo "no git here"' '{"container": {"config": {"image": "'"$image"'"}}}')" \
  "$(container_binding greedy 'true' '{"container": {"config": {"limits": {"cpus": 4096}}}}')" \
  "$(container_binding elsewhere 'true' '{"container": {"config": {"provider": {"context": "nowhere"}}}}')"
jq '.scopes[0].secret_refs = {token: ("file:" + env.HOME + "/token"), GH_TOKEN: ("file:" + env.HOME + "/github-token")}' "$config" >"$config.new" && mv "$config.new" "$config"
check "the config is good" exits 0 open-conduit config check
check "the daemon starts" start_daemon

printf 'a body\n' >"$world/body"
check "A3 a run in a container ends" run_to_end demo/boxed --title "A title" --body-file "$world/body"
check "it succeeded" run_is outcome succeeded
check "title and body reached it" log_has "title: A title"
check "and the body" log_has "body: a body"
check "C7 its commit is in the checkout" checkout_has_commit "Second, by a container"
check "B11 HOME is the Work's own" log_has "home: $XDG_DATA_HOME/open-conduit/works/$work/home"
check "B7 it did not read the key" refuses log_has "read the key"
check "A8 it did not see the state" refuses log_has "read the state"
check "B4 it did not write the root" refuses log_has "wrote the root"
check "B4 it has no capabilities" log_has "CapEff:	0000000000000000"
check "B4 it runs as the operator" log_has "uid: $(id -u)"
check "B2 what is not allowed gets 403" log_has "status 403"
check "B13 the secret reached it" log_has "secret: a-planted-secret"
check "B10 the toolbelt's client is there, which the image does not have" log_has "the client is there"
check "B15 git signs in with the personal access token" log_has "PASSWORD=A-PERSONAL-TOKEN"
check "B13 and can be found nowhere else inside" refuses log_has "the secret can be found"
check "C7 it did not write git's config" refuses log_has "wrote the config"
check "B5 its containers and volumes are gone" nothing_on_engine
check "the refused host is told" has "$(run_field 'denied[0].what')" example.com:80
check "runs network shows it" has "$(open-conduit runs network "$run")" example.com:80
check "B19 the plan names the image" has "$(open-conduit runs policy "$run" --json)" "$OPEN_CONDUIT_TEST_IMAGE"
check "B19 and is the one that was hashed" \
  is "$(open-conduit runs policy "$run" --json | sha256sum | cut -d' ' -f1)" "$(run_field policy.sha256)"
check "B13 the secret is not in the plan" has_not "$(open-conduit runs policy "$run" --json)" a-planted-secret
check "B13 nor in the state" refuses grep -rqs a-planted-secret "$XDG_STATE_HOME"
# The positive control: it is in the agent's own output, which is its log.
check "it is in the log, where the agent wrote it" grep -rqs a-planted-secret "$XDG_DATA_HOME/open-conduit/runs"

if [ -n "$public" ]; then
  check "B3 a run reaches the host and port that its policy names" run_to_end demo/reaching --title reach
  check "B3 the port that is listed" log_has "allowed 200"
  check "B3 and no other port of it" log_has "other port 403"
else
  skip "B3 a run reaches what its policy names" "an address that stands for the internet is needed, which tests/run makes as root"
fi

check "a job that fails is told" run_to_end demo/failing --title fail
check "with its exit status" run_is exit_code 7
check "one that ends with a status that may stand for a signal" run_to_end demo/high --title high
check "is told as either" has "$(run_field message)" "signal 9, or ended with exit status 137"
check "F1 a path that is not there is refused" run_to_end demo/absent --title absent
check "F1 by its reason" run_is reason sandbox_denied
check "F1 naming it" has "$(run_field message)" "absent"
check "A8 a policy cannot grant Open Conduit's state" run_to_end demo/stateful --title stateful
check "A8 it is refused" run_is reason sandbox_denied
(config=$world/other.json; write_config "$(container_binding stateful 'true' '{"container": {"config": {"read": ["'"$XDG_STATE_HOME"'"]}}}')")
check "A8 what the policy alone shows is refused by config check" exits 1 open-conduit config check "$world/other.json"
check "A8 naming the field" grep -q 'bindings\[0\].container.config.read\[0\]: it holds .*(sandbox_denied)' "$world/out"
check "B1 an image without git runs what needs none" run_to_end demo/gitless --title gitless
check "B1 to its end" run_is outcome succeeded
check "B1 and has none" log_has "no git here"
if [ -n "${OPEN_CONDUIT_TEST_FOREIGN_IMAGE:-}" ]; then
  check "B1 an image for another architecture is refused" run_to_end demo/foreign --title foreign
  check "B1 by its reason" run_is reason sandbox_unavailable
  check "B1 naming it" has "$(run_field message)" "the image $OPEN_CONDUIT_TEST_FOREIGN_IMAGE is for "
  check "B1 and which it is to be for" has "$(run_field fix)" "use an image for linux/"
else
  skip "B1 an image for another architecture is refused" "an image for another one is needed, which tests/run makes"
fi
check "B1 an image without a shell is refused" run_to_end demo/shellless --title shellless
check "B1 by its reason" run_is reason sandbox_unavailable
check "B1 naming the image, and what it lacks" has "$(run_field message)" "no /bin/sh: $OPEN_CONDUIT_GATEWAY_IMAGE"
check "B1 an id that the engine has no image of is refused" run_to_end demo/unknown --title unknown
check "B1 by its reason" run_is reason sandbox_unavailable
check "B1 and is not to be pulled, which no id can be" has_not "$(run_field fix)" pull
check "B4 more processors than the machine has are refused" run_to_end demo/greedy --title greedy
check "B4 by their reason" run_is reason sandbox_unavailable
check "B4 naming the limit" has "$(run_field fix)" limits.cpus
check "B6 a context that there is none of is refused" run_to_end demo/elsewhere --title elsewhere
check "B6 by its reason" run_is reason sandbox_unavailable
check "B6 and moves no run to another engine" nothing_on_engine

new_work demo/long --title long
check "a long run begins" until_true log_has begun
inspected=$(for id in $(containers_of_ours | jq -r '.[].Id'); do engine_get "/containers/$id/json"; done)
check "docker inspect shows the container's own variables" has "$inspected" "HTTPS_PROXY="
check "B13 and not its secret" has_not "$inspected" a-planted-secret
check "B13 nor has the daemon's log" refuses grep -q a-planted-secret "$world/daemon.log"
kill_daemon KILL
check "B20 without a daemon its container goes on" has "$(left_on_engine)" "$run"
check "the next daemon starts" start_daemon
check "B20 and takes it up" is "$(run_field state)" running
touch "$XDG_DATA_HOME/open-conduit/works/$work/workspace/go-on"
check "B20 it ends" await_end
check "B20 well" run_is outcome succeeded
check "its commit is saved" checkout_has_commit "After all"
check "B5 nothing is left" nothing_on_engine

new_work demo/long --title stopped
check "another one begins" until_true log_has begun
check "it can be stopped" exits 0 open-conduit runs stop "$run"
await_end
check "and was" run_is outcome stopped
check "B5 nothing is left of it" nothing_on_engine

# ---- B20 what was changed while there was no daemon

database=$XDG_STATE_HOME/open-conduit/state.db
# with_plan FILTER: the plan as jq makes it, with hashes that fit.
with_plan() {
  sqlite3 "$database" "SELECT json FROM plans WHERE run = '$run'" | jq -cSj "$1" >"$world/plan"
  hash=$(sha256sum <"$world/plan" | cut -d' ' -f1)
  sqlite3 "$database" "UPDATE plans SET json = CAST(readfile('$world/plan') AS TEXT), sha256 = '$hash' WHERE run = '$run';
    UPDATE runs SET plan_sha256 = '$hash' WHERE id = '$run'"
}
without_hash() { sqlite3 "$database" "UPDATE plans SET json = replace(json, '\"pids\":', '\"pids\":1') WHERE run = '$run'"; }
# changed NAME WHY COMMAND...
changed() {
  name=$1 why=$2
  shift 2
  new_work demo/long --title "$name"
  check "B20 $name: a run begins" until_true log_has begun
  kill_daemon KILL
  "$@"
  check "B20 $name: the next daemon starts" start_daemon
  check "B20 $name: the run ends" await_end
  check "B20 $name: it is told as changed" run_is reason policy_changed
  check "B20 $name: and what it was" has "$(run_field message)" "$why"
  check "B20 $name: its container is gone" until_true gone_from_engine
}
# The positive control: the same by the same means, with nothing changed, goes on.
new_work demo/long --title "the same plan"
check "B20 the plan as it was: a run begins" until_true log_has begun
kill_daemon KILL
with_plan .
check "B20 the plan as it was: the next daemon starts" start_daemon
touch "$XDG_DATA_HOME/open-conduit/works/$work/workspace/go-on"
check "B20 the plan as it was: the run ends" await_end
check "B20 the plan as it was: well" run_is outcome succeeded
changed "a plan that was changed" "not the one that was pinned" \
  without_hash
changed "a plan with another container" "its label names another plan" with_plan '.sandbox.limits.pids = 1'
changed "a plan with another image" "it was made from another image" with_plan '.sandbox.image.id = "sha256:00"'

new_work demo/long --title killed
check "a third begins" until_true log_has begun
kill_daemon KILL
for pid in $(processes_with "$world"); do kill -KILL "$pid" 2>/dev/null; done
check "the daemon starts after everything of it was killed" start_daemon
check "B5 what was left is removed" until_true gone_from_engine
until_true is "$(run_field state)" ended >/dev/null
check "and the run is told as interrupted" until_true run_is outcome interrupted
# One of its bindings names a context that there is none of.
check "doctor tries a container, and says which context is missing" exits 1 open-conduit doctor
check "B6 by its name" grep -q '"nowhere"' "$world/out"
[ -z "${OPEN_CONDUIT_TEST_FOREIGN_IMAGE:-}" ] ||
  check "B1 and which image is for another architecture" grep -q "the image $OPEN_CONDUIT_TEST_FOREIGN_IMAGE is for " "$world/out"
check "B1 and which image has no git" grep -q "no git: $image" "$world/out"
check "B10 and no CA certificates" grep -q "no CA certificates: $image" "$world/out"
check "control: which of the others has" has_not "$(cat "$world/out")" "no CA certificates: $OPEN_CONDUIT_TEST_IMAGE"
check "B1 and which has no shell" grep -q "no /bin/sh: $OPEN_CONDUIT_GATEWAY_IMAGE" "$world/out"
check "B18 and says what holds" grep -q "a container reaches its gateway" "$world/out"

# ---- another image in the gateway's place

for other in "$OPEN_CONDUIT_TEST_IMAGE" ${OPEN_CONDUIT_TEST_FOREIGN_IMAGE:-}; do
  kill_daemon TERM
  export OPEN_CONDUIT_GATEWAY_IMAGE="$other"
  check "a daemon with another image as its gateways' starts" start_daemon
  check "B18 a run of it" run_to_end demo/boxed --title "another gateway"
  check "B18 is refused" run_is reason sandbox_unavailable
  check "B18 and told how to get the right image" has "$(run_field fix)" "make gateway-image, and set OPEN_CONDUIT_GATEWAY_IMAGE"
  open-conduit doctor >"$world/out"
  check "B18 as doctor tells" grep -q "fix: .*make gateway-image, and set OPEN_CONDUIT_GATEWAY_IMAGE" "$world/out"
done
