# GPUs of ranks in processes, over the fake device: through the host, by MPI from device to device, and by NCCL with one communicator over the processes.
# shellcheck shell=bash
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0" # as in processes.sh
module=$(dirname "$STAGEWRIGHT")/libstagewright_mpi.so
if [ ! -f "$module" ] || ! command -v mpirun >/dev/null; then
    echo "skipped: ranks as processes need libopenmpi-dev (to build) and openmpi-bin"
    exit 77
fi
export STAGEWRIGHT_CUDA_MODULE=$FAKE
gpus=(--backend cuda --model 'layers=8,hidden=16,heads=2,seq=8' -m 4 --precision fp32)
losses() { stagewright sql "$1" "SELECT step, printf('%.17g', value) FROM metrics WHERE name='loss' AND run=${2:-1}"; }
fact() { stagewright sql "$1" "SELECT value FROM run_text WHERE key = '$2' LIMIT 1" | tail -1 | tr -d ' '; }

# what can't be
run stagewright record -p 2 "${gpus[@]}" --processes -o none.stagewright
expect_code 2
expect_err "ranks in several processes can't take turns on a GPU"
run stagewright record -p 2 "${gpus[@]}" --processes --sharing partitions -o none.stagewright
expect_code 2
expect_err 'sharing partitions is for ranks that are threads'
run stagewright record -p 2 "${gpus[@]}" --processes --transport nccl -o none.stagewright
expect_code 2
expect_err 'NCCL serves one rank per device, but ranks 0 and 1 have the same one on '
export STAGEWRIGHT_FAKE_DEVICES=4
run env STAGEWRIGHT_FAKE_NCCL=absent "$STAGEWRIGHT" record -p 2 "${gpus[@]}" --processes --transport nccl -o none.stagewright
expect_code 4
expect_err "NCCL can't be loaded: there is none"
run env STAGEWRIGHT_FAKE_NCCL=broken "$STAGEWRIGHT" record -p 2 "${gpus[@]}" --processes --transport nccl --steps 20 -o broken.stagewright
expect_code 5
expect_err 'remote process exited or there was a network error'

# through the host
run stagewright check --processes 2 "${gpus[@]:0:4}" -m 4 -s 1f1b,chimera --precision bf16 --json
expect_code 0
expect_json ON checks 1 repeat_equal
three=1f1b,interleaved-1f1b,zbv
run stagewright record -s $three -p 4 "${gpus[@]}" --steps 3 -o threads.stagewright
expect_code 0
run stagewright record -s zbv -p 2 "${gpus[@]}" --steps 3 --processes -o host.stagewright
expect_code 0
expect_err 'GPU kernels are not traced where ranks are processes'
expect_same "$(fact host.stagewright gpu_transport)" host
run stagewright record -s zbv -p 2 "${gpus[@]}" --steps 3 -o two.stagewright
expect_same "$(losses host.stagewright)" "$(losses two.stagewright)"

# an MPI that says it takes pointers of devices gets them
if [ -n "${AWARE:-}" ]; then
    run env LD_PRELOAD="$AWARE" "$STAGEWRIGHT" record -s $three -p 4 "${gpus[@]}" --steps 3 --processes -o aware.stagewright
    expect_code 0
    expect_same "$(fact aware.stagewright gpu_transport)" mpi
    for i in 1 2 3; do expect_same "$(losses aware.stagewright $i)" "$(losses threads.stagewright $i)"; done
fi

# by NCCL: gradients and losses bit for bit those of threads and of the replay on one rank
for count in 2 3 4; do
    names=1f1b,interleaved-1f1b,zbv,chimera
    [ $count != 3 ] || names=1f1b,interleaved-1f1b,zbv
    run stagewright check --processes $count --transport nccl "${gpus[@]:0:4}" -m $((2 * count)) --precision fp32 -s $names --json
    expect_code 0
    expect_json ON passed
    for i in 0 1 2; do
        expect_json ON checks $i gradients_equal
        expect_json ON checks $i repeat_equal
    done
