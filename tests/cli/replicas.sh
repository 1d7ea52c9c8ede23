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
# how replicas reduce changes nothing where there is one
for option in '--collectives ring' '--reduce overlapped'; do
    # shellcheck disable=SC2086
    run stagewright simulate -s 1f1b -p 2 -m 4 $option
    expect_code 2
    expect_err "${option%% *}: there is one replica"
done
run stagewright record -s 1f1b -p 2 -m 4 --model layers=4,hidden=16,heads=2,seq=8 --collectives ring -o never.stagewright
expect_err '--collectives: trained ranks exchange their pieces point to point'
expect_that 'nothing was recorded' [ ! -e never.stagewright ]
# causes sum to idle
run stagewright simulate -s zb-h1 -p 3 -m 6 --costs "$costs" --replicas 2 --shard weights --gather microbatch:prefetch=2 --reduce microbatch --json --log-level error
idle=0
for cause in warmup drain dependency transfer peer_wait head_of_line memory order imbalance straggler microbatch recompute_wait reload_wait launch collective; do
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
refused 'a single replica has none to share with' simulate --shard weights
refused "nothing called 'weight' to shard" simulate --replicas 2 --shard weight
refused 'do not sum to 1' simulate --replicas 2 --shard weights:shares=1/2,1/3
refused '3 shares of the state for 2 ranks' simulate --replicas 2 --shard weights:shares=1/3,1/3,1/3
refused 'the weights are not sharded' simulate --replicas 2 --shard optimizer --gather batch
refused '--cut: 1 cuts for 2 replicas' simulate --replicas 2 --cut 3
refused '--cut: no replica goes back to layer 0' simulate --replicas 2 --cut 3,1
refused "--cut: '9' is not a layer" check -s 1f1b -p 2 -m 4 --replicas 2 --cut 0,9
refused '--cut: there is one replica' record --cut 0 -o "refused.stagewright"
refused 'the layer is inside a stage' simulate -p 2 -m 4 --replicas 2 --stage-layers 3,3 --cut 0,2
refused "can't shard gradients" simulate --replicas 2 --cut 0,2 --shard gradients
refused 'with stashed weights' check -s pipedream -p 2 -m 4 --replicas 2 --cut 0,4
# the costs of another run may be of any number of samples; a sweep takes those of units as simulate does
run stagewright simulate -s 1f1b -p 2 -m 4 -o units.stagewright
refused 'these costs do not say how many samples' sweep -s 1f1b -p 2 -m 4 --costs-from units.stagewright#1 --replicas 2 --replica-batch 3x2,5x1
run stagewright simulate -s 1f1b -p 2 -m 4 --replicas 2 --replica-batch 3x2,5x1 --json --log-level error
alike=$(json makespan)
run stagewright sweep -s 1f1b -p 2 -m 4 --replicas 2 --replica-batch 3x2,5x1 --json --log-level error
expect_same "$(json rows 0 makespan)" "$alike"
refused '2 shares of the batch for 3 replicas' simulate --replicas 3 --replica-batch 3,5
refused '--collectives: trained ranks exchange their pieces point to point' record --replicas 2 --shard weights --collectives tree -o "refused.stagewright"
refused 'a single replica has none to share with' check -s 1f1b --shard optimizer
refused '2 reductions of gradients that stay whole' check -s gpipe -p 1 -m 2 --replicas 2 --shard optimizer --reduce microbatch --backend cpu

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

# real shards: every level, how it is divided, when it is gathered and reduced
shared() { # shared SCHEDULE OPTION...
    local schedule=$1
    shift
    run stagewright check -s "$schedule" -p 2 -m 4 --replicas 2 --backend cpu --json "$@"
    expect_code 0
    expect_json ON checks 0 weights_equal
}
shared 1f1b --shard optimizer
shared zb-h1 --shard gradients:by=layer --reduce overlapped:bucket=4kB
shared bfs --shard weights:shares=3/4,1/4 --gather batch:prefetch=1
shared zbv --shard weights --gather microbatch:prefetch=2 --reduce microbatch --speed 1,0.5
expect_json 16 checks 0 traffic 0 gathers
shared chimera --reduce late
shared 1f1b --shard weights --gather batch --sends rendezvous --lower rank-parity
shared 1f1b --replica-batch 3x1,5x3 --shard gradients --reduce overlapped
shared 1f1b --replica-batch 3,5 --shard weights --reduce overlapped
expect_json weights checks 0 shard

