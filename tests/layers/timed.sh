#!/usr/bin/env bash
# No quick test asserts how long something took: a busy machine makes it longer. What is asserted is a count, an order, or a figure computed from
# given durations; that a program hangs is shown by a test's own time limit. The expressions of timed.txt find such assertions, in statements that
# may go over several lines. A source whose tests are all labelled full may assert times: add it to the expression's exemptions.
set -u
root=$1
cd "$root" || exit 2
status=0
files=$(find tests -type f \( -name '*.cpp' -o -name '*.h' -o -name '*.sh' -o -name '*.bash' \) ! -path 'tests/layers/*' ! -path 'tests/bench/*' ! -path 'tests/fuzz/*' | sort)
while IFS=$'\t' read -r expression advice exempt; do
    case $expression in '' | '#'*) continue ;; esac
    [ -n "${exempt:-}" ] && chosen=$(printf '%s\n' $files | grep -vE "$exempt") || chosen=$files
    # shellcheck disable=SC2016
    found=$(printf '%s\n' $chosen | expression=$expression xargs perl -0777 -ne 'while (/$ENV{expression}/g) { my $line = 1 + (substr($_, 0, $-[0]) =~ tr/\n//); print "$ARGV:$line: ", $& =~ s/\s+/ /gr, "\n" }')
    [ -z "$found" ] && continue
    echo "$advice:"
    printf '%s\n' "$found" | sed 's/^/    /'
    status=1
done < "$root/tests/layers/timed.txt"
exit $status
