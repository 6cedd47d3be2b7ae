# The daemon starts its providers, and nothing else: no git, no node, no agent.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"

new_repository "$checkout"
write_config "$(binding sandboxed srt 'echo two >>file && git commit -qam Second')"
if ! strace -f -o "$world/probe" true 2>/dev/null; then
  skip "the daemon starts providers only" "strace may not trace here"
  exit
fi
# The tracer's child is the daemon; its pid is the trace's first word.
strace -f -o "$world/trace" -e trace=execve,execveat,clone,clone3,fork,vfork open-conduitd >>"$world/daemon.log" 2>&1 &
tracer=$!
answers() { open-conduit status; }
check "the daemon starts under strace" until_true answers
daemon=$(open-conduit status --json | jq -r .pid)
check "a run ends" run_to_end demo/sandboxed
check "it succeeded" run_is outcome succeeded
kill_daemon TERM
wait "$tracer"

# What each process that the daemon forked executed first, and what was executed by any process at all.
awk -v daemon="$daemon" '
  { pid = $1 }
  /(clone|clone3|fork|vfork)\(/ && /= [0-9]+$/ && pid == daemon { child[$NF] = 1 }
  /resumed>/ && /(clone|clone3|fork|vfork)/ && /= [0-9]+$/ && pid == daemon { child[$NF] = 1 }
  /execve(at)?\(/ { split($0, part, "\""); any[part[2]] = 1; if (pid in child && !(pid in first)) first[pid] = part[2] }
  END {
    for (pid in first) print "child " first[pid]
    for (path in any) print "any " path
  }' "$world/trace" | sort -u >"$world/executed"
providers_only() { ! grep '^child ' "$world/executed" | grep -v "/open-conduit-[a-z]*$"; }
check "G3 the daemon's children are providers" providers_only
check "there were some" grep -q '^child .*/open-conduit-srt$' "$world/executed"
# The positive control: git did run, as a provider's child.
check "git and bubblewrap ran, below a provider" sh -c "grep -q '^any .*/git$' '$world/executed' && grep -q '^any .*/bwrap$' '$world/executed'"
