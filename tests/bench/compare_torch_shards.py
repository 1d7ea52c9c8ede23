#!/usr/bin/python3
"""Replicas that share state: the engine against PyTorch over gloo, one process a rank and one thread a process, run in turn.

    tests/bench/compare_torch_shards.py build/release/bin/stagewright [--python PROGRAM] [--replicas 2] [--rounds 5] [--steps 6]
        [--hidden 256] [--layers 4] [--microbatches 1] [--shard weights optimizer] [--json]

weights (ZeRO 3) is compared with FullyShardedDataParallel (FULL_SHARD, one unit a block), optimizer (ZeRO 1) with
DistributedDataParallel and ZeroRedundancyOptimizer. Both sides train compare_torch.py's decoder with AdamW and the same number of
samples a replica; the engine with a chunk a block, gathered one ahead and reduced as each chunk's backward ends.
A round runs both, the next one in the other order; the first step of a run is not counted. A step's time: the engine's from its first to its last span over
all ranks, PyTorch's between two barriers on rank 0. The ratio is engine / torch of the medians of all steps, its spread the quartiles of
the rounds' own ratios. Held: weights, gradients and optimizer state that stay from step to step on the rank that has most, by each
side's own count; the engine's "at most" also has gathered weights, whole gradients and buckets. Resident: of the largest process.
--python runs PyTorch: for one in a root of its own, tests/support/torch_root_python.sh with STAGEWRIGHT_TEST_TORCH_ROOT.
Without PyTorch it says so and ends with code 0.
"""
import argparse
import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time

from compare_torch import quartiles, torch_decoder

PEERS = {"weights": "FSDP1, FULL_SHARD", "optimizer": "DDP, ZeroRedundancyOptimizer"}
TOKENS = 128


def rank_steps(options):
    """In one of PyTorch's processes: trains, and prints what it took and holds."""
    import torch
    import torch.distributed as dist
    from torch.nn import functional

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    model, block, _ = torch_decoder(torch, options.hidden, options.hidden // 64, options.layers, TOKENS)
    settings = {"lr": 3e-3, "betas": (0.9, 0.95), "weight_decay": 0.1, "fused": True}
    if options.shard[0] == "weights":
        from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy
        from torch.distributed.fsdp.wrap import ModuleWrapPolicy

        model = FullyShardedDataParallel(model, auto_wrap_policy=ModuleWrapPolicy({block}), device_id=torch.device("cpu"),
                                         sharding_strategy=ShardingStrategy.FULL_SHARD)
        optimizer = torch.optim.AdamW(model.parameters(), **settings)
    else:
        from torch.distributed.optim import ZeroRedundancyOptimizer
        from torch.nn.parallel import DistributedDataParallel

        model = DistributedDataParallel(model, gradient_as_bucket_view=True)
        optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.AdamW, **settings)
    torch.manual_seed(rank)
    ids = torch.randint(0, 128, (options.microbatches, options.samples, TOKENS + 1))

    def size(tensors):
        return sum(t.numel() * t.element_size() for t in tensors)

    times, held = [], {}
    for _ in range(options.steps):
        dist.barrier()
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        for number in range(options.microbatches):
            with model.no_sync() if options.shard[0] == "optimizer" and number + 1 < options.microbatches else torch.enable_grad():
                logits = model(ids[number, :, :-1])
                loss = functional.cross_entropy(logits.reshape(-1, 256), ids[number, :, 1:].reshape(-1)) / options.microbatches
                loss.backward()
        held = {"weights": size(model.parameters()), "gradients": size(p.grad for p in model.parameters() if p.grad is not None)}
        optimizer.step()
        dist.barrier()
        times.append((time.perf_counter() - start) * 1e3)
    local = optimizer.optim if hasattr(optimizer, "optim") else optimizer
    held["optimizer"] = size(t for state in local.state.values() for t in state.values() if torch.is_tensor(t))
    print(json.dumps({"rank": rank, "ranks": ranks, "torch": torch.__version__, "times": times[1:], "held": held,
                      "resident": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}), flush=True)
    dist.destroy_process_group()