shared bfs --shard weights --reduce stepped --clip 0.05
shared bfs --shard none --reduce stepped:bucket=2kB --clip 0.05
shared bfs --shard weights --reduce stepped:bucket=2kB

# partial backward: contributors by layer, means over them, and the distance from synchronous training measured beside the run
shared 1f1b --cut 0,5
shared zb-h1 --cut 3,0 --shard optimizer --reduce overlapped:bucket=4kB
expect_that 'the deviation is measured' awk -v x="$(json checks 0 deviation)" 'BEGIN { exit !(x > 0) }'
small=layers=4,hidden=16,heads=2,seq=16
run stagewright record -s 1f1b -p 2 -m 4 --replicas 2 --model $small --cut 0,3 --steps 3 -o "partial.stagewright" --json
expect_code 0
run stagewright report "partial.stagewright" --table contributors
expect_code 0
expect_out 'embedding +0 +1 +0 +50'
expect_out '^ *2 +0 +1 +0 +50'
expect_out '^ *3 +1 +2 +0, 1 +100'
expect_out 'head +1 +2 +0, 1 +100'
expect_out 'replicas go back through 62.5 % of the layers on average; after the last step its weights are'
run stagewright report "partial.stagewright" --table loss_curves
expect_out '^ *4 +[0-9.]+ +[0-9.]+ +[0-9.e-]+'
run stagewright report "partial.stagewright"
expect_out 'partial backward to layers 0,3: .* from synchronous training'
run stagewright sql "partial.stagewright" "SELECT count(DISTINCT name) FROM metrics WHERE name LIKE 'gradient_cosine_%'"
expect_out '^ *6'
run stagewright simulate -s 1f1b -p 4 -m 8 --costs "$costs" --replicas 4 --cut 0,1,2,3 -o "partial.stagewright" --json --log-level error
expect_code 0
expect_json 16 ranks
run stagewright report "partial.stagewright#2" --table contributors
expect_out '^ *0 +0 +1 +0 +25'
expect_out 'go back through 62.5 % of the layers' # (N + 1) / (2N)

# microbatches of several sizes, simulated: work goes by samples, so that two of 2 take as long as four of 1
run stagewright simulate -s 1f1b -p 2 -m 4 --costs F=1,I=1,W=1 --replicas 2 --replica-batch 4x1,4x2 --json --log-level error
expect_code 0
expect_same "$(json busy)" 72.0
run stagewright simulate -s 1f1b -p 2 -m 4 --costs analytic:gpt-6.2b@a100:b=2 --replicas 2 --replica-batch 3x2,5x1 --json --log-level error
expect_code 0

# every schedule and variant; what can't share its state is left out by name
run stagewright check -p 2 -m 4 --replicas 2 --backend cpu --shard weights --gather microbatch:prefetch=1 --reduce microbatch
expect_code 0
expect_out 'dualpipe .* pass'
expect_out 'pipedream skipped: the state of a schedule with stashed weights'
expect_no_out FAIL

# recorded: lanes, bytes and numbering; ZeRO 3's volume is Ψ a collective less what the rank owns
model=layers=2,hidden=16,heads=2,seq=16
run stagewright record -s 1f1b -p 2 -m 4 --replicas 2 --shard weights --gather microbatch --model $model --steps 2 --speed 1,0.5 -o "shards.stagewright" --json
expect_code 0
run stagewright sql "shards.stagewright" "SELECT group_concat(n, ' ') FROM (SELECT rank || ':' || replica || ':' || pipeline_rank || ':' || count(*) AS n FROM spans WHERE lane='gather' AND kind='UNSHARD' AND step=1 AND name NOT IN ('copies') GROUP BY rank ORDER BY rank)"
expect_out '0:0:0:8 1:0:1:8 2:1:0:8 3:1:1:8'
elements=$((256 * 16 + 16 * 16 + 2 * (12 * 16 * 16 + 13 * 16) + 256 * 16 + 2 * 16))
run stagewright sql "shards.stagewright" "SELECT value FROM metrics WHERE name='bytes_gathered' AND step=1"
expect_out "^$((8 * elements * 4))" # 8 gathers of each stage, of which each of the two ranks misses a half
run stagewright sql "shards.stagewright" "SELECT value FROM metrics WHERE name='bytes_reduced' AND step=1"
expect_out "^$((elements * 4))"
run stagewright report "shards.stagewright" --table collectives
expect_out 'gather'

