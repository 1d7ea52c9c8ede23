# Schedules with faults: the first one explained, all on request, the cycle of a deadlock.
# shellcheck shell=bash
printf '0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n' >good.csv
run stagewright validate good.csv
expect_code 0
expect_out 'good.csv: valid; 2 ranks, 2 stages, 2 microbatches, 8 ops'
run stagewright validate good.csv --json
expect_code 0
expect_json ON valid
expect_json 0 faults

printf '0F0,0F1,0B0,0B1\n1F0,1B1,1F1,1B0\n' >order.csv
run stagewright validate order.csv
expect_code 1
expect_out 'rank 1, op 1 \(1B1\)'
run stagewright validate order.csv --json
expect_code 1
expect_json OFF valid
expect_json 1 faults 0 rank
expect_json 1B1 faults 0 op

printf '0F0,0F0,0B0\n1F0,1B0\n' >double.csv
run stagewright validate double.csv --all
expect_code 1
expect_out '0F0'

# each rank is in order by itself, but they wait for each other
printf '0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n' >deadlock.csv
run stagewright validate deadlock.csv
expect_code 1
expect_out 'wait for each other'
expect_out 'rank 0.*waits for'
expect_out 'rank 1.*waits for'
run stagewright validate deadlock.csv --json
expect_that "the cycle is there" [ "$(json cycle)" -ge 2 ]
run stagewright simulate -s deadlock.csv --json
expect_code 1
expect_json ON hung
expect_that "the cycle is there" [ "$(json cycle)" -ge 2 ]
run stagewright record -s deadlock.csv -o x.stagewright
expect_code 1
expect_no_file x.stagewright

printf '0F0,0Q0\n' >junk.csv
run stagewright validate junk.csv
expect_that "an unknown cell is no valid schedule" [ "$rc" = 1 -o "$rc" = 3 ]
expect_err '0Q0'
printf '0F0junk,0B0\n' >trail.csv
run stagewright validate trail.csv
expect_that "trailing characters are refused" [ "$rc" = 1 -o "$rc" = 3 ]
head -c 2000 /dev/urandom >noise.csv
run stagewright validate noise.csv
expect_that "noise is refused" [ "$rc" = 1 -o "$rc" = 3 ]
: >empty.csv
run stagewright validate empty.csv
expect_that "an empty file is refused" [ "$rc" = 1 -o "$rc" = 3 ]
run stagewright validate .
expect_code 3
