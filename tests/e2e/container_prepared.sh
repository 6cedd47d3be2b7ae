# Gateways that are made ahead of container runs: one run's and no other's, gone with the daemon, and never in the way.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib_container.sh"

if [ -z "${OPEN_CONDUIT_TEST_ENGINE:-}" ] || [ -z "${OPEN_CONDUIT_TEST_IMAGE:-}" ]; then
  skip "gateways made ahead" "a Docker Engine is needed, which tests/run starts as root"
  exit
fi

docker_context tests "unix://$OPEN_CONDUIT_TEST_ENGINE"
new_repository "$checkout"
ask='curl -sS --max-time 10 -o /dev/null -w "status %{http_code}\n" http://example.com/'
write_config "$(container_binding asking "$ask; exit 0")" \
  "$(container_binding long "echo begun; while [ ! -e go-on ]; do sleep 0.1; done; $ask; echo x >>file; git commit -qam 'After all'")" \
  "$(container_binding absent 'true' '{"container": {"config": {"write": ["{workspace}", "~/absent"]}}}')"
jq '.settings.prepared_gateways = 2' "$config" >"$config.new" && mv "$config.new" "$config"
check "the config is good" exits 0 open-conduit config check
check "the daemon starts" start_daemon

two_wait() { is "$(prepared_waiting)" 2 && only_waiting_ones; }
gateway_of() { containers_of_ours | jq -r --arg run "$1" ".[] | select($label == \$run) | .Labels[\"io.openconduit.gateway\"]"; }
# engine_says NAME FILTER
engine_says() { engine_get "/containers/open-conduit-$(owner)-$1-gateway/json" | jq -r "$2"; }
go_on() { touch "$XDG_DATA_HOME/open-conduit/works/$work/workspace/go-on"; }

check "none is made before a run needed one" is "$(prepared_things)" ""
check "the first run has its own gateway" run_to_end demo/asking --title first
check "and ends well" run_is outcome succeeded
check "refused by it" log_has "status 403"
check "then as many wait as the config says" until_true two_wait
first=$(prepared_containers | head -n 1)
memory() { awk '/^VmRSS/ { print $2 }' "/proc/$(engine_says "$1" .State.Pid)/status"; }
check "one that waits has less than 8 MB of its own" [ "$(memory "$first")" -lt 8192 ]
check "B4 it is as locked down as one of a run" is "$(engine_says "$first" '[.HostConfig.CapDrop[], .HostConfig.ReadonlyRootfs, .HostConfig.Memory, .HostConfig.PidsLimit] | tostring')" '["ALL",true,268435456,64]'

new_work demo/long --title one
check "a run that finds one begins" until_true log_has begun
one=$run one_work=$work taken=$(gateway_of "$run")
check "with one of those" has "$taken" g-
new_work demo/long --title two
check "another run begins beside it" until_true log_has begun
check "with another one" has "$(gateway_of "$run")" g-
check "which is never the same" [ "$(gateway_of "$run")" != "$taken" ]
two_more() { is "$(prepared_waiting)" 2; }
check "others are made in their place" until_true two_more
for work in "$work" "$one_work"; do go_on; done
check "they end" await_end
check "well" run_is outcome succeeded
check "B2 what is not allowed gets 403 there, too" log_has "status 403"
check "and it is told" has "$(run_field 'denied[0].what')" example.com:80
run=$one
check "the first one as well" await_end
check "well, too" run_is outcome succeeded
check "B5 what they used is gone with them" nothing_on_engine
check "that one among it" has_not "$(prepared_things)" "$taken"

before=$(prepared_containers | sort)
check "a run that is refused before it begins" run_to_end demo/absent --title absent
check "is refused" run_is reason sandbox_denied
check "and has used up none" is "$(prepared_containers | sort)" "$before"

first=$(prepared_containers | head -n 1)
check "one that is killed" exits 0 curl -sS --unix-socket "$OPEN_CONDUIT_TEST_ENGINE" -X POST "http://engine/v1.48/containers/open-conduit-$(owner)-$first-gateway/kill"
gone() { has_not "$(prepared_things)" "$first"; }
check "is noticed, and removed" until_true gone
check "a run all the same" run_to_end demo/asking --title "after that"
check "ends well" run_is outcome succeeded
check "B5 and leaves nothing" nothing_on_engine

check "others are made" until_true two_wait
new_work demo/long --title adopted
check "a run with one of them begins" until_true log_has begun
taken=$(gateway_of "$run")
waiting=$(prepared_containers | grep -vxF "$taken")
kill_daemon KILL
ended() { for name in $waiting; do is "$(engine_says "$name" .State.Running)" false || return 1; done; }
check "those that wait end with a daemon that is killed" until_true ended
check "the run's goes on" is "$(engine_says "$taken" .State.Running)" true
check "the next daemon starts" start_daemon
check "B20 and takes the run up" is "$(run_field state)" running
swept() { for name in $waiting; do has_not "$(prepared_things)" "$name" || return 1; done; }
check "B5 it removes those that waited" until_true swept
check "and leaves the run's" is "$(engine_says "$taken" .State.Running)" true
go_on
check "B20 the run ends" await_end
check "B20 well, by the same gateway" log_has "status 403"
check "its commit is saved" checkout_has_commit "After all"
check "B5 and nothing is left" nothing_on_engine
check "nor of its gateway" has_not "$(prepared_things)" "$taken"

check "after a run" run_to_end demo/asking --title again
check "two wait" until_true two_wait
jq '.settings.prepared_gateways = 0' "$config" >"$config.new" && mv "$config.new" "$config"
check "a config without any" exits 0 open-conduit reload
nothing_prepared() { is "$(prepared_things)" ""; }
check "has them removed" until_true nothing_prepared
check "and a run" run_to_end demo/asking --title none
check "has its own then" run_is outcome succeeded
check "B5 which goes with it" is "$(left_on_engine)$(prepared_things)" ""

jq '.settings.prepared_gateways = 2' "$config" >"$config.new" && mv "$config.new" "$config"
check "with some again" exits 0 open-conduit reload
check "after one more run" run_to_end demo/asking --title more
check "two wait again" until_true two_wait
check "a drained daemon" exits 0 open-conduit drain
check "keeps none" is "$(prepared_things)" ""
kill_daemon TERM
check "another daemon starts" start_daemon
check "after its first run" run_to_end demo/asking --title last
check "they wait" until_true two_wait
kill_daemon TERM
check "B5 a daemon that ends leaves none" is "$(left_on_engine)$(prepared_things)" ""
