# What would help: twelve disturbances, simulated and recorded. The injected one is the first or second lever; the hit rate is printed.
# shellcheck shell=bash
hits=0
tried=0
# ranked LEVER KEY…: its place among the levers of the object at that path, from 1; 0: not there
ranked() {
    local lever=$1 place=0 found
    shift
    while found=$(json "$@" levers "$place" lever 2>/dev/null) && [ -n "$found" ] && [ "$place" -lt 20 ]; do
        place=$((place + 1))
        [ "$found" = "$lever" ] && printf '%s' "$place" && return
    done
    printf 0
}
# helps NAME LEVER: the object in out.txt names the injected lever first or second
helps() {
    local name=$1 lever=$2 place
    expect_code 0
    place=$(ranked "$lever")
    tried=$((tried + 1))
    if [ "$place" -ge 1 ] && [ "$place" -le 2 ]; then hits=$((hits + 1)); fi
    printf '%-34s %-14s place %s   first: %s\n' "$name" "$lever" "$place" "$(json levers 0 lever | head -1)"
    expect_that "$name: $lever first or second, it is at place $place" [ "$place" -ge 1 -a "$place" -le 2 ]
}
simulated() {
    local name=$1 lever=$2
    shift 2
    run stagewright simulate -p 4 -m 8 --json --log-level error "$@"
    helps "$name, simulated" "$lever"
}
# recorded NAME LEVER OPTION…: with RANKS ranks on the clock CLOCK and the head of VOCAB; the report is of STEP, else of the representative one.
# Durations are measured, and what else runs on the machine may disturb more than what is injected: the best of three recordings counts.
recorded() {
    local name=$1 lever=$2 try place
    shift 2
    for try in 1 2 3; do
        rm -f r.stagewright
        run stagewright record -p "${RANKS:-4}" -m 8 --clock "${CLOCK:-virtual}" --steps 6 --model "layers=8,hidden=64,heads=2,seq=32,vocab=${VOCAB:-256}" \
            -o r.stagewright --log-level error "$@"
        expect_code 0
        run stagewright report r.stagewright ${STEP:+--step "$STEP"} --json
        place=$(ranked "$lever")
        [ "$place" -ge 1 ] && [ "$place" -le 2 ] && break
    done
    helps "$name, recorded" "$lever"
}
cat >head.json <<'END_OF_COSTS'
{"format": "stagewright-costs", "version": 1, "source": "fitted", "duration_ns": {"F": [1000, 1000, 1000, 1600], "B": [2000, 2000, 2000, 3200]},
 "stage_bytes": [{}, {}, {}, {}]}
END_OF_COSTS

simulated 'slow rank' rank:2 -s 1f1b --perturb rank=2:1.5
simulated 'slow rank of two chunks' rank:2 -s interleaved-1f1b --chunks 2 --perturb rank=2:1.5
simulated 'slow link' link:1-2 -s 1f1b --comm 0.1 --perturb link=1-2:2
simulated 'launch delay' launch:1 -s 1f1b --perturb launch=1:0.5
simulated 'latency' links -s 1f1b --comm 0.5
simulated 'uneven layers' stages -s 1f1b --stage-layers 1,1,1,5
simulated 'heavy head' stages -s 1f1b --costs head.json
simulated 'recomputation' recompute -s 1f1b --recompute all
simulated 'rendezvous' sends -s 1f1b --lower rank-parity --sends rendezvous
simulated 'channels' channels -s gpipe --comm 2 --channels 1
simulated 'memory cap' cap -s zb-auto --memory-limit 2
simulated 'transient straggler' transient:2@1 -s 1f1b --perturb transient=2@1:3
simulated 'jitter' jitter -s 1f1b --perturb jitter=0.4

recorded 'slow rank' rank:2 -s 1f1b --perturb rank=2:3
recorded 'slow rank of two chunks' rank:2 -s interleaved-1f1b --chunks 2 --perturb rank=2:3
recorded 'slow link' link:1-2 -s 1f1b --perturb link=1-2:4
recorded 'launch delay' launch:1 -s 1f1b --perturb launch=1:1
recorded 'latency' links -s 1f1b --comm 1
recorded 'uneven layers' stages -s 1f1b --stage-layers 1,1,1,5
VOCAB=4096 recorded 'heavy head' stages -s 1f1b --stage-layers 2,2,2,2
recorded 'recomputation' recompute -s 1f1b --recompute all
recorded 'memory cap' cap -s zb-auto:limit=0.5 --memory-limit 2
STEP=4 recorded 'transient straggler' transient:2@4 -s 1f1b --perturb transient=2@4:4
recorded 'jitter' jitter -s 1f1b --perturb jitter=0.5
RANKS=2 CLOCK=wall recorded 'rendezvous' sends -s gpipe --comm 2 --sends rendezvous
RANKS=2 CLOCK=wall recorded 'channels' channels -s gpipe --comm 3 --channels 1
printf 'injected causes named first or second: %s of %s\n' "$hits" "$tried"

# Lists with groups of messages, recorded under rendezvous: the run keeps the rule that makes them, so that levers don't lower it just in time, which hangs.
stagewright simulate -s interleaved-1f1b -p 2 -m 4 --chunks 2 --lower batched --sends rendezvous -o lists.stagewright >/dev/null 2>&1
stagewright export lists.stagewright#1 --format csv -o batched.csv >/dev/null 2>&1
expect_that 'the lists have groups' grep -q GROUPED batched.csv
run stagewright record -s batched.csv --sends rendezvous --clock wall --steps 2 --model layers=4,hidden=16,heads=2,seq=4 --microbatch-size 1 -o batched.stagewright
expect_code 0
run stagewright report batched.stagewright
expect_code 0
expect_out 'buffered sends, which never wait'
expect_that 'the run can be simulated again' eval '! grep -q "not simulated" out.txt'
