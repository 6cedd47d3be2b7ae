# Containers that are started ahead of their binding's next Work: that Work's and no other's, never started with what was decided
# since, and gone with whatever they were for.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib_docker.sh"

if [ -z "${OPEN_CONDUIT_TEST_ENGINE:-}" ] || [ -z "${OPEN_CONDUIT_TEST_IMAGE:-}" ]; then
  skip "containers started ahead" "a Docker Engine is needed, which tests/run starts as root"
  exit
fi

docker_context tests
new_repository "$checkout"
git -C "$checkout" remote add origin https://example.org/upstream.git
printf a-planted-secret >"$HOME/secret"
chmod 600 "$HOME/secret"
prepared_containers=1
more='{"secret_names": ["planted"], "config": {"secret_env": {"planted": "THE_SECRET"}}, "operations": ["@conduit.work"]}'
boxed='
  echo "title: $OPEN_CONDUIT_TITLE"; echo "body: $(cat "$OPEN_CONDUIT_BODY_FILE")"
  [ "$THE_SECRET" = a-planted-secret ] && echo "the secret is there"
  ls -A /open-conduit/secrets | grep . && echo "a file of secrets is left"
  (echo x >>.git/config) 2>/dev/null && echo "wrote the config"
  (echo x >.git/hooks/pre-commit) 2>/dev/null && echo "wrote a hook"
  mv .git elsewhere 2>/dev/null && echo "moved .git"
  git status --porcelain | grep . && echo "the clone is not clean"
  echo "origin: $(git remote get-url origin)"
  "$OPEN_CONDUIT_TOOLBELT_PROGRAM" call conduit.work.note "{\"text\": \"from the toolbelt\"}" >noted 2>&1 || cat noted
  echo "told: $(grep -c name "$GIT_CONFIG_GLOBAL")"
  curl -sS --max-time 10 -o /dev/null -w "status %{http_code}\n" http://example.com/
  echo "$OPEN_CONDUIT_TITLE" >>file; git commit -qam "$OPEN_CONDUIT_TITLE"; rm -f noted; exit 0'
write_config "$(container_binding boxed "$boxed" "$more")" \
  "$(container_binding long 'echo begun; while [ ! -e go-on ]; do sleep 0.1; done; echo x >>file; git commit -qam "$OPEN_CONDUIT_TITLE"')" \
  "$(container_binding other 'true')" \
  "$(binding plain host 'while [ ! -e go-on ]; do sleep 0.1; done')"
jq --arg file "file:$HOME/secret" '.scopes[0].secret_refs = {planted: $file} | .scopes[0].authorization.operations = ["@conduit.work"]' "$config" >"$config.new" &&
  mv "$config.new" "$config"
check "the config is good" exits 0 open-conduit config check
check "the daemon starts" start_daemon

waiting_containers() { open-conduit status --json 2>/dev/null | jq -s '.[0].prepared_containers // 0'; }
# The only one, and not the run $1.
one_waits() {
  is "$(waiting_containers)" 1 || return 1
  found=$(waiting_run)
  is "$(echo "$found" | wc -w | tr -d ' ')" 1 && [ "$found" != "${1-}" ]
}
none_waits() { is "$(waiting_containers)" 0; }
# The run that the container which waits is for: the one whose agent's container there is, and that no list has.
waiting_run() {
  for id in $(containers_of_ours | jq -r ".[] | select(.Labels[\"io.openconduit.role\"] == \"agent\") | $label"); do
    open-conduit runs get "$id" >/dev/null 2>&1 || echo "$id"
  done
}
agent_says() { engine_get "/containers/open-conduit-$(owner)-$1-agent/json" | jq -r "$2"; }
no_folder_of() { has_not "$(folders)" "$1"; }
nothing_left() { is "$(left_on_engine)" ""; }
folders() { ls "$XDG_DATA_HOME/open-conduit/works" "$XDG_DATA_HOME/open-conduit/runs"; }
is_of_no_run() { is "$(left_on_engine | grep -c "$1")" 0; }
go_on() { touch "$XDG_DATA_HOME/open-conduit/works/$work/workspace/go-on"; }

