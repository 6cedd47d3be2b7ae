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
new_repository "$checkout"
use_public_model
{
  claude_binding claude-docker docker
  claude_binding tools docker '{"operations": ["@conduit.work"], "requires": {"toolbelt": "mcp"}}'
} | write_claude_config
check "the config is fine" open-conduit config check
check "the daemon starts" start_daemon

turn_with_message docker claude-docker
next_turn docker
survives_the_daemon docker
check "docker: Work is finished" open-conduit work finish "$work"
check "B11 its home is gone with it" test ! -e "$XDG_DATA_HOME/open-conduit/works/$work"
uses_toolbelt docker tools
check "B5 nothing is left on the engine" nothing_on_engine
