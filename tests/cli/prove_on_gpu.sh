# The script that verifies on a GPU what only a GPU shows (tests/bench/prove_on_gpu.sh), tried with the fake device: its steps, what
# it reports for one that fails or has no time left.
# shellcheck shell=bash
prove=$SOURCE/../bench/prove_on_gpu.sh
export STAGEWRIGHT SMALL=1
export STAGEWRIGHT_CUDA_MODULE=$FAKE STAGEWRIGHT_CUPTI_MODULE=$FAKE

run bash "$prove"
expect_code 2
expect_out 'prove_on_gpu.sh first'

run env OUT="$WORK/first" SECONDS_OF_PHASE=400 bash "$prove" first
expect_code 0
expect_out '^(pass|skipped) .* CUDA alone$'
expect_out '^pass .* every kernel, beside PyTorch$'
expect_out '^pass .* traced, sharing: partitions$'
expect_out '^pass .* every schedule$'
expect_out '^pass .* traced slices, whose keys are copied by rows$'
expect_out '^0 of [0-9]+ steps failed'
expect_file first/first.log
expect_file first/queues.cuptidump.gz
expect_that 'the kernels are in the summary' grep -q 'gradient of the embedding' first/first.summary
expect_that 'small runs are kept' grep -q 'cuda/terapipe.stagewright' <(tar -tzf first/cuda-runs.tar.gz)
expect_that 'few files, as only eight come back' [ "$(find first -type f | wc -l)" -le 8 ]

run env OUT="$WORK/good" SECONDS_OF_PHASE=400 bash "$prove" more
expect_code 0
expect_out '^pass .* exposed launch gaps below 2 %$'
expect_out '^0 of [0-9]+ steps failed'
expect_file good/more.log
expect_file good/more.summary
expect_that 'few files, as only eight come back' [ "$(find good -type f | wc -l)" -le 8 ]

# A trace that is not whole, and no time for most of it.
run env OUT="$WORK/lossy" ONLY='traced, sharing' STAGEWRIGHT_FAKE_CUPTI=lossy bash "$prove" first
expect_code 1
expect_out '^unlike .* traced, sharing: queues$'
expect_out '^3 of 3 steps failed'
run env OUT="$WORK/late" SECONDS_OF_PHASE=4 bash "$prove" tools
expect_code 1
expect_out '^no time .* memcheck, attention'
