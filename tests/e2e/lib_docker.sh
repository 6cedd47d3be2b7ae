# What scenarios with a real Docker Engine share: a context that leads to it, and what this installation has on it. tests/run sets
# OPEN_CONDUIT_TEST_ENGINE (a socket), OPEN_CONDUIT_TEST_IMAGE (name@sha256:…, with git and curl) and OPEN_CONDUIT_GATEWAY_IMAGE.

# docker_context NAME: a Docker context of this world's own.
docker_context() {
  meta=$HOME/.docker/contexts/meta/$(printf %s "$1" | sha256sum | cut -d' ' -f1)
  mkdir -p "$meta"
  jq -n --arg name "$1" --arg host "unix://$OPEN_CONDUIT_TEST_ENGINE" \
    '{Name: $name, Metadata: {}, Endpoints: {docker: {Host: $host}}}' >"$meta/meta.json"
}

# container_binding NAME SCRIPT [MORE]
container_binding() {
  more=${3-}
  [ -n "$more" ] || more='{}'
  binding "$1" host "$2" | jq --arg image "$OPEN_CONDUIT_TEST_IMAGE" --argjson more "$more" '
    (. + {container: {provider: "docker", config: {image: $image, write: ["{workspace}"], read: ["~/.gitconfig"], network: {allow: []},
         provider: {context: "tests"}}}}) * $more'
}

engine_post() { curl -sS --max-time 60 --unix-socket "$OPEN_CONDUIT_TEST_ENGINE" -X POST -H 'Content-Type: application/json' -d "$2" "http://engine/v1.48$1"; }

# make_image COMMAND: what the test image is once root has run this in it; sets $image. It goes with the scenario.
make_image() {
  maker=$(engine_post /containers/create "$(jq -n --arg image "$OPEN_CONDUIT_TEST_IMAGE" --arg command "$1" '
    {Image: $image, Cmd: ["sh", "-c", $command], User: "0", HostConfig: {NetworkMode: "none"}}')" | jq -r .Id)
  engine_post "/containers/$maker/start" '' && engine_post "/containers/$maker/wait" '' >/dev/null &&
    image=$(engine_post "/commit?container=$maker" '{}' | jq -r .Id)
  engine_delete "/containers/$maker?force=1"
  images_made="${images_made-} $image"
}

# ---- what there is of this installation

# Gateways that were made ahead are things called g-…; each has a container and a volume.
containers_of_ours() { engine_get "/containers/json?all=true&filters=$(ours_filter)"; }
volumes_of_ours() { engine_get "/volumes?filters=$(ours_filter)" | jq '.Volumes // []'; }
label='.Labels["io.openconduit.run"]'

# Containers and volumes of runs, by their names.
left_on_engine() {
  containers_of_ours | jq -r ".[] | select($label | startswith(\"g-\") | not) | .Names[]"
  volumes_of_ours | jq -r ".[] | select($label | startswith(\"g-\") | not) | .Name"
}
prepared_containers() { containers_of_ours | jq -r "[.[] | $label | select(startswith(\"g-\"))] | unique | .[]"; }
prepared_things() { { prepared_containers; volumes_of_ours | jq -r ".[] | $label | select(startswith(\"g-\"))"; } | sort -u; }
# None without a daemon.
prepared_waiting() { open-conduit status --json 2>/dev/null | jq -s '.[0].prepared_gateways // 0'; }
# One that is just being made is there a moment before it waits.
only_waiting_ones() { is "$(prepared_things | grep -c .)" "$(prepared_waiting)"; }

# Nothing of runs; and of gateways only those that wait for one, by the daemon's word.
nothing_on_engine() { is "$(left_on_engine)" "" && until_true only_waiting_ones; }
# The same after a while, for what is removed later.
gone_from_engine() { is "$(left_on_engine)" "" && only_waiting_ones; }

# All that Docker shows of this installation's containers.
inspected() { for id in $(containers_of_ours | jq -r '.[].Id'); do engine_get "/containers/$id/json"; done; }
