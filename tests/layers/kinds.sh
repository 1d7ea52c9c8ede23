#!/usr/bin/env bash
# Few files name kinds of ops: the others ask the columns of schedules/model/kinds. The rooms that own kinds, or make
# lists of ops, may name them. The number may only fall: write a smaller one here with the change that makes it possible.
set -u
root=$1
cd "$root" || exit 2
most=10
files=$(find schedules profiler engine traces widgets app -type f -regex '.*\.\(cpp\|h\|cu\|cuh\)' |
    grep -vE '^schedules/(model|library|heuristic|plan)/' | sort | xargs grep -l 'OpKind::')
count=$(printf '%s' "$files" | grep -c .)
[ "$count" -eq "$most" ] && exit 0
if [ "$count" -lt "$most" ]; then
    echo "tests/layers/kinds.sh: $count files name kinds of ops, $most are allowed; write $count there"
else
    echo "$count files name kinds of ops, $most are allowed; ask a column of schedules/model/kinds.h, or add one:"
    printf '    %s\n' $files
fi
exit 1
