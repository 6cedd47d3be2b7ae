# Secrets from a real keyring, and everywhere that they must not be.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"

bus= keyring= holder=
end_session() {
  [ -z "$holder" ] || kill "$holder" 2>/dev/null
  [ -z "$keyring" ] || kill "$keyring" 2>/dev/null
  [ -z "$bus" ] || kill "$bus" 2>/dev/null
  leave_nothing
}
trap end_session EXIT

cat >"$world/bus.conf" <<CONF
<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path=$XDG_RUNTIME_DIR/bus</listen>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>
CONF

# ---- without a keyring -----------------------------------------------------------------------------------------

# Put together here, so that they are in no process's arguments.
planted=planted-$(head -c 12 /dev/urandom | od -An -tx1 | tr -d ' \n')
filed=filed-$(head -c 12 /dev/urandom | od -An -tx1 | tr -d ' \n')
printf '%s\n' "$filed" >"$world/secret-file"
chmod 600 "$world/secret-file"
echo readable >"$world/beside"

new_repository "$checkout"
cat >"$config" <<JSON
{"version": 1, "settings": {"extensions": {"srt": {"package_dir": "$OPEN_CONDUIT_TEST_SRT"}}},
 "scopes": [{"id": "demo", "secret_refs": {"token": "keyring:token", "filed": "file:$world/secret-file", "other": "keyring:token"},
 "bindings": [
  {"name": "given", "executor": "shell", "secret_names": ["token", "filed"],
   "config": {"command": ["sh", "-c", "echo \"\$TOKEN \$FILED\" | tr a-z A-Z; sleep 3600"], "secret_env": {"token": "TOKEN", "filed": "FILED"}}},
  {"name": "fenced", "executor": "shell", "secret_names": ["token"],
   "config": {"command": ["sh", "-c", "echo \"\$TOKEN\" | tr a-z A-Z; tr a-z A-Z <$world/beside && tr a-z A-Z <$world/secret-file"],
              "secret_env": {"token": "TOKEN"}},
   "resource": {"provider": "git", "config": {"checkout": "$checkout"}}, "sandbox": {"provider": "srt", "config": {"write": ["{workspace}"]}}},
  {"name": "unselected", "executor": "shell", "config": {"command": ["sh", "-c", "env"]}}]}]}
JSON
check "the config is accepted" open-conduit config check
check "the daemon starts" start_daemon
check "D3 without a session bus a run is refused" exits 1 open-conduit work new --binding demo/given --wait
check "D3 as secret_unavailable" grep -q secret_unavailable "$world/err"
check "D3 with what to do on a headless machine" grep -q 'file:/path' "$world/err"
check "D3 secret list says that the keyring can't be asked" sh -c 'open-conduit secret list 2>&1 | grep -q "no keyring"'
kill_daemon TERM

# ---- with one ----------------------------------------------------------------------------------------------------

dbus-daemon --config-file="$world/bus.conf" --nofork 2>"$world/bus.log" &
bus=$!
check "the bus is there" until_true test -S "$XDG_RUNTIME_DIR/bus"
export DBUS_SESSION_BUS_ADDRESS="unix:path=$XDG_RUNTIME_DIR/bus"
(printf password | gnome-keyring-daemon --foreground --unlock --components=secrets >/dev/null 2>"$world/keyring.log") &
keyring=$!
check "the keyring is there" until_true open-conduit secret list --json
listed() { open-conduit secret list --json | jq -e ".keyring_problem == null and (.secrets[] | select(.reference == \"keyring:token\").state == \"$1\")" >/dev/null; }
check "the secret is missing" until_true listed missing
check "doctor names it, and how to set it" sh -c 'open-conduit doctor | grep -q "open-conduit secret set token"'
set_secret() { printf '%s\n' "$planted" | open-conduit secret set token; }
check "D3 secret set reads standard input" set_secret
check "D3 secret set prints no value" has_not "$(cat "$world/check")" "$planted"
check "secret-tool finds it" is "$(secret-tool lookup application open-conduit name token)" "$planted"
check "the secret is there" listed there
check "D3 secret list prints no value" has_not "$(open-conduit secret list; open-conduit secret list --json)" "$planted"

