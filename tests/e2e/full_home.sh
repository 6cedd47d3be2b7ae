# A home that an agent fills while it runs in a container: the run ends with the reason, the daemon lives, what was committed before is
# not lost, and all works again when there is room. Data lies on a small file system, which the Engine has to see too: tests/run
# makes both (tests/stoppable_engine).
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib_docker.sh"

if [ -z "${OPEN_CONDUIT_TEST_STOPPABLE_ENGINE:-}" ]; then
  skip "a home that fills" "an engine of the test's own is needed, which tests/run makes as root"
  exit
fi
OPEN_CONDUIT_TEST_ENGINE=$OPEN_CONDUIT_TEST_STOPPABLE_ENGINE/docker.sock OPEN_CONDUIT_TEST_IMAGE=$OPEN_CONDUIT_TEST_STOPPABLE_IMAGE
small=$OPEN_CONDUIT_TEST_STOPPABLE_ENGINE/small
XDG_DATA_HOME=$small/data
mkdir "$XDG_DATA_HOME"
chmod 700 "$XDG_DATA_HOME"
empty_disk() {
  leave_nothing
  chmod -R u+rwX "$small/data" 2>/dev/null
  rm -rf "$small/data"
}
trap empty_disk EXIT

docker_context tests
new_repository "$checkout"
commits='echo "$OPEN_CONDUIT_TITLE" >>file && git commit -qam "$OPEN_CONDUIT_TITLE" && echo committed'
write_config "$(container_binding quick "$commits")" \
  "$(container_binding fills "$commits; cat /dev/zero >\"\$HOME/zero\"; echo y >>file && git commit -qam Later && echo \"there was room\"")" \
  "$(container_binding litters "$commits; mkdir \"\$HOME/many\" && i=0; while : >\"\$HOME/many/\$i\"; do i=\$((i + 1)); done; exit 7")"
check "the daemon starts" start_daemon
check "a run in a container" run_to_end demo/quick --title "First"
check "ends well" run_is outcome succeeded

for how in fills litters; do
  check "$how: a run that takes all of its home's disk ends" run_to_end demo/$how --title "Before it $how"
  check "$how: not well" refuses run_is outcome succeeded
  check "$how: it says why" [ -n "$(run_field reason)" ]
  check "$how: it found no room" refuses log_has "there was room"
  check "$how: its commits are told to be in the workspace" has "$(run_field notes)" "could not be saved"
  check "$how: the daemon lives" daemon_answers
  check "$how: B5 nothing of it is left on the engine" nothing_on_engine
  echo "# $how: $(run_field outcome) $(run_field reason): $(run_field message)"
  check "$how: a run of another Work meanwhile ends" run_to_end demo/quick --title "Meanwhile $how"
  check "$how: as refused" run_is outcome refused
  check "$how: since the disk is full" has "$(run_field message)" "No space left"
  rm -rf "$XDG_DATA_HOME"/open-conduit/works/*/home/zero "$XDG_DATA_HOME"/open-conduit/works/*/home/many
  for one in $(open-conduit work list --json | jq -r '.[] | select(.state == "open") | .id'); do
    check "$how: with room, its Work is finished" exits 0 open-conduit work finish "$one"
  done
  check "$how: what it had committed is saved" checkout_has_commit "Before it $how"
  check "$how: with room, a run" run_to_end demo/quick --title "After it $how"
  check "$how: ends well" run_is outcome succeeded
  check "$how: its commit arrived" checkout_has_commit "After it $how"
  check "$how: its Work is finished" exits 0 open-conduit work finish "$work"
done
