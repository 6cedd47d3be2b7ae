# Honest work goes on in a process sandbox: git, package managers, builds and test servers, within the policy.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"

# A server for all of it, on the machine's loopback: over TLS a bare repository, over plain HTTP packages.
served=$world/served
mkdir -p "$served/simple/parcel"
new_repository "$checkout"
git clone -q --bare "$checkout" "$served/project.git"
git -C "$served/project.git" update-server-info
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 \
  -keyout "$world/key.pem" -out "$served/ca.pem" 2>"$world/openssl.log"
cat >"$world/serve.py" <<'PYTHON'
import http.server, os, ssl, sys, threading, zipfile
os.chdir(sys.argv[1])
with zipfile.ZipFile("simple/parcel/parcel-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("parcel.py", "text = 'unpacked'\n")
    wheel.writestr("parcel-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: parcel\nVersion: 1.0\n")
    wheel.writestr("parcel-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr("parcel-1.0.dist-info/RECORD", "")
class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *words): pass
def serve(tls):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain("ca.pem", sys.argv[2])
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]
print(serve(False), serve(True), flush=True)
sys.stdin.read()
PYTHON
mkfifo "$world/until"
/usr/bin/python3 "$world/serve.py" "$served" "$world/key.pem" <"$world/until" >"$world/ports" &
exec 8>"$world/until"
check "a server is there" until_true test -s "$world/ports"
read -r plain tls <"$world/ports"
git init -q --bare "$HOME/remote.git"
mkdir "$HOME/cache"

