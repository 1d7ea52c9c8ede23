# Megatron-LM: its layout as a setting, its arguments as an export.
# shellcheck shell=bash
plain=$(stagewright simulate --schedule interleaved-1f1b -p 2 -m 4 --chunks 2 --stage-layers 3,2,2,1 --json)
run stagewright simulate --schedule interleaved-1f1b -p 2 -m 4 --layout 'Et*3|(tt|)*2,tL' --json
expect_code 0
expect_same "$out" "$plain"

# what it can't be, with the option's name
for bad in "Ettt|tt|L:can't be divided among 2 ranks" 'E tt|tL:is not one of' 'Et|t|m|L:multi-token prediction'; do
    run stagewright simulate --schedule interleaved-1f1b -p 2 -m 4 --layout "${bad%%:*}"
    expect_code 2
    expect_err "--layout: .*${bad#*:}"
done
run stagewright simulate --schedule interleaved-1f1b -p 2 -m 4 --chunks 3 --layout 'Et|t|t|tL'
expect_code 2
expect_err '--layout has 4 stages for 2 ranks, --chunks 3 asks for 6'
run stagewright simulate --schedule 1f1b -p 2 -m 4 --layout 'Et|tL' --stage-layers 1,1
expect_code 2
expect_err '--stage-layers'
run stagewright simulate --schedule 1f1b -p 2 -m 4 --layout 'Et|t|t|tL'
expect_code 2

# trained with it, and given back
run stagewright record -s interleaved-1f1b -p 2 -m 4 --layout 'Et*3|(t|)*2L' --model layers=5,hidden=32,heads=2,seq=16 \
    --microbatch-size 2 --steps 2 -o trained.stagewright
expect_code 0
run stagewright export trained.stagewright --format megatron -o job.sh --json
expect_code 0
expect_json megatron format
expect_that 'Bash reads it' bash -n job.sh
# shellcheck disable=SC1091
mapfile -t given < <(. ./job.sh && printf '%s\n' "${MEGATRON_PIPELINE[@]}")
expect_same "${given[*]}" "--pipeline-model-parallel-size 2 --num-layers 5 --pipeline-model-parallel-layout Ettt|t|t|L \
--microbatch-group-size-per-virtual-pipeline-stage 2 --micro-batch-size 2 --global-batch-size 8"

# an order without a model: the stages of a rank in the layout's place
stagewright simulate --schedule interleaved-1f1b -p 2 -m 4 -o plan.stagewright >/dev/null 2>&1
run stagewright export plan.stagewright --format megatron -o plan.sh
expect_code 0
expect_that 'stages of a rank' grep -q -- '--num-virtual-stages-per-pipeline-rank 2' plan.sh
expect_that 'no layers' test "$(grep -c -- '--num-layers' plan.sh)" = 0
expect_that 'said so' grep -q 'layers of the model are unknown' plan.sh

# another order
stagewright simulate --schedule zb-h1 -p 2 -m 4 -o zb.stagewright >/dev/null 2>&1
run stagewright export zb.stagewright --format megatron -o zb.sh
expect_code 1
expect_err 'Megatron-LM runs 1F1B and interleaved 1F1B; zb-h1 is another order'
expect_err 'the nearest that it runs is 1f1b'
expect_no_file zb.sh
