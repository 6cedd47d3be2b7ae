# Bodies and outputs of any size and any bytes.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"

new_repository "$checkout"
write_config "$(binding sandboxed srt 'sha256sum <"$OPEN_CONDUIT_BODY_FILE"')" \
  "$(binding bytes host 'printf "no newline"; sleep 0.3; printf "\000\377\033]52;c;eA==\007"')" \
  "$(binding much host 'head -c 200000000 /dev/zero; echo; echo the end')"
check "the daemon starts" start_daemon

head -c 10000000 /dev/urandom >"$world/body"
check "a body of 10 MB is taken" run_to_end demo/sandboxed --body-file "$world/body"
check "its run succeeded" run_is outcome succeeded
check "it arrived whole" log_has "$(sha256sum <"$world/body")"
head -c 17000000 /dev/zero >"$world/body"
check "one of 17 MB is refused" exits 2 open-conduit work new --binding demo/sandboxed --body-file "$world/body"
check "and the limit is told" grep -q '16 MiB' "$world/err"
check "a title over 1 KiB is refused" exits 2 open-conduit work new --binding demo/sandboxed \
  --title "$(head -c 1100 /dev/zero | tr '\0' x)"
check "a title with control characters is refused" exits 2 open-conduit work new --binding demo/sandboxed \
  --title "$(printf 'a\033[2Jb')"

check "a run that prints raw bytes ends" run_to_end demo/bytes
# grep has no pattern for NUL.
as_they_were() { log_of_run | tr '\0' Z | LC_ALL=C grep -qaF "$(printf 'no newlineZ\377\033]52;c;eA==\007')"; }
check "the log has them as they were" as_they_were
check "a run that prints 200 MB ends" run_to_end demo/much
check "it succeeded" run_is outcome succeeded
size_is_bounded() { [ "$(log_of_run | wc -c)" -le 67200000 ]; }
check "its log is bounded" size_is_bounded
check "what was left out is said" refuses is "$(open-conduit runs get "$run" --json | jq -r '.notes | length')" 0
