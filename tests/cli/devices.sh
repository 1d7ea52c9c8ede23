# What can train here and why the rest can't: with the CUDA module, without it, and with a file that is not our module.
# shellcheck shell=bash
unset STAGEWRIGHT_CUDA_MODULE

# cuda_says PATTERN…: the first device of the backend cuda is not usable, and says so in text and JSON.
cuda_says() {
    run stagewright devices
    expect_code 0
    expect_out '^cpu .* yes'
    for pattern in "$@"; do expect_out "^cuda .* no .*$pattern"; done
    run stagewright devices --json
    expect_code 0
    expect_json cpu devices 0 backend
    expect_json ON devices 0 usable
    expect_json cuda devices 1 backend
    expect_json OFF devices 1 usable
    for pattern in "$@"; do expect_that "the reason matches $pattern" grep -qE -- "$pattern" <<<"$(json devices 1 reason)"; done
    # Requesting it gives the same sentence, and nothing is written.
    run stagewright record --backend cuda -s gpipe -p 2 -m 2 --model layers=2,hidden=16,heads=2,seq=8 --steps 1 -o cuda.stagewright
    expect_code 4
    expect_err 'no usable CUDA device'
    run stagewright check --backend cuda -s gpipe -p 2 -m 2 --model layers=2,hidden=16,heads=2,seq=8
    expect_code 4
    expect_err 'no usable CUDA device'
}

# No module: a file that isn't there, and a program without other files.
export STAGEWRIGHT_CUDA_MODULE=$PWD/absent.so
cuda_says "the CUDA module was not found; looked for $PWD/absent.so"
unset STAGEWRIGHT_CUDA_MODULE
mkdir alone
cp "$STAGEWRIGHT" alone/stagewright
run env STAGEWRIGHT= alone/stagewright devices
expect_out "^cuda .* no .*looked for $PWD/alone/libstagewright_cuda.so, $PWD/.*stagewright/libstagewright_cuda.so"

# No library, no module.
printf 'not a library\n' >text.so
export STAGEWRIGHT_CUDA_MODULE=$PWD/text.so
cuda_says "the CUDA module can't be loaded: .*text.so"
: >empty.so
export STAGEWRIGHT_CUDA_MODULE=$PWD/empty.so
cuda_says "the CUDA module can't be loaded: .*empty.so"
if command -v "${CC:-cc}" >/dev/null; then
    echo 'int nothing;' >other.c
    "${CC:-cc}" -shared -fPIC other.c -o other.so
    export STAGEWRIGHT_CUDA_MODULE=$PWD/other.so
    cuda_says 'other.so is a library, but not a CUDA module: it has no function stagewright_cuda_module'
    # Another version, another build, and a library that isn't there.
    for kind in 'abi = 999' 'tableBytes = 16'; do
        cat >version.c <<CODE
#include "engine/cuda/module_abi.h"
static StagewrightCudaTable table;
const StagewrightCudaTable* stagewright_cuda_module(void)
{
    table.abi = STAGEWRIGHT_CUDA_ABI;
    table.tableBytes = sizeof table;
    table.$kind;
    return &table;
}
CODE
        "${CC:-cc}" -shared -fPIC -I "$ROOT" version.c -o "version_${kind%% *}.so"
    done
    export STAGEWRIGHT_CUDA_MODULE=$PWD/version_abi.so
    cuda_says 'version_abi.so uses version 999 of the interface, the program [0-9]+; install program and module of the same version'
    export STAGEWRIGHT_CUDA_MODULE=$PWD/version_tableBytes.so
    cuda_says 'version_tableBytes.so is from another build: its table has 16 bytes'
    "${CC:-cc}" -shared -fPIC other.c -o libstagewright_gone.so
    "${CC:-cc}" -shared -fPIC other.c -o needs.so -Wl,--no-as-needed -L. -lstagewright_gone
    rm libstagewright_gone.so
    export STAGEWRIGHT_CUDA_MODULE=$PWD/needs.so
    cuda_says 'needs.so lacks a library of the CUDA toolkit: libstagewright_gone.so.*install the CUDA [0-9]+ runtime libraries'
else
    echo 'no C compiler: modules of other versions were not tried'
fi
unset STAGEWRIGHT_CUDA_MODULE

