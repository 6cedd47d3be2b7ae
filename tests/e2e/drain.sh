# Draining: no new runs, and the live ones are waited for or stopped.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"

new_repository "$checkout"
write_config "$(binding plain host 'echo agent-is-up; while [ ! -e go-on ]; do sleep 0.05; done')"
check "the daemon starts" start_daemon

check "a run starts" new_work demo/plain
check "it runs" until_true log_has agent-is-up
workspace=$(open-conduit work get "$work" --json | jq -r .workspace)
open-conduit drain >"$world/drained" 2>&1 &
drain=$!
draining() { is "$(open-conduit status --json | jq .draining)" true; }
check "drain is under way" until_true draining
check "a live run is waited for" kill -0 "$drain"
check "no new one begins" refuses sh -c 'open-conduit work new --binding demo/plain --wait </dev/null'
: >"$workspace/go-on"
check "drain ends with the run" wait "$drain"
check "the run succeeded" run_is outcome succeeded
kill_daemon TERM

check "the next daemon takes runs again" start_daemon
check "a run starts" new_work demo/plain
check "it runs" until_true log_has agent-is-up
check "drain --stop ends it" exits 0 open-conduit drain --stop
check "as stopped" run_is outcome stopped
