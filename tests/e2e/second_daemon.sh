# One daemon a state; and what it says of places that it cannot work with.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"

new_repository "$checkout"
write_config "$(binding plain host 'echo hello')"
check "without a daemon the CLI exits with 3" exits 3 open-conduit status
check "and says how to start one" grep -q 'open-conduit daemon' "$world/err"
check "wrong words exit with 2" exits 2 open-conduit runs dance
check "the daemon starts" start_daemon
check "a second one on the same state does not" exits 1 timeout 20 open-conduitd
check "and says why" grep -qi 'daemon' "$world/err"
check "the first one goes on" daemon_answers
check "a run is not disturbed" run_to_end demo/plain
check "it succeeded" run_is outcome succeeded
kill_daemon TERM
run=

check "after its end another one starts" start_daemon
kill_daemon KILL
check "after kill -9, too" start_daemon
kill_daemon TERM

if unshare -Ur true 2>/dev/null; then
  check "uid 0 is refused" exits 1 unshare -Ur timeout 20 open-conduitd
  check "and told so" grep -qi 'root' "$world/err"
else
  skip "uid 0 is refused" "no user namespaces here"
fi

for file in operator-token owner-label; do
  mv "$XDG_STATE_HOME/open-conduit/$file" "$world/aside"
  mkfifo "$XDG_STATE_HOME/open-conduit/$file"
  check "a pipe in the place of $file does not hold a daemon for ever" exits 1 timeout -k 1 20 open-conduitd
  check "and is named" grep -q "not a regular file.*$file" "$world/err"
  mv "$world/aside" "$XDG_STATE_HOME/open-conduit/$file"
done

long=$world/$(printf 'long%.0s' $(seq 30))
mkdir -m 700 "$long"
check "a socket path that is too long is refused" exits 1 env XDG_RUNTIME_DIR="$long" timeout 20 open-conduitd
check "and the variable to shorten is named" grep -q 'XDG_RUNTIME_DIR' "$world/err"

database=$XDG_STATE_HOME/open-conduit/state.db
version=$(sqlite3 "$database" 'PRAGMA user_version')
sqlite3 "$database" "PRAGMA user_version = $((version + 1000))" >/dev/null
check "state of a newer version is refused" exits 1 timeout 20 open-conduitd
check "and the version is named" grep -q "$((version + 1000))" "$world/err"
sqlite3 "$database" "PRAGMA user_version = $version" >/dev/null
check "as it was, it is accepted" start_daemon
check "the run of before is remembered" is "$(open-conduit runs list --json | jq length)" 1
