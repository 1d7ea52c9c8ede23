# A run with a damaged block is read without it: said on standard error and in the JSON; exit code 3 only where nothing can be read.
# shellcheck shell=bash
stagewright simulate -s zb-h1 -p 4 -m 8 -o good.stagewright >/dev/null 2>&1
stagewright simulate -s gpipe -p 2 -m 2 -o good.stagewright >/dev/null 2>&1
run stagewright report good.stagewright 1 --json
expect_code 0
expect_json 0 damaged_blocks
expect_no_out warning
run stagewright runs good.stagewright --json
expect_code 0
expect_json null runs 0 damaged_blocks
run stagewright runs good.stagewright --verify --json
expect_code 0
expect_json 0 runs 1 damaged_blocks
expect_err 'nothing is damaged'

expect_json ON runs 0 intact

# A changed text of the run: every block is still whole.
cp good.stagewright metadata.stagewright
place=$(LC_ALL=C grep -obUa 'costsF=1, I=1' metadata.stagewright | tail -n 1 | cut -d: -f1)
expect_that "its text is found in the file" [ -n "$place" ]
printf 'G' | dd of=metadata.stagewright bs=1 seek=$((place + 5)) conv=notrunc status=none
run stagewright runs metadata.stagewright --verify --json
expect_code 1
expect_json 0 runs 0 damaged_blocks
expect_json OFF runs 0 intact
expect_json ON runs 1 intact
expect_err 'run 1 zb-h1: the run.s metadata .* changed since it was written'
run stagewright runs metadata.stagewright --verify
expect_code 1
expect_out 'complete, damaged'
# names and notes may be changed; a merged run keeps its checksum
stagewright runs good.stagewright --rename 2 other --note 2 words >/dev/null 2>&1
stagewright simulate -s 1f1b -p 2 -m 2 -o taken.stagewright >/dev/null 2>&1
stagewright runs taken.stagewright --merge good.stagewright >/dev/null 2>&1
run stagewright runs taken.stagewright --verify --json
expect_code 0
for run in 0 1 2; do expect_json ON runs $run intact; done

# flip one bit in the first block of spans of the first run
start=$(stagewright sql good.stagewright --csv 'SELECT hex(substr(data, 1, 24)) FROM span_block WHERE run = 1 LIMIT 1' | tail -n 1)
place=$(LC_ALL=C grep -obUaP "$(sed 's/../\\x&/g' <<<"$start")" good.stagewright | head -n 1 | cut -d: -f1)
expect_that "the block is found in the file" [ -n "$place" ]
place=$((place + 30))
byte=$(od -An -tu1 -j $place -N 1 good.stagewright)
cp good.stagewright bad.stagewright
# shellcheck disable=SC2059
printf "\\$(printf %03o $((byte ^ 64)))" | dd of=bad.stagewright bs=1 seek=$place conv=notrunc status=none
run stagewright report bad.stagewright 1 --json
expect_code 0
expect_that "a damaged block is counted" [ "$(json damaged_blocks)" -ge 1 ]
expect_err 'warning: bad.stagewright#1 zb-h1: [0-9]+ damaged blocks? could not be read'
run stagewright report bad.stagewright 1
expect_code 0
expect_err 'restore the file from a copy'
run stagewright compare bad.stagewright 1 2
expect_err 'warning: bad.stagewright#1'
run stagewright export bad.stagewright 1 --format chrome -o bad.json
expect_code 0
expect_err 'warning: bad.stagewright#1'
run stagewright runs bad.stagewright --verify
expect_code 1
expect_out 'complete, damaged'
expect_err 'warning: bad.stagewright#1'
run stagewright runs bad.stagewright --verify --json
expect_code 1
expect_that "the damaged blocks are counted" [ "$(json runs 0 damaged_blocks)" -ge 1 ]
expect_json 0 runs 1 damaged_blocks
run stagewright runs bad.stagewright
expect_code 0

# what is missing of a file or not read of it is said by every verb, once, even where no run is listed
cp good.stagewright lost.stagewright
stagewright runs lost.stagewright --delete 1 --delete 2 >/dev/null 2>&1
printf '\002\002' | dd of=lost.stagewright bs=1 seek=18 conv=notrunc status=none # as a writer leaves it that is killed; its log is gone
for words in 'report lost.stagewright' 'export lost.stagewright -o lost.json' 'compare lost.stagewright' 'runs lost.stagewright' "sql lost.stagewright SELECT&count(*)&FROM&runs"; do
    read -ra call <<<"$words"
    run stagewright "${call[@]//&/ }"
    expect_err 'warning: lost.stagewright: it was killed while recording and its log lost.stagewright-wal is not beside it, so its runs may be missing'
done
run stagewright runs lost.stagewright --json
expect_code 0
expect_json 0 runs
expect_err 'lost.stagewright-wal is not beside it'
if python3 -c 'import sqlite3' 2>/dev/null; then
    cp good.stagewright foreign.stagewright
    python3 -c 'import sqlite3; sqlite3.connect("foreign.stagewright").execute("CREATE TABLE mine(x)")'
    for words in 'report foreign.stagewright' 'export foreign.stagewright -o foreign.json' 'compare foreign.stagewright 1 2' 'runs foreign.stagewright' 'sql foreign.stagewright SELECT&1'; do
        read -ra call <<<"$words"
        run stagewright "${call[@]//&/ }"
        expect_code 0
        expect_same "$(grep -c 'foreign.stagewright: tables and indexes that stagewright did not make are not read: mine' err.txt)" 1
    done
    # verbs that open the file for something else, too: an answer to a lesson
    XDG_DATA_HOME=$PWD/data run stagewright lesson latency --runs foreign.stagewright
    expect_same "$(grep -c 'foreign.stagewright: tables and indexes' err.txt)" 1
    run stagewright report foreign.stagewright --json
    expect_json 0 damaged_blocks
fi
