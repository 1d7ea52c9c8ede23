# The figures of devices against HolisticTraceAnalysis: temporal breakdown and communication overlap of every rank, within 1 %. STAGEWRIGHT_HTA_PYTHON is a
# Python with HolisticTraceAnalysis; without one a stand-in computes its published definitions from the same files, apart from the program's code.
# shellcheck shell=bash
command -v python3 >/dev/null || { echo 'no python3'; exit 77; }
mkdir traces
dlrm=$ROOT/shared/fixtures/kineto/dlrm_8rank
[ -d "$dlrm" ] || dlrm=$ROOT/../shared/fixtures/kineto/dlrm_8rank
if [ -d "$dlrm" ]; then
    cp "$dlrm"/* traces/
else # two ranks: products, a reduction that one of them hides in part, copies
    for rank in 0 1; do
        {
            printf '{"schemaVersion":1,"distributedInfo":{"rank":%s,"world_size":2},"traceEvents":[\n' $rank
            for i in 0 1 2 3 4 5; do
                printf '{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":%s,"dur":60,"args":{"device":0,"stream":7,"correlation":%s}},\n' $((1000 + 100 * i)) $((i + 1))
                printf '{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce_Sum_f32_RING_LL","pid":0,"tid":20,"ts":%s,"dur":40,"args":{"device":0,"stream":20,"correlation":%s}},\n' $((1030 + 100 * i + 20 * rank)) $((i + 50))
                printf '{"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD","pid":0,"tid":7,"ts":%s,"dur":5,"args":{"device":0,"stream":7,"correlation":%s}},\n' $((1090 + 100 * i)) $((i + 80))
            done
            printf '{"ph":"i","name":"end","ts":2000}]}\n'
        } >"traces/rank$rank.json"
    done
fi
# HolisticTraceAnalysis counts work whose launch the trace lacks; here it is in no step. Both get traces without it.
cat >launched.py <<'PYTHON'
import glob, gzip, json, os

for path in glob.glob("traces/*"):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as file:
        trace = json.load(file)
    events = trace["traceEvents"]
    launched = {e["args"]["correlation"] for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in e.get("args", {})}
    if launched:
        trace["traceEvents"] = [e for e in events if e.get("cat") not in ("kernel", "gpu_memcpy", "gpu_memset") or e["args"].get("correlation") in launched]
    os.remove(path)
    with gzip.open(path.removesuffix(".gz") + ".gz", "wt") as file:
        json.dump(trace, file)
PYTHON
python3 launched.py
run stagewright import traces -o job.stagewright
expect_code 0
run stagewright report job.stagewright --json
expect_code 0
cp out.txt report.json

python=${STAGEWRIGHT_HTA_PYTHON:-}
if [ -z "$python" ]; then
    python=python3
    mkdir -p standin/hta
    touch standin/hta/__init__.py
    cat >standin/hta/trace_analysis.py <<'PYTHON'
import glob, gzip, json, os


def merged(spans):
    out = []
    for begin, end in sorted(spans):
        if out and begin <= out[-1][1]:
            out[-1][1] = max(out[-1][1], end)
        else:
            out.append([begin, end])
    return out


def length(spans):
    return sum(end - begin for begin, end in merged(spans))


def both(a, b):
    return length(a) + length(b) - length(a + b)


class Table(list):
    def to_dict(self, _):
        return list(self)


class TraceAnalysis:
    def __init__(self, trace_dir):
        self.ranks = {}
        for path in glob.glob(os.path.join(trace_dir, "*")):
            with (gzip.open if path.endswith(".gz") else open)(path, "rt") as file:
                trace = json.load(file)
            work = [(e["name"], e["ts"], e["ts"] + e["dur"]) for e in trace["traceEvents"] if e.get("ph") == "X" and e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset") and e["dur"] > 0]
            self.ranks[trace["distributedInfo"]["rank"]] = work

    def parts(self, work):
        communication = [(b, e) for name, b, e in work if name.startswith("nccl")]
        memory = [(b, e) for name, b, e in work if name.startswith("Mem")]
        computing = [(b, e) for name, b, e in work if not name.startswith(("nccl", "Mem"))]
        return computing, communication, memory

    def get_temporal_breakdown(self, visualize=True):
        rows = Table()
        for rank, work in self.ranks.items():
            computing, communication, memory = self.parts(work)
            span = max(e for _, _, e in work) - min(b for _, b, _ in work)
            rows.append({"rank": rank, "idle_time(us)": span - length(computing + communication + memory), "compute_time(us)": length(computing), "kernel_time(us)": span})
        return rows

    def get_comm_comp_overlap(self, visualize=True):
        rows = Table()
        for rank, work in self.ranks.items():
            computing, communication, _ = self.parts(work)
            rows.append({"rank": rank, "comp_comm_overlap_pctg": 100 * both(computing, communication) / max(1e-9, length(communication))})
        return rows
PYTHON
fi
cat >compare.py <<'PYTHON'
import json, sys
from hta.trace_analysis import TraceAnalysis

analysis = TraceAnalysis(trace_dir="traces")
ours = {row["rank"]: row for row in json.load(open("report.json"))["device_time"]["rows"]}
wrong = 0


def check(rank, what, mine, theirs):
    global wrong
    same = abs(mine - theirs) <= 0.01 * max(abs(mine), abs(theirs)) + 0.5
    wrong += not same
    print(f"rank {rank} {what}: {mine:.1f} and {theirs:.1f}{'' if same else ', more than 1 % apart'}")


for row in analysis.get_temporal_breakdown(visualize=False).to_dict("records"):
    mine = ours[int(row["rank"])]
    check(row["rank"], "idle, µs", mine["idle_ns"] / 1e3, row["idle_time(us)"])
    check(row["rank"], "computing, µs", mine["computing_ns"] / 1e3, row["compute_time(us)"])
    if "kernel_time(us)" in row:
        check(row["rank"], "first to last, µs", mine["window_ns"] / 1e3, row["kernel_time(us)"])
for row in analysis.get_comm_comp_overlap(visualize=False).to_dict("records"):
    mine = ours[int(row["rank"])]
    check(row["rank"], "overlap, %", 100 * mine["hidden_ns"] / max(1, mine["communicating_ns"]), row["comp_comm_overlap_pctg"])
print(f"{len(ours)} ranks compared")
sys.exit(1 if wrong else 0)
PYTHON
run env PYTHONPATH="$PWD/standin" "$python" compare.py
expect_code 0
expect_out '^(8|2) ranks compared$'
expect_no_out 'apart'
# a figure that is wrong is found
sed 's/"idle_ns": *[0-9]*/"idle_ns": 1/' report.json >wrong.json && mv wrong.json report.json
run env PYTHONPATH="$PWD/standin" "$python" compare.py
expect_code 1
expect_out 'more than 1 % apart'
