# Desktop entry, AppStream data and MIME type are what the desktop's own tools accept.
# shellcheck shell=bash
[ "$WINDOW" = ON ] || skip 'the window is not built'
"$CMAKE" --install "$BUILD" --prefix "$WORK/p" >/dev/null
share=$WORK/p/share
id=org.stagewright.Stagewright
tools=0
if command -v desktop-file-validate >/dev/null; then
    tools=$((tools + 1))
    run desktop-file-validate --warn-kde "$share/applications/$id.desktop"
    expect_code 0
    expect_no_out 'error|warning'
else
    echo 'desktop-file-validate is absent (desktop-file-utils)'
fi
if command -v appstreamcli >/dev/null; then
    tools=$((tools + 1))
    run appstreamcli validate --no-net "$share/metainfo/$id.metainfo.xml"
    expect_code 0
else
    echo 'appstreamcli is absent (appstream)'
fi
if command -v update-mime-database >/dev/null; then
    tools=$((tools + 1))
    run update-mime-database "$share/mime"
    expect_code 0
    expect_that 'the suffix is known' grep -q 'application/x-stagewright:\*.stagewright' "$share/mime/globs"
    # The magic is what a run file really starts with.
    "$WORK/p/bin/stagewright" simulate -o x.stagewright >/dev/null 2>&1
    expect_same "$(head -c 15 x.stagewright)" 'SQLite format 3'
    expect_same "$(dd if=x.stagewright bs=1 skip=68 count=4 2>/dev/null)" SWRT
    expect_that 'the magic is in the database' grep -aq SWRT "$share/mime/magic"
else
    echo 'update-mime-database is absent (shared-mime-info)'
fi
for size in 16 32 48 256; do
    header=$(od -An -tu1 -j16 -N8 "$share/icons/hicolor/${size}x$size/apps/$id.png" | tr -s ' ' | sed 's/^ //')
    expect_same "$header" "0 0 $((size / 256)) $((size % 256)) 0 0 $((size / 256)) $((size % 256))"
done
[ "$tools" -gt 0 ] || skip 'none of desktop-file-validate, appstreamcli, update-mime-database is here'
