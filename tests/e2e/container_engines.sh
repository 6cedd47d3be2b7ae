# Contexts that lead to no Docker Engine that serves: each run is refused with what to do, and doctor says so before. Needs no engine.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib_docker.sh"

# answering NAME ANSWER: a context at whose socket every connection gets this.
answering() {
  printf "$2" >"$world/$1.answer"
  listening "$1" "SYSTEM:cat $world/$1.answer"
}
# listening NAME COMMAND: a socket of socat's.
listening() {
  socat "UNIX-LISTEN:$world/$1.sock,fork" "$2" 2>/dev/null &
  context_at "$1" "unix://$world/$1.sock"
  until_true test -S "$world/$1.sock"
}
# context_at NAME ENDPOINT
context_at() {
  meta=$HOME/.docker/contexts/meta/$(printf %s "$1" | sha256sum | cut -d' ' -f1)
  mkdir -p "$meta"
  jq -n --arg name "$1" --arg host "$2" '{Name: $name, Endpoints: {docker: {Host: $host}}}' >"$meta/meta.json"
}
version() { printf 'HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\nContent-Length: %s\\r\\n\\r\\n%s' "$(printf %s "$1" | wc -c)" "$1"; }

OPEN_CONDUIT_TEST_IMAGE=sha256:$(printf '0%.0s' $(seq 64))
new_repository "$checkout"
context_at remote tcp://127.0.0.1:2375
context_at absent "unix://$world/absent.sock"
answering rubbish 'SSH-2.0-OpenSSH_9.2\r\n'
answering old "$(version '{"Version":"27.5.1","ApiVersion":"1.47","Os":"linux","Arch":"amd64"}')"
answering web 'HTTP/1.1 404 Not Found\r\nContent-Length: 13\r\n\r\n<html></html>'
# It takes connections, and says nothing.
mkfifo "$world/deaf.answer"
listening deaf "SYSTEM:cat $world/deaf.answer"
bindings=
for name in remote absent rubbish old web deaf; do
  bindings="$bindings $(container_binding "$name" true "{\"container\": {\"config\": {\"provider\": {\"context\": \"$name\"}}}}")"
done
write_config "$bindings"
check "the config is good, which no engine is asked for" exits 0 open-conduit config check
check "the daemon starts" start_daemon

new_work demo/deaf --title deaf
deaf=$run

# refused_with NAME WHAT FIX
refused_with() {
  check "B6 a run on \"$1\" ends" run_to_end "demo/$1" --title "$1"
  check "B6 refused by its reason" run_is reason sandbox_unavailable
  check "B6 with what is wrong" has "$(run_field message)" "$2"
  check "B6 and what to do" has "$(run_field fix)" "$3"
}
refused_with remote "only a Unix socket's engine" "docker context ls"
refused_with absent "$world/absent.sock" "install and start Docker Engine 28"
refused_with rubbish "(context rubbish, $world/rubbish.sock)" "start the Docker Engine"
refused_with old "27.5.1" "install Docker Engine 28"
refused_with web "(context web, $world/web.sock)" "docker context ls"

run=$deaf
# Half a minute for what an earlier daemon may have left there, and as much for the run itself.
for _ in 1 2; do until_true has_ended >/dev/null && break; done
check "B6 an engine that says nothing does not keep a run" await_end
check "B6 which is refused" run_is reason sandbox_unavailable
check "B6 with its socket" has "$(run_field message)" "does not answer within 30 seconds (context deaf, $world/deaf.sock)"
check "B6 and what to do" has "$(run_field fix)" "systemctl restart docker"
check "doctor" exits 1 open-conduit doctor
check "what an earlier daemon may have left is not waited for longer, either" grep -q "does not answer within 30 seconds ($world/deaf.sock)" "$world/daemon.log"
for words in "context rubbish, " "27.5.1" "context web, " "context deaf, " "only a Unix socket's engine" absent.sock; do
  check "B6 doctor tells of $words" grep -qF "$words" "$world/out"
done
