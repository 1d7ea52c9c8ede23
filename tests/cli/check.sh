# check verifies gradients; its table and its object agree.
# shellcheck shell=bash
run stagewright check -p 2 -m 4 --model layers=4,hidden=16,heads=2,seq=8 --microbatch-size 1 --steps 1 --json
expect_code 0
expect_json ON passed
expect_that "every schedule was checked" [ "$(json checks)" -ge 4 ]
expect_json ON checks 0 gradients_equal
expect_json ON checks 0 losses_equal
expect_json 0.0 checks 0 gradient_error
expect_json ON against_double 0 passed
expect_json "3 layers of 16, sequence 8" against_double 0 model
# Beside them a grid: three schedules with each level of shared state, over two and three replicas.
expect_same 12 "$(grep -c '"replicas": 2' <<<"$out")"
expect_same 12 "$(grep -c '"replicas": 3' <<<"$out")"
for level in none optimizer gradients weights; do expect_same 6 "$(grep -c "\"shard\": \"$level" <<<"$out")"; done
grid=$(($(json checks) - 24))
for ((i = grid; i < grid + 24; i++)); do
    expect_json ON checks $i weights_equal
    expect_that "gradients were reduced" [ "$(json checks $i traffic 0 reduced_bytes)" -gt 0 ]
done
expect_json 1f1b checks $((grid + 3)) schedule
expect_json 'weights:shares=2/3,1/3' checks $((grid + 3)) shard
expect_json 'batch:prefetch=1' checks $((grid + 3)) gather
expect_json 'overlapped:bucket=4000B' checks $((grid + 3)) reduce
run stagewright check -p 2 -m 4 --model layers=4,hidden=16,heads=2,seq=8 --microbatch-size 1 --steps 1
expect_code 0
expect_out '^bfs .* r=3 +weights +microbatch:prefetch=1 +microbatch +cpu .* pass$'
run stagewright check -s zb-h1 -p 2 -m 4 --model layers=4,hidden=16,heads=2,seq=8 --microbatch-size 1 --steps 1
expect_code 0
expect_out '^zb-h1 .*pass'
expect_out 'all pass'

# Messages that never arrive are refused with what would let them.
run stagewright check -s interleaved-1f1b -p 2 -m 4 --model layers=4,hidden=16,heads=2,seq=8 --lower grouped --sends rendezvous --receives blocking
expect_code 1
expect_err 'deadlock of 2 ranks: rank 0 is at op [0-9]+ \(2SEND_B0\)'
expect_err 'it works with --sends buffered'
run stagewright check -s interleaved-1f1b -p 2 -m 4 --model layers=4,hidden=16,heads=2,seq=8 --microbatch-size 1 --steps 1 --lower grouped --sends buffered
expect_code 0

# An asynchronous schedule: against its own rule, and how far it is from synchronous training.
printf '%s\n' '# weights=stashed' '0F0,0F1,0B0,0OPT,0F2,0B1,0OPT,0B2,0OPT' '1F0,1B0,1OPT,1F1,1B1,1OPT,1F2,1B2,1OPT' > stashed.csv
run stagewright check -s stashed.csv --model layers=4,hidden=16,heads=2,seq=8
expect_code 0
expect_out 'lag at most 1 0 updates by stage'
expect_out 'from synchronous training'
run stagewright check -s stashed.csv --model layers=4,hidden=16,heads=2,seq=8 --json
expect_json stashed checks 0 weights
expect_that "the deviation is a number above 0" [ "$(json checks 0 deviation)" != null ]
# Every report of such a run says so.
run stagewright record -s stashed.csv --model layers=4,hidden=16,heads=2,seq=8 --steps 2 --clock virtual -o stale.stagewright
expect_code 0
expect_out 'stashed: .* from synchronous training'
run stagewright report stale.stagewright 1
expect_out 'stashed: .* from synchronous training'
run stagewright report stale.stagewright 1 --json
expect_that "the report has the deviation" [ "$(json deviation)" != null ]
expect_that "rank 0 holds two versions of its weights" [ "$(json weight_bytes 0)" -gt "$(json weight_bytes 1)" ]

