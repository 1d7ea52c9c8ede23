#!/usr/bin/env bash
# Verifies what needs a GPU, in parts of at most nine minutes each, the most telling steps first (docs/performance.md, "On a GPU").
#
#   tests/bench/prove_on_gpu.sh prepare [BUILD]   on the machine that builds: .gpu/, with program, modules and packages, to be copied
#   tests/bench/prove_on_gpu.sh first             on the machine with the GPU: facts, CUDA alone, gradients of every schedule, traces, small runs for
#                                                 tests/data/runs/cuda, every kernel timed, speed
#   tests/bench/prove_on_gpu.sh more              launch gaps, ceilings, memory, speed at other widths, attention by length
#   tests/bench/prove_on_gpu.sh tools             compute-sanitizer, and ncu on the kernels that are furthest from the device's limits
#   tests/bench/prove_on_gpu.sh build             only builds there; the others do so if the copied program does not start
#
# Results go to $OUT [a new folder]: PHASE.log, PHASE.summary, and the output of each step. No step waits for another's success; the exit code is
# 1 if one failed. ONLY='traced|gaps' runs the steps whose names match, SMALL=1 reduces the sizes, SECONDS_OF_PHASE [540] the time, STAGEWRIGHT names an existing program:
# with it the script itself is tested on the fake device (tests/cli/prove_on_gpu.sh).
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root" || exit 2
phase=${1:-}
taken=$root/.gpu
work=${TMPDIR:-/tmp}/stagewright-on-gpu
architecture=${ARCHITECTURE:-90}
packages='libfmt-dev libfmt9 nlohmann-json3-dev libsqlite3-dev libsqlite3-0 zlib1g-dev zlib1g libsimdjson-dev libsimdjson14 libcli11-dev
libexpected-dev libprotozero-dev libopenblas0-pthread libgfortran5 libquadmath0'

# The questions to CUDA alone, as a program at $1.
build_probe() {
    local toolkit
    [ -n "$(command -v nvcc)" ] || PATH=$PATH:/usr/local/cuda/bin
    toolkit=$(dirname "$(dirname "$(readlink -f "$(command -v nvcc)")")")
    nvcc -std=c++20 -O2 -arch="sm_$architecture" tests/bench/gpu_probe.cu -o "$1" -I"$toolkit/extras/CUPTI/include" \
        -L"$toolkit/lib" -L"$toolkit/lib64" -L"$toolkit/lib64/stubs" -L"$toolkit/extras/CUPTI/lib64" -lcublasLt -lcupti -lcuda
}

prepare() {
    local build=${1:-build/cuda} file
    mkdir -p "$taken/packages" "$taken/bin"
    # shellcheck disable=SC2086
    (cd "$taken/packages" && apt-get download $packages) || return
    for file in stagewright libstagewright_cuda.so libstagewright_cupti.so; do
        install "$build/bin/$file" "$taken/bin/" && strip --strip-unneeded "$taken/bin/$file" || return
    done
    build_probe "$taken/bin/gpu_probe" || return
    du -sh "$taken"
}

# --- the program ---------------------------------------------------------------------------------------------------------------------

# Folders of libraries that the modules need, of the toolkit or else of Python's packages.
cuda_folders() {
    local name folders
    folders=$(ls -d /usr/local/cuda*/lib64 /usr/local/cuda*/lib /usr/local/cuda*/targets/x86_64-linux/lib /usr/local/cuda*/extras/CUPTI/lib64 2>/dev/null)
    folders+=" $(python3 -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])' 2>/dev/null)/nvidia"
    for name in libcublasLt.so.13 libcupti.so.13 libnccl.so.2 libcudnn.so.9; do
        # shellcheck disable=SC2086
        find -L $folders -name "$name" -printf '%h\n' -quit 2>/dev/null
    done | sort -u | paste -sd:
}

# A program that finds its libraries without changing those of others.
write_start() {
    local libraries=$work/packages/usr/lib/x86_64-linux-gnu
    # shellcheck disable=SC2016
    printf '#!/bin/sh\nLD_LIBRARY_PATH=%s:%s:%s${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} exec %s "$@"\n' "$libraries" "$libraries/openblas-pthread" \
        "$(cuda_folders)" "$1" >"$work/stagewright"
    chmod +x "$work/stagewright"
    program=$work/stagewright
}

