#!/usr/bin/env bash
# A type's name means one type in a program: two of the same namespace and name in different files are linked as one, and what
# a template made of the one is used for the other. The command line and the window are two programs.
set -u
root=$1
cd "$root" || exit 2
found=$(find schedules profiler engine traces widgets app -name '*.h' -o -name '*.cpp' | sort | xargs awk '
    FNR == 1 { depth = 0 }
    /^namespace \{/ { space[++depth] = "(own)"; next }
    /^namespace [A-Za-z_:]+ \{/ { space[++depth] = $2; next }
    /^\} \/\/ namespace/ { if (depth > 0) --depth; next }
    /^(struct|class|enum class|enum|union) [A-Za-z_][A-Za-z_0-9]*( final)?( :[^:].*)?( \{.*)?$/ {
        name = $2 == "class" ? $3 : $2
        whole = ""
        for (i = 1; i <= depth; ++i) {
            if (space[i] == "(own)") next
            whole = whole space[i] "::"
        }
        side = FILENAME ~ /^app\/cli\// ? "line" : FILENAME ~ /^(widgets|app\/ui)\// ? "window" : "both"
        print whole name, side, FILENAME
    }' | sort | awk '
    {
        for (i = 1; i <= n && last == $1; ++i)
            if (sides[i] == $2 || sides[i] == "both" || $2 == "both") print $1 ": " files[i] " and " $3
        if (last != $1) { n = 0; last = $1 }
        sides[++n] = $2
        files[n] = $3
    }')
if [ -n "$found" ]; then
    echo "types of one name in one program:"
    echo "$found"
    exit 1
fi
echo "every type has a name of its own"
