#!/usr/bin/env bash
# Sources are formatted as .clang-format says. Versions of clang-format differ, so that only 14 is asked.
set -u
root=$1
cd "$root" || exit 2
tool=$(command -v clang-format-14 || command -v clang-format)
if [ -z "$tool" ] || ! "$tool" --version | grep -q 'version 14\.'; then
    echo "skipped: formatted (clang-format 14 is not installed)"
    exit 0
fi
find schedules profiler engine traces widgets app tests \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -not -path 'tests/data/*' -print0 |
    xargs -0 -P 2 -n 50 "$tool" --dry-run -Werror 2>&1 | grep -E "^[a-z]+/[^:]*:[0-9]+:" | grep -o "^[^:]*:[0-9]*:" | sort -u > "${TMPDIR:-/tmp}/formatted.$$"
count=$(wc -l < "${TMPDIR:-/tmp}/formatted.$$")
if [ "$count" -gt 0 ]; then
    echo "$count lines are not formatted; run $tool -i on:"
    cut -d: -f1 "${TMPDIR:-/tmp}/formatted.$$" | sort -u
    rm -f "${TMPDIR:-/tmp}/formatted.$$"
    exit 1
fi
rm -f "${TMPDIR:-/tmp}/formatted.$$"
echo "formatted: every source"