# A check of everything continues without unusable devices.
export STAGEWRIGHT_CUDA_MODULE=$PWD/absent.so
run stagewright check -s gpipe -p 2 -m 2 --model layers=2,hidden=16,heads=2,seq=8 --steps 1
expect_code 0
expect_out 'backend cuda skipped: the CUDA module was not found'
unset STAGEWRIGHT_CUDA_MODULE

if [ -z "$MODULE" ]; then
    echo 'the CUDA module is not built here (no nvcc): it was not loaded'
    return 0
fi

# The module itself.
expect_that 'one function is exported' [ "$(nm -D --defined-only "$MODULE" | awk '{ print $3 }')" = stagewright_cuda_module ]
expect_that 'no driver library is linked' [ "$(readelf -d "$MODULE" | grep -cE 'NEEDED.*(libcuda\.so|libcudart|libnccl)')" = 0 ]
for bytes in 40 4096 $(($(stat -c %s "$MODULE") / 2)); do # mapped beyond its end, a file would end the program
    head -c "$bytes" "$MODULE" >truncated.so
    export STAGEWRIGHT_CUDA_MODULE=$PWD/truncated.so
    cuda_says "the CUDA module can't be loaded: .*truncated.so"
done
unset STAGEWRIGHT_CUDA_MODULE
libraries=$(readelf -d "$MODULE" | sed -nE 's/.*RUNPATH.*\[(.*)\]/\1/p')
expect_that 'it finds the toolkit by RUNPATH' [ -e "$libraries/libcublasLt.so" ]
hidden='mount -t tmpfs none "$1" && shift && exec "$@"'
folder=$(readlink -f "$libraries")
if unshare -m sh -c "$hidden" sh "$folder" true 2>/dev/null; then
    run unshare -m sh -c "$hidden" sh "$folder" "$STAGEWRIGHT" devices
    expect_code 0
    expect_out '^cuda .* no .*lacks a library of the CUDA toolkit: libcublasLt'
else
    echo 'mount namespaces are not allowed here: the toolkit was not hidden'
fi
run stagewright devices --json
expect_code 0
expect_json cuda devices 1 backend
expect_that 'the module says where it is' [ "$(json devices 1 details module)" = "$MODULE" ]
expect_that 'it is compiled for named architectures' grep -qE '^[0-9]+( [0-9]+)*$' <<<"$(json devices 1 details architectures)"
if [ "$(json devices 1 details cuda_driver)" = none ]; then
    cuda_says 'no NVIDIA driver is loaded'
else
    echo 'a driver is here: its absence was not tried'
fi

# Every kernel at a model's shapes, with its rate beside those of a large GEMM and a large copy.
unset STAGEWRIGHT_CUDA_MODULE
run stagewright devices --kernels hidden=32,heads=2,seq=16 --microbatch-size 1
expect_code 0
expect_out '^large GEMM +256 x 256 x 256 .* GFLOP/s +100 %'
expect_out '^large copy .* GB/s +100 %'
expect_out '^gradient of the embedding +16 x 32 '
run stagewright devices --kernels hidden=32,heads=2,seq=16 --microbatch-size 1 --json
expect_code 0
expect_json 'large copy' kernels 1 kernel
expect_json 0 kernels 1 flops
expect_json 134217728 kernels 1 bytes
expect_that 'rates are FLOP or bytes over time' python3 -c '
import json, sys
a = json.load(open(sys.argv[1]))["kernels"]
rate = lambda k: (k["flops"] or k["bytes"]) / k["time_ns"]
assert len(a) == 25 and all(k["time_ns"] > 0 for k in a)
assert all(abs(k["share_of_large"] - rate(k) / rate(a[0 if k["flops"] else 1])) < 1e-9 for k in a)' out.txt
run stagewright devices --kernels hidden=33,heads=2
expect_code 2
expect_err '^stagewright: --kernels: model: hidden=33 is not a multiple of heads=2'
run stagewright devices --kernels hidden=1024,heads=2,seq=65536 --microbatch-size 65536
expect_code 2
expect_err 'an activation of 17592186044416 elements; at most 2147483647 are possible'
run stagewright devices --kernels hidden=32 --backend gpu
expect_code 2
expect_err "unknown backend 'gpu'"
