#!/usr/bin/env bash
# An action is found by its id, a literal: every id that the window or a test of it names is declared in a table of actions.
set -u
root=$1
cd "$root" || exit 1
declared=$({
    grep -rhoE '\bitem\("[A-Za-z0-9]+"|^ *"[A-Za-z0-9]+", ActionGroup::' app/ui # on the line of item( or the next
    grep -hE '^constexpr std::array<ActionId' app/ui/*/*.cpp
    grep -hE '^ *\{MemoryCategory::' schedules/model/memory_category.h # an action a category
} | grep -oE '"[A-Za-z0-9]+"' | sort -u)
used=$({
    grep -rnoE '(\b(a|all|actions)|actions\(\))\["[A-Za-z0-9]+"\]' app/ui tests/ui
    grep -rnoE '\b(on|action|mark)\("[A-Za-z0-9]+"|\benable\(\{[^}]*\}' app/ui/*/*_controller.cpp app/ui/edit tests/ui/tst_rows.cpp tests/ui/tst_working.cpp
    grep -rnoE '\bActionId( [A-Za-z]+ : |.* [A-Za-z]+\[\] = )\{.*\}' app/ui tests/ui
    grep -rnoE '\b(declared|entry)\.id [=!]= "[A-Za-z0-9]+"' app/ui tests/ui
} | sort -u)
count=0
status=0
while IFS= read -r line; do
    for id in $(grep -oE '"[A-Za-z0-9]+"' <<<"${line#*:*:}"); do
        count=$((count + 1))
        grep -qxF "$id" <<<"$declared" && continue
        echo "${line%%:*}: no table declares the action $id"
        status=1
    done
done <<<"$used"
echo "$count uses of $(wc -l <<<"$declared") actions"
[ "$count" -gt 200 ] || { echo "too few uses found: does the pattern still fit?"; status=1; }
exit $status
