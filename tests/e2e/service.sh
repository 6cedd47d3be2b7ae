# The shipped unit under a real user manager: started, killed, restarted and stopped while runs go on.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"

if [ -z "${OPEN_CONDUIT_TEST_CGROUP:-}" ] || [ ! -x /lib/systemd/systemd ]; then
  skip "the service" "a user manager needs systemd and a cgroup of its own, which tests/run makes as root or by sudo"
  exit
fi

new_repository "$checkout"
script='
  n=0
  while [ ! -e go-on ]; do n=$((n + 1)); echo "line $n"; sleep 0.05; done
  echo two >>file && git commit -qam "$OPEN_CONDUIT_TITLE"'
write_config "$(binding sandboxed srt "$script")" "$(binding plain host "$script")"

# The unit as it is installed, but for where the programs lie and for what a login would have in its environment.
units=$XDG_CONFIG_HOME/systemd/user
mkdir -p "$units"
sed "s|^ExecStart=.*|ExecStart=$OPEN_CONDUIT_PROGRAMS/open-conduitd|" "$OPEN_CONDUIT_PROGRAMS/packaging/open-conduit.service" \
  >"$units/open-conduit.service"

manager=
stop_manager() {
  systemctl --user stop open-conduit 2>/dev/null
  end_runs
  [ -z "$manager" ] || kill "$manager" && wait "$manager" 2>/dev/null
}
trap 'stop_manager; leave_nothing' EXIT
/lib/systemd/systemd --user --unit=basic.target >"$world/manager.log" 2>&1 &
manager=$!
export DBUS_SESSION_BUS_ADDRESS="unix:path=$XDG_RUNTIME_DIR/bus"
manager_answers() { systemctl --user list-units >/dev/null; }
check "a user manager starts" until_true manager_answers
check "it takes the unit" exits 0 systemctl --user daemon-reload

property() { systemctl --user show open-conduit --property="$1" --value; }
service_is() { is "$(property ActiveState)" "$1"; }
answers() { open-conduit status; }
is_anothers() { now=$(property MainPID) && [ "$now" != 0 ] && [ "$now" != "$1" ] && answers; }
# systemd counts every start, a person's too, and gives a unit up that has too many of them in ten seconds.
start_run() {
  systemctl --user reset-failed open-conduit
  title=$1
  check "$title: a run starts" new_work "demo/$2" --title "$title"
  check "$title: it runs" until_true log_has "line 3"
  workspace=$(open-conduit work get "$work" --json | jq -r .workspace)
}
end_run() {
  check "$title: the run goes on" run_is state running
  : >"$workspace/go-on"
  check "$title: it ends" await_end
  check "$title: it succeeded" run_is outcome succeeded
  check "$title: its commit arrived" checkout_has_commit "$title"
}

check "start returns when the daemon is ready" exits 0 systemctl --user start open-conduit
check "then it answers" answers
check "it is the unit's main process" is "$(property MainPID)" "$(open-conduit status --json | jq -r .pid)"
check "it tells systemd what it does" has "$(property StatusText)" "0 runs alive"

for kind in sandboxed plain; do
  start_run "kill -9 of the service, $kind" $kind
  before=$(property MainPID)
  kill -KILL "$before"
  check "$title: systemd starts another" until_true is_anothers "$before"
  end_run

  start_run "restart of the service, $kind" $kind
  before=$(property MainPID)
  check "$title: restart is done" exits 0 systemctl --user restart open-conduit
  check "$title: by another daemon" is_anothers "$before"
  end_run

  start_run "stop of the service, $kind" $kind
  check "$title: stop is done" exits 0 systemctl --user stop open-conduit
  check "$title: it is stopped" service_is inactive
  check "$title: started again" exits 0 systemctl --user start open-conduit
  end_run
done

check "reload reads the config again" exits 0 systemctl --user reload open-conduit
write_config "$(binding other host true)"
reloaded() { exits 0 systemctl --user reload open-conduit && new_work demo/other; }
check "and a new binding is there" until_true reloaded
check "that run ends" await_end
check "stopping leaves no daemon" exits 0 systemctl --user stop open-conduit
check "and none is left" until_true no_process_with "$OPEN_CONDUIT_PROGRAMS/open-conduitd"
