# Each cause of idle time provoked by its option, in a simulation and in a real training, and found again: of all causes it grows
# most.
# shellcheck shell=bash
causes='warmup drain dependency transfer peer_wait head_of_line memory order imbalance straggler microbatch recompute_wait reload_wait launch'
idle_times() { local each; for each in $causes; do printf '%s %s\n' "$each" "$(json "$@" idle_by_cause "$each")"; done; }
# grown BEFORE AFTER: the cause that grew most, of two files of `idle_times`
grown() { paste "$1" "$2" | awk '{ d = $4 - $2; if (NR == 1 || d > most) { most = d; name = $1 } } END { print name }'; }

# provokes CAUSE 'COMMON OPTIONS' 'DISTURBANCE'
provokes() {
    local cause=$1 common=$2 disturbance=$3
    # shellcheck disable=SC2086
    for verb in simulate record; do
        local more=''
        [ $verb = record ] && more="--clock virtual --steps 3 --model layers=8,hidden=32,heads=2,seq=32 -o causes-$RANDOM.stagewright"
        path=() && [ $verb = record ] && path=(runs 0)
        run stagewright $verb $common $more --json --log-level error
        expect_code 0
        idle_times "${path[@]}" >before.txt
        run stagewright $verb $common $disturbance $more --json --log-level error
        expect_code 0
        idle_times "${path[@]}" >after.txt
        expect_same "$verb $disturbance: $(grown before.txt after.txt)" "$verb $disturbance: $cause"
    done
}
provokes imbalance '-s gpipe -p 4 -m 8' '--perturb rank=2:2'
provokes imbalance '-s gpipe -p 4 -m 8' '--stage-layers 1,1,1,5'
provokes transfer '-s interleaved-1f1b --chunks 2 -p 2 -m 4' '--perturb link=0-1:4'
provokes launch '-s gpipe -p 4 -m 8' '--perturb launch=0:2,launch=1:2,launch=2:2,launch=3:2'
provokes recompute_wait '-s 1f1b -p 2 -m 8' '--recompute all'

# A cap turns order into memory; sends that wait count as peer_wait.
run stagewright simulate -s 1f1b -p 4 -m 8 --json
expect_json 12.0 idle_by_cause order
idle_times >before.txt
run stagewright simulate -s 1f1b -p 4 -m 8 --memory-limit 4 --json
expect_json 6.0 idle_by_cause memory
idle_times >after.txt
expect_same memory "$(grown before.txt after.txt)"
# Ranks with limits of their own, each its own peak: the same waits are for memory, and stored so.
run stagewright simulate -s 1f1b -p 4 -m 8 --memory-limit 4,3,2,1 -o caps.stagewright --json
expect_json 12.0 idle_by_cause memory
expect_json 0.0 idle_by_cause order
run stagewright report caps.stagewright --json
expect_json 12.0 idle_by_cause memory
# Only rank 0 is at its limit: its waits are for memory, those of the others are not.
run stagewright simulate -s 1f1b -p 4 -m 8 --memory-limit 4,8,8,8 --json
expect_json 6.0 idle_by_cause memory
expect_json 6.0 idle_by_cause order
run stagewright simulate -s 1f1b -p 2 -m 8 --lower rank-parity --json --log-level error
idle_times >before.txt
run stagewright simulate -s 1f1b -p 2 -m 8 --lower rank-parity --sends rendezvous --json --log-level error
idle_times >after.txt
expect_same peer_wait "$(grown before.txt after.txt)"
