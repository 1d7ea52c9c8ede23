# The CUDA path of the engine over a module without CUDA (tests/support/fake_cuda.cpp): requests are done as late as the
# marks allow, and an access that no mark puts in order fails.
# shellcheck shell=bash
export STAGEWRIGHT_CUDA_MODULE=$FAKE
run stagewright devices --json
expect_code 0
expect_json ON devices 1 usable
expect_json '0: fake device' devices 1 name

# Kernels by the device's clock, through the same arithmetic as training.
run stagewright devices --kernels hidden=16,heads=2,seq=8 --microbatch-size 1 --backend cuda
expect_code 0
expect_out '^large GEMM +128 x 128 x 128 '
expect_out '^attention, backward +1 x 2 heads of 8, 8 tokens '

# Every schedule of the registry: bits against the one-rank replay, from run to run, side by side and serialised; and ten steps
# of the undivided model against the CPU's layers, in every precision.
small='--model layers=4,hidden=16,heads=2,seq=8'
# shellcheck disable=SC2086
run stagewright check --backend cuda $small -p 2 -m 4 --steps 2
expect_code 0
for kernel in 'layer norm' 'linear, weight gradient' 'GELU layer, forward and backward' 'attention of a later slice' 'attention that streams its keys' \
    'attention that streams its keys, heads of 64' 'attention that streams its keys, heads of 128' \
    'cross entropy' 'AdamW, step and undo'; do
    for precision in 'fp32 .* 0.0001' 'tf32 .* 0.004' 'bf16 .* 0.02'; do expect_out "^$kernel +cuda +$precision +pass\$"; done
done
expect_out '^cuda against cpu, 10 steps +fp32 .* pass$'
expect_out '^cuda against cpu, 10 steps +tf32 .* pass$'
expect_out '^cuda against cpu, 10 steps +bf16 .* pass$'
expect_out '^zb-h1 .* cuda .* pass$'
expect_out 'chimera:join=halving .* pass$'
expect_out '^terapipe.* pass$'
expect_out 'all pass'
# In bf16, on two devices, recomputed, with other optimizers, with attention that streams its keys.
export STAGEWRIGHT_FAKE_DEVICES=2
# shellcheck disable=SC2086
run stagewright check --backend cuda $small -s 1f1b,zbv,terapipe,dualpipe -p 2 -m 4 --precision bf16
expect_code 0
expect_out 'all pass'
unset STAGEWRIGHT_FAKE_DEVICES
for option in '--recompute all' '--optimizer sgd --momentum 0.9 --lr 0.05' '--optimizer sgd --lr 0.05 --clip 0.02'; do
    # shellcheck disable=SC2086
    run stagewright check --backend cuda $small -s zb-h1,interleaved-1f1b,2bp-1f1b -p 2 -m 4 --precision fp32 $option
    expect_code 0
    expect_out 'all pass'
done
# shellcheck disable=SC2086
run env STAGEWRIGHT_CUDA_FLASH_FROM=1 "$STAGEWRIGHT" check --backend cuda $small -s gpipe,terapipe -p 2 -m 4 --precision fp32
expect_code 0
expect_out 'all pass'
# In bf16 attention runs through the bodies of the matrix units' kernels, thread by thread.
run env STAGEWRIGHT_CUDA_FLASH_FROM=1 "$STAGEWRIGHT" check --backend cuda --model layers=2,hidden=16,heads=2,seq=8 -s zb-h1,terapipe -p 2 -m 2 \
    --precision bf16 --recompute all
expect_code 0
expect_out '^cuda against cpu, 10 steps +bf16 .* pass$'
expect_out 'all pass'

# Stale weights, in copies of the precision that computes.
printf '%s\n' '# weights=stashed' '0F0,0F1,0B0,0OPT,0F2,0B1,0OPT,0B2,0OPT' '1F0,1B0,1OPT,1F1,1B1,1OPT,1F2,1B2,1OPT' >stashed.csv
# shellcheck disable=SC2086
run stagewright check --backend cuda -s stashed.csv $small --precision fp32
expect_code 0

# record: queues, partitions, serialised; the loss is that of the CPU.
# shellcheck disable=SC2086
run stagewright record -s zb-h1 -p 2 -m 4 $small --steps 3 --clock virtual --json -o cpu.stagewright
expect_code 0
loss=$(json runs 0 loss 2)
for sharing in queues partitions serialised; do
    # shellcheck disable=SC2086
    run stagewright record --backend cuda --precision fp32 --sharing $sharing -s zb-h1 -p 2 -m 4 $small --steps 3 --json -o $sharing.stagewright
    expect_code 0
    expect_that "$sharing: the loss is the CPU's" awk -v a="$loss" -v b="$(json runs 0 loss 2)" 'BEGIN { d = a > b ? a - b : b - a; exit !(b > 0 && d < 1e-4 * a) }'
    run stagewright report $sharing.stagewright 1
    expect_code 0
    # What such a run can show is said where it is shown.
    case $sharing in
    queues) expect_out 'wall clock: 2 ranks interleaved on 1 GPU, ops slow each other down' ;;
    partitions) expect_out 'wall clock: each rank on a part of a GPU, slower than a whole one, memory bandwidth shared' ;;
    serialised) expect_out 'virtual clock: projected for 2 devices' ;;
    esac
done

# What can't be.
# shellcheck disable=SC2086
run stagewright record --backend cuda --device 3 -s gpipe -p 2 -m 2 $small --steps 1 -o no.stagewright
expect_code 4
expect_err 'CUDA device 3 of 1'
# shellcheck disable=SC2086
run env STAGEWRIGHT_FAKE_MEMORY=100000 "$STAGEWRIGHT" record --backend cuda -s gpipe -p 2 -m 2 $small --steps 1 -o no.stagewright
expect_code 4
expect_err 'stages together need .* for weights, gradients and optimizer; fake device has .* free'
# shellcheck disable=SC2086
run stagewright record --precision tf32 -s gpipe -p 2 -m 2 $small --steps 1 -o no.stagewright
expect_code 2
expect_err 'the cpu backend computes in fp32 or bf16, not in tf32'
# shellcheck disable=SC2086
run stagewright record --backend cuda --sharing serialised --clock wall -s gpipe -p 2 -m 2 $small --steps 1 -o no.stagewright
expect_code 2
expect_err "serialised can't be used with the wall clock"
expect_no_file no.stagewright
