# 4,096 ranks: simulated, and recorded on the virtual clock with a tiny model, then opened and reported. Every op of every rank is there.
# shellcheck shell=bash

# has FILE OPS STEPS: the file's run, with so many spans of ops
has() {
    run stagewright runs "$1" --json
    expect_code 0
    expect_json 4096 runs 0 ranks
    expect_json "$3" runs 0 steps
    run stagewright sql "$1" --csv "SELECT count(*), count(DISTINCT rank) FROM spans WHERE lane = 'compute'"
    expect_code 0
    expect_out "^$2,4096$"
    run stagewright report "$1" --json
    expect_code 0
    expect_json 4096 ranks
    expect_json 4096 by_rank
}

run stagewright simulate -s 1f1b -p 4096 -m 2 -o simulated.stagewright
expect_code 0
has simulated.stagewright $((4096 * 2 * 2)) 1

run stagewright record --model layers=4096,hidden=8,heads=1,seq=2 --microbatch-size 1 -s gpipe -p 4096 -m 1 --steps 1 --clock virtual -o recorded.stagewright
expect_code 0
has recorded.stagewright $((4096 * 4 * 2)) 2 # F, B, REDUCE_GRAD and OPT, in two steps

# what is said of thousands of stages is a sentence, not a list
run stagewright report recorded.stagewright
expect_code 0
expect_that 'no line is longer than 300 characters' awk 'length > 300 { exit 1 }' out.txt
