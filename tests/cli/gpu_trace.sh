# A recording on GPUs includes what CUPTI reports: with the fake device and the fake CUPTI of tests/support, end to end through
# the run file.
# shellcheck shell=bash
export STAGEWRIGHT_CUDA_MODULE=$FAKE
export STAGEWRIGHT_CUPTI_MODULE=$FAKE
small='--model layers=4,hidden=16,heads=2,seq=8'
fact() { stagewright_value "$1" "select value from run_text where key='$2'"; }
stagewright_value() { "$STAGEWRIGHT" sql "$1" "$2" --json | tr -d '\n' | sed -nE 's/.*"rows": *\[ *\[ *"?([^]"]*[^]" ])"? *\].*/\1/p'; }
expect_fact() { expect_that "$2 is '$(fact "$1" "$2")', expected to match $3" grep -qE -- "^($3)$" <<<"$(fact "$1" "$2")"; }
expect_no_fact() { expect_that "$2 is '$(fact "$1" "$2")', expected to be absent" [ -z "$(fact "$1" "$2")" ]; }

# Queues side by side, and one op at a time on the virtual clock: every launch has its op, and says so.
for sharing in queues serialised; do
    # shellcheck disable=SC2086
    run env STAGEWRIGHT_FAKE_NVTX=ranges.$sharing "$STAGEWRIGHT" record --backend cuda --precision fp32 --sharing $sharing -s zb-h1 -p 2 -m 4 $small \
        --steps 4 --json -o $sharing.stagewright
    expect_code 0
    file=$sharing.stagewright
    expect_fact $file gpu_trace whole
    expect_fact $file gpu_trace_detached yes
    expect_fact $file gpu_trace_cupti 130001
    expect_fact $file gpu_trace_records '[0-9]{3,}'
    expect_fact $file gpu_trace_cost '-?[0-9.]+ %'
    expect_fact $file gpu_trace_traced_step_ns '[0-9]+'
    expect_fact $file gpu_trace_untraced_step_ns '[0-9]+'
    for absent in unowned launches_without_work half_messages unstamped ambiguous foreign_ids ops_without_work early off_clock dropped; do
        expect_no_fact $file gpu_trace_$absent
    done
    expect_json 5 runs 0 steps
    expect_fact $file precision fp32
    expect_fact $file ceiling_matrix_flops '[0-9.e+]+'
    expect_fact $file ceiling_copy_bytes '[0-9.e+]+'
    for range in PP:0F0 PP:1F3 PP:0I0 PP:1W3 PP:0OPT; do expect_that "a range is named $range" grep -qx "$range" ranges.$sharing; done

    early=$(stagewright_value $file "select sum(e.arrival_ns < b.start_ns) * 100 / count(*) from edges e join spans b on b.run = e.run and b.span = e.to_span where e.kind = 'launch'")
    expect_that "kernels have the time of their launch ($early % before their start)" [ "${early:-0}" -ge 90 ]

    run stagewright report $file --kernels
    expect_code 0
    expect_out '^F +GEMM +GEMM +[a-z_]+ +[0-9]+ '
    expect_out '^I +GEMM +GEMM +[a-z_]+ +[0-9]+ '
    expect_out '^W +GEMM +GEMM +[a-z_]+ +[0-9]+ '
    expect_out '^OPT +optimizer +optimizer +[a-z_]+ +[0-9]+ '
    expect_out 'launch gaps +[0-9.]+ %'
    expect_out 'bound by' # the roofline, by the ceilings that were measured
    run stagewright report $file --kernels --json
    expect_code 0
    expect_keys device kernels launch_gaps links
    expect_json 1 device launch_gaps by_rank 1 rank
    # Kernels of an op lie within it, on the lane below.
    outside=$(stagewright_value $file "select count(*) from spans k where k.lane='kernel' and k.name in ('GEMM', 'gelu', 'softmax', 'layer_norm') and not exists
        (select 1 from spans o where o.lane='compute' and o.rank=k.rank and o.step=k.step and o.start_ns<=k.start_ns and o.end_ns>=k.end_ns)")
    expect_same "$outside" 0
done

# Messages between ranks are copies on the receiver's transfer lane.
copies=$(stagewright_value queues.stagewright "select count(*) from spans where lane='copy' and name like 'copy within%'")
expect_same "$copies" 40 # eight a step

# Copies of stages, stale weights, rendezvous, recomputation, slices, two devices: nothing is without its op.
export STAGEWRIGHT_FAKE_DEVICES=2
printf '%s\n' '# weights=stashed' '0F0,0F1,0B0,0OPT,0F2,0B1,0OPT,0B2,0OPT' '1F0,1B0,1OPT,1F1,1B1,1OPT,1F2,1B2,1OPT' >stashed.csv
n=0
while read -r options; do
    n=$((n + 1))
    # shellcheck disable=SC2086
    run stagewright record --backend cuda --precision bf16 $options $small --steps 2 --json -o forms$n.stagewright
    expect_code 0
    expect_fact forms$n.stagewright gpu_trace whole
    for absent in unowned ambiguous launches_without_work; do expect_no_fact forms$n.stagewright gpu_trace_$absent; done
done <<'FORMS'
-s dualpipev -p 2 -m 4
-s dualpipe -p 2 -m 4
-s chimera -p 2 -m 4
-s terapipe -p 2 -m 2
-s stashed.csv
-s 1f1b -p 2 -m 4 --recompute all
-s 1f1b -p 2 -m 4 --sends rendezvous --lower pytorch
-s zb-h1:optimizer=rank -p 2 -m 4
FORMS
unset STAGEWRIGHT_FAKE_DEVICES

# Between two devices by NCCL: the same bits as by copies, and both ends of every message on the timeline.
export STAGEWRIGHT_FAKE_DEVICES=2
losses=''
for links in copies nccl; do
    # shellcheck disable=SC2086
    run stagewright record --backend cuda --transport $links --precision fp32 -s zb-h1 -p 2 -m 4 $small --steps 3 --json -o $links.stagewright
    expect_code 0
    expect_fact $links.stagewright gpu_transport $links
    expect_fact $links.stagewright gpu_trace whole
    for absent in unowned ambiguous half_messages; do expect_no_fact $links.stagewright gpu_trace_$absent; done
    losses="$losses $(json runs 0 loss 3)"
done
expect_that "losses are equal:$losses" awk -v l="$losses" 'BEGIN { split(l, a, " "); exit !(a[1] != "" && a[1] == a[2]) }'
for rank in 0 1; do
    ends=$(stagewright_value nccl.stagewright "select count(*) from spans where rank=$rank and lane='kernel' and name like '%SendRecv%'")
    expect_same "$ends" 32 # eight messages a step, an end each
done
# shellcheck disable=SC2086
run stagewright check --backend cuda --transport nccl --precision fp32 -s 1f1b,zbv,dualpipe,terapipe -p 2 -m 4 $small
expect_code 0
expect_out 'all pass'
for each in 'message along the devices' all-reduce reduce-scatter all-gather; do expect_out "^$each +cuda +fp32 .* pass\$"; done
# nccl_fails CODE MESSAGE VARIABLE=VALUE OPTION…
nccl_fails() {
    local code=$1 message=$2 variable=$3
    shift 3
    # shellcheck disable=SC2086
    run env "$variable" "$STAGEWRIGHT" record --backend cuda --transport nccl "$@" $small --steps 4 -o failed.stagewright
    expect_code "$code"
    expect_err "$message"
    rm -f failed.stagewright
}
nccl_fails 5 'rank [01].*NCCL can.t be loaded' STAGEWRIGHT_FAKE_NCCL=absent -s gpipe -p 2 -m 4
nccl_fails 5 'rank [01].*NCCL: remote process exited' STAGEWRIGHT_FAKE_NCCL=broken -s gpipe -p 2 -m 4
nccl_fails 2 'NCCL serves one rank per device: 4 ranks on 2 devices' STAGEWRIGHT_FAKE_NCCL= -s gpipe -p 4 -m 4
unset STAGEWRIGHT_FAKE_DEVICES

# Two schedules in turn share the tracer.
# shellcheck disable=SC2086
run stagewright record --backend cuda --precision fp32 -s gpipe,1f1b -p 2 -m 4 $small --steps 2 --json -o two.stagewright
expect_code 0
states=$(stagewright_value two.stagewright "select group_concat(value) from run_text where key='gpu_trace'")
expect_that "both traces are whole ($states)" [ "$states" = whole,whole ]

# Missing parts are reported, and the run continues.
# trace_says WISH STATE WARNING
trace_says() {
    # shellcheck disable=SC2086
    run env "$1" "$STAGEWRIGHT" record --backend cuda --precision fp32 -s 1f1b -p 2 -m 4 $small --steps 2 -o missing.stagewright
    expect_code 0
    expect_fact missing.stagewright gpu_trace "$2"
    expect_err "$3"
    run stagewright report missing.stagewright
    expect_code 0
    rm missing.stagewright
}
trace_says STAGEWRIGHT_FAKE_CUPTI=conflict 'another profiler is attached' 'another profiler .* is attached to this process'
trace_says STAGEWRIGHT_FAKE_CUPTI=failed 'failed: the fake CUPTI does not start' 'kernels are not recorded: the fake CUPTI does not start'
trace_says STAGEWRIGHT_FAKE_CUPTI=lossy incomplete '[0-9]+ records of the GPU trace were dropped'
trace_says STAGEWRIGHT_FAKE_CUPTI=orphans incomplete '[0-9]+ kernels and copies belong to no op or message'
trace_says STAGEWRIGHT_FAKE_CUPTI=stays whole 'tracing could not be switched off'
trace_says STAGEWRIGHT_CUPTI_MODULE="$PWD/absent.so" 'failed: the CUPTI module was not found.*' 'kernels are not recorded: the CUPTI module was not found'

# CUPTI's raw records, next to the run.
# shellcheck disable=SC2086
run stagewright record --backend cuda --precision fp32 --keep-trace kept.cuptidump -s 1f1b -p 2 -m 4 $small --steps 2 -o kept.stagewright
expect_code 0
expect_same "$(head -c 8 kept.cuptidump)" SWCUPTI1
expect_same "$(od -An -tu4 -j8 -N4 kept.cuptidump | tr -d ' ')" 130001
# shellcheck disable=SC2086
run stagewright record --keep-trace cpu.cuptidump -s 1f1b -p 2 -m 4 $small --steps 1 -o none.stagewright
expect_code 0
expect_err 'file cpu.cuptidump: no GPU was traced, so there are no records to keep'
expect_no_file cpu.cuptidump
# shellcheck disable=SC2086
run stagewright record --backend cuda --no-trace --keep-trace x.cuptidump -s 1f1b -p 2 -m 4 $small --steps 1 -o none.stagewright
expect_code 2
expect_err "can't be combined"

# Not requested: no trace, no warning, ops by their queues' marks.
# shellcheck disable=SC2086
run stagewright record --backend cuda --precision fp32 --no-trace -s 1f1b -p 2 -m 4 $small --steps 2 -o off.stagewright
expect_code 0
expect_fact off.stagewright gpu_trace off
run stagewright report off.stagewright --kernels
expect_out 'this run has no kernels'
# shellcheck disable=SC2086
run stagewright record -s 1f1b -p 2 -m 4 $small --steps 1 -o cpu.stagewright
expect_code 0
expect_no_fact cpu.stagewright gpu_trace
