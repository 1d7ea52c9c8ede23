# Replicas that share state on GPUs, over the fake device, which fails on an access that no mark puts in order.
# shellcheck shell=bash
export STAGEWRIGHT_CUDA_MODULE=$FAKE
small='--model layers=4,hidden=16,heads=2,seq=8'
# Replicas that share state, in fp32 and with narrow weights: gathers and reductions on the device, bit for bit the replay's. Each kind of sharding,
# pieces by layer and by shares, in buckets; a rank that owns nothing; steps without a barrier that are rolled back; partial backward.
for precision in fp32 bf16; do
    for state in '--shard none --reduce overlapped' '--shard optimizer:by=layer --reduce late' '--shard gradients:shares=1,0 --reduce microbatch:bucket=4kB' \
        '--shard weights:shares=2/3,1/3 --gather batch:prefetch=1 --reduce overlapped:bucket=1kB' '--shard weights --gather microbatch --reduce stepped --clip 0.02' \
        '--shard optimizer --reduce overlapped --cut 0,3'; do
        # shellcheck disable=SC2086
        run stagewright check --backend cuda $small --precision $precision -s zb-h1,interleaved-1f1b -p 2 -m 4 --replicas 2 $state --json
        expect_code 0
        for i in 0 1; do
            expect_json ON checks $i gradients_equal
            expect_json ON checks $i weights_equal
            expect_json ON checks $i repeat_equal
        done
    done
done
expect_that "what is gathered is counted" test "$(json checks 0 traffic 0 gathered_bytes)" -gt 0
# On devices of their own pieces go by NCCL or by copies; the same bits.
for transport in copies nccl; do
    # shellcheck disable=SC2086
    run env STAGEWRIGHT_FAKE_DEVICES=4 "$STAGEWRIGHT" check --backend cuda $small --precision bf16 --transport $transport -s 1f1b -p 2 -m 4 --replicas 2 --shard weights \
        --reduce overlapped:bucket=1kB --json
    expect_code 0
    expect_json ON checks 0 weights_equal
done
# Narrow weights are gathered in half the bytes.
gathered=()
for precision in fp32 bf16; do
    # shellcheck disable=SC2086
    run stagewright record --backend cuda $small --precision $precision -s 1f1b -p 2 -m 4 --replicas 2 --shard weights --sharing queues --steps 2 -o shared-$precision.stagewright
    expect_code 0
    run stagewright sql shared-$precision.stagewright "SELECT CAST(value AS INT) FROM metrics WHERE name='bytes_gathered' AND step=1"
    expect_code 0
    gathered[${#gathered[@]}]=$(tail -n 1 <<<"$out" | tr -d ' ')
done
expect_same "${gathered[0]}" $((2 * gathered[1]))
run stagewright record --backend cuda --model layers=2,hidden=18,heads=2,seq=8 -s 1f1b -p 1 -m 2 --replicas 2 --shard weights -o none.stagewright
expect_code 2
expect_err 'hidden 18 is not a multiple of 8: ranks share a stage.s state in one vector'
