# Disturbances are found again: perturb, recompute, what-if, requirements, residuals, gaps with chain and experiment.
# shellcheck shell=bash
sim() { run stagewright simulate -s 1f1b -p 4 -m 8 --json --log-level error "$@"; }
sim --comm 0.125 --perturb rank=2:1.25
expect_code 0
expect_json 39.25 makespan
expect_json 2 straggler_rank
sim --comm 0.125 --perturb link=1-2:1.0
expect_json 41.75 makespan
sim --comm 0.125 --perturb launch=3:0.2
expect_that "the step is in units" number_between "$(json makespan)" 36.9499 36.9501
expect_json null makespan_ns
expect_that "launch is reported" awk -v x="$(json idle_by_cause launch)" 'BEGIN { exit !(x > 0) }'
sim --recompute all
expect_json 44.0 makespan
sim --recompute 0-2 --hoist
expect_json 39.0 makespan
sim --recompute all --keep 0.125
expect_json 1.375 peak_activation 0
expect_json 1.0 peak_activation 3
sim --recompute 0-2
expect_that "recompute_wait is reported" awk -v x="$(json idle_by_cause recompute_wait)" 'BEGIN { exit !(x > 0) }'
sim --stage-layers 4,4,3,1
expect_json 38.0 makespan
run stagewright simulate -s 1f1b --perturb rank=9:2
expect_code 2
expect_err 'rank from 0 to 3'
run stagewright simulate -s 1f1b --stage-layers 1,2
expect_code 2
run stagewright simulate -s 1f1b --recompute 7
expect_code 2

sim --what-if 'F*0.5' --what-if m=16
expect_json 57.0 what_if 1 makespan_after
expect_json 33.0 what_if 1 makespan_before
run stagewright simulate -s 1f1b --what-if 'X*2'
expect_code 2
expect_err 'it is not a change'

run stagewright simulate -s 1f1b -p 8 -m 24 --costs analytic:gpt-6.2b@a100 --json
expect_code 0
expect_json ns time_unit
run stagewright simulate --costs analytic:gpt-6.2b@nothing
expect_code 2
expect_err 'h100'
run stagewright devices --presets
expect_code 0
expect_out '^gpt-28.3b'
expect_out '^h200'

# costs of a run that knows only full backwards, for a schedule that splits them
cat >b.json <<'END'
{"format": "stagewright-costs", "version": 1, "source": "fitted", "duration_ns": {"F": [10, 10, 10, 10], "B": [20, 20, 20, 20]},
 "stage_bytes": [{}, {}, {}, {}]}
END
run stagewright simulate -s zb-h1 --costs b.json --json
expect_code 0
expect_json 270 makespan
run stagewright simulate -s zb-h1 --costs b.json --input-share 0.25
expect_out 'I and W not measured: 25 % of B is I'
run stagewright simulate -s 1f1b --costs b.json --recompute all --json
expect_json 440 makespan
stagewright simulate -s 1f1b -o b.stagewright >/dev/null 2>&1

# a slow rank, found in the report
stagewright simulate -s gpipe --perturb rank=2:1.5 -o s.stagewright >/dev/null 2>&1
run stagewright report s.stagewright --residuals --what-if 'rank2*0.5' --json
expect_code 0
expect_keys . gaps residuals what_if requirements straggler_rank
expect_json 2 straggler_rank
expect_json 0.0 residuals step_error
expect_that "imbalance is reported" awk -v x="$(json idle_by_cause imbalance)" 'BEGIN { exit !(x > 0) }'
expect_json 0 gaps 0 rank
for key in before blamed ready_op sentence chain experiment; do expect_out "\"$key\":"; done
expect_json 2 gaps 10 chain 0 rank
run stagewright report s.stagewright --residuals --what-if 'rank2*0.5'
expect_out 'stage 2 costs more than the average stage'
expect_out 'the step would take'
expect_out '^the step: predicted'
expect_out '^rank2\*0.5'

run stagewright report b.stagewright --slack --json
expect_json 0 slack 0 slack_ns
run stagewright report b.stagewright --slack
expect_out '^ +3  B +8 +8'
# every analysis of the registry is a table, in text, JSON and SQL
for name in $(sed -n 's/^STAGEWRIGHT_ANALYSIS(\([a-z_]*\).*)$/\1/p' "$SOURCE/../../traces/analysis/analyses.def"); do
    run stagewright report b.stagewright --table "$name"
    expect_code 0
    run stagewright report b.stagewright --table "$name" --json
    expect_code 0
    for key in title columns rows sentence unknown; do expect_that "tables.$name.$key" json tables "$name" $key; done
    run stagewright sql b.stagewright "SELECT * FROM report_$name(1)"
    expect_code 0
