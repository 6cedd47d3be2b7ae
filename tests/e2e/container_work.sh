# What developers do all day, in a container whose only way out is its gateway, against hosts of a made-up internet; and a
# readable refusal for everything else. Nothing inside is configured for a proxy.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib_container.sh"

if [ -z "${OPEN_CONDUIT_TEST_ENGINE:-}" ] || [ -z "${OPEN_CONDUIT_TEST_PUBLIC_CA:-}" ]; then
  skip "work in a container" "a Docker Engine and a made-up internet are needed, which tests/run makes as root"
  exit
fi

docker_context tests "unix://$OPEN_CONDUIT_TEST_ENGINE"
new_repository "$checkout"
ca=$OPEN_CONDUIT_TEST_PUBLIC_CA site=https://$OPEN_CONDUIT_TEST_PUBLIC:8443
# The CA is a made-up one, so each program is told of it; of the proxy none is told anything.
trust=$(jq -n --arg ca "$ca" --arg image "$OPEN_CONDUIT_TEST_WORK_IMAGE" --arg host "$OPEN_CONDUIT_TEST_PUBLIC:8443" '
  {config: {env: {GIT_SSL_CAINFO: $ca, NODE_EXTRA_CA_CERTS: $ca, PIP_CERT: $ca, CURL_CA_BUNDLE: $ca}},
   container: {config: {image: $image, read: ["~/.gitconfig", $ca], network: {allow: [$host]}}}}')
clone="git clone -q $site/repo.git cloned && cat cloned/README"
npm='PATH=/opt/npm/node_modules/.bin:$PATH; mkdir js && cd js && echo "{}" >package.json &&
  npm install --registry='$site'/npm/ --no-audit --no-fund --loglevel=error made-up && node -p "require(\"made-up\")"'
fetch='PATH=/opt/npm/node_modules/.bin:$PATH; node -e "fetch(\"'$site'/npm/made-up\").then(r => r.json()).then(d => console.log(d.name, \"by fetch\"))"'
pip="python3 -m pip download -q --disable-pip-version-check --no-cache-dir --index-url $site/pip/simple/ -d wheels made-up && ls wheels"
curl="curl -sS $site/npm/made-up | grep -o made-up-1.0.0.tgz"
# Each mebibyte has its number, so what is missing, double or in another place is seen.
big="curl -sS $site/big | sha256sum"
test_server='python3 -m http.server -b 127.0.0.1 8765 >server.log 2>&1 & server=$!; for _ in 1 2 3 4 5 6 7 8 9 10; do sleep 1;
  curl -sS -o server.out -w "own server %{http_code}\n" http://localhost:8765/ && break; done; kill $server; rm server.*'
refused="git ls-remote https://$OPEN_CONDUIT_TEST_PUBLIC:8444/repo.git; curl -sS http://example.org/; curl -sS $site/npm/made-up -x '' --max-time 5; exit 0"
write_config "$(container_binding clone "$clone" "$trust")" "$(container_binding npm "$npm" "$trust")" "$(container_binding fetch "$fetch" "$trust")" \
  "$(container_binding pip "$pip" "$trust")" "$(container_binding curl "$curl" "$trust")" "$(container_binding big "$big" "$trust")" \
  "$(container_binding server "$test_server" "$trust")" "$(container_binding refused "$refused" "$trust")"
check "the config is good" exits 0 open-conduit config check
check "the daemon starts" start_daemon

does() {  # BINDING TEXT
  check "$1 works through the gateway" run_to_end "demo/$1" --title "$1"
  check "$1 ends well" run_is outcome succeeded
  check "$1 has what it fetched" log_has "$2"
}
does clone "made up"
does npm "made up"
does fetch "made-up by fetch"
does pip made_up-1.0.0-py3-none-any.whl
does curl made-up-1.0.0.tgz
numbered() { for i in $(seq 0 1023); do printf %016d "$i"; head -c 1048560 /dev/zero; done | sha256sum | cut -d' ' -f1; }
does big "$(numbered)"
check "its bytes are counted" [ "$(run_field network.bytes_down)" -gt 1073741824 ]
does server "own server 200"
check "everything else is refused" run_to_end demo/refused --title refused
check "git is told 403" log_has "403"
check "a person can read why" log_has "example.org"
check "and what would allow it" log_has "network.allow"
check "and without the gateway there is no way at all" refuses log_has '"dist-tags"'
check "B5 nothing is left" nothing_on_engine
