# Plans: optimal ones proven, caps kept, the curve, what is written, wrong usage, Ctrl+C.
# shellcheck shell=bash
run stagewright plan -p 4 -m 8 --memory-limit 4 --json
expect_code 0
expect_json 27.0 makespan
expect_json 27.0 bound
expect_json ON optimal
expect_json 4 peak_activation
expect_keys . schedule ranks stages microbatches chunks time_unit objective span bubble_fraction bubble_rate_span memory_limit gap \
    proven_by bound_limit found_by orders_timed relaxations_solved interrupted csv

run stagewright plan -p 4 -m 8 --objective span --json
expect_code 0
expect_json 24.0 span
expect_json ON optimal
expect_json null memory_limit

run stagewright plan -p 4 -m 8 --memory-limit 3
expect_code 0
expect_out 'time 31, span 31, peak activation 3 3 3 3'
expect_out 'optimal: no order within the caps is shorter'
expect_out '^rank 3'

# two stages per rank: what V-Min needs at its memory is proven to be the least
run stagewright plan -p 4 -m 8 --chunks 2 --memory-limit 2 --json
expect_code 0
expect_json 29.5 makespan
expect_json ON optimal

# one limit per rank; the peaks keep them
run stagewright plan -p 3 -m 6 --memory-limit 3,2,1 --json
expect_code 0
for rank in 0 1 2; do
    expect_that "rank $rank keeps its limit" number_between "$(json peak_activation $rank)" 1 $((3 - rank))
done

# uneven costs; what is written is the plan, and simulates to the same time
run stagewright plan -p 3 -m 6 --costs F=1,I=1.5,W=0.5 --comm 0.25 --memory-limit 3 --budget 2 -o plan.csv --json
expect_code 0
time=$(json makespan)
expect_file plan.csv
run stagewright validate plan.csv
expect_code 0
run stagewright simulate -s plan.csv --costs F=1,I=1.5,W=0.5 --comm 0.25 --memory-limit 3 --json
expect_code 0
expect_json "$time" makespan
run stagewright plan -p 2 -m 4 -o plan.stagewright
expect_code 0
expect_err 'stored as plan.stagewright#1'
run stagewright runs plan.stagewright --json
expect_json plan runs 0 name

run stagewright plan -p 3 -m 6 --pareto 3 --budget 2 --json
expect_code 0
expect_json 3 curve
expect_json 1.0 curve 0 cap
expect_json ON curve 2 optimal
expect_that "the library is there" [ "$(json library)" -ge 4 ]
run stagewright plan -p 3 -m 6 --pareto 6 --budget 2
expect_code 0
expect_out '^zb-h1 .*on it'
expect_out '^interleaved-1f1b .*other stages or ops'
expect_out '^pipedream .*stale weights'
expect_err 'not compared: '

# I adds to the memory, a full backward does not: what is called optimal is, and at one activation forwards and backwards take turns
printf '%s' '{"format":"stagewright-costs","version":1,"source":"fitted","origin":"by hand","stage_bytes":[{"activation":1000,"freed_at_input":-300},
{"activation":1000,"freed_at_input":-300}],"duration_ns":{"F":[1000,1000],"I":[1000,1000],"W":[1000,1000],"B":[2000,2000]}}' >adds.json
run stagewright plan -p 2 -m 4 --costs adds.json --memory-limit 2000B --json
expect_code 0
expect_json 14000.0 makespan
expect_json ON optimal
run stagewright plan -p 2 -m 4 --costs adds.json --memory-limit 1000B --json
expect_code 0
expect_json 24000.0 makespan
expect_json ON optimal

# a building block, edited
run stagewright schedules v-half -p 4 --block
expect_code 0
expect_out '^block v-half devices=4 chunks=2 interval=6$'
cp out.txt mine.block
run stagewright simulate -s mine.block -m 8 --json
expect_code 0
expect_json 26.5 makespan
sed -i 's/^2: F0=4 /2: F0=2 /' mine.block
run stagewright simulate -s mine.block -m 8
expect_code 1
expect_err 'mine.block: block v-half, device 2: F0 at 2'
printf 'block x\n0: Z=1\n' >mine.block
run stagewright simulate -s mine.block
expect_code 3
run stagewright schedules gpipe --block
expect_code 2
expect_err 'v-min, v-half, v-zb and 1f1b have one'

# zb-auto is generated for the costs it is timed with
run stagewright simulate -s zb-auto -p 4 -m 12 --costs F=5,I=6,W=4 --free-at-input 0.5 --json
expect_code 0
made=$(json span)
run stagewright schedules zb-auto -p 4 -m 12 --csv
cp out.txt unit.csv
run stagewright simulate -s unit.csv --costs F=5,I=6,W=4 --free-at-input 0.5 --json
expect_that "it is no longer than the one made for unit costs" number_between "$made" 180 "$(json span)"

