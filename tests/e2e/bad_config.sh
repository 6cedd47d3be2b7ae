# A config that is wrong is refused with the place and the fix, all of it at once.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"

new_repository "$checkout"
good=$(binding plain host 'echo hello')
write_config "$good"
cp "$config" "$world/good"
check "the good one is good" exits 0 open-conduit config check

# bad NAME TEXT JQ-FILTER: the changed config is refused, and the message has the text.
bad() {
  jq "$3" "$world/good" >"$config"
  check "D2 $1: refused" exits 1 open-conduit config check
  check "D2 $1: named" grep -qF -- "$2" "$world/out" "$world/err"
}
echo '{ "version": 1, ' >"$config"
check "D2 no JSON: refused" exits 1 open-conduit config check
check "D2 no JSON: its line is named" grep -q 'config.json:[0-9]' "$world/out" "$world/err"
bad "a wrong type" 'scopes[0].bindings[0].name' '.scopes[0].bindings[0].name = 7'
bad "an unknown field" 'tiemout' '.scopes[0].bindings[0].tiemout = "5m"'
bad "a duplicate id" 'demo' '.scopes += [.scopes[0]]'
bad "a name with control characters" 'scopes[0].bindings[0].name' '.scopes[0].bindings[0].name = "a\u0007b"'
bad "a relative path" 'checkout' '.scopes[0].bindings[0].resource.config.checkout = "code/project"'
bad "A5 both kinds of sandbox" 'sandbox_conflict' '.scopes[0].bindings[0] += {
  sandbox: {provider: "srt", config: {write: ["{workspace}"]}},
  container: {provider: "docker", config: {image: ("a@sha256:" + "0" * 64)}}}'
bad "A6 a sandbox without a clone" 'sandbox_workspace' '.scopes[0].bindings[0] |= (del(.resource) | . + {
  sandbox: {provider: "srt", config: {write: ["/tmp"]}}})'
jq '.scopes[0].bindings[0] |= (.name = 7 | .tiemout = 1)' "$world/good" >"$config"
open-conduit config check >"$world/out" 2>&1
check "D2 the first problem hides no other" grep -q tiemout "$world/out"
check "D2 nor the second the first" grep -q 'bindings\[0\].name' "$world/out"
check "a daemon does not start with it" exits 1 timeout 20 open-conduitd
check "and says where" grep -q tiemout "$world/err"

cp "$world/good" "$config"
check "with the good one it starts" start_daemon
jq '.scopes[0].bindings[0].tiemout = 1' "$world/good" >"$config"
check "reload refuses a bad one" exits 1 open-conduit reload
check "and names the problem" grep -q tiemout "$world/err"
check "status says that the file is not what is in force" sh -c 'open-conduit status --json | grep -q tiemout'
check "the old one stays in force" run_to_end demo/plain
check "and its run succeeds" run_is outcome succeeded
check "no file was half-made" is "$(ls "$XDG_CONFIG_HOME/open-conduit")" config.json
