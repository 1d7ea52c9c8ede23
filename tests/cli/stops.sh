# Ctrl+C in the middle of an export or an import: exit code 130, existing files are unchanged, no partial file is left.
# shellcheck shell=bash

# Everything here but what the test itself writes: names and sizes.
listing() { find . -path ./output -prune -o -printf '%p %s\n' | sort; }

half_written() { compgen -G 'result*.part-*' >/dev/null; }
reading() { grep -q '"event":"progress"' output/err.txt 2>/dev/null; }

# stop_when CONDITION WORDS...: runs the program until the condition holds, freezes it, sends SIGINT and lets it continue. rc is 0
# if it finished before.
stop_when() {
    local condition=$1 pid i
    shift
    mkdir -p output
    rm -f output/*
    # a background job of a script ignores SIGINT; a program that catches it hears it again
    "$STAGEWRIGHT" "$@" </dev/null >output/out.txt 2>output/err.txt &
    pid=$!
    for ((i = 0; i < 20000; ++i)); do
        if $condition || ! kill -0 $pid 2>/dev/null; then break; fi
        sleep 0.002
    done
    kill -STOP $pid 2>/dev/null || true
    kill -INT $pid 2>/dev/null || true
    kill -CONT $pid 2>/dev/null || true
    rc=0
    wait $pid || rc=$?
    out=$(cat output/out.txt)
    err=$(cat output/err.txt)
    last="stagewright $*, then SIGINT"
}

# made SIZE: a run of SIZE ranks, and its traces
made() {
    [ -f "run$1.stagewright" ] && return
    stagewright simulate --schedule 1f1b -p "$1" -m 8192 -o "run$1.stagewright" >/dev/null 2>&1
    stagewright export "run$1.stagewright" --format kineto -o "traces$1" >/dev/null 2>&1
}

# stopped CONDITION WORDS...: with @ for a size that grows until the signal came in the middle
stopped() {
    local size before condition=$1
    shift
    for size in 8 32 128; do
        made $size
        before=$(listing)
        stop_when "$condition" "${@//@/$size}"
        [ $rc -eq 0 ] || break
        echo "done before the signal came: $last"
        rm -rf result.*
        [ ! -f kept ] || cp kept result.stagewright
    done
    expect_code 130
    expect_err cancelled
    expect_same "$(listing)" "$before"
}

stopped half_written export run@.stagewright --format perfetto -o result.pftrace
stopped half_written export run@.stagewright --format chrome -o result.json
stopped half_written export run@.stagewright --format kineto -o result.traces
stopped half_written export run@.stagewright --format spans -o result.csv
stopped reading import traces@ --progress jsonl -o result.stagewright
stopped half_written import traces@ -o result.stagewright

# an existing file is unchanged, and takes the runs if nothing stops it
stagewright simulate --schedule zb-h1 -o result.stagewright >/dev/null 2>&1
cp result.stagewright kept
stopped half_written import traces@ -o result.stagewright
expect_that 'the file is as it was' cmp kept result.stagewright
run stagewright import traces8 -o result.stagewright --json
expect_code 0
expect_json 2 runs 0 run
run stagewright runs result.stagewright --json
expect_json 2 runs

# a change of a file: it is all there or not at all, says so if it is, and neither a lock nor a journal stays. Both may come first, the signal and the end.
changing() { [ -e result.stagewright-lock ]; }
names_of() { find . -path ./output -prune -o -printf '%p\n' | sort; }
# changed FROM BEFORE AFTER WORDS...: result.stagewright is a copy of FROM with BEFORE runs; with the change it has AFTER. The header of a file whose change was
# taken back differs, for it names the journal.
changed() {
    local from=$1 before=$2 after=$3 names count code call said
    shift 3
    rm -f result.*
    cp "$from" result.stagewright
    names=$(names_of)
    stop_when changing "$@"
    expect_that 'a code of an end or of a stop' [ $rc = 0 -o $rc = 130 ]
    expect_same "$(names_of)" "$names"
    code=$rc call=$last said=$err
    run stagewright runs result.stagewright --verify --json
    expect_code 0
    count=$(grep -c '"run":' <<<"$out" || true)
    rc=$code last=$call err=$said
    if [ "$rc" = 130 ] && [ "$count" = "$before" ]; then
        expect_err cancelled
    else
        echo "done before the signal came: $last"
        expect_same "$count" "$after"
    fi
}
stagewright simulate --schedule zb-h1 -o small.stagewright >/dev/null 2>&1
for size in 8 32; do
    made $size
    changed small.stagewright 1 2 runs result.stagewright --merge run$size.stagewright
    changed run$size.stagewright 1 1 runs result.stagewright --compact
    changed run$size.stagewright 1 0 runs result.stagewright --delete 1
done
rm -f result.*

# an unwritable output is reported before the traces are read
run stagewright import traces8 --progress jsonl -o no/such/folder/result.stagewright
expect_code 3
expect_err "can't be written to"
expect_that 'nothing was read' test -z "$(grep '"event":"progress"' <<<"$err")"
run stagewright import traces8 -o traces8
expect_code 3
expect_err 'is a folder, not a run file'
