#!/usr/bin/env bash
# tidy.sh ROOT BUILD [all | FILE…]: clang-tidy finds nothing in these sources, with the checks of .clang-tidy. Without files: those that differ from
# the branch main, committed or not, and those whose own header does. BUILD has compile_commands.json; sources that it does not build are left
# out. Sources that BUILD compiles together (STAGEWRIGHT_UNITY) are read together with `all`, in a quarter of the time, and one by one otherwise.
set -u
cd "$1" || exit 2
build=$2
shift 2
tool=$(command -v clang-tidy-14 || command -v clang-tidy)
if [ -z "$tool" ] || ! "$tool" --version | grep -q 'version 14\.'; then
    echo "skipped: tidy (clang-tidy 14 is not installed)"
    exit 0
fi
[ -r "$build/compile_commands.json" ] || { echo "skipped: tidy (no $build/compile_commands.json)"; exit 0; }
together=no
# In tests a copy more costs nothing, products of small constants do not overflow, and quotients of whole numbers are rounded as the papers do.
less='-performance-*,-bugprone-integer-division,-bugprone-implicit-widening-of-multiplication-result'
options=(--quiet --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-error)
if [ "${1:-}" = all ]; then
    together=yes
    files=$(git ls-files '*.cpp'; grep -o '"file": "[^"]*/Unity/[^"]*"' "$build/compile_commands.json" | cut -d'"' -f4 | sed "s#^$PWD/##")
    options+=('--header-filter=(schedules|profiler|engine|traces|widgets|app|tests)/.*\.(h|cpp)$')
elif [ $# -gt 0 ]; then
    files=$(printf '%s\n' "$@")
else
    changed=$({ git diff --name-only --diff-filter=d main -- '*.cpp' '*.h'; git ls-files --others --exclude-standard -- '*.cpp' '*.h'; } 2>/dev/null)
    files=$(sed 's/\.h$/.cpp/' <<<"$changed") # of a header its own source
fi
plain=$(mktemp -d)
trap 'rm -rf "$plain"' EXIT
# One by one: an entry for each that a joined source includes.
awk -v together=$together '/^  "directory": / { place = $0 }
    /^  "command": / { command = $0 }
    /^  "file": / {
        split($0, part, "\""); joined = part[4]
        if (together == "yes" || joined !~ /\/Unity\/.*\.cxx$/) { print "{\n" place "\n" command "\n" $0 "\n},"; next }
        while ((getline line < joined) > 0)
            if (split(line, name, "\"") > 1 && name[1] == "#include ") {
                one = command
                gsub(joined, name[2], one)
                print "{\n" place "\n" one "\n  \"file\": \"" name[2] "\"\n},"
            }
        close(joined)
    }' "$build/compile_commands.json" | { echo '['; sed '$ s/,$//'; echo ']'; } > "$plain/all.json"
built=$(grep -o '"file": "[^"]*"' "$plain/all.json" | cut -d'"' -f4 | sed "s#^$PWD/##" | sort -u)
files=$(comm -12 <(sort -u <<<"$files") <(printf '%s\n' "$built"))
[ -n "$files" ] || { echo "tidy: no sources to read"; exit 0; }
# clang can't read g++'s precompiled headers: it takes copies that are not compiled.
edits=(-e 's# --param=ggc[^ ]*##g') # options of g++ alone
while read -r header; do
    copy=$plain/$(tr / _ <<<"${header#/}")
    cp "$header" "$copy" || exit 2
    edits+=(-e "s#-include $header#-include $copy#g")
done < <(grep -o -- '-include [^ ]*cmake_pch.hxx' "$plain/all.json" | cut -d' ' -f2 | sort -u)
sed "${edits[@]}" "$plain/all.json" > "$plain/compile_commands.json"
read_all() { # CHECKS: those that standard input names
    xargs -r -d '\n' -P "$(nproc)" -n 1 "$tool" -p "$plain" "${options[@]}" --checks="$1" 2>/dev/null
}
joins=-bugprone-suspicious-include # what a joined source does
found=$({ grep -vE '(^|/)tests/' <<<"$files" | read_all $joins; grep -E '(^|/)tests/' <<<"$files" | read_all "$joins,$less"; } |
    grep -E '(warning|error): ' | sed "s#$PWD/##" | sort -u)
if [ -n "$found" ]; then
    printf '%s\n' "$found"
    echo "tidy: $(wc -l <<<"$found") findings in $(wc -l <<<"$files") sources"
    exit 1
fi
echo "tidy: $(wc -l <<<"$files") sources"
