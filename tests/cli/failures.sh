# Damaged input is exit code 3 and leaves the file alone; a full disk is exit code 5 and keeps complete steps.
# shellcheck shell=bash
run stagewright report nowhere.stagewright
expect_code 3
expect_err 'nowhere.stagewright'
expect_no_file nowhere.stagewright
: >empty.stagewright
printf 'this is not a run file, only text, and long enough to have a header of a hundred bytes and more if it were one\n' >text.stagewright
stagewright simulate -o good.stagewright >/dev/null 2>&1
head -c 3000 good.stagewright >short.stagewright
{ head -c 4096 good.stagewright; head -c 60000 /dev/urandom; } >noise.stagewright
sqlite_like=good.stagewright
expect_file "$sqlite_like"
for file in text short noise; do
    for verb in 'runs' 'report' 'compare'; do
        before=$(cksum <$file.stagewright)
        run stagewright $verb $file.stagewright
        expect_code 3
        expect_err "$file.stagewright"
        expect_same "$(cksum <$file.stagewright)" "$before"
    done
    run stagewright sql $file.stagewright 'SELECT 1 FROM runs'
    expect_code 3
    run stagewright simulate -o $file.stagewright
    expect_code 3
    run stagewright runs $file.stagewright --json
    expect_code 3
    expect_json 3 error code
done
run stagewright runs empty.stagewright
expect_that "an empty file is unreadable or holds no run" [ "$rc" = 3 -o "$rc" = 0 ]
# folders and what can't be written
run stagewright runs .
expect_code 3
run stagewright simulate -o no/such/folder/x.stagewright
expect_that "an unwritable place is reported" [ "$rc" = 3 -o "$rc" = 5 ]
expect_err 'no/such/folder'

# a disk that fills: a file may not grow beyond 300 kB
(
    ulimit -f 300
    rc=0
    "$STAGEWRIGHT" record -s 1f1b --model layers=4,hidden=32,heads=2,seq=16 --microbatch-size 1 -p 2 -m 4 --clock virtual \
        --steps 100000 -o full.stagewright </dev/null >out.txt 2>err.txt || rc=$?
    echo $rc >code.txt
)
rc=$(cat code.txt) out=$(cat out.txt) err=$(cat err.txt) last='record with a file limit'
expect_code 5
expect_err 'complete steps? of 1 run (is|are) kept'
run stagewright report full.stagewright --json
expect_code 0
expect_json interrupted state
expect_that "complete steps are there" [ "$(json steps)" -ge 1 ]