# a declared limit of memory: rank, op and both numbers
run stagewright record -s 1f1b -p 2 -m 4 --replicas 2 --model $model --rank-memory 1MB,200kB --steps 2 -o "limit.stagewright"
expect_code 5
expect_err 'rank [23], .*: it needs [0-9]* bytes beside the [0-9]* that it holds, over the limit of 200000'
run stagewright record -s 1f1b -p 2 -m 4 --replicas 2 --model $model --rank-memory 1MB,2MB,3MB --steps 2 -o "limit.stagewright"
expect_code 2

# limits of activations by rank of a pipeline: rank 0 of 1F1B holds two microbatches, rank 1 one
run stagewright record -s 1f1b -p 2 -m 4 --replicas 2 --model $model --memory-limit 2,1 --steps 2 -o "limits.stagewright"
expect_code 0
run stagewright record -s 1f1b -p 2 -m 4 --replicas 2 --model $model --memory-limit 1,2 --steps 2 -o "limits.stagewright"
expect_code 1
expect_err 'rank 0, .*: it would hold 2 of activations, the limit is 1'
run stagewright record -s 1f1b -p 2 -m 4 --model $model --memory-limit 1,2,3 --steps 2 -o "limits.stagewright"
expect_code 2
expect_err '3 limits for 2 ranks'

# check trains under the same limits
run stagewright check --backend cpu -s 1f1b -p 2 -m 4 --memory-limit 1,2
expect_code 1
expect_err 'rank 0, op 2 .0F1.: it would hold 2 of activations, the limit is 1'
run stagewright check --backend cpu -s 1f1b -p 2 -m 4 --replicas 2 --rank-memory 8MB,200kB
expect_code 5
expect_err 'rank [23], .*: it needs [0-9]* bytes beside the [0-9]* that it holds, over the limit of 200000'
run stagewright check --backend cpu -s 1f1b -p 2 -m 4 --replicas 2 --rank-memory 8MB --memory-limit 2,1
expect_code 0
refused '3 sizes for 4 ranks' check --backend cpu -s 1f1b -p 2 -m 4 --replicas 2 --rank-memory 1MB,2MB,3MB

# partial backward in a grid, and of a plan
run stagewright sweep -s 1f1b,zb-h1 -p 4 -m 8 --replicas 2 --cut 0,2 --json
expect_code 0
swept=$(json rows 0 makespan)
run stagewright simulate -s 1f1b -p 4 -m 8 --replicas 2 --cut 0,2 --json
expect_same "$(json makespan)" "$swept"
run stagewright sweep -s 1f1b -p 4 -m 8 --replicas 2 --cut 0,5
expect_code 2
expect_err "is not a layer"
run stagewright plan -p 4 -m 8 --replicas 2 --cut 0,2 -o planned.stagewright
expect_code 0
run stagewright report planned.stagewright --table contributors
expect_code 0
expect_out '^ *0 +0 +1 +0 +50'
expect_out '^ *2 +2 +2 +0, 1 +100'

# the same by processes, where Open MPI is
run stagewright check -s gpipe -p 1 -m 2 --replicas 4 --processes 2 --json
if ! grep -q 'MPI' <<<"$err"; then expect_code 0; fi

# a shared lane: what waits for what does not depend on the numbering of replicas
cat >lane.json <<'JSON'
{"format": "stagewright-costs", "version": 1, "duration_ns": {"F": [1000, 1000], "I": [1000, 1000], "W": [1000, 1000], "B": [2000, 2000], "OPT": [100, 100]},
 "stage_bytes": [{"boundary": 1000, "weight": 24000, "gradient": 24000, "optimizer": 96000}, {"boundary": 1000, "weight": 24000, "gradient": 24000, "optimizer": 96000}]}
