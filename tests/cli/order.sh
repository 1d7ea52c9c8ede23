# simulate --order: what comes first, the list past an op that waits, what is refused.
# shellcheck shell=bash
run stagewright simulate -p 4 -m 8 --order arrival:limit=6 --json
expect_code 0
expect_json '1f1b order=arrival:limit=6' name
expect_json 33.0 makespan
expect_json 6.0 peak_activation 0
run stagewright simulate -s zb-h1 -p 4 -m 8 --perturb jitter=0.3 --json
listed=$(json makespan)
run stagewright simulate -s zb-h1 -p 4 -m 8 --perturb jitter=0.3 --order hint -o hint.stagewright --json
expect_code 0
expect_that 'W goes ahead of what waits' awk -v a="$(json makespan)" -v b="$listed" 'BEGIN { exit !(a < b) }'
found=$(json makespan)
# what was found is a schedule like any other
run stagewright export hint.stagewright --format csv -o hint.csv
expect_code 0
run stagewright simulate -s hint.csv --perturb jitter=0.3 --json
expect_json "$found" makespan
run stagewright simulate -s zb-h1 -p 4 -m 8 --order list --perturb jitter=0.3 --json
expect_json "$listed" makespan
run stagewright simulate -s zb-h1 -p 4 -m 8 --order arrival
expect_code 2
expect_err 'zb-h1 has other ops than a forward and a backward'
expect_err 'use --order hint'
run stagewright simulate -p 4 -m 8 --order soon
expect_code 2
expect_err "there is no order 'soon'"