# Recomputation and every optimizer.
small='--model layers=4,hidden=16,heads=2,seq=8 --steps 2'
for option in '--recompute all' '--recompute all --hoist' '--recompute 0-1 --recompute-layers 1-2' '--optimizer sgd --momentum 0.9 --lr 0.05' \
    '--optimizer sgd --lr 0.05 --clip 0.02' '--weight-decay 0.5 --clip 0.02'; do
    # shellcheck disable=SC2086
    run stagewright check $small -p 2 -m 4 $option
    expect_code 0
    expect_out '^all pass'
    expect_out 'chimera:join=halving .* pass$'
done
run stagewright check --momentum 0.9
expect_code 2
expect_err 'adamw has its own moments'

# Under rendezvous, channels, links and disturbances, too; schedules that wait for themselves there are skipped, and refused if named.
# shellcheck disable=SC2086
run stagewright check $small -p 2 -m 4 --sends rendezvous --link 20us,1GB/s
expect_code 0
expect_out '^all pass'
expect_out 'gpipe .* pass$'
expect_out '1f1b skipped: .*deadlock'
# shellcheck disable=SC2086
run stagewright check $small -p 2 -m 4 -s 1f1b --sends rendezvous
expect_code 1
expect_err '1f1b: .*deadlock'
# shellcheck disable=SC2086
run stagewright check $small -p 2 -m 4 -s 1f1b -s zb-h1 --sends rendezvous --lower pytorch --channels 1 --perturb rank=1:1.5,link=0-1:0.5,launch=0:0.2
expect_code 0
expect_out '1f1b .* pass$'
expect_out 'zb-h1 .* pass$'
run stagewright check -s 1f1b --perturb rank=0:0.5
expect_code 2
expect_err 'real ranks can only be slowed'
# What record refuses, too: a rank can't be made faster, and a step has to be there.
run stagewright check -p 2 -m 4 -s gpipe --perturb transient=1@1:0.5
expect_code 2
expect_err "rank 1 can't be made faster, 0.5 is below 1"
run stagewright check -p 2 -m 4 -s gpipe --steps 2 --perturb transient=1@3:2
expect_code 2
expect_err 'step 3 of 2'

# bf16 on the processor: near fp32, and the bits of the replay; without oneDNN a sentence that names the package.
mkdir none
: > none/libdnnl.so.3
: > none/libdnnl.so.2
# shellcheck disable=SC2086
run env LD_LIBRARY_PATH="$PWD/none:${LD_LIBRARY_PATH:-}" "$STAGEWRIGHT" check --backend cpu --precision bf16 $small -s 1f1b -p 2 -m 4
expect_code 4
expect_err 'bf16 on the CPU needs oneDNN, which is not installed'
expect_err 'apt-get install libdnnl2'
# shellcheck disable=SC2086
run stagewright check --backend cpu --precision bf16 $small -s 1f1b,zbv -p 2 -m 4
if grep -qE 'has no bf16 GEMMs|which is not installed' <<<"$err"; then
    expect_code 4
else
    expect_code 0
    expect_out '^linear, weight gradient +cpu +bf16 .* pass$'
    expect_out '^cpu against cpu in fp32, 10 steps +bf16 .* pass$'
    expect_out '^zbv .* pass$'
    expect_out 'all pass'
fi

# only the embedding or only the loss on a stage
run stagewright check -s 1f1b -p 4 -m 4 --stage-layers 0,3,3,0 --backend cpu --json
expect_code 0
expect_json ON passed
run stagewright check -s 1f1b -p 2 --stage-layers 0,3,3,0 --backend cpu
expect_code 2
expect_err '\-\-stage-layers has 4 numbers, 1f1b has 2 stages'
run stagewright check -s 1f1b -p 4 --model layers=8,hidden=32,heads=2,seq=16 --stage-layers 0,3,3,0 --backend cpu
expect_code 2
