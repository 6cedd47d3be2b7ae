# Limits of process sandboxes: an agent that uses up memory or processes ends by itself, and nobody else does.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"

# The folder of this process's own control group with that controller; nothing where it is not ours to divide.
own_group() {
  path=$(awk -F: -v name="$1" '{ n = split($2, all, ","); for (i = 1; i <= n; i++) if (all[i] == name) print $3 }' /proc/self/cgroup)
  for point in "/sys/fs/cgroup/$1" "/sys/fs/cgroup/cpu,cpuacct"; do
    if [ -n "$path" ] && [ -w "$point$path/cgroup.procs" ]; then echo "$point$path" && return; fi
  done
  # The second version has all of them in one.
  path=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)
  if [ -w "$path/cgroup.procs" ] && grep -qw "$1" "$path/cgroup.controllers"; then echo "$path"; fi
}
memory_group=$(own_group memory) pids_group=$(own_group pids)
left_of() { find "$1" -mindepth 1 -maxdepth 1 -name 'open-conduit-r-*' | sort; }

new_repository "$checkout"
limited() { # NAME LIMITS SCRIPT
  binding "$1" srt "$3" "{\"sandbox\": {\"config\": {\"limits\": $2}}}"
}
eat='perl -e "my \$all = \"x\" x (600 << 20); print length(\$all), \"\\n\""'
# Far more than the limit and srt's own together, each a process of its own.
bomb='n=0; for i in $(seq 300); do (sleep 60 & echo "started $i") 2>/dev/null || break; done; true'
write_config \
  "$(limited memory '{"memory": "300m"}' "$eat; echo \"the eater ended with \$?\"")" \
  "$(limited roomy '{"memory": "1500m"}' "$eat")" \
  "$(limited pids '{"pids": 32}' "$bomb")" \
  "$(limited many '{"pids": 2000}' "$bomb")" \
  "$(limited cpus '{"cpus": 0.5}' "sleep 1")" \
  "$(limited whole '{"memory": "400m", "pids": 64, "cpus": 1}' 'sed "s/^/group /" /proc/self/cgroup; echo all told; while [ ! -e go-on ]; do sleep 0.1; done')" \
  "$(limited attacked '{"memory": "250m", "pids": 64}' true)" \
  "$(binding free srt true)" \
  "$(binding neighbour srt 'echo here; while [ ! -e go-on ]; do sleep 0.1; done; echo done')"

if [ -z "$memory_group" ] || [ -z "$pids_group" ]; then
  check "the daemon starts" start_daemon
  run_to_end demo/memory
  check "F2 a limit that cannot be had refuses the run" is "$(run_field reason)" sandbox_unavailable
  skip "limits" "this needs control groups of the tests' own, which tests/run makes as root or by sudo"
  exit
fi

check "the daemon starts" start_daemon
check "doctor says that they can be kept" has "$(open-conduit doctor)" "demo/whole: its limits can be kept"
check "a neighbour runs" new_work demo/neighbour --title Neighbour
neighbour=$run
check "it is there" until_true log_has here
neighbours_workspace=$(open-conduit work get "$work" --json | jq -r .workspace)

check "an agent that needs more memory than its limit ends" run_to_end demo/memory
check "the kernel killed the eater, not its shell" log_has "the eater ended with 137"
check "the run says so" has "$(open-conduit runs get "$run")" "limits.memory: the kernel killed 1 of its processes"
check "with room it does not" run_to_end demo/roomy
check "it has all its memory" log_has 629145600

check "an agent that makes processes without end is ended" run_to_end demo/pids
check "it got some" log_has "started 10"
check "it did not get all" refuses log_has "started 300"
check "the run says so" has "$(open-conduit runs get "$run")" "limits.pids"
check "with room it gets them" run_to_end demo/many
check "all of them" log_has "started 300"
check "a part of a processor is a limit as well" run_to_end demo/cpus
check "and its run succeeds" run_is outcome succeeded

check "a run with all limits starts" new_work demo/whole --title Whole
check "it runs" until_true log_has "all told"
check "its groups are the daemon's to see" test -n "$(left_of "$memory_group")"
check "the limit is in force" is "$(cat "$memory_group"/open-conduit-"$run"/memory.limit_in_bytes "$memory_group"/open-conduit-"$run"/memory.max 2>/dev/null)" \
  $((400 << 20))
check "and so is the other" is "$(cat "$pids_group"/open-conduit-"$run"/pids.max)" $((64 + 64))
check "the agent is in it" until_true log_has "open-conduit-$run/agent"
check "the daemon is not" has_not "$(cat /proc/"$daemon"/cgroup)" "open-conduit-$run"
kill_daemon KILL
check "another daemon takes it up" start_daemon
workspace=$(open-conduit work get "$work" --json | jq -r .workspace)
: >"$workspace/go-on"
ended() { run_is state ended; }
check "it ends" until_true ended

run=$neighbour
check "the neighbour has lived through it all" run_is state running
: >"$neighbours_workspace/go-on"
check "and ends well" until_true run_is outcome succeeded
# Attacks, each of them outside as well: what the limits are for, and an agent that would raise its own.
open-conduit doctor --attack demo/attacked >"$world/attacks" 2>&1
attack_held() { grep -F "$1" "$world/attacks" | grep -w held || { grep -F "$1" "$world/attacks"; return 1; }; }
for attack in "more memory than the limit" "more processes than the limit" "raise one's own limits in a namespace"; do
  check "G3 $attack" attack_held "$attack"
done

check "a binding that is not there" exits 1 open-conduit doctor --attack demo/nowhere --json
open-conduit doctor --attack demo/nowhere --json >"$world/none" 2>&1
check "is refused in JSON alone" is "$(jq -r .error.reason "$world/none")" binding_missing

chmod a-w "$memory_group"
check "F2 a control group that is not the daemon's to divide: refused" run_to_end demo/memory
check "with its reason" is "$(run_field reason)" sandbox_unavailable
check "and the limit's name" has "$(open-conduit runs get "$run")" "limits.memory cannot be kept"
check "doctor says so before" has "$(open-conduit doctor)" "limits.memory cannot be kept"
check "a run without limits goes on" run_to_end demo/free
check "and succeeds" run_is outcome succeeded
chmod u+w "$memory_group"
check "no group is left" is "$(left_of "$memory_group")$(left_of "$pids_group")" ""
