# packaging/quickstart's demonstration, which checks by itself that all of it held.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"

check "the demonstration holds what it shows" \
  sh "$OPEN_CONDUIT_SOURCE/packaging/demonstration" "$OPEN_CONDUIT_PROGRAMS" "$OPEN_CONDUIT_TEST_SRT"
check "it leaves nothing running" no_process_with "$world"
