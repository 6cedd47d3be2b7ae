# The Debian package: what is in it, that it runs from where it is unpacked, and that nothing of it depends on the build. Its
# installation in a clean root, and its removal, are tests/deb.
. "$OPEN_CONDUIT_SOURCE/tests/e2e/lib.sh"

if [ -z "${OPEN_CONDUIT_TEST_PACKAGE:-}" ]; then
  skip "the package" "a sanitized build is none to install"
  exit
fi
deb=$OPEN_CONDUIT_TEST_PACKAGE root=$world/root
check "it unpacks" exits 0 dpkg-deb -x "$deb" "$root"
check "it is of root's, and only root writes to it" refuses sh -c \
  'dpkg-deb -c "$1" | grep -v "^[dl-]rw[x-]r-[x-]r-[x-] root/root "' - "$deb"

field() { dpkg-deb -f "$deb" "$1"; }
check "its version is the programs'" is "$(open-conduit --version)" "open-conduit $(field Version)"
for needed in libc6 libcap2 libseccomp2 libsodium git bubblewrap socat ripgrep; do
  check "it depends on $needed" has "$(field Depends)" "$needed"
done
check "it runs no scripts, so nobody's daemon is started or stopped" is \
  "$(dpkg-deb --ctrl-tarfile "$deb" | tar -t | grep -v '/$' | sort | tr '\n' ' ')" "./control ./md5sums "
check "its checksums are right" sh -c 'dpkg-deb --ctrl-tarfile "$1" | tar -xO ./md5sums | (cd "$2" && md5sum --quiet -c)' - "$deb" "$root"

# What is installed, against what there is to install.
for program in $(find "$OPEN_CONDUIT_PROGRAMS" -maxdepth 1 -type f -name 'open-conduit*' -perm -1); do
  check "it has $(basename "$program")" test -x "$root/usr/bin/$(basename "$program")"
done
for document in "$OPEN_CONDUIT_SOURCE"/docs/*.md; do
  check "it has $(basename "$document")" cmp "$document" "$root/usr/share/doc/open-conduit/docs/$(basename "$document")"
done
for file in lib/systemd/user/open-conduit.service share/bash-completion/completions/open-conduit share/man/man1/open-conduit.1.gz \
  share/doc/open-conduit/copyright share/open-conduit/install-srt share/open-conduit/srt/package-lock.json; do
  check "it has $file" test -s "$root/usr/$file"
done
check "all of it lies beneath /usr" is "$(ls "$root")" usr
check "the unit starts the installed daemon" grep -qx ExecStart=/usr/bin/open-conduitd "$root/usr/lib/systemd/user/open-conduit.service"
check "the man page can be read" has "$(gzip -dc "$root/usr/share/man/man1/open-conduit.1.gz")" .SH
check "no program has the build's path in it" refuses grep -rlF "$OPEN_CONDUIT_SOURCE" "$root/usr/bin"

# It runs: these programs and no others.
PATH=$root/usr/bin:/usr/local/bin:/usr/bin:/bin
unset OPEN_CONDUIT_PROGRAMS
hash -r
new_repository "$checkout"
write_config "$(binding plain host 'echo two >>file && git commit -qam Packaged')"
check "its own program is the one that runs" is "$(command -v open-conduit)" "$root/usr/bin/open-conduit"
check "and its own daemon" is "$(command -v open-conduitd)" "$root/usr/bin/open-conduitd"
check "doctor finds nothing wrong, without a daemon" exits 0 open-conduit doctor
check "the daemon starts" start_daemon
check "doctor finds nothing wrong, with it" exits 0 open-conduit doctor
check "a run ends" run_to_end demo/plain
check "it succeeded" run_is outcome succeeded
check "its commit arrived" checkout_has_commit Packaged
