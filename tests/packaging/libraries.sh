# Programs and modules load libraries from folders that are named in full, never from the current one.
# shellcheck shell=bash
command -v readelf >/dev/null || skip 'readelf is absent'

# parts FILE: the parts of its RUNPATH or RPATH, one a line, in brackets: an empty one is seen.
parts() { readelf -d "$1" 2>/dev/null | sed -n 's/.*R\(UN\)\{0,1\}PATH.*\[\(.*\)\]$/\2/p' | sed 's/:/]\n[/g; s/^/[/; s/$/]/'; }
# unsafe: those of standard input that are not named in full.
unsafe() { grep -vE '^\[(/|\$ORIGIN|\$\{ORIGIN\})' || true; }

expect_same "$(printf '[/a]\n[]\n[lib]\n[$ORIGIN/../lib]\n' | unsafe)" $'[]\n[lib]' # what is looked for would be found
run "$CMAKE" --install "$BUILD" --prefix "$WORK/installed"
expect_code 0
count=0
while IFS= read -r -d '' file; do
    [ "$(head -c 4 "$file" | tr -d '\0')" = $'\x7fELF' ] || continue
    count=$((count + 1))
    expect_same "$file: $(parts "$file" | unsafe)" "$file: "
    expect_same "$file: $(readelf -d "$file" | grep -E 'NEEDED.*\[.*/' || true)" "$file: "
done < <(find "$BUILD/bin" "$WORK/installed" -type f -print0)
expect_that 'programs and modules were looked at' test "$count" -gt 1

# a module beside which the current folder has a library of MPI's name
if [ -e "$BUILD/bin/libstagewright_mpi.so" ] && command -v cc >/dev/null && command -v mpirun >/dev/null; then
    mkdir -p trap && cd trap
    cat >evil.c <<'C'
#include <stdio.h>
__attribute__((constructor)) static void loaded(void) { fclose(fopen("loaded", "w")); }
C
    for name in libmpi.so.40 libmpi_cxx.so.40 libmpi.so.12; do cc -shared -fPIC -Wl,-soname,$name -o $name evil.c; done
    run "$BUILD/bin/stagewright" record -s 1f1b -p 2 -m 2 --steps 1 --processes -o p.stagewright
    expect_no_file loaded
fi
