#!/usr/bin/env bash
# Verifies what needs a GPU, in parts of at most eight minutes each (docs/performance.md, "Not verified without a GPU").
#
#   tests/bench/prove_on_gpu.sh prepare [BUILD]   on the machine that builds: .gpu/, with program, modules and packages, to be copied
#   tests/bench/prove_on_gpu.sh engine            on the machine with the GPU: kernels, gradients, odd sizes, memory checker, sharing
#   tests/bench/prove_on_gpu.sh trace             CUPTI, launch gaps, ceilings, memory; small runs for tests/data/cuda
#   tests/bench/prove_on_gpu.sh speed             against PyTorch; from which length attention should keep no probabilities
#   tests/bench/prove_on_gpu.sh build             only builds there; the others do so if the copied program does not start
#
# Results go to $OUT [a new folder]: PHASE.log, PHASE.summary, and the output of each step. A failed step does not stop the others; the exit code is then 1.
# SMALL=1 reduces the sizes, SECONDS_OF_PHASE [480] the time, STAGEWRIGHT names an existing program:
# with it the script itself is tested on the fake device (tests/cli/prove_on_gpu.sh).
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root" || exit 2
phase=${1:-}
taken=$root/.gpu
work=${TMPDIR:-/tmp}/stagewright-on-gpu
architecture=${ARCHITECTURE:-90}
packages='libfmt-dev libfmt9 nlohmann-json3-dev libsqlite3-dev libsqlite3-0 zlib1g-dev zlib1g libsimdjson-dev libsimdjson14 libcli11-dev
libexpected-dev libprotozero-dev libopenblas-pthread-dev libopenblas0-pthread libgfortran5 libquadmath0'

prepare() {
    local build=${1:-build/cuda} file
    mkdir -p "$taken/packages" "$taken/bin"
    # shellcheck disable=SC2086
    (cd "$taken/packages" && apt-get download $packages) || return
    for file in stagewright libstagewright_cuda.so libstagewright_cupti.so; do
        install "$build/bin/$file" "$taken/bin/" && strip --strip-unneeded "$taken/bin/$file" || return
    done
    du -sh "$taken"
}

# --- the program ---------------------------------------------------------------------------------------------------------------------

# Folders of libraries that the modules need, of the toolkit or else of Python's packages.
cuda_folders() {
    local name folders
    folders=$(ls -d /usr/local/cuda*/lib64 /usr/local/cuda*/lib /usr/local/cuda*/targets/x86_64-linux/lib /usr/local/cuda*/extras/CUPTI/lib64 2>/dev/null)
    folders+=" $(python3 -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])' 2>/dev/null)/nvidia"
    for name in libcublasLt.so.13 libcupti.so.13 libnccl.so.2; do
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
    sed -i "s#/usr/#$work/packages/usr/#" "$work"/packages/usr/lib/x86_64-linux-gnu/openblas-pthread/cmake/openblas/OpenBLASConfig.cmake
}

