# Ranks as processes: by one command and by mpirun, equal to threads; a killed or hung rank ends the run in time and is named.
# shellcheck shell=bash
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0" # Open MPI's plugins keep what they allocate, and are unloaded before leaks are named
model=(--model 'layers=4,hidden=32,heads=2,seq=16' --microbatch-size 2)

# without MPI: what to install
run env STAGEWRIGHT_MPI_MODULE=/nowhere/libstagewright_mpi.so "$STAGEWRIGHT" record --processes -p 2 "${model[@]}" -o none.stagewright
expect_code 4
expect_err 'need the MPI module; looked for /nowhere/libstagewright_mpi.so'
expect_err 'apt install openmpi-bin'
expect_no_file none.stagewright
run stagewright record --engine torch --processes
expect_code 2
expect_err '--engine torch can.t honour --processes'

module=$(dirname "$STAGEWRIGHT")/libstagewright_mpi.so
if [ ! -f "$module" ] || ! command -v mpirun >/dev/null; then
    echo "skipped: ranks as processes need libopenmpi-dev (to build) and openmpi-bin; $([ -f "$module" ] && echo 'mpirun is not on PATH' || echo 'the MPI module was not built')"
    [ $failures -eq 0 ] || finish
    exit 77
fi

run env PATH=/nowhere "$STAGEWRIGHT" record --processes -p 2 "${model[@]}" -o none.stagewright
expect_code 4
expect_err 'mpirun, which is not on PATH'

losses() { stagewright sql "$1" "SELECT step, printf('%.17g', value) FROM metrics WHERE name='loss' AND run=${2:-1}"; }

# one command, and mpirun: the same run as by threads
run stagewright record -s 1f1b,zb-h1 -p 2 -m 4 "${model[@]}" --steps 3 -o threads.stagewright
expect_code 0
run stagewright record -s 1f1b,zb-h1 -p 2 -m 4 "${model[@]}" --steps 3 --processes -o processes.stagewright
expect_code 0
expect_err 'started as: .*/mpirun .*--oversubscribe .*-n 2 '
expect_same "$(losses processes.stagewright)" "$(losses threads.stagewright)"
expect_same "$(losses processes.stagewright 2)" "$(losses threads.stagewright 2)"
root=()
[ "$(id -u)" != 0 ] || root=(--allow-run-as-root)
run mpirun -q --oversubscribe "${root[@]}" -n 2 "$STAGEWRIGHT" record -s 1f1b,zb-h1 -m 4 "${model[@]}" --steps 3 -o launched.stagewright
expect_code 0 # the ranks are MPI's
expect_same "$(losses launched.stagewright)" "$(losses threads.stagewright)"
expect_same "$(stagewright sql launched.stagewright 'SELECT count(*) FROM spans WHERE lane=0')" "$(stagewright sql threads.stagewright 'SELECT count(*) FROM spans WHERE lane=0')"
run stagewright report launched.stagewright
expect_code 0
expect_out 'processes +2 on .*; one clock'
run stagewright report launched.stagewright
expect_out '^ranks in 2 processes'
run stagewright runs launched.stagewright
expect_out 'ranks in 2 processes'
run stagewright compare threads.stagewright#1 launched.stagewright#1
expect_out '^B .*, ranks in 2 processes'
# what differs by default is said: ranks as processes have cores of their own, threads may share them
run stagewright record -s 1f1b -p 2 -m 4 "${model[@]}" --steps 3 --clock virtual -o virtual.stagewright
run stagewright record -s 1f1b -p 2 -m 4 "${model[@]}" --steps 3 --clock wall --processes -o wall.stagewright
run stagewright compare virtual.stagewright wall.stagewright
expect_out '^different setups'
expect_out '^clock +virtual +wall'
run stagewright record -p 4 -m 4 "${model[@]}" --steps 2 --processes --ranks-per-process 2 --clock virtual --json -o shared.stagewright
expect_code 0
expect_json 4 runs 0 ranks
run stagewright report shared.stagewright
expect_out 'virtual clock'
expect_out 'processes +2 on '

# what can't be
run stagewright record -p 3 "${model[@]}" --processes --ranks-per-process 2 -o none.stagewright
expect_code 2
expect_err '3 ranks can.t be spread evenly, 2 a process'
run mpirun -q --oversubscribe "${root[@]}" -n 3 "$STAGEWRIGHT" record -p 2 "${model[@]}" -o none.stagewright
expect_code 2
expect_err '2 ranks can.t be spread evenly over 3 processes'
expect_no_file none.stagewright