work_binding() { # NAME SCRIPT: the operator's CA and remote are granted, the server is allowed
  binding "$1" srt "set -e; $2" "$(jq -n --arg plain "127.0.0.1:$plain" --arg tls "localhost:$tls" --arg ca "$served/ca.pem" '
    {config: {env: {GIT_SSL_CAINFO: $ca, npm_config_cache: "/tmp/unused", PIP_NO_CACHE_DIR: "1"}},
     sandbox: {config: {write: ["{workspace}", "~/remote.git", "~/cache"], network: {allow: [$plain, $tls]}}}}')"
}
git_https="git fetch -q https://localhost:$tls/project.git main && test \"\$(git rev-parse FETCH_HEAD)\" = \"\$(git rev-parse HEAD)\" && echo fetched"
git_local='echo two >>file && git commit -qam "A second" && git push -q ~/remote.git HEAD:refs/heads/pushed && echo pushed'
venv="/usr/bin/python3 -m venv v && v/bin/pip install -q --disable-pip-version-check --index-url http://127.0.0.1:$plain/simple/ parcel && v/bin/python -c 'import parcel; print(parcel.text)'"
build='printf "all: a b c d\n%%:\n\t@cp file \$@.out\n" >Makefile && make -s -j4 all && cat a.out b.out c.out d.out | wc -l'
server='node -e "
  const server = require(\"http\").createServer((q, a) => a.end(\"answered\"));
  server.listen(0, \"localhost\", () => require(\"http\").get({port: server.address().port, host: \"localhost\"}, r =>
    r.on(\"data\", d => console.log(String(d))).on(\"end\", () => server.close())));"'
ssh_refused='if ssh -o BatchMode=yes -o ConnectTimeout=5 git@example.org 2>why; then echo reached; else sed "s/^/because /" why; fi'
npm_work='mkdir -p lib app && echo "{\"name\": \"lib\", \"version\": \"1.0.0\", \"main\": \"index.js\"}" >lib/package.json &&
  echo "module.exports = \"required\"" >lib/index.js && tar -czf lib.tgz --transform "s|^lib|package|" lib && cd app &&
  echo "{\"name\": \"app\", \"version\": \"1.0.0\"}" >package.json &&
  npm install --silent --no-audit --no-fund --cache "$TMPDIR/npm" ../lib.tgz && node -p "require(\"lib\")"'
# What pnpm links into a workspace is its store's own file, which a sandbox refuses; its setting makes it copy.
pnpm_work='mkdir -p lib app && echo "{\"name\": \"lib\", \"version\": \"1.0.0\", \"main\": \"index.js\"}" >lib/package.json &&
  echo "module.exports = \"copied\"" >lib/index.js && tar -czf lib.tgz --transform "s|^lib|package|" lib && cd app &&
  echo "{\"name\": \"app\", \"version\": \"1.0.0\", \"dependencies\": {\"lib\": \"file:../lib.tgz\"}}" >package.json &&
  pnpm() { node '"${OPEN_CONDUIT_TEST_TOOLS:-}"'/node_modules/pnpm/bin/pnpm.cjs "$@"; } &&
  pnpm install --offline --store-dir ~/cache/store --package-import-method copy >../said 2>&1 || { cat ../said; exit 1; }
  node -p "require(\"lib\")"; rm -f lib.tgz; stat -c "links %h" node_modules/lib/index.js'
go_work='mkdir -p text && printf "module example.org/honest\n\ngo 1.19\n" >go.mod &&
  printf "package text\n\nfunc Of() string { return \"compiled by go\" }\n" >text/text.go &&
  printf "package text\n\nimport \"testing\"\n\nfunc TestOf(t *testing.T) { if Of() == \"\" { t.Fail() } }\n" >text/text_test.go &&
  printf "package main\n\nimport \"example.org/honest/text\"\n\nfunc main() { println(text.Of()) }\n" >main.go &&
  export GOCACHE=$TMPDIR/go-build GOPATH=$TMPDIR/go GOFLAGS=-mod=mod GOTOOLCHAIN=local &&
  go build -o honest . && ./honest 2>&1 && go test ./text'
cargo_work='export CARGO_HOME=$TMPDIR/cargo && cargo init -q --vcs none --name honest . &&
  printf "fn main() { println!(\"{}\", text()); }\nfn text() -> &%sstatic str { \"compiled by cargo\" }\n#[test]\nfn says() { assert!(!text().is_empty()); }\n" "$(printf "\047")" >src/main.rs &&
  cargo run -q --offline && cargo test -q --offline'
write_config "$(work_binding https "$git_https")" "$(work_binding local "$git_local")" "$(work_binding venv "$venv")" \
  "$(work_binding build "$build")" "$(work_binding server "$server")" "$(work_binding ssh "$ssh_refused")" \
  "$(work_binding npm "$npm_work")" "$(work_binding pnpm "$pnpm_work")" \
  "$(work_binding go "$go_work")" "$(work_binding cargo "$cargo_work")"
check "the daemon starts" start_daemon

works() { # BINDING TEXT: its run succeeds, and prints it
  run_to_end "demo/$1" && run_is outcome succeeded && log_has "$2"
}
check "A9 git fetches over HTTPS" works https fetched
check "A9 git commits, and pushes to a remote that is a folder" works local pushed
check "A9 the remote has the commit" is "$(git -C "$HOME/remote.git" log -1 --format=%s pushed)" "A second"
check "A9 the checkout has it" checkout_has_commit "A second"
check "A9 a Python environment is made, and pip installs from an allowed index" works venv unpacked
check "A9 make builds on several processors" works build 4
check "A9 a test server answers on localhost" works server answered
check "A9 ssh is refused, and says why" works ssh "because ssh: "
if command -v npm >/dev/null; then check "A9 npm installs" works npm required; fi
if [ -n "${OPEN_CONDUIT_TEST_TOOLS:-}" ]; then
  check "A9 pnpm installs, and copies from its store where it is set to" works pnpm copied
  check "A9 C6 nothing of the store's is in the workspace then" log_has "links 1"
else
  skip "pnpm" "its folder is OPEN_CONDUIT_TEST_TOOLS, which tests/run sets"
fi
with_tool() { # COMMAND BINDING TEXT TITLE
  if PATH=/usr/local/bin:/usr/bin:/bin command -v "$1" >/dev/null; then
    check "$4" works "$2" "$3"
  else
    skip "$4" "there is no $1 for everybody: packaging/dependencies toolchains"
  fi
}
with_tool go go "compiled by go" "A9 go builds a program and runs its tests"
with_tool cargo cargo "compiled by cargo" "A9 cargo builds a program and runs its tests"
exec 8>&-