done
run stagewright report b.stagewright --table ops
expect_out '^B +3 +3 +8'
run stagewright report b.stagewright --table roofline
expect_out 'GPU runs only'
run stagewright report b.stagewright --table nothing
expect_code 2
expect_err '--table: takes one of bubbles'
run stagewright report b.stagewright --table bubbles --require 'tables.bubbles.rows[0].idle_ns<=100000000'
expect_code 0
run stagewright sql b.stagewright 'SELECT * FROM report_bubbles'
expect_code 2
expect_err 'of which run'
run stagewright simulate -s gpipe --comm 1.5 --what-if sends=rendezvous
expect_out '^sends=rendezvous'

run stagewright report b.stagewright --require 'bubble_fraction<=0.3' --require 'idle_by_cause.order<=12'
expect_code 0
expect_err 'budget met: bubble_fraction is 0.272727'
run stagewright report b.stagewright --require 'bubble_fraction<=0.12'
expect_code 1
expect_err 'error: budget not met: bubble_fraction is 0.272727, required is <= 0.12'
run stagewright report b.stagewright --require 'peak_activation[-1]<=1' --json
expect_code 0
expect_json ON requirements 0 holds
run stagewright report b.stagewright --require 'loss[-1]<3'
expect_code 1
run stagewright report b.stagewright --require 'bubble_fraction<=12%' --require 'makespan_ns<1s'
expect_code 1
expect_err 'error: budget not met: bubble_fraction is 0.272727, required is <= 0.12'
expect_err 'makespan_ns is unknown for this run' # a unit has no nanoseconds
run stagewright simulate -s 1f1b -p 8 -m 24 --costs analytic:gpt-1.5b@a100 -o n.stagewright
run stagewright report n.stagewright --require 'makespan_ns<100s' --require 'makespan_ns<=1ns'
expect_code 1
expect_err 'budget met: makespan_ns is [0-9]+, required is < 100000000000'
expect_err 'error: budget not met: makespan_ns is [0-9]+, required is <= 1$'
run stagewright report b.stagewright --require 'makespan_ns<=1MiB'
expect_code 2
run stagewright sweep -s gpipe --costs-from b.stagewright
expect_out '^gpipe,4,8,auto,4,b.stagewright,0,'
run stagewright report b.stagewright --require 'bubble_faction<=0.12'
expect_code 2
expect_no_out .
expect_err 'did you mean bubble_fraction'
expect_err 'keys are .*idle_by_cause'
run stagewright report b.stagewright --require 'bubble_fraction'
expect_code 2

# A change under which it can't complete gives an error in its row; the others are answered.
run stagewright simulate -s 1f1b --comm 0.3 --what-if 'F*0.5' --what-if sends=rendezvous --json
expect_code 0
expect_that "the first is answered" [ "$(json what_if 0 makespan_after)" != null ]
expect_that "the second reports its deadlock" grep -q deadlock <<<"$(json what_if 1 error)"
run stagewright simulate -s terapipe --what-if m=16
expect_out 'cuts sequences differently'
# Optimizers in the lists are part of the step's time, here as in the headline.
run stagewright simulate -s pipedream --costs F=1,OPT=1 --what-if 'F*1' --json
expect_same "$(json whole_step)" "$(json what_if 0 makespan_before)"

# A change that matches no op says so; a requirement whose unit does not fit its figure is refused.
run stagewright simulate -s 1f1b --what-if 'W*0.5' --what-if 'B*0.5'
expect_code 0
expect_out "what if 'W\*0.5': no op of the schedule matches; its kinds there are F, B"
expect_out '^B\*0.5 +22'
run stagewright simulate -s zb-h1 --what-if 'I@stage2*0.5' --json
expect_json null what_if 0 error
run stagewright report b.stagewright --require 'makespan<40ms'
expect_code 2
expect_err "makespan is a time in units and can't be compared with 40ms"
run stagewright report b.stagewright --require 'bubble_fraction<40ms'
expect_code 2
expect_err 'bubble_fraction is a number without unit'
run stagewright report n.stagewright --require 'makespan<100s' --require 'overlap.comm_time<100s'
expect_code 0
run stagewright report n.stagewright --require 'makespan<1GiB'
expect_code 2
expect_err "makespan is a time and can't be compared with 1GiB"

