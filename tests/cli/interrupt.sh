# Ctrl+C, SIGTERM and the end of stdin: complete steps are kept, exit code 130.
# shellcheck shell=bash
tiny=(--model 'layers=4,hidden=32,heads=2,seq=16' --microbatch-size 1 -p 2 -m 4 --clock virtual)

steps_told() { cat progress.txt 2>/dev/null | grep -c '"event":"progress"' || true; }

# Until the recording that was started tells of its third step. What an earlier one told is removed before the start, for the
# shell empties the file only once the new program is on its way.
wait_for_steps() {
    local i
    for ((i = 0; i < 600; ++i)); do
        [ "$(steps_told)" -lt 3 ] || return 0
        sleep 0.1
    done
}

# stop_after SIGNAL FILE: records until three steps are told, then stops; code in $rc
stop_after() {
    local signal=$1 file=$2 pid
    rm -f progress.txt fifo
    if [ "$signal" = EOF ]; then
        mkfifo fifo
        (sleep 100 >fifo & echo $! >holder.pid)
        "$STAGEWRIGHT" record -s 1f1b,zb-h1 "${tiny[@]}" --steps 1000000 --progress jsonl --stdin-control -o "$file" <fifo >out.txt 2>progress.txt &
    else
        # a background job of a script ignores SIGINT; a program that catches it hears it again
        "$STAGEWRIGHT" record -s 1f1b,zb-h1 "${tiny[@]}" --steps 1000000 --progress jsonl -o "$file" </dev/null >out.txt 2>progress.txt &
    fi
    pid=$!
    wait_for_steps
    if [ "$signal" = EOF ]; then kill "$(cat holder.pid)"; else kill -s "$signal" $pid; fi
    rc=0
    wait $pid || rc=$?
    out=$(cat out.txt)
    err=$(tail -n 3 progress.txt)
    last="record, then $signal"
}

for signal in INT TERM EOF; do
    stop_after $signal "$signal.stagewright"
    expect_code 130
    expect_err '"event":"error","code":130'
    expect_err 'complete steps of 2 runs are kept'
    run stagewright runs $signal.stagewright --json
    expect_code 0
    expect_json 2 runs
    expect_json interrupted runs 0 state
    expect_that "complete steps are there" [ "$(json runs 0 steps)" -ge 1 ]
    run stagewright report $signal.stagewright 1 --json
    expect_code 0
    expect_same "$(json loss)" "$(json steps)"
done

expect_that "progress tells how full and busy the device is" grep -Eq '"devices":\[\{"name":"processor","used_bytes":[1-9][0-9]*,"total_bytes":[1-9][0-9]*,"busy":[0-9.]+\}\]' progress.txt

# killed outright: what was complete is there
rm -f progress.txt
"$STAGEWRIGHT" record -s 1f1b "${tiny[@]}" --steps 1000000 --progress jsonl -o killed.stagewright </dev/null >out.txt 2>progress.txt &
pid=$!
wait_for_steps
kill -9 $pid
rc=0
wait $pid 2>/dev/null || rc=$?
run stagewright runs killed.stagewright --json
expect_code 0
expect_json interrupted runs 0 state
expect_that "complete steps are there" [ "$(json runs 0 steps)" -ge 2 ]
run stagewright report killed.stagewright --json
expect_code 0
