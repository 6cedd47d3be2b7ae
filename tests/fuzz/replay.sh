# The fuzzers' committed inputs, each as it is and changed in a few places (always the same), in this build. The fuzzing itself is
# tests/fuzz/run-all.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"

corpus=$OPEN_CONDUIT_SOURCE/tests/fuzz/corpus
FUZZ_STATE=$world/fuzz OPEN_CONDUIT_LOG=error
export FUZZ_STATE OPEN_CONDUIT_LOG
mkdir "$FUZZ_STATE"
replay() { "$OPEN_CONDUIT_PROGRAMS/tests/fuzz/fuzz-$1" --changed "$2" "$3"; }

check "G3 the control socket, before and after the token" replay control 20 "$corpus/control.hex"
check "G3 what a run's shim may say to the daemon" replay shim 20 "$corpus/shim.hex"
check "G3 what instances answer, through a run's whole life" replay instances 1 "$corpus/instances.hex"
check "G3 what GitHub's provider answers" replay github 1 "$corpus/github.hex"
check "G2 a start with a damaged database" replay recovery 1 "$corpus/recovery.hex"
check "B3 requests and answers at the gateway" replay gateway 1000 "$corpus/gateway"
check "D5 what an agent says to its toolbelt" replay mcp 200 "$corpus/mcp"
check "B14 what git asks for a credential" replay credential 2000 "$corpus/credential"
check "B3 an entry of network.allow, and a name" replay host_pattern 5000 "$corpus/host_pattern"
check "the config's text" replay config 5 "$OPEN_CONDUIT_SOURCE/tests/fixtures/config"
printf '\0' >"$world/empty"
a_sound_database() {
  replay state 0 "$world/empty" && { printf '\0' && cat "$FUZZ_STATE"/*.db; } >"$world/sound"
}
check "a database is made of nothing" a_sound_database
check "a damaged database" replay state 150 "$world/sound"
