# Readers that leave, full outputs, terminals and colours.
# shellcheck shell=bash
set +o pipefail
for verb in 'schedules' 'simulate -m 64' 'simulate --json'; do
    # shellcheck disable=SC2086
    "$STAGEWRIGHT" $verb 2>err.txt | head -c 10 >/dev/null
    code=${PIPESTATUS[0]} err=$(cat err.txt) out='' rc=$code last="$verb | head"
    expect_code 0
    expect_quiet_err
done
if [ -w /dev/full ]; then
    rc=0
    "$STAGEWRIGHT" schedules >/dev/full 2>err.txt || rc=$?
    err=$(cat err.txt) out='' last='schedules > /dev/full'
    expect_code 5
    expect_err 'standard output'
fi
# a standard error that is full or closed changes nothing: the codes, what is done, what is written elsewhere
tiny='--model layers=2,hidden=32,heads=2,seq=16 --microbatch-size 1 -p 2 -m 2 --clock virtual --steps 2'
number=0
while read -r code words; do
    for end in full closed; do
        [ $end = closed ] || [ -w /dev/full ] || continue
        number=$((number + 1))
        rc=0 last="stagewright ${words/OUT/out$number} with standard error $end" out='' err=''
        # shellcheck disable=SC2086
        if [ $end = full ]; then "$STAGEWRIGHT" ${words/OUT/out$number} >/dev/null 2>/dev/full </dev/null || rc=$?
        else "$STAGEWRIGHT" ${words/OUT/out$number} >/dev/null 2>&- </dev/null || rc=$?; fi
        expect_code "$code"
        case $words in *OUT*) expect_file out$number ;; esac
    done
done <<CALLS
3 runs nonexist
2 nosuch
2 simulate --nosuch
0 simulate -o OUT
0 simulate -o sim.stagewright
0 export sim.stagewright --format csv -o OUT
0 runs sim.stagewright --note 1 words
0 sweep -s 1f1b -p 2 -m 2 -o OUT
0 record -s 1f1b $tiny -o OUT
0 record -s 1f1b $tiny --progress jsonl -o OUT
2 record -s 1f1b $tiny --steps 0 -o never.stagewright
CALLS
expect_no_file never.stagewright
for ((i = 1; i <= number; ++i)); do # nothing that was to be said is in a file
    [ ! -e out$i ] || expect_that "out$i holds no messages" test "$(grep -ac 'stagewright: \|recorded in\|written to\|wrote ' out$i)" = 0
done
rc=0 last='simulate with everything closed'
"$STAGEWRIGHT" simulate -o shut.stagewright >&- 2>&- <&- || rc=$?
expect_code 5 # its answer can't be written
expect_file shut.stagewright
if [ -w /dev/full ] && [ -f "$(dirname "$STAGEWRIGHT")/libstagewright_mpi.so" ] && command -v mpirun >/dev/null; then
    # shellcheck disable=SC2086
    "$STAGEWRIGHT" record -s 1f1b ${tiny/--clock virtual/--clock wall} --processes -o processes.stagewright >/dev/null 2>/dev/full </dev/null || true
    run stagewright runs processes.stagewright --json
    expect_json complete runs 0 state
fi

# a recording outlives the reader of its progress
"$STAGEWRIGHT" record -s 1f1b --model layers=2,hidden=32,heads=2,seq=16 --microbatch-size 1 -p 2 -m 2 --clock virtual --steps 20 \
    --progress jsonl -o r.stagewright 2>&1 >/dev/null </dev/null | head -n 1 >/dev/null
rc=${PIPESTATUS[0]} out='' err='' last='record | head'
expect_code 0
run stagewright runs r.stagewright --json
expect_json complete runs 0 state
expect_json 21 runs 0 steps

# colour where there is a terminal, none with NO_COLOR
if ! script -qec true /dev/null </dev/null >/dev/null 2>&1; then
    echo "skipped: colour on a terminal (script can't make a pseudo-terminal here)"
else
    unset NO_COLOR
    export TERM=xterm-256color
    out=$(script -qec "$STAGEWRIGHT simulate" /dev/null </dev/null) err='' rc=0 last='simulate on a terminal'
    expect_out $'\033\\['
    out=$(NO_COLOR=1 script -qec "$STAGEWRIGHT simulate" /dev/null </dev/null) last='simulate on a terminal with NO_COLOR'
    expect_no_out $'\033\\['
fi
