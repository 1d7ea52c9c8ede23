# Installed into any prefix, moved afterwards, with nothing in the home folder: both programs work from there.
# shellcheck shell=bash disable=SC2086
run "$CMAKE" --install "$BUILD" --prefix "$WORK/first"
expect_code 0
mv first moved # found from where the programs are, not from where they were put
prefix=$WORK/moved
for file in bin/stagewright share/man/man1/stagewright.1* share/bash-completion/completions/stagewright \
    share/mime/packages/org.stagewright.Stagewright.xml share/doc/stagewright/copyright; do
    expect_file $prefix/$file # a pattern where it may be compressed
done
mkdir -p home
clean() { env -i HOME="$WORK/home" PATH=/usr/bin:/bin LC_ALL=C.UTF-8 QT_QPA_PLATFORM=offscreen "$@"; }
run clean "$prefix/bin/stagewright" --version
expect_code 0
expect_out "$VERSION"
run clean "$prefix/bin/stagewright" schedules
expect_code 0
expect_out '^ *zb-h1 '
run clean "$prefix/bin/stagewright" lesson
expect_code 0
expect_that 'the Python package is installed' test -s "$prefix/share/stagewright/python/stagewright/__init__.py"
if /usr/bin/python3 -c 'import numpy' 2>/dev/null && [ -n "$(find "$prefix" -name core.so)" ]; then
    run env PYTHONPATH="$prefix/share/stagewright/python" HOME=/nonexistent /usr/bin/python3 -c \
        'import stagewright as sw; print(len(sw.simulate("1f1b").spans), sw._program())'
    expect_code 0
    expect_out "^64 $prefix/bin/stagewright$"
fi
expect_that 'the lessons are installed' test -n "$(find "$prefix/share/stagewright/lessons" -name '*.md')"
run clean "$prefix/bin/stagewright" simulate --schedule 1f1b -o run.stagewright
expect_code 0
run clean "$prefix/bin/stagewright" export run.stagewright -o report.html
expect_code 0
expect_file report.html
if [ "$WINDOW" = ON ]; then
    for file in bin/stagewright-ui share/applications/org.stagewright.Stagewright.desktop share/man/man1/stagewright-ui.1* \
        share/metainfo/org.stagewright.Stagewright.metainfo.xml share/icons/hicolor/scalable/apps/org.stagewright.Stagewright.svg \
        share/icons/hicolor/16x16/apps/org.stagewright.Stagewright.png share/icons/hicolor/512x512/apps/org.stagewright.Stagewright.png; do
        expect_file $prefix/$file # a pattern where it may be compressed
    done
    run clean "$prefix/bin/stagewright-ui" --version
    expect_code 0
    expect_out "$VERSION"
    run clean "$prefix/bin/stagewright-ui" run.stagewright --screenshot picture.png --size 1280x720
    expect_code 0
    expect_that 'a picture of the window' grep -q PNG picture.png
    run clean "$prefix/bin/stagewright" export run.stagewright -o picture.svg # finds the window beside itself
    expect_code 0
    expect_that 'a picture of the run' grep -q '<svg' picture.svg
    # The manual says what the program says.
    page=$prefix/share/man/man1/stagewright-ui.1
    if [ -e "$page.gz" ]; then gzip -dc "$page.gz" >page.1; else cp "$page" page.1; fi
    sed -i 's/\\-/-/g' page.1
    clean "$prefix/bin/stagewright-ui" --help | grep -oE -- '--[a-z][a-z-]+' | sort -u | while read -r option; do
        grep -qF -- "$option" page.1 || echo "$option"
    done >missing
    expect_same "$(cat missing)" ''
fi
expect_same "$(find home -type f | head -1)" '' # pictures and figures leave nothing behind
