# --order: what comes first, the list past an op that waits, what is refused; simulated, and recorded with the list's losses.
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

# recorded: ranks choose in every step, the losses are the list's, and the run's schedule is what ran
tiny=(--model 'layers=4,hidden=32,heads=2,seq=16' --microbatch-size 2 --steps 4 --perturb jitter=0.5)
losses() { stagewright sql "$1" "SELECT step, printf('%.17g', value) FROM metrics WHERE name='loss'"; }
run stagewright record -s 1f1b -p 4 -m 8 "${tiny[@]}" -o listed.stagewright
expect_code 0
for order in arrival:limit=8 hint:limit=8; do
    rm -f ran.stagewright
    run stagewright record -s 1f1b -p 4 -m 8 "${tiny[@]}" --order $order -o ran.stagewright
    expect_code 0
    expect_out "1f1b order=$order"
    expect_same "$(losses listed.stagewright)" "$(losses ran.stagewright)"
    run stagewright sql ran.stagewright "SELECT max(value) > 0 FROM metrics WHERE name='moved_ops'"
    expect_out '1'
    run stagewright export ran.stagewright --format csv -o ran.csv
    expect_code 0
    run stagewright schedules 1f1b -p 4 -m 8 --csv
    expect_that 'another order than the list' [ "$(cat ran.csv)" != "$out" ]
    run stagewright record -s ran.csv "${tiny[@]}" -o again.stagewright
    expect_code 0
    expect_same "$(losses listed.stagewright)" "$(losses again.stagewright)"
    rm -f again.stagewright
done
run stagewright record -s pipedream -p 4 -m 8 "${tiny[@]}" --order hint -o none.stagewright
expect_code 2
expect_err 'take a synchronous schedule'
run stagewright record -s 1f1b -p 2 -m 4 "${tiny[@]}" --order hint --sends rendezvous -o none.stagewright
expect_code 2
expect_err 'leave out --sends and --channels'
run stagewright record -s 1f1b -p 2 -m 4 --order hint --engine torch -o none.stagewright
expect_code 2
expect_err 'ranks follow their lists'
expect_no_file none.stagewright
