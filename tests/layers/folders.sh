#!/usr/bin/env bash
# Folders use each other in one direction: the include lines between folders of the tree have no cycle. Features of the window see its
# workspace and nothing of each other or of the shell. A README says what each folder is for.
set -u
root=$1
cd "$root" || exit 2
edges=$(find schedules profiler engine traces widgets app \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -print0 | xargs -0 awk '
    /^[ \t]*#[ \t]*include[ \t]*"(schedules|profiler|engine|traces|widgets|app)\// {
        from = FILENAME; sub(/\/[^\/]*$/, "", from)
        split($0, quoted, "\""); to = quoted[2]; sub(/\/[^\/]*$/, "", to)
        if (from != to) print from, to, FILENAME
    }')
[ -n "$edges" ] || { echo "folders: no include between folders found under $root"; exit 1; }
if ! cycles=$(awk '{ print $1, $2 }' <<< "$edges" | sort -u | tsort 2>&1 >/dev/null); then
    echo "folders that include each other in a cycle:"
    grep -v 'input contains a loop' <<< "$cycles" | sed 's/^tsort: //' | while read -r folder; do
        echo "  $folder"
    done
    exit 1
fi
missing=$(find schedules profiler engine traces widgets app \( -name '*.h' -o -name '*.cpp' \) | sed 's#/[^/]*$##' | sort -u | while read -r folder; do
    [ -f "$folder/README.md" ] || echo "  $folder"
done)
others=$(awk '$1 ~ /^app\/ui\// && $1 != "app/ui/program" && $2 ~ /^app\/ui\// && $2 !~ /^app\/ui\/(workspace|runs)$/ { print "  " $3 " includes a header of " $2 }' <<< "$edges" | sort -u)
if [ -n "$others" ]; then
    echo "a feature of the window that knows another:"
    echo "$others"
    exit 1
fi
if [ -n "$missing" ]; then
    echo "folders without a README.md:"
    echo "$missing"
    exit 1
fi
echo "folders: $(awk '{ print $1 }' <<< "$edges" | sort -u | wc -l) folders, no cycle"
