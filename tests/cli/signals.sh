# One signal ends every verb, with code 130; what failed leaves no file; a window ends cleanly.
# shellcheck shell=bash
stagewright simulate -s 1f1b -o run.stagewright >/dev/null 2>&1

# ended_by SIGNAL WORDS...: starts the program, sends the signal after 0.7 seconds, and expects that it ends by it
ended_by() {
    local signal=$1 pid i
    shift
    "$STAGEWRIGHT" "$@" </dev/null >out.txt 2>err.txt &
    pid=$!
    sleep 0.7
    expect_that 'it waits' kill -0 $pid
    kill -s "$signal" $pid || true
    for ((i = 0; i < 1200; ++i)); do # else it hangs
        kill -0 $pid 2>/dev/null || break
        sleep 0.05
    done
    kill -9 $pid 2>/dev/null || true
    rc=0
    wait $pid || rc=$?
    out=$(cat out.txt)
    err=$(cat err.txt)
    last="stagewright $*, then SIG$signal"
    expect_code 130
}

# a pipe without a reader
mkfifo pipe
for signal in TERM HUP INT; do
    ended_by $signal export run.stagewright --format chrome -o pipe
done
ended_by TERM export run.stagewright --format spans -o pipe
ended_by TERM export run.stagewright --format csv -o pipe
expect_that 'the pipe is one still' [ -p pipe ]

# a page of a large run, at parts of the time that it takes: no part of it is left, or all of it where the signal came too late
stagewright simulate -s 1f1b -p 64 -m 4096 -o large.stagewright >/dev/null 2>&1
began=$EPOCHREALTIME
stagewright export large.stagewright -o large.html >/dev/null 2>&1
whole=$(((${EPOCHREALTIME//./} - ${began//./}) / 1000))
stopped=0
for share in 10 25 50 75; do
    rm -f large.html
    "$STAGEWRIGHT" export large.stagewright -o large.html </dev/null >out.txt 2>err.txt &
    pid=$!
    sleep "$(printf '%d.%03d' $((whole * share / 100000)) $((whole * share / 100 % 1000)))"
    kill -s TERM $pid 2>/dev/null || true
    rc=0
    wait $pid || rc=$?
    out=$(cat out.txt)
    err=$(cat err.txt)
    last="stagewright export large.stagewright -o large.html, then SIGTERM at $share % of $whole ms"
    if [ $rc = 0 ]; then
        expect_file large.html
    else
        expect_code 130
        expect_that 'no part of the page is left' [ -z "$(compgen -G 'large.html*')" ]
        stopped=$((stopped + 1))
    fi
done
expect_that 'it was stopped at least once' [ $stopped -ge 1 ]

# a verb that asks for no stop
ended_by TERM sql run.stagewright 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n'
ended_by HUP sql run.stagewright 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n'

# a failed simulation leaves no file, and an existing one as it was
rc=0
(ulimit -f 16 && exec "$STAGEWRIGHT" simulate -s 1f1b -p 8 -m 512 -o new.stagewright >/dev/null 2>err.txt) || rc=$?
err=$(cat err.txt)
last='simulate with a limit of 16 KiB on files'
expect_code 5
expect_err 'file new.stagewright: '
expect_that 'no temporary name' [ "$(grep -c '\.part-' err.txt)" = 0 ]
expect_no_file new.stagewright
expect_that 'nothing is beside it' [ -z "$(compgen -G 'new.stagewright*')" ]
cp run.stagewright before
rc=0
(ulimit -f 16 && exec "$STAGEWRIGHT" simulate -s 1f1b -p 8 -m 512 -o run.stagewright >/dev/null 2>err.txt) || rc=$?
err=$(cat err.txt)
expect_code 5
run stagewright runs run.stagewright --json
expect_code 0
expect_json 1 runs
expect_that 'nothing is beside it' [ "$(compgen -G 'run.stagewright*')" = run.stagewright ]

# what another program called so, or is writing, stays
mkdir new.stagewright.part-aB3xYz new.stagewright.part-held00 new.stagewright.part-longer-name other.stagewright.part-aB3xYz
: >new.stagewright.part-aB3xYz/runs.stagewright
: >new.stagewright.part-aB3xYz/runs.stagewright-journal
flock new.stagewright.part-held00 sleep 100 &
pid=$!
for ((i = 0; i < 200; ++i)); do
    if ! flock -n new.stagewright.part-held00 true; then break; fi
    sleep 0.02
done
run stagewright simulate -s 1f1b -p 2 -m 4 -o new.stagewright
expect_code 0
expect_same "$(echo new.stagewright* other.stagewright*)" 'new.stagewright new.stagewright.part-aB3xYz new.stagewright.part-held00 new.stagewright.part-longer-name other.stagewright.part-aB3xYz'
expect_that "with what is in it" test -e new.stagewright.part-aB3xYz/runs.stagewright
pkill -P $pid 2>/dev/null || true
kill $pid 2>/dev/null || true
wait $pid 2>/dev/null || true
run stagewright simulate -s 1f1b -p 2 -m 4 -o new.stagewright
expect_code 0
expect_that 'it is still there' test -d new.stagewright.part-held00
rm -rf ./*.part-*

# the window: it keeps its session, and its next start does not speak of a crash
window=${STAGEWRIGHT%/*}/stagewright-ui
if [ -x "$window" ]; then
    export XDG_CONFIG_HOME=$PWD/config XDG_DATA_HOME=$PWD/data QT_QPA_PLATFORM=offscreen
    for signal in TERM HUP; do
        "$window" run.stagewright >out.txt 2>err.txt &
        pid=$!
        for ((i = 0; i < 200; ++i)); do
            if grep -q 'running=true' config/stagewright/*.conf 2>/dev/null; then break; fi
            sleep 0.1
        done
        expect_that 'the session says that it runs' grep -q 'running=true' config/stagewright/*.conf
        kill -s $signal $pid
        rc=0
        wait $pid || rc=$?
        last="stagewright-ui, then SIG$signal"
        err=$(cat err.txt)
        expect_code 130
        expect_that 'it ended properly' grep -q 'running=false' config/stagewright/*.conf
    done
fi
