#!/usr/bin/env bash
# Plain English: the expressions of words.txt are in no text, comment or page of the tree. Words of identifiers are not looked at, since
# an expression matches whole words: camelCase and snake_case names are one word.
set -u
root=$1
cd "$root" || exit 2
list=$root/tests/layers/words.txt
status=0
files=$(find app engine profiler schedules widgets traces tests docs cmake -type f \
    \( -name '*.cpp' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' -o -name '*.def' -o -name '*.md' -o -name '*.sh' -o -name '*.py' \
    -o -name '*.cmake' -o -name CMakeLists.txt -o -name '*.1' -o -name '*.in' -o -name '*.xml' -o -name '*.desktop' -o -name '*.bash' \) ! -path '*/build/*' | sort)
files="$files README.md CHANGELOG.md CONTRIBUTING.md CMakeLists.txt CMakePresets.json bootstrap.sh"
while IFS=$'\t' read -r expression advice exempt; do
    case $expression in '' | '#'*) continue ;; esac
    [ -n "${exempt:-}" ] && chosen=$(printf '%s\n' $files | grep -vE "$exempt") || chosen=$files
    found=$(printf '%s\n' $chosen | xargs grep -nPi "$expression" | grep -v '^tests/layers/words\.')
    [ -z "$found" ] && continue
    echo "write $advice:"
    printf '%s\n' "$found" | sed 's/^/    /'
    status=1
done < "$list"
exit $status
