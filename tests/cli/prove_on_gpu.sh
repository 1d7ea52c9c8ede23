# The script that verifies on a GPU what only a GPU shows (tests/bench/prove_on_gpu.sh), tried with the fake device: its steps, what
# it reports for one that fails or has no time left.
# shellcheck shell=bash
prove=$SOURCE/../bench/prove_on_gpu.sh
export STAGEWRIGHT SMALL=1
export STAGEWRIGHT_CUDA_MODULE=$FAKE STAGEWRIGHT_CUPTI_MODULE=$FAKE

run bash "$prove"
expect_code 2
expect_out 'prove_on_gpu.sh engine'

run env OUT="$WORK/good" SECONDS_OF_PHASE=400 bash "$prove" trace
expect_code 0
expect_out '^pass .* the trace is whole and detached$'
expect_out '^pass .* traced slices, whose keys are copied by rows$'
expect_out '^0 of [0-9]+ steps failed'
expect_file good/trace.log
expect_file good/trace.summary
expect_that 'small runs are kept' grep -q 'cuda/terapipe.stagewright' <(tar -tzf good/cuda-runs.tar.gz)
expect_that 'few files, as only eight come back' [ "$(find good -type f | wc -l)" -le 8 ]

# A trace that is not whole, and no time for most of it.
run env OUT="$WORK/lossy" STAGEWRIGHT_FAKE_CUPTI=lossy bash "$prove" trace
expect_code 1
expect_out '^unlike .* every launch has its op$'
run env OUT="$WORK/late" SECONDS_OF_PHASE=4 bash "$prove" engine
expect_code 1
expect_out '^no time .* memcheck, attention'
