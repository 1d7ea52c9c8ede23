#!/bin/sh
# Draws the pictures of the documentation anew, without a display: docs/make_screenshots.sh [BUILD_DIR]
# The runs in them are recorded first, by really training a small model under the four schedules.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$root/build/release}
out=$root/docs/screenshots
window=$build/bin/stagewright-ui
program=$build/bin/stagewright
for needed in "$window" "$program"; do
    [ -x "$needed" ] || { echo "make_screenshots: $needed is missing; ./bootstrap.sh build makes it" >&2; exit 4; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
runs=$work/demo.stagewright
mkdir -p "$out"
"$program" record --schedule gpipe,1f1b,interleaved-1f1b,zb-h1 --ranks 4 --microbatches 8 --steps 8 --clock virtual \
    --link 500us -o "$runs" --progress none > /dev/null
export QT_QPA_PLATFORM=offscreen
draw() { name=$1; shift; "$window" "$@" --size 1600x1000 --screenshot "$out/$name.png" 2> /dev/null; echo "$out/$name.png"; }
draw empty_light --theme light
for theme in light dark; do
    draw "record_$theme" --theme "$theme" --show record
    if [ $theme = light ]; then set -- ; else set -- --select 1I3; fi # the light one shows the headline, the dark one a selection
    draw "main_$theme" "$runs" --run 4 --theme "$theme" "$@"
    draw "compare_$theme" "$runs" --compare 2 4 --theme "$theme"
    draw "edit_$theme" "$runs" --run 4 --theme "$theme" --show edit
    draw "library_$theme" --theme "$theme" --show new --schedule v-half
    draw "block_$theme" --theme "$theme" --show block --schedule v-half
    draw "lowered_$theme" "$runs" --run 2 --theme "$theme" --show lowered
    draw "gap_$theme" "$runs" --run 2 --theme "$theme" --show gap
    draw "what_if_$theme" "$runs" --run 2 --theme "$theme" --what-if "B*0.7,rank2*1.3"
    draw "residuals_$theme" "$runs" --run 4 --theme "$theme" --show residuals
    draw "lessons_$theme" --theme "$theme" --lesson shelf
    draw "lesson_$theme" --theme "$theme" --lesson latency --lesson-page 2
    draw "playback_$theme" "$runs" --run 2 --beat 24 --theme "$theme"
    draw "slack_$theme" "$runs" --run 2 --theme "$theme" --show slack
    draw "steps_$theme" "$runs" --run 4 --theme "$theme" --show steps
    draw "range_$theme" "$runs" --run 4 --theme "$theme" --show range
    draw "stacked_$theme" "$runs" --run 4 --theme "$theme" --show stacked
    draw "rows_$theme" "$runs" --run 4 --theme "$theme" --show rows
    draw "export_$theme" "$runs" --run 4 --theme "$theme" --show export
done
