# Steps are counted from 1 over all steps, warm-up included, wherever a person reads or writes a number; `step` of JSON, SQL, CSV and traces counts
# from 0 and has `step_number` next to it.
# shellcheck shell=bash
run stagewright record -s gpipe -p 2 -m 2 --model layers=2,hidden=16,heads=2,seq=8 --warmup 1 --steps 2 -o r.stagewright --progress jsonl
expect_code 0
expect_err '"run":1,"step":0,"step_number":1,'
expect_err '"run":1,"step":2,"step_number":3,'

run stagewright report r.stagewright --step 0
expect_code 2
expect_err 'steps are counted from 1, warm-up included; 0 is not a step'
run stagewright report r.stagewright --step 3
expect_code 0
expect_out 'step 3 of 3'
run stagewright report r.stagewright --step 4
expect_code 2
expect_err 'there is no step 4; the run has 3 steps'
expect_err 'steps are 1 to 3, warm-up included'
run stagewright report r.stagewright --step 3 --json
expect_json 2 step
expect_json 3 step_number
run stagewright report r.stagewright --json
expect_same "$(json step_number)" "$(($(json step) + 1))"
expect_that 'the representative step is a measured one' test "$(json step_number)" -ge 2
run stagewright simulate -s gpipe --json
expect_same "$(json step_number)" "$(($(json step) + 1))"
run stagewright export r.stagewright --format html -o r.html --step 4
expect_code 2
expect_err 'no step 4; its steps are 1 to 3'

for table in spans memory steps metrics; do
    run stagewright sql r.stagewright "SELECT min(step), max(step), min(step_number), max(step_number), sum(step_number <> step + 1) FROM $table" --csv
    expect_code 0
    expect_out '^0,2,1,3,0$'
done
run stagewright sql r.stagewright "SELECT count(*), max(step_number) FROM notes" --csv
expect_out '^0,$'

run stagewright export r.stagewright --format spans -o r.csv
run head -1 r.csv
expect_out '^step,rank,.*,name,step_number'
run sed -n 2p r.csv
expect_out '^0,.*,1,,.?$'
run stagewright export r.stagewright --format chrome -o r.json
expect_that 'chrome events name both' grep -q '"args":{"step":0,"step_number":1,' r.json
run stagewright import r.json -o again.stagewright
expect_code 0
