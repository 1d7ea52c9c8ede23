# Exports: formats and suffixes agree, files come whole or not at all, reports need nothing else.
# shellcheck shell=bash
stagewright simulate --schedule 1f1b -o t.stagewright >/dev/null 2>&1
stagewright simulate --schedule zb-h1 -o t.stagewright >/dev/null 2>&1

# a suffix of another format is an error, and nothing is written
for pair in 'svg pic.png' 'perfetto page.json' 'png pic.svg' 'pdf page.html' 'html page.json' 'chrome trace.csv' 'csv trace.json' 'spans spans.svg'; do
    read -r format name <<<"$pair"
    run stagewright export t.stagewright --format "$format" -o "$name"
    expect_code 2
    expect_err "the format is $format, but the suffix is ${name##*.}"
    expect_no_file "$name"
    expect_no_file "$name.$format"
done
# without --format the suffix decides
for name in a.json a.csv a.html a.HTM a.pftrace a.perfetto-trace; do
    run stagewright export t.stagewright -o $name
    expect_code 0
    expect_file $name
done
expect_that 'a trace' grep -q traceEvents a.json
expect_that 'a schedule' grep -q 0F0 a.csv
run stagewright export t.stagewright -o a.xyz
expect_code 2
expect_err 'the name has no known suffix'
run stagewright export t.stagewright --format html --style paper -o b.html
expect_code 2
expect_err '[-]-style is for pictures'

# the report
run stagewright export t.stagewright zb-h1 --format html -o r.html --json
expect_code 0
expect_json html format
expect_that 'no outside resource' test -z "$(grep -oE 'https?:|src=|href=|<script|@import' r.html)"
expect_that 'whole' grep -q '</html>' r.html
expect_that 'its timeline' grep -q '<svg class="sw"' r.html
run stagewright export t.stagewright zb-h1 --format html --step 9 -o never.html
expect_code 2
expect_no_file never.html
run stagewright export t.stagewright zb-h1 --against 1f1b -o c.html
expect_code 0
expect_that 'two timelines' test "$(grep -c 'aria-label="Timeline of' c.html)" = 2
run stagewright export t.stagewright zb-h1 --against none -o d.html
expect_code 2
expect_no_file d.html
run stagewright export t.stagewright zb-h1 --against 1f1b -o d.json
expect_code 2

# a full disk, a folder that may not be written, a missing one: reported, and nothing is left
mkdir -p shut && cp a.csv shut/keep.csv
chmod 500 shut
for format in chrome perfetto csv spans html; do
    run stagewright export t.stagewright 1 --format $format -o /dev/full
    expect_code 5
    expect_err 'disk is full|No space'
    run stagewright export t.stagewright 1 --format $format -o missing/x
    expect_code 3
    expect_no_file missing
    if [ "$(id -u)" != 0 ]; then
        run stagewright export t.stagewright 1 --format $format -o shut/keep.csv
        expect_that 'an error' test "$rc" != 0
    fi
done
expect_same "$(ls shut)" keep.csv
expect_same "$(ls -A | grep -c part-)" 0
expect_same "$(find /dev -maxdepth 1 -name 'full?*' | head -1)" ''
run stagewright simulate -o /dev/full
expect_that 'an error' test "$rc" != 0
expect_same "$(find /dev -maxdepth 1 -name 'full?*' | head -1)" ''

# pictures, if the window's program is next to this one
if [ -x "$(dirname "$STAGEWRIGHT")/stagewright-ui" ]; then
    for format in svg pdf png; do
        run stagewright export t.stagewright 1 --format $format -o p.$format
        expect_code 0
        expect_file p.$format
        run stagewright export t.stagewright 1 --format $format -o /dev/full
        expect_that 'an error' test "$rc" != 0
        run stagewright export t.stagewright 1 --format $format -o missing/p.$format
        expect_code 3
    done
    expect_that 'the caption' grep -q 'simulated with a cost model\|Simulated with a cost model' p.svg
    run stagewright export t.stagewright 2 --against 1 --style paper --width 84 --text 6 --hatched -o paper.svg
    expect_code 0
    expect_that 'as wide as requested' grep -qE 'width="8[34]\.[0-9]+mm"' paper.svg
    run stagewright export t.stagewright 1 --style paper --width 9999 -o q.svg
    expect_code 2
    expect_no_file q.svg
fi
