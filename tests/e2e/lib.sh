# What the scenarios share: a world of their own, a daemon in it, and checks in the Test Anything Protocol.
# A scenario sources this first. tests/run sets OPEN_CONDUIT_PROGRAMS, OPEN_CONDUIT_SOURCE and OPEN_CONDUIT_TEST_SRT.
set -u

: "${OPEN_CONDUIT_PROGRAMS:?run this by tests/run e2e}" "${OPEN_CONDUIT_TEST_SRT:?}" "${OPEN_CONDUIT_SOURCE:?}"
PATH=$OPEN_CONDUIT_PROGRAMS:$OPEN_CONDUIT_PROGRAMS/tests:$PATH
daemon=
world=$(mktemp -d "${TMPDIR:-/tmp}/w.XXXXXX")
HOME=$world/home
XDG_CONFIG_HOME=$world/config XDG_STATE_HOME=$world/state XDG_DATA_HOME=$world/data XDG_RUNTIME_DIR=$world/run
export HOME XDG_CONFIG_HOME XDG_STATE_HOME XDG_DATA_HOME XDG_RUNTIME_DIR
mkdir "$HOME" "$XDG_CONFIG_HOME" "$XDG_STATE_HOME" "$XDG_DATA_HOME" "$XDG_RUNTIME_DIR" "$world/tmp"
chmod 700 "$world"/*
config=$XDG_CONFIG_HOME/open-conduit/config.json
checkout=$HOME/checkout
mkdir "$XDG_CONFIG_HOME/open-conduit"
git config --global user.name You
git config --global user.email you@example.org
git config --global init.defaultBranch main
cd "$world/tmp" || exit 1

engine_get() { curl -sS --unix-socket "$OPEN_CONDUIT_TEST_ENGINE" "http://engine/v1.48$1"; }
engine_delete() { curl -sS --max-time 30 --unix-socket "$OPEN_CONDUIT_TEST_ENGINE" -X DELETE -o "$world/removed" "http://engine/v1.48$1" || :; }
owner() { cat "$XDG_STATE_HOME/open-conduit/owner-label"; }
ours_filter() { jq -nr --arg l "io.openconduit.owner=$(owner)" '{"label": [$l]} | tojson | @uri'; }

# A daemon's network stays for its next run, and an engine has room for some thirty; and a daemon that was killed leaves
# whatever it had.
remove_from_engine() {
  [ -n "${OPEN_CONDUIT_TEST_ENGINE:-}" ] && [ -s "$XDG_STATE_HOME/open-conduit/owner-label" ] || return 0
  for id in $(engine_get "/containers/json?all=true&filters=$(ours_filter)" | jq -r '.[].Id'); do engine_delete "/containers/$id?force=1&v=1"; done
  for id in $(engine_get "/volumes?filters=$(ours_filter)" | jq -r '.Volumes[]?.Name'); do engine_delete "/volumes/$id"; done
  engine_delete "/networks/open-conduit-egress-$(owner)"
  for id in ${images_made-}; do engine_delete "/images/$id"; done
}

leave_nothing() {
  kill_daemon TERM
  end_runs
  remove_from_engine
  cd /
  chmod -R u+rwX "$world" 2>/dev/null
  rm -rf "$world"
}
trap leave_nothing EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# ---- checks --------------------------------------------------------------------------------------------------

# check NAME COMMAND...: shows what the command printed when it fails.
check() {
  check_name=$1
  shift
  if "$@" >"$world/check" 2>&1; then
    echo "ok - $check_name"
  else
    echo "not ok - $check_name"
    echo "# $*" | head -c 500
    echo
    sed 's/^/# /' "$world/check" | head -n 40
    if [ -n "${run-}" ]; then open-conduit runs get "$run" 2>&1 | sed 's/^/# /'; fi
    [ ! -s "$world/daemon.log" ] || tail -n 15 "$world/daemon.log" | sed 's/^/# daemon: /'
  fi
}

skip() {
  if [ -n "${OPEN_CONDUIT_NO_SKIP:-}" ]; then echo "not ok - $1: $2"; else echo "ok - $1 # skip $2"; fi
}

refuses() { ! "$@"; }
is() { [ "$1" = "$2" ] || { echo "it is \"$1\", not \"$2\""; return 1; }; }
has() { case $1 in *"$2"*) ;; *) echo "no \"$2\" in: $1"; return 1 ;; esac; }
has_not() { case $1 in *"$2"*) echo "\"$2\" is in: $1"; return 1 ;; esac; }

# exits CODE COMMAND...: the exit code is exactly this one. What it printed is in $world/out and $world/err.
exits() {
  expected=$1 code=0
  shift
  "$@" >"$world/out" 2>"$world/err" || code=$?
  [ "$code" = "$expected" ] || { echo "exit code $code, not $expected"; cat "$world/out" "$world/err"; return 1; }
}

# until COMMAND...: tries for up to 30 s. A bound for a broken program, not a time that is asserted.
until_true() {
  for _ in $(seq 300); do
    if "$@" >/dev/null 2>&1; then return 0; fi
    sleep 0.1
  done
  echo "never came true: $*"
  return 1
}

# ---- repository and config -----------------------------------------------------------------------------------

new_repository() {
  git init -q "$1"
  echo one >"$1/file"
  git -C "$1" add file
  git -C "$1" commit -q -m First
}

# binding NAME KIND SCRIPT [MORE]: a shell binding; KIND is srt or host; MORE is JSON that is merged into it.
binding() {
  more=${4-}
  [ -n "$more" ] || more='{}'
  jq -n --arg name "$1" --arg kind "$2" --arg script "$3" --arg checkout "$checkout" --argjson more "$more" '
    ({name: $name, executor: "shell",
     config: {command: ["sh", "-c", $script], workspace_mode: "clone", branch: "agent/{work}"},
     resource: {provider: "git", config: {checkout: $checkout, mode: "clone"}}}
    + (if $kind == "srt" then {sandbox: {provider: "srt", config: {write: ["{workspace}"], network: {allow: []}}}}
       else {} end))
    * $more'
}

# write_config BINDING...: JSON of each. Without containers that are started ahead, so that what is on an engine is a run's, unless
# $prepared_containers says how many.
write_config() {
  printf '%s\n' "$@" | jq -s --arg srt "${srt_folder-$OPEN_CONDUIT_TEST_SRT}" '
    {version: 1, settings: {extensions: {srt: {package_dir: $srt}}, prepared_containers: '"${prepared_containers-0}"'}, connections: [],
     scopes: [{id: "demo", name: "demo", bindings: .}]}' >"$config"
}

# ---- the daemon ----------------------------------------------------------------------------------------------

start_daemon() {
  open-conduitd >>"$world/daemon.log" 2>&1 &
  daemon=$!
  until_true daemon_answers || { tail -n 20 "$world/daemon.log"; return 1; }
}

# Not by jq -e: jq 1.6 calls no input at all a success.
daemon_answers() {
  is "$(open-conduit status --json | jq .pid)" "$daemon"
}

# kill_daemon SIGNAL: and waits for its end.
kill_daemon() {
  [ -n "$daemon" ] || return 0
  kill -"$1" "$daemon" 2>/dev/null
  wait "$daemon" 2>/dev/null
  daemon=
}

# Runs outlive their daemon: whatever still has this world in its environment or command line is ended.
end_runs() {
  for pid in $(processes_with "$world"); do kill -KILL "$pid" 2>/dev/null; done
}

# Processes whose command line has this text. It comes to grep by its input, or grep would find itself.
processes_with() {
  printf '%s' "$1" | grep -alF -f - /proc/[0-9]*/cmdline 2>/dev/null | cut -d/ -f3
}

no_process_with() {
  found=$(processes_with "$1")
  [ -z "$found" ] || { ps -o pid,ppid,args -p "$(echo $found | tr ' ' ',')"; return 1; }
}

# ---- runs ----------------------------------------------------------------------------------------------------

# new_work BINDING [WORD...]: sets $work and $run.
new_work() {
  new_binding=$1
  shift
  made=$(open-conduit work new --json --binding "$new_binding" "$@") || return 1
  work=$(printf '%s' "$made" | jq -r .id)
  run=$(printf '%s' "$made" | jq -r .run)
}

# run_to_end BINDING [WORD...]: also waits for its end.
run_to_end() {
  new_work "$@" && await_end
}

await_end() {
  until_true has_ended
}

has_ended() { is "$(run_field state)" ended; }
run_field() { open-conduit runs get "$run" --json | jq -r ".$1"; }
run_is() { is "$(run_field "$1")" "$2"; }
log_of_run() { open-conduit runs logs "$run"; }
log_has() { log_of_run | grep -qF -- "$1"; }
checkout_has_commit() { git -C "$checkout" log --all --format=%s | grep -qxF -- "$1"; }
