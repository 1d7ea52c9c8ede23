# Ctrl+C, SIGTERM, SIGHUP and the end of stdin: complete steps are kept, exit code 130.
# shellcheck shell=bash
tiny=(--model 'layers=4,hidden=32,heads=2,seq=16' --microbatch-size 1 -p 2 -m 4 --clock virtual)

more=()

steps_told() { cat progress.txt 2>/dev/null | grep -c '"event":"progress"' || true; }

# Waits until the started recording reports so many steps. The output of an earlier one is removed before the start, for the
# shell empties the file only once the new program is on its way.
wait_for_steps() {
    local i
    for ((i = 0; i < 600; ++i)); do
        [ "$(steps_told)" -lt "$1" ] || return 0
        sleep 0.1
    done
}

# stop_after SIGNAL FILE [STEPS]: records two schedules until STEPS steps are reported (4: each has a measured one), then stops;
# code in $rc. Options in `more`
stop_after() {
    local signal=$1 file=$2 pid
    rm -f progress.txt fifo
    if [ "$signal" = EOF ]; then
        mkfifo fifo
        (sleep 100 >fifo & echo $! >holder.pid)
        "$STAGEWRIGHT" record -s 1f1b,zb-h1 "${tiny[@]}" "${more[@]}" --steps 1000000 --progress jsonl --stdin-control -o "$file" <fifo >out.txt 2>progress.txt &
    else
        # a background job of a script ignores SIGINT; a program that catches it hears it again
        "$STAGEWRIGHT" record -s 1f1b,zb-h1 "${tiny[@]}" "${more[@]}" --steps 1000000 --progress jsonl -o "$file" </dev/null >out.txt 2>progress.txt &
    fi
    pid=$!
    wait_for_steps "${3:-4}"
    if [ "$signal" = EOF ]; then kill "$(cat holder.pid)"; else kill -s "$signal" $pid; fi
    rc=0
    wait $pid || rc=$?
    out=$(cat out.txt)
    err=$(tail -n 3 progress.txt)
    last="record, then $signal"
}

for signal in INT TERM HUP EOF; do
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

expect_that "progress reports how full and busy the device is" grep -Eq '"devices":\[\{"name":"processor","used_bytes":[1-9][0-9]*,"total_bytes":[1-9][0-9]*,"busy":[0-9.]+\}\]' progress.txt

# killed: the complete steps are there
rm -f progress.txt
"$STAGEWRIGHT" record -s 1f1b "${tiny[@]}" "${more[@]}" --steps 1000000 --progress jsonl -o killed.stagewright </dev/null >out.txt 2>progress.txt &
pid=$!
wait_for_steps 3
kill -9 $pid
rc=0
wait $pid 2>/dev/null || rc=$?
run stagewright runs killed.stagewright --json
expect_code 0
expect_json interrupted runs 0 state
expect_that "complete steps are there" [ "$(json runs 0 steps)" -ge 2 ]
run stagewright report killed.stagewright --json
expect_code 0

# stopped in their warm-up: a good file stays as it was, a new one is not left behind
run stagewright record -s 1f1b "${tiny[@]}" --steps 2 -o good.stagewright
expect_code 0
more=(--warmup 1000000)
stop_after INT good.stagewright 3
expect_code 130
expect_err 'no measured step was complete, nothing is kept'
run stagewright runs good.stagewright --json
expect_json 1 runs
stop_after INT new.stagewright 3
expect_code 130
expect_no_file new.stagewright
more=(--warmup 1000000 --keep-warmup)
stop_after INT asked.stagewright 3
expect_code 130
run stagewright runs asked.stagewright --json
expect_json 2 runs

# killed in its warm-up: it is not listed, and the next recording removes it
rm -f progress.txt
"$STAGEWRIGHT" record -s 1f1b "${tiny[@]}" --warmup 1000000 --progress jsonl -o good.stagewright </dev/null >out.txt 2>progress.txt &
pid=$!
wait_for_steps 2
kill -9 $pid
rc=0
wait $pid 2>/dev/null || rc=$?
run stagewright runs good.stagewright --json
expect_code 0
expect_json 1 runs
run stagewright record -s 1f1b "${tiny[@]}" --steps 2 -o good.stagewright
expect_code 0
run stagewright sql good.stagewright 'SELECT count(*) AS n FROM run' --json
expect_code 0
expect_json 2 rows 0 0

# two runs with one name can be distinguished; the name alone is the newest
run stagewright runs good.stagewright --json
expect_json 1f1b runs 0 name
expect_json '1f1b (2)' runs 1 name
run stagewright report good.stagewright 1f1b --json
expect_json '1f1b (2)' name
run stagewright report good.stagewright '1f1b (2)' --json
expect_json '1f1b (2)' name
