#!/bin/sh
# Redraws the pictures of the documentation, without a display: docs/make_screenshots.sh [BUILD_DIR]
# The runs in them are recorded first, by training a small model under the four schedules. Each picture is drawn in both
# themes. If ImageMagick is installed they get a palette of 256 colours, which shrinks them to a third.
set -eu
# ImageMagick's, not another program of that name.
shrinks=$(convert --version 2>/dev/null | sed -n 's/^Version: \(ImageMagick\).*/\1/p')
[ -n "$shrinks" ] || echo "ImageMagick's convert is not here: pictures are three times as large, and none are made for other eyes or in grey (apt-get install imagemagick)" >&2
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
    --link 500us -o "$runs" --progress none > /dev/null 2> "$work/recording" || { cat "$work/recording" >&2; exit 5; }
mkdir "$work/job"
"$program" export "$runs" 4 --format kineto -o "$work/job/traces" 2> "$work/recording" || { cat "$work/recording" >&2; exit 5; }
export QT_QPA_PLATFORM=offscreen
draw() { # draw NAME ARGUMENTS: both themes
    name=$1; shift
    for theme in light dark; do
        picture=$out/${name}_$theme.png
        "$window" "$@" --theme "$theme" --size 1600x1000 --screenshot "$picture" 2> "$work/drawing" || { cat "$work/drawing" >&2; exit 5; }
        if [ -n "$shrinks" ]; then
            convert "$picture" +dither -colors 256 -strip -define png:compression-level=9 "png8:$work/small.png"
            cp "$work/small.png" "$picture"
        fi
        echo "$picture"
    done
}
# In the order in which a user meets them.
draw empty
# A real job's trace, which is not in the repository: skipped where it is absent.
if [ -d "${STAGEWRIGHT_SHARED:-}/fixtures/kineto/dlrm_8rank" ]; then
    "$program" import "$STAGEWRIGHT_SHARED/fixtures/kineto/dlrm_8rank" -o "$work/dlrm.stagewright" 2> "$work/recording" > /dev/null || { cat "$work/recording" >&2; exit 5; }
    draw gpu_trace "$work/dlrm.stagewright"
    draw flame "$work/dlrm.stagewright" --show flame
    draw histogram "$work/dlrm.stagewright" --show range
    draw kernel_classes "$work/dlrm.stagewright" --show tables
fi
if command -v python3 > /dev/null; then
    python3 "$root/tests/bench/make_job.py" "$work/job32" 32 400 8
    "$program" import "$work/job32" -o "$work/job32.stagewright" 2> "$work/recording" > /dev/null || { cat "$work/recording" >&2; exit 5; }
    draw by_host "$work/job32.stagewright" --show by-host
fi
draw library --show new --schedule v-half
draw block --show block --schedule v-half
draw record --show record
draw main "$runs" --run 4
draw selection "$runs" --run 4 --select 1I3
draw steps "$runs" --run 4 --show steps
draw range "$runs" --run 4 --show range
draw rows "$runs" --run 4 --show rows
draw stacked "$runs" --run 4 --show stacked
draw gap "$runs" --run 2 --show gap
draw slack "$runs" --run 2 --show slack
draw what_if "$runs" --run 2 --what-if "B*0.7,rank2*1.3"
draw residuals "$runs" --run 4 --show residuals
draw lowered "$runs" --run 2 --show lowered
draw compare "$runs" --compare 2 4
draw import "$work/job/traces"
draw plan "$runs" --run 2 --show plan
# A job whose ranges have names of their own.
"$program" export "$runs" 2 --format kineto -o "$work/named" 2> "$work/recording" || { cat "$work/recording" >&2; exit 5; }
for trace in "$work"/named/*.json; do
    sed -E 's/"PP:([0-9]+)F([0-9]+)"/"fwd stage \1 mb \2"/g; s/"PP:([0-9]+)B([0-9]+)"/"bwd stage \1 mb \2"/g' "$trace" > "$trace.new" && mv "$trace.new" "$trace"
done
"$program" import "$work/named" -o "$work/named.stagewright" 2> "$work/recording" > /dev/null || { cat "$work/recording" >&2; exit 5; }
draw mapper "$work/named.stagewright" --show mapper --no-runs-list --no-memory
draw baseline "$runs" --run 4 --baseline 2
draw edit "$runs" --run 4 --show edit
draw explore --show explore
draw heat --show heat
draw planners --show planners --schedule comet
draw state --show state
draw uneven --show uneven
draw partial --show partial
"$program" simulate -s interleaved-1f1b -p 4 -m 8 --replicas 8 --shard weights --gather batch:prefetch=1 --reduce overlapped --costs analytic:gpt-6.2b@a100:b=1 \
    --link 5us,100GB/s -o "$work/sharded.stagewright" > /dev/null 2> "$work/recording" || { cat "$work/recording" >&2; exit 5; }
draw sharded "$work/sharded.stagewright" --show stacked
draw lessons --lesson shelf
draw lesson --lesson latency --lesson-page 2
draw playback "$runs" --run 2 --beat 24
draw links "$runs" --run 4 --show links
draw sql "$runs" --run 4 --show sql
draw palette "$runs" --run 4 --show palette
draw keys "$runs" --run 4 --show keys
draw export "$runs" --run 4 --show export
# The main pictures as without the cones for green (Machado 2009, in linear light), and in grey.
if [ -n "$shrinks" ]; then
    for name in main compare explore lesson; do
        convert "$out/${name}_light.png" -colorspace RGB -color-matrix '0.367322 0.860646 -0.227968 0.280085 0.672501 0.047413 -0.011820 0.042940 0.968881' \
            -colorspace sRGB +dither -colors 256 -strip "png8:$out/${name}_deuteranope.png"
        convert "$out/${name}_light.png" -colorspace Gray -strip "$out/${name}_grey.png"
        echo "$out/${name}_deuteranope.png"; echo "$out/${name}_grey.png"
    done
fi
