# Real work by the real Claude Code in a container, on a real Docker Engine, against a scripted model on the made-up internet.
# tests/run sets what e2e/container.sh has, and OPEN_CONDUIT_TEST_CLAUDE_IMAGE and _MODEL.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib_docker.sh"
. "$OPEN_CONDUIT_SOURCE/tests/claude/lib.sh"

if [ -z "${OPEN_CONDUIT_TEST_CLAUDE_IMAGE:-}" ] || [ -z "${OPEN_CONDUIT_TEST_MODEL:-}" ]; then
  skip "Claude Code in a container" "a Docker Engine and a made-up internet are needed, which tests/run starts as root"
  exit
fi

docker_context tests
mkdir "$world/seed"
printf '#!/bin/sh\necho "usage: claude FILE"\nexit 2\n' >"$world/seed/claude"
chmod 755 "$world/seed/claude"
new_repository "$checkout"
use_public_model
{
  claude_binding claude-docker docker
  claude_binding without docker "{\"container\": {\"config\": {\"image\": \"$OPEN_CONDUIT_TEST_IMAGE\"}}}"
  claude_binding another docker "{\"config\": {\"home_seed\": \"$world/seed\"}, \"container\": {\"config\": {\"image\": \"$OPEN_CONDUIT_TEST_AGENT_IMAGE\"}}}"
  claude_binding unseeded docker "{\"config\": {\"home_seed\": \"$HOME/innocent\"}}"
  claude_binding tools docker '{"operations": ["@conduit.work"], "requires": {"toolbelt": "mcp"}}'
} | write_claude_config
check "the config is fine" open-conduit config check
check "the daemon starts" start_daemon

turn_with_message docker claude-docker
next_turn docker
survives_the_daemon docker
stops_and_hears_ten docker
check "docker: Work is finished" open-conduit work finish "$work"
check "B11 its home is gone with it" test ! -e "$XDG_DATA_HOME/open-conduit/works/$work"
uses_toolbelt docker tools

# ---- images and seeds that do not do

check "an image without claude" run_to_end demo/without
check "is told as such" run_is reason agent_missing
check "another program of that name" run_to_end demo/another
check "is told as such" run_is reason agent_unsuited
check "with what it printed" has "$(run_field message)" "usage: claude FILE"
ln -s "$world" "$HOME/innocent"
check "A8 a seed that has Open Conduit's state in it, since the config was read" run_to_end demo/unseeded
check "A8 is refused" run_is reason sandbox_denied
check "A8 by the field's name" has "$(run_field message)" home_seed
check "B5 nothing is left on the engine" nothing_on_engine