check "none waits before a first run" is "$(left_on_engine)" ""
check "the first run makes its own" run_to_end demo/boxed --title first
check "and ends well" run_is outcome succeeded
check "then one waits" until_true one_waits
next=$(waiting_run)
check "for a run that is not there yet" has "$next" r-
check "whose Work is in no list" is "$(open-conduit work list --json | jq length)" 1
check "B4 it is locked down as any" is "$(agent_says "$next" '[.HostConfig.CapDrop[], .HostConfig.ReadonlyRootfs, .HostConfig.NetworkMode] | tostring')" '["ALL",true,"none"]'
top() { engine_get "/containers/open-conduit-$(owner)-$1-agent/top" | jq -r '.Processes | length'; }
check "nothing but the entry point runs in it" is "$(top "$next")" 1
check "B13 its environment has no secret" has_not "$(agent_says "$next" '.Config.Env | tostring')" planted

echo two >"$world/body"
check "the next Work of the binding" run_to_end demo/boxed --title second --body-file "$world/body"
check "has that run" is "$run" "$next"
check "and ends well" run_is outcome succeeded
check "with its own title" log_has "title: second"
check "and body" log_has "body: two"
check "B13 the secret is there" log_has "the secret is there"
check "B13 and in no file" refuses log_has "a file of secrets is left"
check "C7 git's config cannot be written" refuses log_has "wrote the config"
check "C7 nor a hook" refuses log_has "wrote a hook"
check "C7 nor .git moved" refuses log_has "moved .git"
check "the clone is clean" refuses log_has "the clone is not clean"
check "and has its remotes" log_has "origin: https://example.org/upstream.git"
check "D7 the toolbelt is there" has "$(open-conduit work get "$work" --json | jq -r '.notes | tostring')" "from the toolbelt"
check "B2 what is not allowed gets 403" log_has "status 403"
check "its commit is saved" checkout_has_commit second
check "B19 its plan is the one that was hashed" \
  is "$(open-conduit runs policy "$run" --json | sha256sum | cut -d' ' -f1)" "$(run_field policy.sha256)"
check "B5 its container is gone" until_true is_of_no_run "$run"

# ---- what was decided since counts

check "another waits" until_true one_waits
next=$(waiting_run)
printf '[user]\n\tname = You\n\tname = Too\n\temail = you@example.org\n' >"$HOME/.gitconfig.new"
mv "$HOME/.gitconfig.new" "$HOME/.gitconfig"
check "a granted file that was replaced since" run_to_end demo/boxed --title third
check "the run has the ids" is "$run" "$next"
check "ends well" run_is outcome succeeded
check "and sees what is there now" log_has "told: 2"
check "by a container of its own" grep -q "is not what is planned now" "$world/daemon.log"

check "another waits" until_true one_waits
next=$(waiting_run)
jq '(.scopes[0].bindings[] | select(.name == "boxed")).container.config.limits = {pids: 77}' "$config" >"$config.new" && mv "$config.new" "$config"
check "a changed config" exits 0 open-conduit reload
check "has none wait" none_waits
check "B5 the one that did goes, with its folders" until_true no_folder_of "$next"
check "a run after it" run_to_end demo/boxed --title fourth
check "is another" has_not "$run" "$next"
check "and ends well" run_is outcome succeeded

# ---- what ends it

check "another waits" until_true one_waits
next=$(waiting_run)
check "one that is killed" exits 0 curl -sS --unix-socket "$OPEN_CONDUIT_TEST_ENGINE" -X POST "http://engine/v1.48/containers/open-conduit-$(owner)-$next-agent/kill"
check "is noticed" until_true none_waits
check "B5 and removed" until_true is_of_no_run "$next"
check "a run all the same" run_to_end demo/boxed --title fifth
check "ends well" run_is outcome succeeded

check "another waits" until_true one_waits
next=$(waiting_run)
kill_on_engine() { curl -sS --unix-socket "$OPEN_CONDUIT_TEST_ENGINE" -X POST "http://engine/v1.48/containers/open-conduit-$(owner)-$1/kill"; }
check "one whose gateway is killed" exits 0 kill_on_engine "$next-gateway"
check "is noticed" until_true none_waits
check "B5 and removed" until_true is_of_no_run "$next"
run_to_end demo/boxed --title "without one"
check "another waits" until_true one_waits
next=$(waiting_run)
kill_on_engine "$next-gateway"
check "a run that comes before that is noticed" run_to_end demo/boxed --title "just then"
check "ends well all the same" run_is outcome succeeded

