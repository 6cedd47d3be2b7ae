# packaging/quickstart's demonstration, which checks by itself that all of it held; with its container where there is an engine.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"

if [ -n "${OPEN_CONDUIT_TEST_ENGINE:-}" ]; then
  image=$("$OPEN_CONDUIT_SOURCE/packaging/demonstration-image" "$OPEN_CONDUIT_TEST_ENGINE")
  check "an image is made of this machine's sh and git" has "$image" sha256:
  set -- "$OPEN_CONDUIT_TEST_ENGINE" "$image" "$OPEN_CONDUIT_GATEWAY_IMAGE"
else
  skip "the demonstration's container" "a Docker Engine is needed, which tests/run starts as root"
  set --
fi
check "the demonstration holds what it shows" \
  sh "$OPEN_CONDUIT_SOURCE/packaging/demonstration" "$OPEN_CONDUIT_PROGRAMS" "$OPEN_CONDUIT_TEST_SRT" "$@"
if [ $# != 0 ]; then
  cp "$world/check" "$world/shown"
  check "in a container as well" grep -q "whose only way out is its gateway" "$world/shown"
  check "where its gateway refused a host" grep -q "example.org" "$world/shown"
  XDG_STATE_HOME=$HOME/.local/state
  check "and nothing of it is left on the engine" is "$(engine_get "/containers/json?all=true&filters=$(ours_filter)" | jq length)" 0
  remove_from_engine
  engine_delete "/images/$image"
fi
check "it leaves nothing running" no_process_with "$world"