# wrong usage
run stagewright plan -p 4 -m 8 --memory-limit 0.5
expect_code 1
expect_err 'rank 0: a cap of 0.5 is below the 1 that one microbatch needs'
expect_err 'the smallest cap that works is 1'
# in bytes both are written as sizes, and the smallest to the byte
echo '{"format": "stagewright-costs", "version": 1, "duration_ns": {"F": [1000, 1000], "I": [1000, 1000], "W": [1000, 1000]}, "stage_bytes": [{"activation": 2167810}, {"activation": 2167810}]}' >sized.json
run stagewright plan -p 2 -m 4 --costs sized.json --memory-limit 2MB
expect_err 'a cap of 1.91 MiB is below the 2.07 MiB that one microbatch needs'
expect_err 'the smallest cap that works is 2167810B'
run stagewright plan -p 4 --memory-limit 1,2
expect_code 2
expect_err '2 limits for 4 ranks'
run stagewright plan -p 4 --memory-limit 4MB
expect_code 2
run stagewright plan --chunks 3
expect_code 2
run stagewright plan --objective bubble
expect_code 2
expect_err 'takes one of makespan and span'
run stagewright plan --pareto 4 -o x.csv
expect_code 2
expect_no_file x.csv
run stagewright plan -o nowhere/x.csv
expect_code 3

# Ctrl+C: the best so far, stored, exit code 130
reports() { cat progress.txt 2>/dev/null | grep -c '"event":"progress"' || true; }
rm -f progress.txt
"$STAGEWRIGHT" plan -p 4 -m 24 --chunks 2 --memory-limit 1.5 --budget 600 --progress jsonl -o best.csv --json >out.txt 2>progress.txt </dev/null &
pid=$!
for ((i = 0; i < 300; ++i)); do
    [ "$(reports)" -lt 3 ] || break
    sleep 0.1
done
kill -s TERM $pid
rc=0
wait $pid || rc=$?
last='plan, then TERM' err=$(tail -n 2 progress.txt) out=$(cat out.txt)
expect_code 130
expect_json ON interrupted
expect_file best.csv
run stagewright validate best.csv
expect_code 0

# replicas around the plan: the order is that of one pipeline, and the ops of what they share are placed in it
run stagewright plan -p 4 -m 8 --budget 0 --costs analytic:gpt-6.2b@a100 --json
expect_code 0
expect_json null shared
run stagewright plan -p 4 -m 8 --budget 0 --replicas 8 --shard weights --reduce overlapped --costs analytic:gpt-6.2b@a100 -o "shared.stagewright" --json
expect_code 0
expect_json 8 shared replicas
expect_json weights shared shard
run stagewright report "shared.stagewright" --json
expect_code 0
expect_json 1 sharing gathers
expect_json 1 sharing reductions
run stagewright plan -p 2 -m 4 --budget 0 --replicas 2 --shard weights --gather microbatch -o "shared.csv"
expect_code 0
run cat shared.csv
expect_out '0UNSHARD0,0F0,0RESHARD0'
run stagewright plan -p 2 -m 4 --replicas 2 --replica-batch 3,5
expect_code 2
expect_err 'a plan has one number of microbatches'
run stagewright plan -p 2 -m 4 --replicas 2 --pareto 3
expect_code 2
expect_err '--pareto plans activations against time'

# Microbatches that differ: 33 is what each rank has to do, and rank 3 can't start before 3; nothing shorter is claimed, found or proven.
run stagewright plan -p 4 -m 8 --costs "$SOURCE/../data/costs/varlen_p4.json" --budget 2 -o long.csv --json
expect_code 0
time=$(json makespan)
expect_that "no plan below what each rank has to do" number_between "$time" 36000 49000
expect_that "a bound that holds" number_between "$(json bound)" 36000 "$time"
run stagewright simulate -s long.csv --costs "$SOURCE/../data/costs/varlen_p4.json" --json
expect_json "${time%.0}" makespan
run stagewright plan -p 4 -m 8 --costs "$SOURCE/../data/costs/varlen_p4.json" --objective span
expect_code 2
expect_err 'spans are not planned for microbatches that differ in time'
run stagewright plan -p 4 -m 8 --costs "$SOURCE/../data/costs/varlen_p4.json" --memory-limit 3B
expect_code 1
expect_err 'a cap of 3 B is below the 4 B that one microbatch needs'
# a plan says what it leaves out, and then nothing is called optimal
run stagewright plan -p 4 -m 8 --costs F=1,I=1,W=1,OPT=2 --perturb jitter=0.1 --json
expect_code 0
expect_json OFF optimal
expect_json jitter costs_left_out 0 what
expect_json OPT costs_left_out 1 what
run stagewright plan -p 4 -m 8 --replicas 2 --shard weights
expect_code 0
expect_no_out '^optimal'
expect_out '^left out of the costs: replicas \(the order is planned for one pipeline, without gathers, reductions and the optimizer\)'
run stagewright plan -p 4 -m 8 --perturb launch=1:0.5 --json
expect_code 0
expect_json 0 costs_left_out

