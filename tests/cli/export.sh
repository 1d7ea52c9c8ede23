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

# runs are never replaced, whatever the format, the name or the link; nor is what belongs to them, nor any other file that the call reads
cp t.stagewright own.stagewright
cp t.stagewright plain.dat
ln -s own.stagewright link.csv
ln own.stagewright hard.csv
before=$(cat own.stagewright plain.dat | cksum)
for format in chrome perfetto csv spans html; do
    for name in own.stagewright plain.dat link.csv hard.csv t.stagewright; do
        case $format-$name in csv-* | *-own.stagewright | *-plain.dat | *-t.stagewright) ;; *) continue ;; esac
        run stagewright export own.stagewright --format $format -o $name
        expect_code 2
        expect_err "$name: it (is a run file or another database, and would be replaced|would replace a file that is read)"
    done
done
for name in own.stagewright-wal own.stagewright-journal own.stagewright-lock own.stagewright-shm plain.dat-journal; do
    run stagewright export own.stagewright --format csv -o $name
    expect_code 2
    expect_err 'it would be taken for a part of'
    expect_no_file $name
done
for part in '\x37\x7f\x06\x82' '\x37\x7f\x06\x83' '\xd9\xd5\x05\xf9\x20\xa1\x63\xd7'; do
    printf "$part some bytes" >part.csv # a log or a journal, whatever its name
    run stagewright export own.stagewright -o part.csv
    expect_code 2
    rm part.csv
done
expect_same "$(cat own.stagewright plain.dat | cksum)" "$before"
printf '0F0,0B0\n' >order.csv
printf '{}' >costs.json
stagewright lesson --new mine.md >/dev/null
stagewright export own.stagewright -o trace.json 2>/dev/null
mkdir -p traces && cp trace.json traces/rank0.json
before=$(cat order.csv costs.json mine.md trace.json traces/rank0.json | cksum)
while read -r words; do
    # shellcheck disable=SC2086
    run stagewright $words
    expect_code 2
    expect_err 'it would replace a file that is read'
done <<'CALLS'
sweep -s 1f1b,order.csv -p 2 -m 2 -o order.csv
sweep -s 1f1b -p 2 -m 2 --costs costs.json -o costs.json
sweep -s 1f1b -p 2 -m 2 --costs costs.json -o ./traces/../costs.json
plan -p 2 -m 2 --costs costs.json -o costs.json
lesson ./mine.md --start mine.md
lesson latency --answer order.csv --start order.csv
lesson latency --answer hide-it=order.csv --start order.csv
import trace.json --suggest-rules trace.json
import traces --suggest-rules traces/rank0.json
import trac*.json --suggest-rules trace.json
record -s order.csv --keep-trace order.csv -o r.stagewright
CALLS
run stagewright import 'trac*.json' --suggest-rules trace.json
expect_code 2
expect_same "$(cat order.csv costs.json mine.md trace.json traces/rank0.json | cksum)" "$before"
run stagewright sweep -s order.csv -p 1 -m 1 -o sums.csv # another name
expect_code 0
run stagewright sweep -s order.csv -p 1 -m 1 -o sums.csv # its own from before
expect_code 0

# names that look like a temporary one of ours are others'
mkdir other.json.part-backup
: >other.json.part-backup/precious
for name in 000001 abcdef old abcdefgh1234567 aaaaaaaaaaaaaaa; do : >other.json.part-$name; done
mkfifo other.json.part-fedcba
before=$(ls -R other.json.part-*)
run stagewright export own.stagewright -o other.json
expect_code 0
expect_file other.json
expect_same "$(ls -R other.json.part-*)" "$before"
rm -rf other.json.part-*

# pictures, if the window's program is next to this one
if [ -x "$(dirname "$STAGEWRIGHT")/stagewright-ui" ]; then
    for format in svg pdf png; do
        run stagewright export t.stagewright 1 --format $format -o p.$format
        expect_code 0
        expect_file p.$format
        run stagewright export own.stagewright 1 --format $format -o own.stagewright
        expect_that 'an error' test "$rc" != 0
        expect_err 'would be replaced'
        expect_same "$(head -c 15 own.stagewright)" 'SQLite format 3'
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