JSON
step_of() { run stagewright simulate -s 1f1b -p 2 -m 3 --costs lane.json --json --log-level error "$@" && json whole_step_ns; }
lane=(--link 100ns,4GB/s --replicas 2 --shard weights --reduce microbatch --gather batch --collectives ring:shared)
expect_same "$(step_of "${lane[@]}" --speed 0.5,0.25)" "$(step_of "${lane[@]}" --speed 0.25,0.5)"
# two-level without a link between hosts has --link there, and is not faster than with the same one given
hosts=(--link 100ns,1GB/s --replicas 4 --shard weights)
expect_same "$(step_of "${hosts[@]}" --collectives two-level:per-host=2)" "$(step_of "${hosts[@]}" --collectives two-level:per-host=2:between=100ns,1GB/s)"
expect_that 'a faster link between hosts helps' test "$(step_of "${hosts[@]}" --collectives two-level:per-host=2:between=1ns,100GB/s)" -lt "$(step_of "${hosts[@]}" --collectives two-level:per-host=2)"
# sweep: the costs' own links, or --link
column() { tail -1 out.txt | awk -F, '{ print $(NF - 1) }'; }
run stagewright simulate -s 1f1b -p 4 -m 8 --costs analytic:gpt-6.2b@a100:b=1 --replicas 4 --shard weights --gather microbatch --json --log-level error
simulated=$(json whole_step_ns)
run stagewright sweep -s 1f1b -p 4 -m 8 --costs analytic:gpt-6.2b@a100:b=1 --replicas 4 --shard weights --gather microbatch
expect_same "$(column)" "$simulated"
run stagewright sweep -s 1f1b -p 2 -m 3 --costs lane.json --link 100ns,1GB/s --replicas 2 --shard weights
expect_same "$(column)" "$(step_of --link 100ns,1GB/s --replicas 2 --shard weights)"
run stagewright sweep -s 1f1b -p 2 -m 3 --link 100ns,1GB/s
expect_err '--link gives times, but the costs are in units'
# small buckets: compare, and what would help, know of the reductions behind the last op
for bucket in '' :bucket=100B; do
    run stagewright simulate -s 1f1b -p 2 -m 3 --costs lane.json --link 100ns,100GB/s --replicas 4 --shard weights --gather batch --reduce overlapped$bucket -o buckets.stagewright
    expect_code 0
done
expect_out "a stage's gradients reduced at once, not in buckets"
run stagewright compare buckets.stagewright 1 2
expect_out 'B is [0-9.]* % slower'
expect_out 'bucket of a reduction *none *100 B'
# alone, --replicas has reductions at the lists' ends, as a simulation
run stagewright record -s 1f1b -p 2 -m 2 --replicas 2 --model layers=2,hidden=16,heads=2,seq=4 --microbatch-size 1 --steps 2 --clock virtual -o plain.stagewright
expect_code 0
run stagewright sql plain.stagewright "SELECT COUNT(*) FROM spans WHERE lane = 'reduce' AND step = 1" --json
expect_json 4 rows 0 0
# memory of a real run is never below zero, and a run fits into what it shows, but for messages that another run may have waiting (256 bytes each)
memory=(-s 1f1b -p 2 -m 2 --replicas 2 --shard weights:by=layer --reduce overlapped --stage-layers 1,2 --model layers=3,hidden=16,heads=2,seq=4 --microbatch-size 1 --steps 2 --clock virtual --gather batch)
run stagewright record "${memory[@]}" -o memory.stagewright
expect_code 0
run stagewright sql memory.stagewright "SELECT COUNT(*) FROM (SELECT sum(d) OVER (PARTITION BY rank, category ORDER BY time_ns) AS s FROM (SELECT rank, category, time_ns, sum(delta_bytes) AS d FROM memory GROUP BY rank, category, time_ns)) WHERE s < 0" --json
expect_json 0 rows 0 0
run stagewright sql memory.stagewright "SELECT group_concat((most + 1024) || 'B', ',') FROM (SELECT rank, max(s) AS most FROM (SELECT rank, time_ns, sum(d) OVER (PARTITION BY rank ORDER BY time_ns) AS s FROM (SELECT rank, time_ns, sum(delta_bytes) AS d FROM memory GROUP BY rank, time_ns)) GROUP BY rank ORDER BY rank)" --json
run stagewright record "${memory[@]}" --rank-memory "$(json rows 0 0)" -o within.stagewright
expect_code 0
