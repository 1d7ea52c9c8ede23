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