unpack() {
    [ -d "$work/packages" ] && return
    mkdir -p "$work/packages"
    local file
    for file in "$taken"/packages/*.deb; do dpkg -x "$file" "$work/packages" || return; done
}

build() {
    unpack || return
    local prefix=$work/packages/usr
    [ -n "$(command -v nvcc)" ] || PATH=$PATH:/usr/local/cuda/bin
    cmake -S . -B build/gpu -G Ninja -DCMAKE_BUILD_TYPE=Release -DSTAGEWRIGHT_QT=OFF -DSTAGEWRIGHT_TESTS=OFF -DSTAGEWRIGHT_WERROR=OFF \
        -DSTAGEWRIGHT_CUDA_ARCHITECTURES="$architecture" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_LIBRARY_ARCHITECTURE=x86_64-linux-gnu \
        -DCMAKE_EXE_LINKER_FLAGS="-Wl,-rpath-link,$prefix/lib/x86_64-linux-gnu" &&
        cmake --build build/gpu --target stagewright stagewright_cuda stagewright_cupti && write_start "$root/build/gpu/bin/stagewright"
}

# Sets `program`: the one named, built here or copied, or a new one.
find_program() {
    program=${STAGEWRIGHT:-}
    [ -n "$program" ] && return
    mkdir -p "$work"
    unpack || return
    local made
    for made in "$root/build/gpu/bin" "$taken/bin"; do
        if [ ! -x "$made/stagewright" ] || [ ! -e "$made/libstagewright_cuda.so" ]; then continue; fi
        write_start "$made/stagewright"
        if grep -q '^cuda .* yes' <<<"$("$program" devices 2>&1)"; then return; fi # not through a pipe, which grep -q would break
        "$program" devices
    done
    build
}

# --- steps ---------------------------------------------------------------------------------------------------------------------------

# step NAME SECONDS EXPECTED COMMAND…: passes if the command exits with 0 and its output has a line that matches EXPECTED. Steps that measure no time
# may run side by side, each followed by &, with a `wait` after the last.
step() {
    local name=$1 limit=$2 expected=$3 left begin code verdict output
    shift 3
    [[ $name =~ ${ONLY:-.} ]] || return
    left=$((deadline - SECONDS))
    if ((left < 5)); then
        printf '%-8s %4s s  %s\n' 'no time' - "$name" >>"$summary"
        return
    fi
    ((limit > left)) && limit=$left
    begin=$SECONDS
    output=$(mktemp -p "$folder")
    if declare -F "$1" >/dev/null; then set -- bash -c '"$@"' step "$@"; fi
    timeout -k 5 "$limit" "$@" >"$output" 2>&1
    code=$?
    {
        printf '\n===== %s\n%s\n' "$name" "$*"
        tail -c 300000 "$output" # all logs of a part stay below 16 MiB
    } >>"$log"
    verdict=pass
    if grep -q '^skipped' "$output"; then verdict=skipped
    elif ((code == 124 || code == 137)); then verdict="> $limit s"
    elif ((code != 0)); then verdict="code $code"
    elif ! grep -qE -- "$expected" "$output"; then verdict=unlike
    fi
    {
        printf '%-8s %4d s  %s\n' "$verdict" $((SECONDS - begin)) "$name"
        if [ "$verdict" = pass ]; then grep -E -- "$expected" "$output" | tail -n "${LINES_SHOWN:-1}"; else tail -n 6 "$output"; fi | cut -c1-200 | sed 's/^/                   /'
    } >"$output.summary"
    cat "$output.summary" >>"$summary"
    rm -f "$output" "$output.summary"
}
keys() { # RUN LIKE: a run's facts, one per line
    "$program" sql "$1" "select key || ' = ' || value from run_text where key like '$2' order by key" --json | grep -oE '"[^"]+ = [^"]*"'
}
skipped() { echo "skipped: $*"; }

small=${SMALL:-0}
of() { if [ "$small" = 1 ]; then echo "$2"; else echo "$1"; fi; } # REAL SMALL
tiny=layers=4,hidden=16,heads=2,seq=8

wide=$(of layers=4,hidden=2048,heads=16,seq=2048 $tiny)

facts() {
    nvidia-smi || echo 'no nvidia-smi'
    uname -a
    nproc
    nvcc --version | tail -n 2
    ldd "$(dirname "$(readlink -f "$(command -v "$program")")")"/libstagewright_*.so 2>/dev/null | grep -E 'cuda|cublas|cupti|nccl|not found'
    python3 - <<'PYTHON'
import importlib.util
for name in ("torch", "triton", "nvidia.cudnn", "nvidia.nccl", "nvidia.cuda_cupti"):
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        spec = None
    print(name, "at", (spec.origin or list(spec.submodule_search_locations)[0]) if spec else "nowhere")
PYTHON
    "$program" devices
}
# The questions to CUDA alone.
probe() {
    local made=$taken/bin/gpu_probe
    if [ ! -x "$made" ]; then
        made=$folder/gpu_probe
        build_probe "$made" || { skipped 'nvcc is not there, and no probe was prepared'; return; }
    fi
    LD_LIBRARY_PATH=$(cuda_folders) "$made"
    local code=$?
    ((code != 4 && code != 127)) || { skipped "the probe ended with code $code"; return 0; }
    return $code
}
check() { "$program" check --backend cuda "$@"; }
record() { "$program" record --backend cuda "$@"; }
# A traced run and whether all of its launches have their op.
traced() { # NAME OPTIONS…
    local run=$folder/$1.stagewright
    shift
    record "$@" -o "$run" && keys "$run" 'gpu_trace%'
}
# Two replicas of one rank, each on a GPU of its own.
shared_by_nccl() {
    [ "$("$program" devices 2>/dev/null | grep -c '^cuda .* yes')" -ge 2 ] || { skipped 'it needs two GPUs'; return; }
    check --precision bf16 --transport nccl -s 1f1b -p 1 -m 4 --replicas 2 --shard weights --reduce overlapped --model "$(of layers=4,hidden=256,heads=4,seq=128 $tiny)"
}
versus_torch() { # HIDDEN SECONDS
    LINES_SHOWN=8 step "against PyTorch, hidden $1" "$2" 'ms|engine / best|attention' python3 tests/bench/compare_torch_cuda.py "$program" --hidden "$1" \
        --steps "$(of 10 2)" --sequence "$(of 2048 16)" --layers "$(of 4 1)" --microbatches "$(of 8 2)"
}

first_phase() {
    local sharing precision kept=$folder/cuda
    LINES_SHOWN=12 step 'facts' 60 'NVIDIA|cuda .* yes|torch at' facts
    LINES_SHOWN=40 step 'CUDA alone' 60 'answers are not|^yes|^fact' probe
    # The copied modules read the records of one version of CUPTI.
    record -s gpipe -p 1 -m 2 --steps 1 --model $tiny -o "$folder/first.stagewright" >>"$log" 2>&1
    if keys "$folder/first.stagewright" 'gpu_trace%' | tee -a "$log" | grep 'this build was made for version' >/dev/null; then build >>"$log" 2>&1; fi
    step 'gradients in fp32' 60 'all pass' check -s 1f1b -p 2 -m 4 --model $tiny &
    LINES_SHOWN=3 step 'gradients in bf16' 60 'all pass' check --precision bf16 -s 1f1b,zb-h1,zbv --model "$(of layers=4,hidden=256,heads=4,seq=128 $tiny)" &
    step 'gradients with attention on the matrix units' 60 'all pass' env STAGEWRIGHT_CUDA_FLASH_FROM=1 \
        "$program" check --backend cuda -s 1f1b,terapipe --precision bf16 -p 2 -m "$(of 4 2)" --model "$(of layers=4,hidden=256,heads=4,seq=300 layers=2,hidden=16,heads=2,seq=8)" &
    for precision in fp32 bf16; do
        step "replicas that share weights, $precision" 60 'all pass' check --precision $precision -s 1f1b,zb-h1 -p 2 -m 4 --replicas 2 --shard weights --gather batch:prefetch=1 \
            --reduce overlapped:bucket=64kB --model "$(of layers=4,hidden=256,heads=4,seq=128 $tiny)" &
    done
    step 'sharded state by NCCL' 60 'all pass' shared_by_nccl &
    step 'odd sizes: ends that are not fused' 60 'all pass' check -s 1f1b -p 2 -m 2 --model layers=2,hidden=18,heads=2,seq=7 &
    step 'attention that streams its keys' 60 'all pass' env STAGEWRIGHT_CUDA_FLASH_FROM=1 "$program" check --backend cuda -s 1f1b,terapipe -p 2 -m 4 --model $tiny &
    step 'ranks side by side' 90 'all pass' check --sharing queues -s 1f1b,zb-h1,zbv,dualpipe -p "$(of 4 2)" -m 8 --model $tiny &
    # shellcheck disable=SC2046
    step 'every schedule' 120 'all pass' check $(of '' '-s gpipe,zbv') --model "$(of layers=8,hidden=32,heads=2,seq=16 $tiny)" -p "$(of 4 2)" -m "$(of 8 4)" &
    wait
    for sharing in queues partitions serialised; do
        LINES_SHOWN=6 step "traced, sharing: $sharing" 30 'gpu_trace = whole' traced "$sharing" --sharing $sharing --keep-trace "$folder/$sharing.cuptidump" -s zb-h1 -p 4 -m 8 --steps 4 \
            --model "$(of layers=8,hidden=1024,heads=16,seq=512 $tiny)"
    done
    step 'traced slices, whose keys are copied by rows' 40 'gpu_trace = whole' traced slices --sharing queues --keep-trace "$folder/slices.cuptidump" -s terapipe -p 2 -m 4 --steps 4 --model "$(of layers=4,hidden=512,heads=8,seq=512 $tiny)"
    for sharing in queues slices; do
        gzip -c "$folder/$sharing.cuptidump" >"$OUT/$sharing.cuptidump.gz" 2>/dev/null
    done
    # Fixtures: small enough to keep, of every way to share.
    mkdir -p "$kept"
    for sharing in queues partitions serialised; do
        step "small run for tests/data/runs/cuda: $sharing" 20 . record --sharing $sharing -s zb-h1 -p 2 -m 4 --steps 3 --model layers=4,hidden=64,heads=2,seq=32 -o "$kept/zb-h1-$sharing.stagewright"
    done
    step 'small run for tests/data/runs/cuda: slices' 20 . record --sharing queues -s terapipe -p 2 -m 4 --steps 3 --model layers=4,hidden=64,heads=2,seq=32 -o "$kept/terapipe.stagewright"
    tar -C "$folder" -czf "$OUT/cuda-runs.tar.gz" cuda && ls -l "$OUT/cuda-runs.tar.gz" >>"$log"
    LINES_SHOWN=40 step 'every kernel, beside PyTorch' 90 'gradient of|attention|norm|Adam|large|head|expand|sum' python3 tests/bench/kernel_table.py "$program" --model "$(of hidden=2048,heads=16,seq=2048 hidden=16,heads=2,seq=8)" \
        --microbatch-size 1
    versus_torch "$(of 2048 256)" 130
}

more_phase() {
    local run model size
    run=$folder/gaps.stagewright
    step 'one rank of hidden 2,048' 60 . record -s 1f1b -p 1 -m 8 --microbatch-size 1 --steps 6 --model "$wide" -o "$run"
    LINES_SHOWN=3 step 'exposed launch gaps below 2 %' 20 . "$program" report "$run" --kernels --require "device.launch_gaps.share<=$(of 0.02 1)"
    LINES_SHOWN=1 step 'launch gaps: what was launched late' 20 'launched late' "$program" report "$run" --kernels
    LINES_SHOWN=5 step 'ceilings' 20 'ceiling' keys "$run" 'ceiling%'
    model=$(of layers=8,hidden=1024,heads=16,seq=512 $tiny)
    # shellcheck disable=SC2016
    LINES_SHOWN=4 step 'memory beside a recording' 50 'MiB' bash -c '
        "$@" >/dev/null 2>&1 & recording=$!
        while kill -0 $recording 2>/dev/null; do nvidia-smi --query-gpu=memory.used --format=csv,noheader || echo "no nvidia-smi: 0 MiB"; sleep 0.5; done | sort -n | uniq | tail -n 4
        wait $recording' memory "$program" record --backend cuda --no-trace -s 1f1b -p 4 -m 8 --steps 3 --model "$model" -o "$folder/memory.stagewright"
    for size in $(of '4096 1024' 256); do
        versus_torch "$size" 110
    done
    LINES_SHOWN=12 step 'attention of PyTorch and cuDNN' 45 'tokens:|skipped' python3 tests/bench/attention_probe.py
    # shellcheck disable=SC2046
    LINES_SHOWN=8 step 'attention, heads of 128' 60 'ms|heads of' python3 tests/bench/attention_lengths.py "$program" --head-width 128 --hidden "$(of 2048 128)" \
        --layers "$(of 4 1)" --tokens "$(of 4096 32)" --steps "$(of 5 2)" --sequence $(of '256 512 1024 2048' '16 32')
}

# The engine's kernels behind a line of `devices --kernels`, as ncu names them.
kernels_of() {
    case $1 in
    attention*) echo 'flash|softmax' ;;
    'layer norm'*) echo 'norm|column' ;;
    *embedding*) echo 'embed|tokenGrad|positionGrad' ;;
    'sums of columns') echo 'column' ;;
    *GELU*) echo 'gelu|finish|column' ;;
    AdamW) echo 'stepKernel' ;;
    *squares*) echo 'squares|addPartials' ;;
    'sum of gradients') echo 'addKernel' ;;
    'scale and shift') echo 'scaleShift' ;;
    'cross entropy') echo 'crossEntropy|meanLoss' ;;
    *) echo 'gemm|xmma|cutlass' ;;
    esac
}
# ncu on the three lines that are furthest from the device's limits.
slowest() {
    local model shown
    model=$(of hidden=2048,heads=16,seq=2048 hidden=16,heads=2,seq=8)
    "$program" devices --kernels "$model" --backend cuda --precision bf16 --microbatch-size 1 --json >"$folder/kernels.json" || return
    shown=$(python3 -c 'import json, sys; print("\n".join(k["kernel"] for k in sorted(json.load(open(sys.argv[1]))["kernels"][2:], key=lambda k: k["share_of_large"])[:3]))' "$folder/kernels.json")
    printf 'furthest from the limits:\n%s\n' "$shown"
    [ -n "$(command -v ncu)" ] || { skipped 'ncu is not there'; return; }
    while read -r line; do
        ncu --clock-control none --section SpeedOfLight --section Occupancy --section MemoryWorkloadAnalysis -k "regex:$(kernels_of "$line")" -c 4 \
            "$program" devices --kernels "$model" --backend cuda --precision bf16 --microbatch-size 1
    done <<<"$shown"
}

tools_phase() {
    local tool from
    for tool in memcheck racecheck; do
        for from in 1 1000000; do
            if [ -z "$(command -v compute-sanitizer)" ]; then
                step "$tool, attention without probabilities from $from" 5 . skipped 'compute-sanitizer is not there'
                continue
            fi
            step "$tool, attention without probabilities from $from" 80 'ERROR SUMMARY: 0|0 hazards' env STAGEWRIGHT_CUDA_FLASH_FROM=$from \
                compute-sanitizer --tool $tool --error-exitcode 9 --target-processes all "$program" record --backend cuda --no-trace -s zbv -p 2 -m 2 \
                --sharing queues --steps 1 --warmup 0 --model layers=4,hidden=64,heads=2,seq=32 -o "$folder/checked-$tool-$from.stagewright" &
        done
    done
    wait
    LINES_SHOWN=60 step 'ncu on the slowest kernels' 150 'furthest|Throughput|Duration|Occupancy|Kernel|\(' slowest
    step 'one rank in tf32' 40 . record --no-trace --precision tf32 -s 1f1b -p 1 -m 8 --microbatch-size 1 --steps 5 --model "$wide" -o "$folder/tf32.stagewright"
    # shellcheck disable=SC2046
    LINES_SHOWN=8 step 'attention, heads of 64' 60 'ms|heads of' python3 tests/bench/attention_lengths.py "$program" --head-width 64 --hidden "$(of 2048 128)" \
        --layers "$(of 4 1)" --tokens "$(of 4096 32)" --steps "$(of 5 2)" --sequence $(of '256 512 1024 2048' '16 32')
}

case $phase in
prepare) shift; prepare "$@"; exit ;;
build) rm -rf "$work/packages"; mkdir -p "$work"; build; exit ;;
first | more | tools) ;;
*) sed -n '2,/^set /p' "${BASH_SOURCE[0]}" | grep '^#' | sed 's/^# \{0,1\}//'; exit 2 ;;
esac

OUT=${OUT:-$(mktemp -d)}
mkdir -p "$OUT"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
log=$OUT/$phase.log
summary=$OUT/$phase.summary
: >"$log"
: >"$summary"
SECONDS=0
deadline=${SECONDS_OF_PHASE:-540}
if ! find_program >>"$log" 2>&1; then
    tail -n 40 "$log"
    echo "there is no program: $log"
    exit 1
fi
export -f shared_by_nccl keys skipped facts probe build_probe cuda_folders check record traced kernels_of slowest of
export program folder taken small architecture
echo "$phase: $program, ready after $SECONDS s" >>"$summary"
"${phase}_phase"
failures=$(grep -E '^[^ ].{7} +[0-9-]+ s  ' "$summary" | grep -cvE '^(pass|skipped) ')
echo "$failures of $(grep -cE '^[^ ].{7} +[0-9-]+ s  ' "$summary") steps failed, $SECONDS s; all of it: $log" >>"$summary"
cat "$summary"
((failures == 0))
