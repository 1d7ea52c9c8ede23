# One archive with all that it needs: every library of its programs comes from it or is the C library's, and it runs where nothing else is.
# shellcheck shell=bash
for tool in patchelf ldd; do command -v $tool >/dev/null || skip "$tool is absent"; done
[ -z "$SANITIZED" ] || skip 'a sanitizer build is not packaged'
run "$CPACK" --config "$BUILD/CPackConfig.cmake" -G TGZ -B "$WORK/packages"
expect_code 0
archive=$(find packages -maxdepth 1 -name "stagewright-$VERSION-linux-*.tar.gz")
expect_file "$archive"
mkdir elsewhere
tar xzf "$archive" -C elsewhere
tree=$(find "$WORK/elsewhere" -mindepth 1 -maxdepth 1)
expect_same "$(find "$WORK/elsewhere" -mindepth 1 -maxdepth 1 | wc -l)" 1
expect_that 'it is small enough to be passed on (120 MiB)' [ "$(stat -c %s "$archive")" -lt $((120 << 20)) ]
# foreign FILE: its libraries that are neither in the archive nor a bare machine's own
own='^(linux-vdso|ld-linux.*|libc|libm|libdl|libpthread|librt|libresolv|libstdc[+][+]|libgcc_s)[.]so'
foreign() { LD_LIBRARY_PATH="${2:-}" ldd "$1" | awk '{ print $1, $3 }' | sed 's|^/[^ ]*/||' | grep -vE "$own|^statically" | grep -vF "$tree/" || true; }
expect_that 'what is looked for would be found' [ -n "$(foreign /bin/ls)" ]
programs=("$tree/bin/stagewright")
[ "$WINDOW" != ON ] || programs+=("$tree/bin/stagewright-ui")
for program in "${programs[@]}"; do expect_same "$(basename "$program"): $(foreign "$program")" "$(basename "$program"): "; done
count=0
while IFS= read -r -d '' file; do # what the programs load: their RPATH is searched for these, too
    count=$((count + 1))
    expect_same "$file: $(foreign "$file" "$tree/lib/stagewright/bundle")" "$file: "
done < <(find "$tree/lib/stagewright/bundle" -type f -name '*.so*' -print0)
expect_that "libraries were looked at: $count" [ "$count" -gt 3 ]
expect_that 'licences of the libraries' [ "$(find "$tree/share/doc/stagewright" -name '*.copyright' | wc -l)" -gt 3 ]

# answers ROOT…: the programs under that prefix of a command
answers() {
    local at=$1
    shift
    run "$@" "$at/bin/stagewright" --version
    expect_code 0
    expect_out "$VERSION"
    run "$@" "$at/bin/stagewright" record -p 2 -m 2 --steps 1 --model layers=2,hidden=16,heads=2,seq=8,vocab=256 -o /tmp/of_the_archive.stagewright
    expect_code 0
    if [ "$WINDOW" = ON ]; then
        run "$@" "$at/bin/stagewright" export /tmp/of_the_archive.stagewright -o /tmp/of_the_archive.png
        expect_code 0
        expect_that 'fonts are found' eval '! grep -q ontconfig err.txt'
    fi
    "$@" rm -f /tmp/of_the_archive.stagewright /tmp/of_the_archive.png
}
answers "$tree" env -i HOME="$WORK" PATH=/usr/bin:/bin
# Roots with nothing but Debian's smallest selection: folders in STAGEWRIGHT_BARE_ROOTS, made by `mmdebstrap --variant=minbase SUITE FOLDER`.
if [ -n "${STAGEWRIGHT_BARE_ROOTS:-}" ] && [ "$(id -u)" = 0 ]; then
    for root in $STAGEWRIGHT_BARE_ROOTS; do
        rm -rf "$root/opt/stagewright" && cp -a "$tree" "$root/opt/stagewright"
        answers /opt/stagewright unshare -m sh -c 'mount -t proc proc "$0/proc"; exec chroot "$0" env -i HOME=/root PATH=/usr/bin:/bin "$@"' "$root"
    done
else
    echo 'bare roots: not tried; STAGEWRIGHT_BARE_ROOTS names them, for root'
fi
