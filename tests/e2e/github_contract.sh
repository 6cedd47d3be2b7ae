# What others know of GitHub, about both sides of our wire: its OpenAPI description and octokit. Needs npm's packages
# (npm install in a copy of tests/fakes/github) in OPEN_CONDUIT_TEST_NPM.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"

if [ -z "${OPEN_CONDUIT_TEST_NPM:-}" ] || ! command -v node >/dev/null; then
  skip "GitHub's description agrees with the fake and with us" "no OPEN_CONDUIT_TEST_NPM, or no node"
else
  node "$OPEN_CONDUIT_SOURCE/tests/fakes/github/contract.mjs" "$OPEN_CONDUIT_TEST_NPM" "$OPEN_CONDUIT_PROGRAMS/open-conduit-github"
fi