# Typed cells of a query.
run stagewright sql b.stagewright "SELECT run, name, 0.5, NULL, 'x' FROM runs ORDER BY run LIMIT 1;" --json
expect_code 0
expect_that "numbers are numbers" grep -qE '^ +1,$' out.txt
expect_json 0.5 rows 0 2
expect_json null rows 0 3
expect_json x rows 0 4
run stagewright sql b.stagewright 'WITH t(a,a2) AS (SELECT 1, 2) SELECT a, a2 AS a FROM t' --json
expect_json 2 rows 0 1

# What would help comes first, and lists of causes go by what taking them away gains.
run stagewright simulate -s 1f1b --perturb link=1-2:0.25
expect_code 0
expect_out '^what would help +step +gain'
expect_that "levers come before the picture" awk '/^what would help/ { a = NR } /^idle by cause/ { b = NR } END { exit !(a > 0 && b > a) }' out.txt
expect_that "Transfer leads, Order follows" awk '/^idle by cause/ { getline; first = $1 } END { exit !(first == "Transfer") }' out.txt
expect_out "^each is simulated with the run's costs; with these, the unchanged step takes [0-9.]+ units$"
run stagewright simulate -s 1f1b --perturb link=1-2:0.25 --json
expect_keys . levers levers_baseline gain_by_cause over_steps straggler_sentence perturb emulated_links contention_median memory_cap
expect_json null over_steps
expect_json 0.0 levers_baseline error
expect_json null gain_by_cause drain
expect_json link=1-2:0.25 perturb
expect_that "a gain is reported" awk -v x="$(json levers 0 gain)" 'BEGIN { exit !(x > 0) }'
expect_same "$(json levers_baseline makespan)" "$(awk -v a="$(json levers 0 makespan)" -v b="$(json levers 0 gain)" 'BEGIN { printf "%.1f", a + b }')"
run stagewright simulate -s 1f1b
expect_out '^none of these makes the step shorter$'
run stagewright simulate -s chimera --memory-limit 4 --json
expect_json null levers 1 makespan
expect_that "the reason is reported" [ -n "$(json levers 1 reason)" ]

# Disturbances, caps, figures over steps; the error of a prediction counts by its size.
rm -f p.stagewright
run stagewright record -s 1f1b -p 2 -m 4 --clock virtual --steps 8 --warmup 1 --model layers=2,hidden=32,heads=2,seq=16 --perturb rank=1:3,link=0-1:1 \
    --memory-limit 3 -o p.stagewright
expect_code 0
run stagewright report p.stagewright
expect_out '^emulated links 0→1 [0-9.]+ .s, 1→0 [0-9.]+ .s; disturbance rank=1:3,link=0-1:1$'
expect_out '^step time +[0-9.]+ .s +median of 8 steps [0-9.]+ .s, 95 %: [0-9.]+ .s to [0-9.]+ .s$'
expect_out '^memory cap of a rank'
expect_out '^contention +[0-9.]+ % of the ops'
expect_out '^rank 1 is busy .*the rank is slow or its stage costs more'
run stagewright report p.stagewright --json
expect_json 8 over_steps bubble_fraction steps
expect_keys over_steps makespan span bubble_fraction busy idle peak_activation idle_by_cause.order
expect_that "the median lies within" awk -v l="$(json over_steps makespan low)" -v m="$(json over_steps makespan median)" -v h="$(json over_steps makespan high)" 'BEGIN { exit !(l <= m && m <= h) }'
expect_json rank=1:3,link=0-1:1 perturb
expect_that "the cap is reported" [ "$(json memory_cap)" != null ]
run stagewright runs p.stagewright
expect_out 'rank=1:3,link=0-1:1; links 0→1'
run stagewright runs p.stagewright --json
expect_json rank=1:3,link=0-1:1 runs 0 perturb
expect_that "the cap is reported" [ "$(json runs 0 memory_cap)" != null ]
run stagewright report p.stagewright --residuals --json
error=$(json residuals step_error)
half=$(awk -v x="$error" 'BEGIN { printf "%.9f", (x < 0 ? -x : x) / 2 }')
run stagewright report p.stagewright --residuals --require "residuals.step_error<$half"
expect_code 1
expect_err 'error: budget not met: \|residuals.step_error\| is [0-9.e-]+, required is < '
run stagewright report p.stagewright --residuals --require "residuals.step_error>$half"
expect_code 0
run stagewright report p.stagewright --residuals --require 'residuals.step_eror<1'
expect_code 2