# A user namespace in which we are root: nobody else may look into the daemon.
fence="unshare --user --map-root-user"
if $fence true 2>/dev/null; then deep=yes; else deep= fence=; fi
# What is in there starts the daemon, and then answers: a line "PID FILE" is looked up, and the exit code comes back.
mkfifo "$world/ask" "$world/answer"
cat >"$world/holder" <<'HOLD'
open-conduitd --allow-root >>"$1/daemon.log" 2>&1 &
echo $! >"$1/daemon.pid"
while read -r pid needle <"$1/ask"; do sh "$1/inside" "$pid" "$needle"; echo $? >"$1/answer"; done
HOLD
start_fenced_daemon() {
  $fence sh "$world/holder" "$world" 2>>"$world/holder.log" &
  holder=$!
  until_true test -s "$world/daemon.pid" && daemon=$(cat "$world/daemon.pid") && until_true daemon_answers
}
check "the daemon starts again" start_fenced_daemon

run_of() { open-conduit runs list --work "$1" --json | jq -r '.[0].id'; }
work=$(open-conduit work new --binding demo/given)
run=$(run_of "$work")
upper=$(printf '%s %s' "$planted" "$filed" | tr a-z A-Z)
printed() { open-conduit runs logs "$run" | grep -q "$upper"; }
check "D3 the agent has both" until_true printed

# ---- where they must not be ------------------------------------------------------------------------------------

# The daemon and its instances, which are all its own children.
ours() { echo "$daemon"; pgrep -P "$daemon" -f open-conduit; }
agent=$(pgrep -P "$(pgrep -P "$daemon" -x open-conduit-ho)" -x sh)
environ_has() { tr '\0' '\n' <"/proc/$1/environ" 2>/dev/null | grep -q "$planted"; }
cmdline_has() { tr '\0' '\n' <"/proc/$1/cmdline" 2>/dev/null | grep -q "$planted"; }
check "control: the agent's environment has it" environ_has "$agent"
for pid in $(ours); do
  name=$(cat "/proc/$pid/comm")
  check "D3 $name: not in its environment" refuses environ_has "$pid"
  check "D3 $name: not in its arguments" refuses cmdline_has "$pid"
  check "D3 $name: leaves no core file" grep -q '^Max core file size  *0 ' "/proc/$pid/limits"
done

