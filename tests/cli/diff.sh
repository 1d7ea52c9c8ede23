# Two orders compared: by name, from CSVs, moved ops, exit codes.
# shellcheck shell=bash
run stagewright diff 1f1b gpipe -p 2 -m 4 --json
expect_code 1
expect_json OFF same
expect_json 0 first 0 rank
expect_json 2 first 0 position
expect_json 0B0 first 0 a
expect_json 0F2 first 0 b
expect_that "B0 and B1 stay behind F3 on rank 0" [ "$(json distance)" -gt 0 ]
run stagewright diff 1f1b gpipe -p 2 -m 4
expect_out 'rank 0, op 3: 0B0 in 1f1b, 0F2 in gpipe'
expect_out 'moved'
run stagewright diff zb-h1 1f1b -p 2 -m 2 --json
expect_json 0I0 only_a 0 op
expect_json 0B0 only_b 0 op

# a name given with a CSV takes its shape
stagewright schedules 1f1b -p 3 -m 5 --csv >mine.csv
run stagewright diff mine.csv 1f1b
expect_code 0
expect_out 'the same order'
run stagewright diff 1f1b mine.csv --json
expect_code 0
expect_json ON same
run stagewright diff mine.csv 1f1b -p 2 -m 5
expect_code 1
expect_out 'ranks: 3 and 2'
printf '0F0,0F1,0F2,0B0,0B1,0B2\n1F0,1B0,1F1,1F2,1B1,1B2\n' >near.csv
run stagewright diff near.csv gpipe --json
expect_json 1 distance
expect_json 1B0 moved 0 op
run stagewright validate near.csv
expect_out 'nearest library schedule is gpipe, 1 of 12 ops differ; first difference: rank 1, op 2: 1B0 here, 1F1 there'
# messages are compared where both have them
run stagewright diff mine.csv 1f1b --lower pytorch
expect_code 0
run stagewright diff nothing.csv 1f1b
expect_code 3
run stagewright diff 1f1b
expect_code 2
