# What scenarios with a real Docker Engine share: a context that leads to it, and what this installation has on it.

# docker_context NAME: a Docker context of this world's own.
docker_context() {
  meta=$HOME/.docker/contexts/meta/$(printf %s "$1" | sha256sum | cut -d' ' -f1)
  mkdir -p "$meta"
  jq -n --arg name "$1" --arg host "unix://$OPEN_CONDUIT_TEST_ENGINE" \
    '{Name: $name, Metadata: {}, Endpoints: {docker: {Host: $host}}}' >"$meta/meta.json"
}

engine_get() { curl -sS --unix-socket "$OPEN_CONDUIT_TEST_ENGINE" "http://engine/v1.48$1"; }

# left_on_engine: this installation's containers, by id, and its volumes.
left_on_engine() {
  filter=$(jq -nr --arg l "io.openconduit.owner=$(cat "$XDG_STATE_HOME/open-conduit/owner-label")" '{"label": [$l]} | tojson | @uri')
  engine_get "/containers/json?all=true&filters=$filter" | jq -r '.[].Id'
  engine_get "/volumes?filters=$filter" | jq -r '.Volumes[]?.Name'
}
nothing_on_engine() { is "$(left_on_engine)" ""; }

# All that Docker shows of this installation's containers.
inspected() { for id in $(left_on_engine | grep -x '[0-9a-f]\{64\}'); do engine_get "/containers/$id/json"; done; }
