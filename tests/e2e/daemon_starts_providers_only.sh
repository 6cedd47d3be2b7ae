# The daemon starts its providers, and nothing else: no git, no node, no agent.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"

new_repository "$checkout"
write_config "$(binding sandboxed srt 'echo two >>file && git commit -qam Second')"
if ! strace -f -Y -o "$world/probe" true 2>/dev/null; then
  skip "the daemon starts providers only" "strace cannot trace here"
  exit
fi
# The daemon is not dumpable, so a tracer of the same user cannot read what it executes: a process is known by its name,
# which every later line has (strace -Y), and which execve sets. It has 15 letters: open-conduit-srt is open-conduit-sr.
strace -f -Y -o "$world/trace" -e trace=%process open-conduitd >>"$world/daemon.log" 2>&1 &
tracer=$!
answers() { open-conduit status; }
check "the daemon starts under strace" until_true answers
daemon=$(open-conduit status --json | jq -r .pid)
check "a run ends" run_to_end demo/sandboxed
check "it succeeded" run_is outcome succeeded
check "its commit arrived" checkout_has_commit Second
kill "$daemon"
wait "$tracer"
daemon=

# The names that each process had, split by who forked it: the daemon, or anybody.
awk '
  { pid = $1; sub(/<.*/, "", pid); name = $1; sub(/^[0-9]+</, "", name); sub(/>$/, "", name) }
  NR == 1 { daemon = pid }
  pid == daemon && /(clone|clone3|fork|vfork)[( ]/ && /= [0-9]+(<.*>)?$/ { made = $NF; sub(/<.*/, "", made); child[made] = 1 }
  { names[pid] = names[pid] "\n" name }
  END {
    for (pid in names) {
      count = split(names[pid], one, "\n")
      for (i = 2; i <= count; i++) print (pid in child ? "child " : "other ") one[i]
    }
  }' "$world/trace" | sort -u >"$world/names"
# A child has the daemon's own name until it has executed.
providers_only() {
  if grep '^child ' "$world/names" | grep -vx 'child open-conduit\(d\|-[a-z]*\)'; then return 1; fi
}
check "G3 the daemon's children are providers" providers_only
for provider in run sr git; do
  check "G3 open-conduit-$provider is one" grep -qx "child open-conduit-$(printf %.2s "$provider").*" "$world/names"
done
# The positive control: these did run, below a provider.
for program in git bwrap; do
  check "$program ran, below a provider" grep -qx "other $program" "$world/names"
done
