# check proves gradients; its table and its object agree.
# shellcheck shell=bash
run stagewright check -p 2 -m 4 --model layers=4,hidden=16,heads=2,seq=8 --microbatch-size 1 --steps 1 --json
expect_code 0
expect_json ON passed
expect_that "every schedule was checked" [ "$(json checks)" -ge 4 ]
expect_json ON checks 0 gradients_equal
expect_json ON checks 0 losses_equal
expect_json 0.0 checks 0 gradient_error
run stagewright check -s zb-h1 -p 2 -m 4 --model layers=4,hidden=16,heads=2,seq=8 --microbatch-size 1 --steps 1
expect_code 0
expect_out '^zb-h1 .*pass'
expect_out 'all pass'