done
run stagewright record -s $three -p 4 "${gpus[@]}" --steps 3 --processes --transport nccl -o nccl.stagewright
expect_code 0
expect_same "$(fact nccl.stagewright gpu_transport)" nccl
for i in 1 2 3; do expect_same "$(losses nccl.stagewright $i)" "$(losses threads.stagewright $i)"; done
run stagewright record -s zbv -p 4 "${gpus[@]}" --steps 3 --processes --ranks-per-process 2 --transport nccl -o pairs.stagewright
expect_code 0
expect_same "$(losses pairs.stagewright)" "$(losses threads.stagewright 3)"
root=()
[ "$(id -u)" != 0 ] || root=(--allow-run-as-root)
run mpirun -q --oversubscribe "${root[@]}" -n 4 "$STAGEWRIGHT" record -s interleaved-1f1b "${gpus[@]}" --steps 3 --transport nccl -o launched.stagewright
expect_code 0
expect_same "$(losses launched.stagewright)" "$(losses threads.stagewright 2)"
# ranks that share state exchange their pieces beside that: the same bits
for way in '--transport nccl' '--sharing queues'; do
    # shellcheck disable=SC2086
    run stagewright check --processes 2 --backend cuda --model layers=4,hidden=16,heads=2,seq=8 -m 4 -p 2 --replicas 2 --precision bf16 -s 1f1b,bfs --shard weights \
        --reduce overlapped:bucket=1kB $way --json
    expect_code 0
    for i in 0 1; do
        expect_json ON checks $i gradients_equal
        expect_json ON checks $i weights_equal
        expect_json ON checks $i repeat_equal
    done
done
# each rank posts its own end of every message of its own list
for lists in '1f1b,zb-h1 --lower grouped' '1f1b,interleaved-1f1b,zbv --lower pytorch'; do
    # shellcheck disable=SC2086
    run stagewright check --processes 3 --transport nccl "${gpus[@]:0:4}" -m 6 --precision fp32 --sends rendezvous -s $lists --json
    expect_code 0
    expect_json ON checks 0 gradients_equal
    expect_json ON checks 1 gradients_equal
done
run stagewright record -s 1f1b -p 3 "${gpus[@]:0:4}" -m 6 --steps 2 --processes --transport nccl --sends rendezvous --lower just-in-time --timeout 2 -o hung.stagewright
expect_code 1
expect_err 'no progress for 2 s'
expect_out 'ranks that wait for each other'
# links between the devices are emulated as ever
run stagewright record -s 1f1b -p 2 "${gpus[@]}" --steps 2 --processes --transport nccl --link 2ms -o slow.stagewright
expect_code 0

# a rank that dies or hangs, a stop: in time, with the complete steps, and nothing left behind
# shellcheck source=ending_ranks.bash
source "$SOURCE/ending_ranks.bash"
# shellcheck disable=SC2034
ending=gpus_end.stagewright
# shellcheck disable=SC2034
model=(--backend cuda --model 'layers=3,hidden=16,heads=2,seq=8' --precision fp32 --transport nccl)
for rank in 1 2 0; do
    end_rank $rank KILL
    expect_code 5
    expect_err "rank $rank: process [0-9]+ on .* has ended, killed or crashed"
    expect_that "steps kept: $steps" [ "${steps:-0}" -ge 5 ]
done
end_rank 1 STOP --timeout 2
expect_code 5
expect_err 'no progress for 2 s.*rank 1 \(process [0-9]+ on .* gives no sign of life\) hangs'
expect_that "steps kept: $steps" [ "${steps:-0}" -ge 5 ]
end_rank 0 TERM
expect_code 130
expect_that "steps kept: $steps" [ "${steps:-0}" -ge 5 ]
expect_gone 'gpus_end\.stagewright'
