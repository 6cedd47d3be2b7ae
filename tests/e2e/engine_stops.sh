# The Docker Engine goes away in the middle of a run, comes back, and has a full disk. tests/run makes an engine for this alone
# (tests/stoppable_engine): OPEN_CONDUIT_TEST_STOPPABLE_ENGINE is its folder, _IMAGE an image with git on it.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib_container.sh"

if [ -z "${OPEN_CONDUIT_TEST_STOPPABLE_ENGINE:-}" ]; then
  skip "an engine that goes away" "an engine of the test's own is needed, which tests/run makes as root"
  exit
fi
folder=$OPEN_CONDUIT_TEST_STOPPABLE_ENGINE
OPEN_CONDUIT_TEST_ENGINE=$folder/docker.sock OPEN_CONDUIT_TEST_IMAGE=$OPEN_CONDUIT_TEST_STOPPABLE_IMAGE

done_with() { [ ! -e "$folder/asks/$1" ]; }
ask() { : >"$folder/asks/$1" && until_true done_with "$1"; }
engine_answers() { curl -fs --max-time 5 -o "$world/answer" --unix-socket "$OPEN_CONDUIT_TEST_ENGINE" http://engine/version; }

docker_context tests "unix://$OPEN_CONDUIT_TEST_ENGINE"
new_repository "$checkout"
write_config "$(container_binding quick 'echo hello')" \
  "$(container_binding long 'echo x >>file; git commit -qam "Before the engine went"; echo begun; sleep 1000')"
check "the daemon starts" start_daemon
check "a run in a container" run_to_end demo/quick --title first
check "ends well while the engine is there" run_is outcome succeeded

for how in kill stop; do
  new_work demo/long --title "$how"
  check "$how: a run is in the middle" until_true log_has begun
  ask $how
  check "$how: the engine is gone" refuses engine_answers
  check "$how: the run ends" await_end
  check "$how: as interrupted, or killed with its container" has "interrupted failed" "$(run_field outcome)"
  check "$how: and says what happened" [ -n "$(run_field reason)$(run_field message)" ]
  check "$how: what it committed is saved" checkout_has_commit "Before the engine went"
  git -C "$checkout" for-each-ref --format='%(refname)' 'refs/heads/agent/*' | while read -r ref; do git -C "$checkout" update-ref -d "$ref"; done
  check "$how: the daemon lives" daemon_answers
  check "$how: a run meanwhile" run_to_end demo/quick --title "without an engine"
  check "$how: is refused" run_is outcome refused
  check "$how: by its reason" run_is reason sandbox_unavailable
  ask start
  check "$how: the engine comes back" engine_answers
  check "$how: B5 nothing is left of the run" until_true gone_from_engine
  check "$how: a run then" run_to_end demo/quick --title again
  check "$how: ends well" run_is outcome succeeded
done

ask fill
check "on a full disk a run" run_to_end demo/quick --title full
check "is refused" run_is outcome refused
check "by its reason" run_is reason sandbox_unavailable
check "which tells of the disk" has "$(run_field message)" "no space left"
check "B5 and leaves nothing" nothing_on_engine
check "the daemon lives" daemon_answers
ask free
check "with room again a run" run_to_end demo/quick --title room
check "ends well" run_is outcome succeeded
check "B5 and nothing is left" nothing_on_engine
