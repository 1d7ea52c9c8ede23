#!/bin/sh
# Regenerates docs/schedules.md and its pictures from the library, without a display: docs/make_schedule_pages.sh [BUILD_DIR]
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$root/build/release}
window=$build/bin/stagewright-ui
program=$build/bin/stagewright
for needed in "$window" "$program"; do
    [ -x "$needed" ] || { echo "make_schedule_pages: $needed is missing; ./bootstrap.sh build makes it" >&2; exit 4; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$program" schedules --markdown > "$work/schedules.md"
mkdir -p "$root/docs/schedules"
rm -f "$root"/docs/schedules/*.svg
export QT_QPA_PLATFORM=offscreen
# "![TITLE on 4 ranks with 8 microbatches, order HASH](schedules/NAME.svg)" says what each picture shows.
sed -n 's/^!\[.* on \([0-9]*\) ranks with \([0-9]*\) microbatches, .*(schedules\/\(.*\)\.svg)$/\3 \1 \2/p' "$work/schedules.md" |
while read -r name ranks microbatches; do
    "$program" simulate -s "$name" -p "$ranks" -m "$microbatches" -o "$work/$name.stagewright" > /dev/null 2>&1
    "$window" "$work/$name.stagewright" --theme light --no-runs-list --no-memory --size 1500x800 --export svg \
        -o "$root/docs/schedules/$name.svg" 2> /dev/null
    echo "$root/docs/schedules/$name.svg"
done
cp "$work/schedules.md" "$root/docs/schedules.md"