# losses and gradients bit for bit those of threads
for count in 2 3 4; do
    run stagewright check --processes $count -s 1f1b,zb-h1,interleaved-1f1b,pipedream -m 6 --json
    expect_code 0
    expect_json ON passed
    expect_json ON checks 0 repeat_equal
    expect_json ON checks 0 gradients_equal
    expect_json pipedream checks 3 schedule
done

# each side posts its own end; an order that waits for itself is explained from all records
run stagewright check --processes 3 -s 1f1b,zb-h1 -m 6 --sends rendezvous --lower grouped --json
expect_code 0
expect_json ON checks 1 repeat_equal
run stagewright record -s 1f1b -p 2 -m 4 "${model[@]}" --steps 2 --processes --sends rendezvous --lower just-in-time --timeout 2 -o hung.stagewright
if stagewright simulate -s 1f1b -p 2 -m 4 --sends rendezvous --lower just-in-time >/dev/null 2>&1; then
    expect_code 0
else
    expect_code 1
    expect_err 'no progress for 2 s'
    expect_out 'ranks that wait for each other'
fi

# clocks of their own: a rank whose clock is 1000 s ahead
if unshare --time --monotonic 1000 true 2>/dev/null; then
    run mpirun -q --oversubscribe "${root[@]}" -n 1 "$STAGEWRIGHT" record -p 2 -m 4 "${model[@]}" --steps 4 --clock wall -o clocks.stagewright : \
        -n 1 unshare --time --monotonic 1000 "$STAGEWRIGHT" record -p 2 -m 4 "${model[@]}" --steps 4 --clock wall -o clocks.stagewright
    expect_code 0
    run stagewright report clocks.stagewright
    expect_out 'clocks agree within [0-9.]+ (ns|µs|ms)'
    expect_that 'steps are shorter than the distance of the clocks' [ "$(stagewright sql clocks.stagewright "SELECT max(value) < 1e10 FROM metrics WHERE name='step_time_ns'" | tail -1 | tr -d ' ')" = 1 ]
    # the most that a message from another clock seems to come too early
    early=$(stagewright sql clocks.stagewright "SELECT max(a.end_ns - e.arrival_ns) FROM edges e JOIN spans a ON a.run=e.run AND a.span=e.from_span JOIN spans b ON b.run=e.run AND b.span=e.to_span WHERE e.kind='data' AND a.rank<>b.rank" | tail -1 | tr -d ' ')
    band=$(stagewright sql clocks.stagewright "SELECT CAST(max(value) AS INTEGER) FROM metrics WHERE name='clock_band_ns'" | tail -1 | tr -d ' ')
    expect_that "clocks agree within $band ns" [ "$band" -gt 0 ]
    expect_that "$early ns early, clocks agree within $band ns" [ "$early" -le $((2 * band)) ]
else
    echo 'a rank with a clock of its own: skipped, there are no time namespaces here'
fi

# shellcheck source=ending_ranks.bash
source "$SOURCE/ending_ranks.bash"
ending=killed.stagewright
TMPDIR=$(mktemp -d) # what is left in it is this test's
export TMPDIR
for rank in 1 2 0; do
    end_rank $rank KILL
    expect_code 5
    expect_err "rank $rank: process [0-9]+ on .* has ended, killed or crashed"
    note=$(stagewright runs killed.stagewright --json | tr ',' '\n' | grep '"note"')
    if [ $rank = 0 ]; then # who started the processes says what they were doing, from what each left behind
        expect_out '1f1b: what its ranks were doing'
        for other in 0 1 2; do expect_out "^  rank $other (is in|had ended|waits to) "; done
        expect_that "the run's note: $note" eval 'grep -q "what its ranks were doing; rank 0 " <<<"$note"'
    else
        expect_no_out 'what its ranks were doing'
    fi
    expect_that "steps kept: $steps" [ "${steps:-0}" -ge 5 ]
