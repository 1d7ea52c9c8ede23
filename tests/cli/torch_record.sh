# A training loop of the user's own, recorded by one import: PyTorch's schedules unchanged, and a loop written by hand. With a real PyTorch: the root
# STAGEWRIGHT_TEST_TORCH_ROOT or the interpreter STAGEWRIGHT_TEST_TORCH_PYTHON, as in torch_pipelining.sh.
# shellcheck shell=bash
library=$(dirname "$STAGEWRIGHT")/../engine/python
[ -f "$library/stagewright/torch.py" ] || library=$(dirname "$STAGEWRIGHT")/engine/python
expect_that 'the library is there' test -f "$library/stagewright/torch.py"
if command -v python3 >/dev/null; then
    expect_that 'it compiles' python3 -c 'import sys; compile(open(sys.argv[1]).read(), sys.argv[1], "exec")' "$library/stagewright/torch.py"
fi
if [ -n "${STAGEWRIGHT_TEST_TORCH_PYTHON:-}" ]; then
    python=$STAGEWRIGHT_TEST_TORCH_PYTHON
elif [ -n "${STAGEWRIGHT_TEST_TORCH_ROOT:-}" ]; then
    python=$ROOT/tests/support/torch_root_python.sh
else
    echo 'skipped: torch_record (neither STAGEWRIGHT_TEST_TORCH_ROOT nor STAGEWRIGHT_TEST_TORCH_PYTHON is set)'
    [ $failures -eq 0 ] || finish
    exit 77
fi
mkdir lib && cp -r "$library/stagewright" lib/
cat >job.py <<'PYTHON'
import os, sys

sys.path.insert(0, "lib")
import torch
import torch.distributed as dist
from stagewright.torch import record
from torch.distributed.pipelining import PipelineStage, schedules

name, rank, ranks, steps, folder = sys.argv[1], int(os.environ["RANK"]), 2, 6, sys.argv[2]
torch.set_num_threads(1)
dist.init_process_group("gloo", rank=rank, world_size=ranks)
if not hasattr(schedules, "_wait_batch_p2p"):  # gloo needs every message of a batch to be waited for

    class All:
        def __init__(self, works):
            self.works = works

        def wait(self):
            [work.wait() for work in self.works]

    schedules._batch_p2p = lambda ops, desc=None: All(dist.batch_isend_irecv(ops)) if ops else None
torch.manual_seed(3)
wide, m = 64, 4
count = {"ScheduleGPipe": 2, "Schedule1F1B": 2, "hand": 2}.get(name, 4)
whole = [torch.nn.Sequential(torch.nn.Linear(wide, wide), torch.nn.Tanh()) for _ in range(count)]
own = [rank, ranks * 2 - 1 - rank] if name == "ScheduleZBVZeroBubble" else list(range(rank, count, ranks))
loss = lambda output, target: (output - target).square().mean()
losses = []


def library():
    empty = torch.empty(2, wide, device="meta")
    stages = [PipelineStage(whole[s], s, count, torch.device("cpu"), input_args=(empty,), output_args=(empty,)) for s in own]
    schedule = getattr(schedules, name)(stages[0] if count == 2 else stages, m, loss_fn=loss)
    optimizers = [torch.optim.SGD(whole[s].parameters(), lr=0.01) for s in own]
    torch.manual_seed(7)
    for _ in range(steps):
        x, y = torch.randn(2 * m, wide), torch.randn(2 * m, wide)
        for optimizer in optimizers:
            optimizer.zero_grad()
        found = []
        arguments = (x,) if 0 in own else ()
        keywords = {"target": y, "losses": found} if count - 1 in own else {}
        schedule.step(*arguments, **keywords)
        for optimizer in optimizers:
            optimizer.step()
        losses.extend(float(one.detach().sum()) for one in found)


def by_hand(recording):
    torch.manual_seed(7)
    for _ in range(steps):
        x, y = torch.randn(2 * m, wide), torch.randn(2 * m, wide)
        if recording:
            recording.step()
        op = recording.op if recording else lambda *_, **__: __import__("contextlib").nullcontext()
        kept, sent = [], []
        for j in range(m):
            if rank == 0:
                with op("F", stage=0, microbatch=j):
                    kept.append(whole[0](x[2 * j : 2 * j + 2]))
                dist.send(kept[j].detach(), 1, tag=j)
            else:
                value = torch.empty(2, wide)
                dist.recv(value, 0, tag=j)
                with op("F", stage=1, microbatch=j):
                    value.requires_grad_()
                    one = loss(whole[1](value), y[2 * j : 2 * j + 2])
                    losses.append(float(one.detach()))
                with op("B", stage=1, microbatch=j):
                    one.backward()
                sent.append(dist.isend(value.grad, 0, tag=m + j))  # a send that waits would hold up both
        if rank == 0:
            for j in range(m):
                gradient = torch.empty(2, wide)
                dist.recv(gradient, 1, tag=m + j)
                with op("B", stage=0, microbatch=j):
                    kept[j].backward(gradient)
        for work in sent:
            work.wait()
        with op("OPT", stage=rank):
            for p in whole[rank].parameters():
                p.data -= 0.01 * p.grad
                p.grad = None


if folder == "none":
    by_hand(None) if name == "hand" else library()
