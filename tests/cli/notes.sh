# Notes on runs: written, listed, in reports and as JSON, changed, removed, on missing runs, kept by merging.
# shellcheck shell=bash
run stagewright simulate -s 1f1b -p 2 -m 4 -o runs.stagewright
expect_code 0
run stagewright simulate -s gpipe -p 2 -m 4 -o runs.stagewright
expect_code 0
run stagewright runs runs.stagewright --json
expect_code 0
expect_json '' runs 0 note
expect_json 0 runs 0 notes

run stagewright runs runs.stagewright --note 1 'waits for rank 1; see "B 3", 50 % – done'
expect_code 0
expect_err 'the note of run 1 is saved'
expect_out 'waits for rank 1; see "B 3", 50 % – done'
run stagewright runs runs.stagewright --json
expect_json 'waits for rank 1; see "B 3", 50 % – done' runs 0 note
expect_json '' runs 1 note
run stagewright report 'runs.stagewright#1'
expect_code 0
expect_out 'note: waits for rank 1'
run stagewright report 'runs.stagewright#2'
expect_no_out 'note: '

# another replaces it, an empty one removes it
run stagewright runs runs.stagewright --note 1 'second thought'
expect_out 'second thought'
expect_no_out 'waits for rank 1'
run stagewright runs runs.stagewright --note 1 ''
expect_code 0
run stagewright runs runs.stagewright --json
expect_json '' runs 0 note

# A missing run changes nothing and is named
run stagewright runs runs.stagewright --note 7 'nobody'
expect_code 2
expect_err 'no run 7'
run stagewright runs runs.stagewright
expect_no_out 'nobody'
run stagewright runs runs.stagewright --note 2
expect_code 2

# a merged run keeps its note
run stagewright runs runs.stagewright --note 2 'of the second'
run stagewright simulate -s zb-h1 -p 2 -m 4 -o other.stagewright
expect_code 0
run stagewright runs other.stagewright --merge runs.stagewright
expect_code 0
expect_out 'of the second'