# a model's layers divided: methods side by side, the bound, Megatron-LM's text; costs and order written, and simulated
run stagewright plan --partition gpt3-13b@h100:t=2 -p 4 -m 16 --budget 0.4
expect_code 0
for method in even parameters 'longest stage' step; do expect_out "^$method +"; done
expect_out 'no division and order is shorter than .*: at most [0-9.]+ % away from the best'
run stagewright plan --partition "$ROOT/tests/data/partitions/uneven_00.json" -p 4 -m 32 --chunks 1 --budget 0.4 -o divided.json --json
expect_code 0
expect_json even rows 0 method
step=$(python3 -c 'import json; print(json.load(open("out.txt"))["rows"][-1]["step_ns"])')
run stagewright simulate -s divided.csv --costs divided.json --json
expect_code 0
expect_that 'the step is what the plan says' grep -qE "\"makespan\": $step|$step" out.txt

# layers as a run measured them: their sums are near its ops, and what is planned is trained
run stagewright record -s zb-h1 -p 2 -m 4 --steps 4 --model layers=5,hidden=64,heads=2,seq=32,vocab=512 -o layers.stagewright
expect_code 0
run stagewright plan --partition layers.stagewright#1 -p 2 -m 4 --chunks 1 --budget 0.4 -o own.json
expect_code 0
expect_out "^7 measured layers of run zb-h1 on 2 ranks, 4 microbatches"
expect_out "^[0-9.]+ % of the ops' time is in layers, the rest in each op; so summed, ops are [0-9.]+ % from those measured"
expect_err "train it: stagewright record -s own.csv --model … --stage-layers [0-5],[0-5]$"
blocks=$(sed -n 's/.*--stage-layers //p' err.txt)
run stagewright record -s own.csv --steps 2 --model layers=5,hidden=64,heads=2,seq=32,vocab=512 --stage-layers "$blocks" -o layers.stagewright
expect_code 0
run stagewright plan --partition layers.stagewright#1 -p 2 -m 4 --chunks 1 --budget 0.4 --json
expect_code 0
expect_that 'the layers explain the ops' python3 -c 'import json
m = json.load(open("out.txt"))["measured"]
assert 0.5 < m["in_layers"] <= 1.2 and m["mean_error"] <= m["largest_error"] < 0.5, m'
run stagewright plan --partition "$ROOT/tests/data/runs/version1.stagewright" -p 2
expect_code 2
expect_err 'what its layers take is unknown'
echo '{"layers": [{"kind": "tea"}]}' >layers.json
run stagewright plan --partition layers.json
expect_code 3
expect_err "layers.json: layer 0: kind is embedding, block, mtp or loss, not 'tea'"
run stagewright plan --partition gpt3-13b
expect_code 2
# the memory of ranks: a device's by itself, which stage exceeds it and by how much, a cap that is kept
run stagewright plan --partition gpt3-13b@h100 -p 4 -m 8 --chunks 1 --budget 0.2 --json
expect_code 0
expect_json 80000000000 cap_bytes
run stagewright plan --partition gpt3-175b@h100 -p 8 -m 8 --chunks 1 --budget 0.2
expect_code 1
expect_out 'even does not fit: rank 0 .stage 0. needs [0-9.]+ GiB, [0-9.]+ GiB of state and [0-9.]+ GiB of activations: [0-9.]+ GiB over 74.5 GiB'
expect_err 'no division that was found fits 74.5 GiB; of the nearest rank [0-9] .stage [0-9]. needs'
run stagewright plan --partition gpt3-175b@h100 -p 8 -m 8 --chunks 1 --budget 0.2 --memory-limit none --json
expect_code 0
expect_json null cap_bytes
run stagewright plan --partition gpt3-13b@h100 -p 4 -m 8 --budget 0.4 --memory-limit 100GB --json
expect_code 0
expect_that 'the last fits' python3 -c 'import json; r = json.load(open("out.txt"))["rows"]; assert r[-1]["fits"] and all(x["state_bytes"] + x["activation_bytes"] <= 100e9 for x in r[-1]["ranks"]) and not all(x["fits"] for x in r), r'
run stagewright plan --partition gpt3-13b@h100 -p 4 --memory-limit 4,4
expect_code 2
run stagewright plan --partition gpt3-13b@h100 --pareto 4
expect_code 2
