#!/usr/bin/env bash
# Files of the tree that pages name in `backticks` exist: `schedules/model/op.h`, `engine/cpu/README.md`. Names with a part in capitals
# (`engine/NAME/`) and what a run writes are not looked for.
set -u
root=$1
cd "$root" || exit 2
status=0
while IFS=: read -r page line path; do
    [ -e "$path" ] || compgen -G "$path.*" >/dev/null && continue
    echo "$page:$line: there is no $path"
    status=1
done < <(find README.md CONTRIBUTING.md docs schedules profiler engine traces widgets app tests cmake -name '*.md' ! -path 'tests/data/*' -print0 |
    xargs -0 grep -noE '`(schedules|profiler|engine|traces|widgets|app|tests|docs|cmake)/[a-z0-9_./-]+`' | tr -d '`')
[ "$status" = 0 ] && echo "paths: every file that a page names exists"
exit $status