else:
    with record(folder, warmup=2, steps=3) as recording:
        by_hand(recording) if name == "hand" else library()
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as own_profiler:
    torch.ones(2) + 1
assert any(event.key == "aten::add" for event in own_profiler.key_averages()), "a later profiler records operators"
if losses:
    print(*map(repr, losses), flush=True)
dist.barrier()
PYTHON
train() { # NAME FOLDER; the losses
    local rank
    export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000)) USE_LIBUV=0 GLOO_SOCKET_IFNAME=lo WORLD_SIZE=2
    for rank in 1 0; do RANK=$rank "$python" job.py "$1" "$2" >"$1.$2.rank$rank" 2>"$1.$2.err$rank" & done
    wait
    cat "$1.$2".rank*
}
for name in Schedule1F1B ScheduleInterleavedZeroBubble hand; do
    plain=$(train $name none)
    recorded=$(train $name $name.traces)
    expect_that "$name trains: $(cat $name.none.err*)" test -n "$plain"
    expect_same "$recorded" "$plain" # to the last bit
    expect_same "$(ls $name.traces 2>/dev/null | tr '\n' ' ')" 'rank0.json.gz rank1.json.gz '
    expect_that "$name: times are said: $(cat $name.$name.traces.err0)" grep -qE '3 steps of rank 0 in .* ms under the profiler, .* ms without it' $name.$name.traces.err0
    run stagewright import $name.traces -o $name.stagewright
    expect_code 0
    run stagewright report $name.stagewright --json
    expect_code 0
    expect_json 2 ranks
    expect_same "$(stagewright sql $name.stagewright "SELECT count(DISTINCT step) FROM spans WHERE lane='compute'" | tail -1 | tr -d " ")" 3
done
order() { stagewright export "$1.stagewright" --format csv -o "$1.csv" >/dev/null 2>&1 && cat "$1.csv"; }
expect_that '1F1B' grep -qx '0F0,0F1,0B0,0F2,0B1,0F3,0B2,0B3.*' <<<"$(order Schedule1F1B)"
expect_that 'by hand' grep -qx '1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3.*' <<<"$(order hand)"
expect_that "a split backward" grep -q "0I0.*0W0" <<<"$(order ScheduleInterleavedZeroBubble)"
# Megatron-LM and DeepSpeed: folders that hold their sources, from STAGEWRIGHT_TEST_MEGATRON and STAGEWRIGHT_TEST_DEEPSPEED
recorded() { # NAME JOB CHUNKS: losses are those without a recording, to the last bit, and each step has its ops
    local folder rank
    for folder in none "$1.traces"; do
        export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000)) USE_LIBUV=0 GLOO_SOCKET_IFNAME=lo WORLD_SIZE=2
        for rank in 1 0; do RANK=$rank "$python" "$2" "$3" "$folder" >"$1.$folder.out$rank" 2>"$1.$folder.err$rank" & done
        wait
        sed -n '/^losses/p' "$1.$folder".out* >"$1.$folder.losses"
    done
    expect_that "$1 trains: $(cat "$1.none".err*)" test -s "$1.none.losses"
    expect_that "$1: the same losses: $(cat "$1.$1.traces".err*)" cmp "$1.none.losses" "$1.$1.traces.losses"
    run stagewright import "$1.traces" -o "$1.stagewright"
    expect_code 0
    expect_same "$(stagewright sql "$1.stagewright" "SELECT count(DISTINCT step) FROM spans WHERE lane='compute'" | tail -1 | tr -d " ")" 3
}
cp "$ROOT"/tests/support/loops/*.py .
for library in megatron deepspeed; do
    variable=STAGEWRIGHT_TEST_${library^^}
    if [ -z "${!variable:-}" ]; then
        echo "not tried: $library ($variable is not set)"
        continue
    fi
    for part in megatron deepspeed accelerator op_builder version.txt; do [ ! -e "${!variable}/$part" ] || cp -r "${!variable}/$part" lib/; done
    recorded $library ${library}_job.py 1
    expect_that "$library: 1F1B, with a stage's optimizer" grep -qx '1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3.*' <<<"$(order $library)"
    expect_same "$(stagewright sql $library.stagewright "SELECT count(*) FROM spans WHERE kind='OPT'" | tail -1 | tr -d " ")" 6
    [ $library = deepspeed ] || { recorded interleaved megatron_job.py 2 && expect_that 'interleaved' grep -qx '0F0,0F1,2F0,2F1,0F2,2B0,0F3,.*' <<<"$(order interleaved)"; }
    # the layout of an exported job is what Megatron-LM's own reader makes of it
    if [ $library = megatron ]; then
        run stagewright record -s interleaved-1f1b -p 2 -m 4 --layout 'Et*3|(t|)*2L' --model layers=5,hidden=32,heads=2,seq=16 --steps 2 -o trained.stagewright
        run stagewright export trained.stagewright --format megatron -o job.sh
        # shellcheck disable=SC1091
        layout=$(. ./job.sh && printf '%s\n' "${MEGATRON_PIPELINE[@]}" | grep -A1 -- --pipeline-model-parallel-layout | tail -1)
        expect_same "$("$python" megatron_layout.py "$layout" 2 5 2>layout.err)" '3 1 1 0'
    fi
done