def start_ranks(arguments, replicas):
    """In PyTorch's root: one process a rank; their lines on stdout."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ranks = []
    for rank in range(replicas):
        environment = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(replicas), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
                           USE_LIBUV="0", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo")
        ranks.append(subprocess.Popen([sys.executable, __file__, "--as", "rank"] + arguments, env=environment, stdout=subprocess.PIPE, text=True))
    for rank in ranks:
        print(rank.communicate()[0].strip(), flush=True)
    return max(abs(rank.returncode) for rank in ranks)


def torch_run(options, shard):
    arguments = own_arguments(options, shard)
    done = subprocess.run([options.python, os.path.relpath(__file__), "--as", "ranks"] + arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or len(lines) != options.replicas:
        sys.exit(f"PyTorch's ranks failed (code {done.returncode}):\n{done.stderr[-3000:]}")
    return {"times": next(line["times"] for line in lines if line["rank"] == 0), "torch": lines[0]["torch"],
            "held": max((line["held"] for line in lines), key=lambda held: sum(held.values())),
            "resident": max(line["resident"] for line in lines)}


def engine_run(options, shard):
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "run.stagewright")
        command = [options.engine, "record", "-s", "bfs", "-p", "1", "-m", str(options.microbatches), "--chunks", str(options.layers), "--replicas", str(options.replicas),
                   "--processes", "--shard", shard, "--reduce", "overlapped", "--clock", "wall", "--steps", str(options.steps - 1), "--warmup", "1", "--clip", "0",
                   "--microbatch-size", str(options.samples),
                   "--model", f"layers={options.layers},hidden={options.hidden},heads={options.hidden // 64},seq={TOKENS}", "-o", file, "--json"]
        if shard == "weights":
            command += ["--gather", "batch:prefetch=1"]
        done = subprocess.run([sys.executable, __file__, "--as", "parent", "--"] + command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}\nended with code {done.returncode}:\n{done.stderr[-3000:]}")
        resident = json.loads(done.stdout.splitlines()[-1])["resident"]

        def sql(query):
            answer = subprocess.run([options.engine, "sql", file, query, "--csv"], stdout=subprocess.PIPE, text=True, check=True).stdout
            return [line.split(",") for line in answer.splitlines()[1:]]

        times = [float(row[0]) for row in sql("SELECT (end_ns - begin_ns) / 1e6 FROM steps WHERE step > 0 ORDER BY step")]
        held = {}
        for rank, category, size in sql("SELECT rank, category, sum(delta_bytes) FROM memory WHERE category IN ('weights', 'gradients', 'optimizer') GROUP BY rank, category"):
            held.setdefault(rank, {})[category] = int(size)
        most = sql("SELECT max(total) FROM (SELECT sum(delta_bytes) OVER (PARTITION BY rank ORDER BY time_ns ROWS UNBOUNDED PRECEDING) AS total FROM memory "
                   "WHERE category IN ('weights', 'gradients', 'optimizer', 'gathered weights', 'buckets'))")
        return {"times": times, "held": max(held.values(), key=lambda one: sum(one.values())), "most": int(most[0][0]), "resident": resident}


def own_arguments(options, shard):
    return ["--hidden", str(options.hidden), "--layers", str(options.layers), "--microbatches", str(options.microbatches), "--samples", str(options.samples),
            "--steps", str(options.steps), "--replicas", str(options.replicas), "--shard", shard]


def compared(options, shard):
    runs = {"engine": [], "torch": []}
    for number in range(options.rounds):
        order = [("engine", engine_run), ("torch", torch_run)]
        for name, run in order if number % 2 == 0 else reversed(order):
            runs[name].append(run(options, shard))
    medians = {name: statistics.median([t for run in each for t in run["times"]]) for name, each in runs.items()}
    low, high = quartiles([statistics.median(a["times"]) / statistics.median(b["times"]) for a, b in zip(runs["engine"], runs["torch"])])
    ours, theirs = runs["engine"][-1], runs["torch"][-1]
    return {"shard": shard, "peer": PEERS[shard], "torch": theirs["torch"], "replicas": options.replicas, "hidden": options.hidden, "layers": options.layers,
            "microbatches": options.microbatches, "rounds": options.rounds, "engine_ms": medians["engine"], "torch_ms": medians["torch"],
            "ratio": medians["engine"] / medians["torch"], "ratio_quartiles": [low, high],
            "engine_held": ours["held"], "torch_held": theirs["held"], "held_ratio": sum(ours["held"].values()) / sum(theirs["held"].values()),
            "engine_most_state": ours["most"], "engine_resident": max(run["resident"] for run in runs["engine"]),
            "torch_resident": max(run["resident"] for run in runs["torch"])}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", nargs="?", help="the program stagewright")
    parser.add_argument("--python", default=sys.executable, help="runs PyTorch")
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=6, help="of a run, the first included")
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--microbatches", type=int, default=1, help="of a replica")
    parser.add_argument("--samples", type=int, default=4, help="of a microbatch")
    parser.add_argument("--shard", nargs="+", choices=list(PEERS), default=list(PEERS))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--as", dest="role", choices=["ranks", "rank"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.role == "rank":
        rank_steps(options)
        return 0
    if options.role == "ranks":
        return start_ranks(own_arguments(options, options.shard[0]), options.replicas)
    if not options.engine:
        parser.error("give the program stagewright")
    if subprocess.run([options.python, "-c", "import torch"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode != 0:
        print(f"skipped: PyTorch is not installed for {options.python}; apt-get install python3-torch")
        return 0

    results = [compared(options, shard) for shard in options.shard]
    if options.json:
        print(json.dumps(results, indent=1))
        return 0
    for r in results:
        print(f"{r['shard']}: engine {r['engine_ms']:.1f} ms, torch {r['torch_ms']:.1f} ms a step, ratio {r['ratio']:.3f}, quartiles {r['ratio_quartiles'][0]:.3f} … "
              f"{r['ratio_quartiles'][1]:.3f} ({r['replicas']} replicas, hidden {r['hidden']}, {r['layers']} layers, {r['rounds']} rounds; torch {r['torch']}: {r['peer']})")
        for side in ("engine", "torch"):
            held = r[side + "_held"]
            print(f"  {side:6}  weights {held['weights'] / 1e6:.2f} MB, gradients {held['gradients'] / 1e6:.2f} MB, optimizer {held['optimizer'] / 1e6:.2f} MB, "
                  f"resident {r[side + '_resident'] / 1e6:.0f} MB" + (f", state at most {r['engine_most_state'] / 1e6:.2f} MB" if side == "engine" else ""))
        print(f"  held, engine / torch: {r['held_ratio']:.3f}")
    return 0


if __name__ == "__main__":
    if sys.argv[1:3] == ["--as", "parent"]:  # runs a command; then says how much memory the largest of its processes had
        code = subprocess.run(sys.argv[4:], stdout=subprocess.DEVNULL, check=False).returncode
        print(json.dumps({"resident": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024}))
        sys.exit(code)
    sys.exit(main())
