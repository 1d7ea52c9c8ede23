# Ctrl+C, SIGTERM and the end of stdin: complete steps are kept, exit code 130.
# shellcheck shell=bash
tiny=(--model 'layers=4,hidden=32,heads=2,seq=16' --microbatch-size 1 -p 2 -m 4 --clock virtual)

steps_told() { cat progress.txt 2>/dev/null | grep -c '"event":"progress"' || true; }

# stop_after SIGNAL FILE: records until three steps are told, then stops; code in $rc
stop_after() {
    local signal=$1 file=$2 pid i
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
    for ((i = 0; i < 600; ++i)); do
        [ "$(steps_told)" -lt 3 ] || break
        sleep 0.1
    done
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

# killed outright: what was complete is there
"$STAGEWRIGHT" record -s 1f1b "${tiny[@]}" --steps 1000000 --progress jsonl -o killed.stagewright </dev/null >out.txt 2>progress.txt &
pid=$!
for ((i = 0; i < 600; ++i)); do
    [ "$(steps_told)" -lt 3 ] || break
    sleep 0.1
done
kill -9 $pid
rc=0
wait $pid 2>/dev/null || rc=$?
run stagewright runs killed.stagewright --json
expect_code 0
expect_json interrupted runs 0 state
expect_that "complete steps are there" [ "$(json runs 0 steps)" -ge 2 ]
run stagewright report killed.stagewright --json
expect_code 0
