# What the benchmarks of the daemon share: a world of its own, a daemon in it, a repository, and how figures are told.
# Sourced after $source, $build and $rounds are set. As root it makes a user, and `me` runs things as that one.

world=$(mktemp -d /tmp/ocb.XXXXXX)
chmod 711 "$world"
as=
if [ "$(id -u)" = 0 ]; then
  as=oc-bench-$$
  useradd --home-dir "$world/home" --no-create-home --shell /bin/sh "$as"
fi
PATH=$build:$PATH
srt=${OPEN_CONDUIT_TEST_SRT:-${XDG_DATA_HOME:-$HOME/.local/share}/open-conduit/srt}
export HOME=$world/home XDG_CONFIG_HOME=$world/config XDG_STATE_HOME=$world/state XDG_DATA_HOME=$world/data
export XDG_RUNTIME_DIR=$world/run TMPDIR=$world/tmp
mkdir "$HOME" "$XDG_CONFIG_HOME" "$XDG_CONFIG_HOME/open-conduit" "$XDG_STATE_HOME" "$XDG_DATA_HOME" "$XDG_RUNTIME_DIR" "$TMPDIR"
chmod 700 "$world"/*
[ -z "$as" ] || chown -R "$as:" "$world"/*

me() {
  if [ -n "$as" ]; then
    runuser -u "$as" -- env HOME="$HOME" PATH="$PATH" "$@"
  else
    "$@"
  fi
}

daemon=
leave_nothing() {
  [ -z "$daemon" ] || kill "$daemon" 2>/dev/null || :
  wait
  cd /
  rm -rf "$world"
  [ -z "$as" ] || userdel "$as" 2>/dev/null || :
}
trap leave_nothing EXIT

now() { date +%s%N; }
# median of nanoseconds on standard input, in milliseconds
median() { sort -n | awk '{ v[NR] = $1 } END { printf "%.1f", (NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2) / 1e6 }'; }
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a / b }'; }

checkout=$HOME/checkout
me git config --global user.name Bench
me git config --global user.email bench@example.org
me git init -q -b main "$checkout"
me sh -c "cd '$checkout' && seq 1000 >numbers && git add numbers && git commit -q -m First"

# binding NAME SCRIPT MORE: a shell binding on the repository, with this JSON in it as well.
binding() {
  jq -n --arg name "$1" --arg script "$2" --arg checkout "$checkout" --argjson more "$3" '
    {name: $name, executor: "shell", config: {command: ["sh", "-c", $script], workspace_mode: "clone", branch: "agent/{work}"},
     resource: {provider: "git", config: {checkout: $checkout, mode: "clone"}}} + $more'
}

start_daemon() {
  me open-conduitd >"$world/log" 2>&1 &
  for _ in $(seq 100); do
    if me open-conduit status >/dev/null 2>&1; then break; fi
    sleep 0.1
  done
  daemon=$(me open-conduit status --json | jq .pid)
}

workspace_of() { me open-conduit work get "$1" --json | jq -r .workspace; }

