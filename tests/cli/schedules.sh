# The list, a page, and the CSV that the other verbs read back.
# shellcheck shell=bash
run stagewright schedules
expect_code 0
expect_quiet_err
for name in gpipe 1f1b interleaved-1f1b zb-h1; do expect_out "^$name "; done
run stagewright schedules --json
expect_code 0
expect_that "at least four schedules" [ "$(json schedules)" -ge 4 ]
for key in name title summary paper constraints formulas drawing aliases fixed_chunks default_chunks; do
    expect_that "key $key" json schedules 0 "$key" >/dev/null
done
for name in gpipe 1f1b interleaved-1f1b zb-h1; do
    run stagewright schedules "$name"
    expect_code 0
    expect_out 'formulas'
    expect_out 'drawing'
    expect_out 'peak activation'
    stagewright schedules "$name" --csv >"$name.csv"
    expect_that "one line per rank" [ "$(wc -l <"$name.csv")" = 4 ]
    run stagewright validate "$name.csv"
    expect_code 0
    expect_out "valid.*this is $name"
done
run stagewright schedules GPipe
expect_code 0
run stagewright schedules zb-h1 --json
expect_json 27.0 makespan
run stagewright schedules nothing-like-it
expect_code 2
expect_err 'nothing-like-it'

# under which rules a shape needs buffers
run stagewright schedules 1f1b -p 4 -m 8
expect_out 'just-in-time +hangs, needs buffers: ranks 2, 3 wait for each other'
expect_out 'rank-parity +ends'
run stagewright schedules gpipe -p 4 -m 8 --json
expect_json ON without_buffers just-in-time ends
expect_json OFF without_buffers rank-parity ends
expect_that "ranks wait for each other" [ "$(json without_buffers rank-parity cycle)" -ge 2 ]
