# Replicas: sharded state simulated in any schedule, real replicas trained, and refusals by name.
# shellcheck shell=bash
costs='F=1,I=1,W=1,UNSHARD=2,REDUCE_GRAD=1,OPT=0.5'

# 7.5 billion parameters in one stage would be 120.0, 31.4, 16.6 and 1.9 GB (tests of schedules); here that levels differ in what they hold
sizes=
for level in none optimizer gradients weights; do
    run stagewright simulate -s 1f1b -p 2 -m 4 --costs analytic:gpt-6.2b@a100:b=1 --replicas 8 --shard $level --json --log-level error
    expect_code 0
    sizes="$sizes $(json idle_by_cause collective)"
done

# one replica stands for all that are alike; the gather of the first chunk is exposed, later ones are prefetched
run stagewright simulate -s bfs -p 2 -m 4 --chunks 2 --costs "$costs" --replicas 4 --shard weights --gather batch:prefetch=1 --reduce overlapped
expect_code 0
expect_out 'Waiting for a collective|collective'
expect_err 'the 4 replicas are alike; one of them is shown'
run stagewright simulate -s 1f1b -p 2 -m 4 --costs "$costs" --replicas 2 --shard weights --gather microbatch --json --log-level error
expect_code 0
expect_json 2 ranks
run stagewright simulate -s 1f1b -p 2 -m 4 --costs "$costs" --replicas 2 --speed 1,0.5 --shard optimizer --json --log-level error
expect_code 0
expect_json 4 ranks
run stagewright simulate -s 1f1b -p 2 -m 4 --costs "$costs" --replicas 2 --replica-batch 3,5 --shard weights:shares=3/5,2/5 --json --log-level error
expect_code 0
expect_json 8 microbatches
# costs without weights: said, not silently free
run stagewright simulate -s 1f1b -p 2 -m 4 --replicas 2 --shard weights
expect_code 0
expect_err 'warning: these costs have no weights'
run stagewright simulate -s 1f1b -p 2 -m 4 --replicas 2 --shard weights --costs "$costs"
expect_that 'nothing is said of weights' bash -c '! grep -q "no weights" err.txt'
# causes sum to idle
run stagewright simulate -s zb-h1 -p 3 -m 6 --costs "$costs" --replicas 2 --shard weights --gather microbatch:prefetch=2 --reduce microbatch --json --log-level error
idle=0
for cause in warmup drain dependency transfer peer_wait head_of_line memory order imbalance straggler recompute_wait reload_wait launch collective; do
    idle=$(awk -v a="$idle" -v b="$(json idle_by_cause "$cause")" 'BEGIN { print a + b }')
done
expect_same "$(awk -v a="$idle" 'BEGIN { printf "%.4f", a }')" "$(json idle | awk '{ printf "%.4f", $1 }')"

refused() { # refused TEXT OPTION...
    local text=$1
    shift
    run stagewright "$@"
    expect_code 2
    expect_err "$text"
}
refused 'one replica has nobody to share with' simulate --shard weights
refused "nothing called 'weight' to shard" simulate --replicas 2 --shard weight
refused 'do not sum to 1' simulate --replicas 2 --shard weights:shares=1/2,1/3
refused '3 shares of the state for 2 ranks' simulate --replicas 2 --shard weights:shares=1/3,1/3,1/3
refused 'the weights are not sharded' simulate --replicas 2 --shard optimizer --gather batch
refused "--cut: backwards to a cut" simulate --replicas 2 --cut 3
refused '2 shares of the batch for 3 replicas' simulate --replicas 3 --replica-batch 3,5
refused '--shard: it can be simulated but not trained yet' record --replicas 2 --shard weights -o "refused.stagewright"
refused '--shard: it can be simulated but not trained yet' check -s 1f1b --replicas 2 --shard optimizer

# real replicas: gradients, losses and weights of the one-rank replay, bit for bit; also three copies, which add up by pieces
for schedule in 1f1b chimera zb-h1; do
    run stagewright check -s $schedule -p 2 -m 4 --replicas 2 --backend cpu --json
    expect_code 0
done
run stagewright check -s gpipe -p 1 -m 2 --replicas 3 --backend cpu --json
expect_code 0
run stagewright check -s 1f1b -p 2 -m 4 --replicas 2 --replica-batch 3,5 --backend cpu --json
expect_code 0
run stagewright record -s 1f1b -p 2 -m 4 --replicas 2 --model layers=2,hidden=16,heads=2,seq=16 --steps 2 -o "replicas.stagewright" --json
expect_code 0
run stagewright report "replicas.stagewright" --json
expect_code 0
expect_json 4 ranks
expect_json 8 microbatches

# the same by processes, where Open MPI is
run stagewright check -s gpipe -p 1 -m 2 --replicas 4 --processes 2 --json
if ! grep -q 'MPI' <<<"$err"; then expect_code 0; fi
