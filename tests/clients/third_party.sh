# Other people's MCP clients against a run's toolbelt: the real daemon and shim, and a run that waits meanwhile.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"
: "${OPEN_CONDUIT_TEST_CLIENTS:?run this by tests/run clients}"

new_repository "$checkout"
write_config "$(binding waiting host 'env | grep ^OPEN_CONDUIT_TOOLBELT >env; mv env ready; while [ ! -e go ]; do sleep 0.1; done' \
  '{"operations": ["@conduit.work"]}')"
jq '.scopes[0].authorization.operations = ["@conduit.work"]' "$config" >"$world/c" && mv "$world/c" "$config"
check "the daemon starts" start_daemon
check "a run waits" new_work demo/waiting --title "A title"
workspace=$XDG_DATA_HOME/open-conduit/works/$work/workspace
check "and has said where its toolbelt is" until_true test -e "$workspace/ready"
export $(cat "$workspace/ready")

# Scripts find packages beside themselves.
mkdir "$world/clients"
cp "$OPEN_CONDUIT_SOURCE"/tests/clients/*.mjs "$world/clients"
ln -s "$OPEN_CONDUIT_TEST_CLIENTS/node_modules" "$world/clients/node_modules"
cd "$world/clients" || exit 1
node handshake.mjs
node stateless.mjs

inspect() {
  node node_modules/@modelcontextprotocol/inspector/cli/build/cli.js --cli open-conduit-toolbelt mcp \
    -e "OPEN_CONDUIT_TOOLBELT=$OPEN_CONDUIT_TOOLBELT" -e "OPEN_CONDUIT_TOOLBELT_TOKEN=$OPEN_CONDUIT_TOOLBELT_TOKEN" "$@" \
    >"$world/inspected" 2>&1 || { cat "$world/inspected"; return 1; }
}
check "the inspector lists the tools" inspect --method tools/list
check "all of them" is "$(jq -r '[.tools[].name] | join(",")' "$world/inspected")" \
  "conduit.work.finish,conduit.work.get,conduit.work.note"
check "the inspector calls one" inspect --method tools/call --tool-name conduit.work.note --tool-arg "text=By the inspector"
check "and its note is there" has "$(open-conduit work get "$work")" "By the inspector"

: >"$workspace/go"
check "the run ends" await_end
check "after it nothing connects" refuses open-conduit-toolbelt call conduit.work.get

# The conformance tool asks for operations of its own, and speaks HTTP.
toolbelt-host "$world/host.sock" &
host=$!
until_true test -S "$world/host.sock"
export OPEN_CONDUIT_TOOLBELT="unix:$world/host.sock" OPEN_CONDUIT_TOOLBELT_TOKEN=$(printf '5a%.0s' $(seq 32))
node http-bridge.mjs >"$world/port" &
bridge=$!
until_true test -s "$world/port"
conforms() {
  node node_modules/@modelcontextprotocol/conformance/dist/index.js server --url "http://127.0.0.1:$(cat "$world/port")/" \
    --scenario "$1" 2>&1
}
for scenario in server-initialize ping tools-list tools-call-simple-text tools-call-error; do
  check "the conformance tool: $scenario" conforms "$scenario"
done
check "and it can fail: resources-list" refuses conforms resources-list
kill "$host" "$bridge"
wait "$host" "$bridge" 2>/dev/null