# inside PID TEXT: the text is in the process's writable memory.
cat >"$world/inside" <<'LOOK'
pid=$1
while read -r range mode _ _ _ name; do
  case $mode in rw*) ;; *) continue ;; esac
  case $name in '[vvar]' | '[vsyscall]') continue ;; esac
  start=$((0x${range%-*})) end=$((0x${range#*-}))
  if dd if="/proc/$pid/mem" bs=4096 skip=$((start / 4096)) count=$(((end - start) / 4096)) 2>/dev/null | grep -aqF -f "$2"; then exit 0; fi
done <"/proc/$pid/maps"
exit 1
LOOK
printf '%s\n' "$planted" >"$world/needle"
printf '%s\n' "$filed" >"$world/needle-filed"
inside() { echo "$1 $2" >"$world/ask" && return "$(cat "$world/answer")"; }
if [ -n "$deep" ]; then
  printf '%s\n' "$XDG_STATE_HOME" >"$world/needle-control"
  check "control: what the daemon does have is found in its memory" inside "$daemon" "$world/needle-control"
  check "control: the agent's memory has the secret" inside "$agent" "$world/needle"
  check "D3 the daemon's memory has forgotten the keyring's secret" refuses inside "$daemon" "$world/needle"
  check "D3 and the file's" refuses inside "$daemon" "$world/needle-filed"
else
  skip "D3 the daemon's memory" "no user namespaces for ordinary users"
fi

no_trace() { refuses grep -raqF -e "$planted" -e "$filed" "$@"; }
check "D3 nothing of ours on the disk has them" no_trace "$XDG_STATE_HOME" "$XDG_DATA_HOME" "$XDG_CONFIG_HOME/open-conduit/none" "$XDG_RUNTIME_DIR/open-conduit" "$world/daemon.log"
check "D3 the plan names the variables" sh -c "open-conduit runs policy $run | grep -q FILED"
check "D3 and not the values" has_not "$(open-conduit runs policy "$run"; open-conduit runs get "$run" --json; open-conduit status --json)" "$planted"
check "D3 config explain names where they come from" sh -c 'open-conduit config explain demo/given | grep -q keyring:token'
open-conduit runs stop "$run" >/dev/null
check "the run ends" await_end
pid=$daemon
kill_daemon TERM
# Its parent reads a pipe and may leave it unreaped.
is_over() { case $(sed -n "s/^State:\t//p" "/proc/$1/status" 2>/dev/null) in "" | Z*) ;; *) return 1 ;; esac; }
check "its daemon ends" until_true is_over "$pid"
[ -z "$holder" ] || kill "$holder" 2>/dev/null
holder=

check "an ordinary daemon starts" start_daemon
not_readable() { refuses cat "/proc/$1/environ" 2>/dev/null; }
check "D3 the daemon's memory is not for other processes of yours" not_readable "$daemon"
check "control: that of another process is" cat /proc/self/environ
check "C1 a sandboxed run has its secret" run_to_end demo/fenced
run=$(open-conduit runs list --json | jq -r '.[0].id')
check "D3 a sandboxed run reads what lies beside a secret's file" log_has READABLE
check "D3 and not the file of a secret that it does not select" refuses log_has "$(printf '%s' "$filed" | tr a-z A-Z)"
check "C1 it does" sh -c "open-conduit runs logs $run | grep -q $(printf %s "$planted" | tr a-z A-Z)"
check "D3 a run that selects none has none" run_to_end demo/unselected
run=$(open-conduit runs list --json | jq -r '.[0].id')
check "D3 it has not" has_not "$(open-conduit runs logs "$run")" "$planted"
# The config has the value in a path here, which our own refusal names: the redactor takes it out.
sed "s|\"bindings\": \[|&{\"name\": \"printed\", \"executor\": \"shell\", \"secret_names\": [\"filed\"], \"config\": {\"command\": [\"/nonexistent/$filed\"], \"secret_env\": {\"filed\": \"FILED\"}}},|" "$config" >"$config.new"
mv "$config.new" "$config"
check "the config is read again" open-conduit reload
check "D3 a refusal that would have the value in it" exits 1 open-conduit work new --binding demo/printed --wait
check "D3 is redacted" grep -q 'nonexistent/\[redacted\]' "$world/err"
check "D3 everywhere" has_not "$(cat "$world/err" "$world/daemon.log"; open-conduit runs list --json)" "$filed"

check "secret rm deletes it" open-conduit secret rm token
check "and secret-tool does not find it" is "$(secret-tool lookup application open-conduit name token)" ""
check "a run is refused then" exits 1 open-conduit work new --binding demo/given --wait
check "and says how to set it" grep -q 'open-conduit secret set token' "$world/err"

# ---- a terminal ----------------------------------------------------------------------------------------------------

typed="typed-$planted"
type_secret() { (sleep 0.5; printf '%s\n' "$typed"; sleep 0.5) | script -qec 'open-conduit secret set typed' /dev/null; }
check "D3 a terminal is asked" type_secret
check "D3 and shows nothing of what is typed" has_not "$(cat "$world/check" 2>/dev/null)" "$typed"
check "D3 what was typed is stored" is "$(secret-tool lookup application open-conduit name typed)" "$typed"
