# What costs know: jitter, transients, launch delays, layers, and the split that a run of 1F1B did not measure.
# shellcheck shell=bash
model=layers=8,hidden=32,heads=2,seq=32
rec() { run stagewright record -p 4 -m 8 --model $model --microbatch-size 2 --clock virtual --log-level error "$@"; }

# Drawn from the seed: the same again, another with another.
makespan_of() { run stagewright simulate -s 1f1b -p 4 -m 8 --json "$@" && json makespan; }
first=$(makespan_of --perturb jitter=0.1)
expect_same "$first" "$(makespan_of --perturb jitter=0.1)"
expect_same "$first" "$(makespan_of --perturb jitter=0.1 --seed 1)"
expect_that "another seed, another step" [ "$first" != "$(makespan_of --perturb jitter=0.1 --seed 2)" ]
expect_that "about as long" number_between "$first" 30 40
expect_same "$(makespan_of --perturb rank=2:3)" "$(makespan_of --perturb transient=2@1:3)"
run stagewright simulate -s 1f1b --perturb transient=2@2:3
expect_code 2
expect_err "disturbance 'transient=2@2:3': a simulation has step 1 only"
run stagewright simulate -s 1f1b --perturb jitter=x
expect_code 2
expect_err "disturbance 'jitter=x': needs a number above 0"
run stagewright sweep -s gpipe -p 2 -m 4 --perturb rank=1:2 --seed 3
expect_code 0
expect_out '^gpipe,2,4,auto,2,"F=1,I=1,W=1",0,rank_share,27,'
run stagewright simulate -s 1f1b -p 4 -m 8 --perturb jitter=0.3 --what-if 'jitter*0' --json
expect_json 33.0 what_if 0 makespan_after

# A run of full backwards: I and W by its layers, what I frees from its shape, from another run once there is one.
rec -s 1f1b --steps 6 --memory-limit 4 -o r.stagewright
expect_code 0
run stagewright simulate -s zb-h1 -p 4 -m 8 --costs-from r.stagewright#1
expect_code 0
expect_out "I and W not measured: times from its layers, memory from the model's shape"
run stagewright plan -p 4 -m 8 --budget 1 --costs-from r.stagewright#1
expect_out "I and W not measured: times from its layers, memory from the model's shape"
run stagewright simulate -s zb-h1 -p 4 -m 8 --costs-from r.stagewright#1 --input-share 0.25
expect_out "I and W not measured: 25 % of B is I, memory from the model's shape"
run stagewright simulate -s zb-h1 -p 4 -m 8 --costs-from r.stagewright#1 --json
shape=$(json peak_activation 0)
rec -s zb-h1 --steps 3 -o r.stagewright
run stagewright simulate -s zb-h1 -p 4 -m 8 --costs-from r.stagewright#1
expect_out "memory from #2 zb-h1"
run stagewright simulate -s zb-h1 -p 4 -m 8 --costs-from r.stagewright#1 --json
expect_same "$(json peak_activation 0)" "$shape"
run stagewright simulate -s zb-h1 -p 4 -m 8 --costs-from r.stagewright#2 --json
expect_same "$(json peak_activation 0)" "$shape"

# What fits by these costs, a recording takes.
for limit in 1 1.5 2 3; do
    bytes=$(awk -v a="$shape" -v x="$limit" 'BEGIN { printf "%d", a * x / 4 }')
    rm -f plan.csv
    run stagewright plan -p 4 -m 8 --budget 1 --costs-from r.stagewright#1 --memory-limit "${bytes}B" -o plan.csv
    [ -e plan.csv ] || continue
    rec -s plan.csv --steps 1 --memory-limit "${bytes}B" -o p.stagewright
    expect_code 0
done
expect_file p.stagewright

