#!/bin/sh
# Renders the icon again at every installed size: app/packaging/render_icons.sh. Needs rsvg-convert (librsvg2-bin).
set -eu
cd "$(dirname "$0")/icons"
command -v rsvg-convert > /dev/null || { echo "render_icons: rsvg-convert is missing; install librsvg2-bin" >&2; exit 4; }
for size in 16 24 32 48 64 128 256 512; do
    rsvg-convert --width "$size" --height "$size" org.stagewright.Stagewright.svg > "$size.png"
done