check "another waits" until_true one_waits
check "a run of another binding" run_to_end demo/other --title sixth
check "ends well" run_is outcome succeeded
next=$(waiting_run)
check "B5 then one waits for that binding, alone" until_true one_waits "$next"
next=$(waiting_run)
check "which has it" run_to_end demo/other --title seventh
check "as its own" is "$run" "$next"

jq '.settings.max_runs = 1' "$config" >"$config.new" && mv "$config.new" "$config"
open-conduit reload >"$world/reloaded"
check "a run" run_to_end demo/other --title eighth
check "after which one waits" until_true one_waits
next=$(waiting_run)
new_work demo/plain --title busy
busy=$work
check "with no room for another run" until_true run_is state running
new_work demo/other --title "in the queue"
check "Work in the queue has it" is "$run" "$next"
check "which is cancelled" exits 0 open-conduit work cancel "$work"
check "B5 and it goes" until_true is_of_no_run "$next"
check "with its folder" until_true no_folder_of "$work"
new_work demo/other --title "in the queue again"
queued=$work queued_run=$run
work=$busy && go_on
run=$queued_run work=$queued
check "another one that had none begins in its turn" await_end
check "and ends well" run_is outcome succeeded

# ---- the daemon's end

check "one waits" until_true one_waits
next=$(waiting_run)
work_of_next=$(agent_says "$next" '.Mounts[] | select(.Destination | endswith("/home")) | .Source' | sed 's,/home$,,; s,.*/,,')
kill_daemon KILL
ended() { is "$(agent_says "$next" .State.Running)" false; }
check "it ends with a daemon that is killed" until_true ended
check "the next daemon starts" start_daemon
check "B5 and removes it" until_true is_of_no_run "$next"
check "and its folders" has_not "$(folders)" "$next"
check "of the Work, too" has_not "$(folders)" "$work_of_next"

new_work demo/plain --title busy
busy=$work
until_true run_is state running >/dev/null
check "Work that waits in the queue" exits 0 open-conduit work new --binding demo/other --title queued
kill_daemon KILL
check "outlives a daemon that is killed" start_daemon
work=$busy && go_on
run=$(open-conduit runs list --json | jq -r '.[] | select(.title == "queued") | .id')
check "and has its run" await_end
check "which ends well" run_is outcome succeeded

check "one waits for another binding" until_true one_waits
new_work demo/long --title adopted
check "a run makes its own" until_true log_has begun
go_on
await_end
next=$(waiting_run)
check "after which one waits for its binding" until_true one_waits "$next"
next=$(waiting_run)
new_work demo/long --title "adopted ahead"
check "a run by one that waited" until_true log_has begun
check "is that one" is "$run" "$next"
kill_daemon KILL
check "goes on without a daemon" is "$(agent_says "$run" .State.Running)" true
check "the next daemon starts" start_daemon
check "B20 and takes it up" is "$(run_field state)" running
go_on
check "B20 it ends" await_end
check "B20 well: its label names its plan" run_is outcome succeeded
check "its commit is saved" checkout_has_commit "adopted ahead"

run_to_end demo/other --title last
check "one waits" until_true one_waits
jq '.settings.prepared_containers = 0' "$config" >"$config.new" && mv "$config.new" "$config"
check "a config without any" exits 0 open-conduit reload
check "has none wait" none_waits
check "B5 and none on the engine" until_true nothing_left
run_to_end demo/other --title none
sleep 3
check "nor is one made after a run" is "$(left_on_engine)" ""
jq '.settings.prepared_containers = 1' "$config" >"$config.new" && mv "$config.new" "$config"
open-conduit reload >"$world/reloaded"
run_to_end demo/other --title again
check "with one again" until_true one_waits
kill_daemon TERM
check "B5 a daemon that ends leaves none" is "$(left_on_engine)$(prepared_things)" ""
check "nor folders of no Work" is "$(find "$XDG_DATA_HOME/open-conduit/works" -name ahead)" ""
