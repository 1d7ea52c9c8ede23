# Kernels below ops: table, launch gaps and JSON of report --kernels, on a GPU rank's trace made here.
# shellcheck shell=bash

# two ranks, one op each way; two kernels per op with a gap of 10 µs between them, a copy in the first
for rank in 0 1; do
    {
        printf '{"schemaVersion":1,"distributedInfo":{"rank":%s,"world_size":2},"baseTimeNanoseconds":1700000000000000000,"traceEvents":[\n' $rank
        n=0
        for op in "PP:${rank}F0 $((100 + rank * 200))" "PP:${rank}B0 $((900 - rank * 300))"; do
            read -r name at <<<"$op"
            printf '{"ph":"X","cat":"user_annotation","name":"%s","pid":1,"tid":1,"ts":%s,"dur":50},\n' "$name" "$at"
            for piece in 0 1; do
                n=$((n + 1))
                printf '{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":%s,"dur":5,"args":{"correlation":%s,"External id":%s}},\n' $((at + 10 + piece * 10)) $n $n
                printf '{"ph":"X","cat":"kernel","name":"%s","pid":0,"tid":7,"ts":%s,"dur":60,"args":{"device":0,"stream":7,"correlation":%s,"External id":%s}},\n' \
                    "$([ $piece = 0 ] && echo gemm || echo gelu)" $((at + 30 + piece * 70)) $n $n
            done
        done
        printf '{"ph":"i","name":"end","ts":2000}]}\n'
    } >"gpu_rank$rank.json"
done
run stagewright import 'gpu_rank*.json' -o gpu.stagewright
expect_code 0

run stagewright report gpu.stagewright --kernels
expect_code 0
expect_out 'kernels and copies by op'
expect_out '^F +gemm +gemm +matrix_product +2 '
expect_out 'launch gaps +[0-9.]+ %'
run stagewright report gpu.stagewright --kernels --json
expect_code 0
expect_keys device kernels launch_gaps links roofline
expect_json 2 device kernels 0 calls
expect_json 120000 device kernels 0 total_ns
expect_json null device roofline
run stagewright report gpu.stagewright --json
expect_json null device

# a CPU run has none, and says so
run stagewright simulate -s gpipe -p 2 -m 4 -o cpu.stagewright
expect_code 0
run stagewright report cpu.stagewright --kernels
expect_code 0
expect_out 'this run has no kernels'
run stagewright report gpu.stagewright --kernels --require 'device.launch_gaps.share<=0.5'
expect_code 0

# Two traces without ops: kernels are matched by name, size and order, and a difference is placed; what one alone has is listed with its calls.
trace() { # trace FILE NAME,LENGTH…
    local file=$1 at=100 n=0 call
    shift
    {
        printf '{"schemaVersion":1,"distributedInfo":{"rank":0,"world_size":1},"baseTimeNanoseconds":1700000000000000000,"traceEvents":[\n'
        for call in "$@"; do
            n=$((n + 1))
            printf '{"ph":"X","cat":"kernel","name":"%s","pid":0,"tid":7,"ts":%s,"dur":%s,"args":{"device":0,"stream":7,"correlation":%s}},\n' "${call%,*}" $at "${call#*,}" $n
            at=$((at + ${call#*,} + 5))
        done
        printf '{"ph":"i","name":"end","ts":9000}]}\n'
    } >"$file"
}
trace before.json gemm,50 gelu,10 gelu,10 gelu,10 only_before,7 only_before,8
trace after.json gemm,50 gelu,10 gelu,90 gelu,12 only_after,6
run stagewright import before.json after.json -o two.stagewright
expect_code 0
run stagewright compare two.stagewright before after
expect_code 0
expect_out 'gelu \+82.0 µs: 3 calls as well as 3, 37.3 µs each instead of 10.0 µs; most of all call 2 of 3 on rank 0: 90.0 µs instead of 10.0 µs'
expect_out '^ *gelu .* order +2 of 3 on rank 0, \+80.0 µs'
expect_out '^only in A \(1 of 1, 2 calls\)'
expect_out '^only in B \(1 of 1, 1 call\)'
run stagewright compare two.stagewright before after --json
expect_code 0
expect_json gelu devices kernels 0 name
expect_json order devices kernels 0 matched
expect_json null devices kernels 0 bytes
expect_json 2 devices kernels 0 most_changed call
expect_json 90000 devices kernels 0 most_changed b_ns
expect_json only_a devices kernels 1 matched
expect_json 2 devices kernels 1 calls_a
expect_json null devices kernels 1 most_changed

# The same with the grids of launches: the large one is compared with the large one, though it comes first in one of them.
for file in first last; do
    {
        printf '{"schemaVersion":1,"distributedInfo":{"rank":0,"world_size":1},"baseTimeNanoseconds":1700000000000000000,"traceEvents":[\n'
        large='{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":%s,"dur":%s,"args":{"device":0,"stream":7,"correlation":%s,"grid":[64,1,1],"block":[128,1,1]}},\n'
        small=${large/64,1,1/8,1,1}
        # shellcheck disable=SC2059
        if [ $file = first ]; then printf "$large$small" 100 200 1 400 10 2; else printf "$small$large" 100 10 1 200 230 2; fi
        printf '{"ph":"i","name":"end","ts":9000}]}\n'
    } >"large_$file.json"
done
run stagewright import large_first.json large_last.json -o shapes.stagewright
expect_code 0
run stagewright compare shapes.stagewright large_first large_last
expect_code 0
expect_out 'gemm \(grid 64×1×1, block 128×1×1\) \+30.0 µs: 1 call as well as 1, 230.0 µs each instead of 200.0 µs'
expect_out '^ *gemm .* grid 64×1×1, block 128×1×1 .* shape and order'
run stagewright compare shapes.stagewright large_first large_last --json
expect_json 'grid 64×1×1, block 128×1×1' devices kernels 0 shape_a
expect_json 'grid 64×1×1, block 128×1×1' devices kernels 0 shape_b
expect_json 210000 devices figures computing_ns a
expect_json 240000 devices figures computing_ns b