done
# of replicas that share their weights: complete steps are kept, rank and replica are named
end_rank 4 KILL --replicas 2 --shard weights --gather microbatch
expect_code 5
expect_err 'rank 4 of replica 1: process [0-9]+ on .* has ended, killed or crashed'
expect_that "steps kept: $steps" [ "${steps:-0}" -ge 5 ]
# rank 0 is killed while ranks wait for each other: the cycle is named all the same
rm -f circle.stagewright
"$STAGEWRIGHT" record -p 3 -m 6 "${model[@]}" --steps 9 --clock wall --processes --sends rendezvous --lower just-in-time --timeout 100 -o circle.stagewright </dev/null >out.txt 2>err.txt &
job=$!
for ((i = 0; i < 100; ++i)); do
    [ -z "$(process_of 0)" ] || [ ! -e circle.stagewright ] || break
    sleep 0.1
done
sleep 1
kill -9 "$(process_of 0)"
rc=0
wait "$job" || rc=$?
out=$(cat out.txt)
err=$(cat err.txt)
expect_code 5
expect_out '  rank 1 waits to send 1SEND_F1 \([0-9]+ bytes, message 1\) to rank 2'
expect_out '  ranks 1, 2 wait for each other'
expect_same "$(ls -d "$TMPDIR"/stagewright-flight-* 2>/dev/null)" ''
end_rank 1 STOP --timeout 2
expect_code 5
expect_err 'no progress for 2 s.*rank 1 \(process [0-9]+ on .* gives no sign of life\) hangs'
expect_that "steps kept: $steps" [ "${steps:-0}" -ge 5 ]
end_rank 0 STOP --timeout 2 # nobody but the others can see that
expect_code 5
expect_err 'rank 0: process [0-9]+ on .* gives no sign of life for 5 s'
expect_that "steps kept: $steps" [ "${steps:-0}" -ge 5 ]
end_rank 0 TERM
expect_code 130
expect_that "steps kept: $steps" [ "${steps:-0}" -ge 5 ]
expect_err '"message":"(1f1b: stopped in step [0-9]+|interrupted)"' # in a step, or between two

# a stop request to the one command, as by Ctrl+C
process_of() { echo "$job"; }
for signal in TERM INT; do
    end_rank starter $signal
    expect_code 130
    expect_that "steps kept: $steps" [ "${steps:-0}" -ge 5 ]
done
expect_gone 'killed\.stagewright'

# a process that is stopped or killed before all have met: named, and nothing waits for ever
for signal in STOP KILL; do
    "$STAGEWRIGHT" record -s 1f1b -p 3 -m 4 "${model[@]}" --steps 3 --processes --timeout 2 -o start.stagewright </dev/null >out.txt 2>err.txt &
    job=$!
    victim=''
    for ((i = 0; i < 400; ++i)); do
        victim=$(cat "$TMPDIR"/stagewright-flight-*/started-1 2>/dev/null || true)
        [ -z "$victim" ] || break
        sleep 0.005
    done
    kill -$signal "$victim"
    rc=0
    wait "$job" || rc=$?
    out=$(cat out.txt) err=$(cat err.txt) last="record --processes, process 1 gets $signal while it starts"
    expect_that 'an error' test "$rc" -ge 4
    # it may have met the others just before
    expect_err 'process 1 \([0-9]+\) (is stopped|was killed or crashed)|rank 1|mpirun'
done

# too few files at once for mpirun, which then waits for ever: a sentence, and nothing is left
for limit in 16 20 24 28 32; do
    rc=0
    (ulimit -n $limit && exec "$STAGEWRIGHT" record -s 1f1b -p 2 -m 4 "${model[@]}" --steps 3 --processes -o few.stagewright >out.txt 2>err.txt </dev/null) || rc=$?
    out=$(cat out.txt) err=$(cat err.txt) last="record --processes with ulimit -n $limit"
    expect_that 'an error' test "$rc" -ge 3 -a "$rc" -le 5
    expect_err 'too many (open files|files are open)|ulimit -n|MPI'
done
expect_gone 'few\.stagewright'
# a second signal ends the command at once, and mpirun soon after
(ulimit -n 28 && exec "$STAGEWRIGHT" record -s 1f1b -p 2 -m 4 "${model[@]}" --steps 3 --processes -o twice.stagewright >out.txt 2>err.txt </dev/null) &
job=$!
for ((i = 0; i < 200; ++i)); do [ -z "$(pgrep -P $job mpirun)" ] || break; sleep 0.05; done
kill -KILL $job
wait $job 2>/dev/null || true
for ((i = 0; i < 300; ++i)); do [ -n "$(pgrep -f 'mpirun.*twice\.stagewright')" ] || break; sleep 0.1; done
expect_same "$(pgrep -f 'mpirun.*twice\.stagewright')" ''
rm -rf "$TMPDIR"
