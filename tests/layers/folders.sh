#!/usr/bin/env bash
# Folders use each other in one direction: every include line between folders of the tree goes up in the order of folders.txt, so that no cycle can
# arise and features of the window know nothing of each other. A README says what each folder is for.
set -u
root=$1
order=$(dirname "$(realpath "$0")")/folders.txt
cd "$root" || exit 2
features=$(sed -nE 's|^STAGEWRIGHT_FEATURE\([a-z_]+, ([a-z_]+)\).*|app/ui/\1|p' app/ui/features.def | sort -u | paste -sd ' ')
expanded=$(mktemp)
trap 'rm -f "$expanded"' EXIT
sed "s|^every folder of app/ui/features.def\$|$features|" "$order" >"$expanded"
rooms=(schedules profiler engine traces widgets app)
# shellcheck disable=SC2016 # awk's
found=$(find "${rooms[@]}" \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -print0 | xargs -0 awk -v order="$expanded" '
    BEGIN {
        while ((getline line < order) > 0) {
            ++number
            if (line ~ /^#/) continue
            count = split(line, names, " ")
            for (i = 1; i <= count; ++i) {
                if (names[i] in place) print "  tests/layers/folders.txt:" number ": " names[i] " is listed twice"
                place[names[i]] = number
            }
        }
    }
    FNR == 1 {
        from = FILENAME; sub(/\/[^\/]*$/, "", from)
        if (!(from in place) && !(from in missing)) { missing[from] = 1; print "  " FILENAME ": " from " is not listed in tests/layers/folders.txt" }
    }
    /^[ \t]*#[ \t]*include[ \t]*"(schedules|profiler|engine|traces|widgets|app)\// {
        split($0, quoted, "\""); to = quoted[2]; sub(/\/[^\/]*$/, "", to)
        if (from == to || !(from in place)) next
        ++edges
        if (!(to in place)) print "  " FILENAME ":" FNR ": " to " is not listed in tests/layers/folders.txt"
        else if (place[to] >= place[from]) print "  " FILENAME ":" FNR ": " from " includes " quoted[2] ", but is " (place[to] > place[from] ? "above " : "beside ") to " in tests/layers/folders.txt"
    }
    END { if (!edges) print "  no include between folders under this root" }')
status=0
if [ -n "$found" ]; then
    echo "against the order of folders:"
    printf '%s\n' "$found"
    status=1
fi
gone=$(grep -v '^#' "$expanded" | tr ' ' '\n' | grep . | while read -r folder; do
    [ -d "$folder" ] || echo "  $folder"
done)
if [ -n "$gone" ]; then
    echo "listed in tests/layers/folders.txt, but there is no such folder:"
    echo "$gone"
    status=1
fi
missing=$({
    find "${rooms[@]}" \( -name '*.h' -o -name '*.cpp' \) | sed 's#/[^/]*$##'
    find tests -mindepth 1 -maxdepth 1 -type d
    printf '%s\n' "${rooms[@]}" app/packaging cmake tests
} | sort -u | while read -r folder; do
    [ ! -d "$folder" ] || [ -f "$folder/README.md" ] || echo "  $folder"
done)
if [ -n "$missing" ]; then
    echo "folders without a README.md:"
    echo "$missing"
    status=1
fi
[ $status -ne 0 ] || echo "folders: $(grep -v '^#' "$expanded" | wc -w) folders in order"
exit $status