# Other numbers of stages, chunks and layers, from the layers.
run stagewright simulate -s zbv -p 4 -m 8 --costs-from r.stagewright#1
expect_code 0
expect_out 'by layer for 8 stages of 1,1,1,1,1,1,1,1 layers'
run stagewright simulate -s 1f1b -p 2 -m 8 --costs-from r.stagewright#1
expect_out 'by layer for 2 stages of 4,4 layers'
run stagewright simulate -s 1f1b -p 4 -m 8 --costs-from r.stagewright#1 --stage-layers 3,3,1,1
expect_out 'by layer for 4 stages of 3,3,1,1 layers'
run stagewright simulate -s 1f1b -p 16 -m 16 --costs-from r.stagewright#1
expect_code 2
expect_err '8 layers for 16 stages'

# Kept with the run: its limit and its disturbances; one entry of the program.
run stagewright sql r.stagewright "SELECT value FROM run_text WHERE run = 1 AND section = 'configuration' AND key = 'memory_limit'" --json
expect_json 4 rows 0 0
run stagewright sql r.stagewright "SELECT COUNT(*) FROM run_text WHERE run = 1 AND section = 'environment' AND key = 'stagewright'" --json
expect_json 1 rows 0 0

# Launch delays, jitter and a transient of a recording are found again.
rec -s 1f1b --steps 6 --perturb launch=1:1.0 -o l.stagewright
run stagewright report l.stagewright --what-if 'launch*0' --json
expect_that "launch delays cost time" awk -v a="$(json what_if 0 makespan_after)" -v b="$(json what_if 0 makespan_before)" 'BEGIN { exit !(a < 0.97 * b) }'
rec -s 1f1b --steps 6 --perturb jitter=0.4 -o j.stagewright
run stagewright report j.stagewright --what-if 'jitter*0' --json
expect_that "jitter costs time" awk -v a="$(json what_if 0 makespan_after)" -v b="$(json what_if 0 makespan_before)" 'BEGIN { exit !(a != b) }'
run stagewright sql j.stagewright "SELECT json_extract(costs, '\$.jitter') FROM run" --json
expect_that "its spread is found" number_between "$(json rows 0 0)" 0.3 0.55
rec -s 1f1b --steps 4 --warmup 1 --perturb transient=1@6:6 -o t.stagewright
expect_code 2
expect_err 'transient=1@6:6: step 6 of 5'
rec -s 1f1b --steps 4 --warmup 1 --perturb transient=1@5:0.5 -o t.stagewright
expect_code 2
rec -s 1f1b --steps 4 --warmup 1 --perturb transient=1@3:6 -o t.stagewright
longest=$(stagewright sql t.stagewright "SELECT step FROM spans WHERE run = 1 AND lane = 'compute' AND step > 0 GROUP BY step ORDER BY MAX(end_ns) - MIN(start_ns) DESC LIMIT 1" --json >out.txt 2>/dev/null; json rows 0 0)
expect_same "$longest" 2

# Microbatch 2 is four times as long on every stage: its own B splits, its activations are four times as large, and it is the cause, no rank.
long=$SOURCE/../data/costs/varlen_p4.json
for row in '1f1b 65 7' 'gpipe 69 11' 'zb-h1 50 7'; do
    read -r schedule time peak <<<"$row"
    run stagewright simulate -s "$schedule" -p 4 -m 8 --costs "$long" --json
    expect_code 0
    expect_json "${time}000" makespan
    expect_json "$peak" peak_activation 0
    expect_json 0 idle_by_cause straggler
    expect_that "$schedule waits for the microbatch" number_between "$(json idle_by_cause microbatch)" 1000 100000
    expect_json null straggler_rank
    expect_json 'microbatch 2 takes 4.00× as long as the others on every stage: the microbatch is long, no rank is slow' straggler_sentence
    expect_quiet_err
done
run stagewright simulate -s gpipe -p 4 -m 8 --costs "$long"
expect_out '^Long microbatch '
expect_out 'microbatches that all take as long as most of their stage +33.0 µs'
# times without sizes
run stagewright simulate -s 1f1b -p 8 -m 16 --costs "$SOURCE/../data/costs/lmhead_p8.json" --json
expect_code 0
expect_json 253407 makespan
expect_json null peak_activation