build() {
    unpack || return
    local prefix=$work/packages/usr
    local blas=$prefix/lib/x86_64-linux-gnu/openblas-pthread
    [ -n "$(command -v nvcc)" ] || PATH=$PATH:/usr/local/cuda/bin
    cmake -S . -B build/gpu -G Ninja -DCMAKE_BUILD_TYPE=Release -DSTAGEWRIGHT_QT=OFF -DSTAGEWRIGHT_TESTS=OFF -DSTAGEWRIGHT_WERROR=OFF \
        -DSTAGEWRIGHT_CUDA_ARCHITECTURES="$architecture" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_LIBRARY_ARCHITECTURE=x86_64-linux-gnu \
        -DOpenBLAS_DIR="$blas/cmake/openblas" -DCMAKE_EXE_LINKER_FLAGS="-Wl,-rpath-link,$prefix/lib/x86_64-linux-gnu:$blas" &&
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

failures=0
# step NAME SECONDS EXPECTED COMMAND…: passes if the command exits with 0 and its output has a line that matches EXPECTED.
step() {
    local name=$1 limit=$2 expected=$3 left begin code verdict output
    shift 3
    left=$((deadline - SECONDS))
    if ((left < 5)); then
        printf '%-8s %4s s  %s\n' 'no time' - "$name" >>"$summary"
        failures=$((failures + 1))
        return
    fi
    ((limit > left)) && limit=$left
    printf '\n===== %s\n%s\n' "$name" "$*" >>"$log"
    begin=$SECONDS
    output=$folder/step
    if declare -F "$1" >/dev/null; then set -- bash -c '"$@"' step "$@"; fi
    timeout -k 5 "$limit" "$@" >"$output" 2>&1
    code=$?
    tail -c 300000 "$output" >>"$log" # all logs of a part stay below 16 MiB
    verdict=pass
    if grep -q '^skipped' "$output"; then verdict=skipped
    elif ((code == 124 || code == 137)); then verdict="> $limit s"
    elif ((code != 0)); then verdict="code $code"
    elif ! grep -qE -- "$expected" "$output"; then verdict=unlike
    fi
    [ "$verdict" = pass ] || [ "$verdict" = skipped ] || failures=$((failures + 1))
    printf '%-8s %4d s  %s\n' "$verdict" $((SECONDS - begin)) "$name" >>"$summary"
    if [ "$verdict" = pass ]; then grep -E -- "$expected" "$output" | tail -n "${LINES_SHOWN:-1}"; else tail -n 6 "$output"; fi | cut -c1-200 | sed 's/^/                   /' >>"$summary"
    rm -f "$output"
}
keys() { # RUN LIKE: a run's facts, one per line
    "$program" sql "$1" "select key || ' = ' || value from run_text where key like '$2' order by key" --json | grep -oE '"[^"]+ = [^"]*"'
}
skipped() { echo "skipped: $*"; }

small=${SMALL:-0}
of() { if [ "$small" = 1 ]; then echo "$2"; else echo "$1"; fi; } # REAL SMALL
tiny=layers=4,hidden=16,heads=2,seq=8

engine_phase() {
    step 'machine' 30 . bash -c 'nvidia-smi; nvcc --version; python3 --version; uname -a; nproc'
    step 'the device is found' 60 '^cuda .* yes' "$program" devices
    step 'first kernels and schedule' 120 'all pass' "$program" check --backend cuda -s 1f1b -p 2 -m 4 --model $tiny
    step 'odd sizes: ends that are not fused' 90 'all pass' "$program" check --backend cuda -s 1f1b -p 2 -m 2 --model layers=2,hidden=18,heads=2,seq=7
    LINES_SHOWN=3 step 'bf16 where cuBLASLt works in narrow types' 100 'all pass' \
        "$program" check --backend cuda --precision bf16 -s 1f1b,zb-h1,zbv --model "$(of layers=4,hidden=256,heads=4,seq=128 $tiny)"
    step 'attention that streams its keys' 60 'all pass' env STAGEWRIGHT_CUDA_FLASH_FROM=1 "$program" check --backend cuda -s 1f1b,terapipe --model $tiny
    step 'attention on the matrix units' 100 'all pass' env STAGEWRIGHT_CUDA_FLASH_FROM=1 \
        "$program" check --backend cuda -s 1f1b,terapipe --precision bf16 --model "$(of layers=4,hidden=256,heads=4,seq=300 layers=2,hidden=16,heads=2,seq=8)"
    step 'ranks side by side' 90 'all pass' "$program" check --backend cuda --sharing queues -s 1f1b,zb-h1,zbv,dualpipe -p "$(of 4 2)" -m 8 --model $tiny
    for sharing in queues partitions serialised; do
        step "sharing: $sharing" 60 . "$program" record --backend cuda --sharing $sharing --no-trace -s 1f1b -p 4 -m 8 --steps 5 \
            --model "$(of layers=8,hidden=1024,heads=16,seq=1024 $tiny)" -o "$folder/$sharing.stagewright"
    done
    step 'every schedule' 240 'all pass' "$program" check --backend cuda --model "$(of layers=8,hidden=32,heads=2,seq=16 $tiny)" -p "$(of 4 2)" -m "$(of 8 4)"
    local tool
    for tool in memcheck racecheck; do
        for from in 1 1000000; do
            if [ -z "$(command -v compute-sanitizer)" ]; then
                step "$tool, attention without probabilities from $from" 5 . skipped 'compute-sanitizer is not there'
                continue
            fi
            step "$tool, attention without probabilities from $from" 70 'ERROR SUMMARY: 0|0 hazards' env STAGEWRIGHT_CUDA_FLASH_FROM=$from \
                compute-sanitizer --tool $tool --error-exitcode 9 --target-processes all "$program" record --backend cuda --no-trace -s zbv -p 2 -m 2 \
                --sharing queues --steps 1 --warmup 0 --model layers=4,hidden=64,heads=2,seq=32 -o "$folder/checked-$tool-$from.stagewright"
        done
    done
}

trace_phase() {
    local run=$folder/traced.stagewright model
    model=$(of layers=8,hidden=1024,heads=16,seq=512 $tiny)
    # The copied modules read the records of one version of CUPTI.
    "$program" record --backend cuda -s gpipe -p 1 -m 2 --steps 1 --model $tiny -o "$folder/first.stagewright" >>"$log" 2>&1
    if keys "$folder/first.stagewright" 'gpu_trace%' | tee -a "$log" | grep 'this build was made for version' >/dev/null; then build >>"$log" 2>&1; fi
    step 'traced recording' 60 . "$program" record --keep-trace "$folder/traced.cuptidump" --backend cuda --sharing queues -s zb-h1 -p 4 -m 8 --steps 8 --model "$model" -o "$run"
    LINES_SHOWN=20 step 'the trace is whole and detached' 20 'gpu_trace' keys "$run" 'gpu_trace%'
    step 'every launch has its op' 20 'gpu_trace = whole' keys "$run" 'gpu_trace'
    run=$folder/slices.stagewright
    step 'traced slices, whose keys are copied by rows' 60 . "$program" record --backend cuda --sharing queues -s terapipe -p 2 -m 4 --steps 4 \
        --model "$(of layers=4,hidden=512,heads=8,seq=512 $tiny)" -o "$run"
    step 'every copy has its op' 20 'gpu_trace = whole' keys "$run" 'gpu_trace'
    run=$folder/partitions.stagewright
    step 'traced partitions' 60 . "$program" record --backend cuda --sharing partitions -s 1f1b -p 4 -m 8 --steps 4 --model "$model" -o "$run"
    step 'every launch in a partition has its op' 20 'gpu_trace = whole' keys "$run" 'gpu_trace'
    run=$folder/gaps.stagewright
    step 'one rank of hidden 2,048' 90 . "$program" record --backend cuda -s 1f1b -p 1 -m 8 --microbatch-size 1 --steps 6 \
        --model "$(of layers=4,hidden=2048,heads=16,seq=2048 $tiny)" -o "$run"
    LINES_SHOWN=3 step 'exposed launch gaps below 2 %' 20 . "$program" report "$run" --kernels --require "device.launch_gaps.share<=$(of 0.02 1)"
    LINES_SHOWN=5 step 'ceilings' 20 'ceiling' keys "$run" 'ceiling%'
    # shellcheck disable=SC2016
    LINES_SHOWN=4 step 'memory beside a recording' 60 'MiB' bash -c '
        "$@" >/dev/null 2>&1 & recording=$!
        while kill -0 $recording 2>/dev/null; do nvidia-smi --query-gpu=memory.used --format=csv,noheader || echo "no nvidia-smi: 0 MiB"; sleep 0.5; done | sort -n | uniq | tail -n 4
        wait $recording' memory "$program" record --backend cuda --no-trace -s 1f1b -p 4 -m 8 --steps 3 --model "$model" -o "$folder/memory.stagewright"
    # Fixtures: small enough to keep, of every way to share.
    local kept=$folder/cuda
    mkdir -p "$kept"
    for sharing in queues partitions serialised; do
        step "small run for tests/data/cuda: $sharing" 30 . "$program" record --backend cuda --sharing $sharing -s zb-h1 -p 2 -m 4 --steps 3 \
            --model layers=4,hidden=64,heads=2,seq=32 -o "$kept/zb-h1-$sharing.stagewright"
    done
    step 'small run for tests/data/cuda: slices' 30 . "$program" record --backend cuda --sharing queues -s terapipe -p 2 -m 4 --steps 3 \
        --model layers=4,hidden=64,heads=2,seq=32 -o "$kept/terapipe.stagewright"
    tar -C "$folder" -czf "$OUT/cuda-runs.tar.gz" cuda && ls -l "$OUT/cuda-runs.tar.gz" >>"$log"
}

speed_phase() {
    local size
    for size in $(of '2048 4096' 256); do
        LINES_SHOWN=8 step "against PyTorch, hidden $size" 150 'ms|engine / best|attention' python3 tests/bench/compare_torch_cuda.py "$program" --hidden "$size" \
            --steps "$(of 10 2)" --sequence "$(of 2048 16)" --layers "$(of 4 1)" --microbatches "$(of 8 2)"
    done
    for size in 128 64; do
        # shellcheck disable=SC2046
        LINES_SHOWN=8 step "attention, heads of $size" 120 'ms|heads of' python3 tests/bench/attention_lengths.py "$program" --head-width "$size" --hidden "$(of 2048 128)" \
            --layers "$(of 4 1)" --tokens "$(of 4096 32)" --steps "$(of 10 2)" --sequence $(of '128 256 512 1024 2048 4096' '16 32')
    done
    step 'one rank in tf32' 60 . "$program" record --backend cuda --no-trace --precision tf32 -s 1f1b -p 1 -m 8 --microbatch-size 1 --steps 5 \
        --model "$(of layers=4,hidden=2048,heads=16,seq=2048 $tiny)" -o "$folder/tf32.stagewright"
}

case $phase in
prepare) shift; prepare "$@"; exit ;;
build) rm -rf "$work/packages"; mkdir -p "$work"; build; exit ;;
engine | trace | speed) ;;
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
deadline=${SECONDS_OF_PHASE:-480}
if ! find_program >>"$log" 2>&1; then
    tail -n 40 "$log"
    echo "there is no program: $log"
    exit 1
fi
export -f keys skipped
export program
echo "$phase: $program, ready after $SECONDS s" >>"$summary"
"${phase}_phase"
echo "$failures of $(grep -c ' s  ' "$summary") steps failed, $SECONDS s; all of it: $log" >>"$summary"
cat "$summary"
((failures == 0))
