#!/usr/bin/env python3
"""Runs a schedule CSV of Stagewright under torch.distributed.pipelining, with the profiler and its labels.

    stagewright schedules zb-h1 -p 4 -m 8 --csv > schedule.csv
    python3 run_schedule.py schedule.csv --traces traces          # starts the ranks itself, gloo or NCCL
    torchrun --nproc-per-node=4 run_schedule.py schedule.csv      # or under torchrun, also on several hosts
    stagewright import traces -o job.stagewright

Needs PyTorch 2.6 or newer. The model is a stack of linear layers, one part per stage; every rank holds the stages that its line
of the CSV names. --describe prints what the CSV needs and works without PyTorch.
"""

import argparse
import csv
import functools
import json
import os
import re
import sys

OLDEST = (2, 6)
CELL = re.compile(r"(\d+)(F|BW|B|I|W|UNSHARD|RESHARD|REDUCE_GRAD|SEND_F|RECV_F|SEND_B|RECV_B)(\d*)")
PAIR = re.compile(r"\(([^;]+);([^;]+)\)OVERLAP_F_B")
MESSAGES = ("SEND_F", "RECV_F", "SEND_B", "RECV_B")


class Shape:
    """What a schedule CSV needs: its ranks, stages and microbatches, and the placement of stages."""

    def __init__(self, path):
        self.ranks = 0
        self.microbatches = 0
        self.rank_of_stage = {}
        self.lowered = False
        self.split = False
        self.overlapped = False
        with open(path, newline="", encoding="ascii") as file:
            for rank, row in enumerate(csv.reader(file)):
                self.ranks = rank + 1
                for cell in row:
                    self._read(cell.strip(), rank, path)
        if not self.rank_of_stage:
            raise ValueError(f"{path}: no ops; one line per rank, cells like 2F0")
        self.stages = max(self.rank_of_stage) + 1
        missing = [stage for stage in range(self.stages) if stage not in self.rank_of_stage]
        if missing:
            raise ValueError(f"{path}: stage {missing[0]} is missing, but there is a stage {self.stages - 1}")

    def _read(self, cell, rank, path):
        if not cell:
            return
        pair = PAIR.fullmatch(cell)
        if pair:
            self.overlapped = True
        for text in pair.groups() if pair else (cell,):
            op = CELL.fullmatch(text.strip())
            if not op:
                raise ValueError(f"{path}: line {rank + 1}: '{cell}' is not an op of PyTorch's pipelining")
            stage, kind, microbatch = int(op[1]), op[2], op[3]
            if self.rank_of_stage.setdefault(stage, rank) != rank:
                raise ValueError(f"{path}: stage {stage} is on ranks {self.rank_of_stage[stage]} and {rank}; PyTorch keeps it on one")
            if microbatch:
                self.microbatches = max(self.microbatches, int(microbatch) + 1)
            self.lowered = self.lowered or kind in MESSAGES
            self.split = self.split or kind in ("I", "W")

    def stages_of(self, rank):
        return [stage for stage in range(self.stages) if self.rank_of_stage[stage] == rank]

    def form(self):
        return "compute_comms" if self.lowered else "compute_only"


def import_torch():
    try:
        import torch
    except ImportError:
        sys.exit("run_schedule: PyTorch is not installed; this needs 2.6 or newer")
    version = tuple(int(part) for part in re.findall(r"\d+", torch.__version__)[:2])
    if version < OLDEST:
        sys.exit(f"run_schedule: PyTorch is {torch.__version__}; this needs 2.6 or newer")
    return torch


def part_of_model(torch, options, stage, device):
    """The layers of one stage. The same seed gives the same weights on every rank."""
    torch.manual_seed(options.seed + stage)
    layers = []
    for _ in range(options.layers):
        layers += [torch.nn.Linear(options.width, options.width), torch.nn.Tanh()]
    return torch.nn.Sequential(*layers).to(device)


def whole_batch(torch, options, shape, step, device):
    generator = torch.Generator().manual_seed(options.seed * 1000 + step)
    size = (shape.microbatches * options.microbatch_size, options.width)
    inputs = torch.randn(size, generator=generator).to(device)
    targets = torch.randn(size, generator=generator).to(device)
    return inputs, targets


class AllOf:
    """Waits for every message of a batch. Older versions keep only the last one, which is enough for NCCL but not for gloo."""

    def __init__(self, works):
        self.works = works

    def wait(self):
        for work in self.works:
            work.wait()


def label_stage(torch, stage):
    """Names the ops of a stage for the profiler if the runtime does not name them itself."""

    def named(function, letter):
        @functools.wraps(function)
        def call(microbatch, *arguments, **keywords):
            kind = letter
            if letter == "B" and not keywords.get("full_backward", True):
                kind = "I"
            with torch.profiler.record_function(f"PP:{stage.stage_index}{kind}{microbatch}"):
                return function(microbatch, *arguments, **keywords)

        return call

    for method, letter in (("forward_one_chunk", "F"), ("backward_one_chunk", "B"), ("backward_weight_one_chunk", "W")):
        setattr(stage, method, named(getattr(stage, method), letter))


def make_schedule(torch, options, shape, rank, device):
    from torch.distributed.pipelining import PipelineStage
    from torch.distributed.pipelining import schedules

    if options.backend == "gloo" and not hasattr(schedules, "_wait_batch_p2p"):
        schedules._batch_p2p = lambda ops, desc=None: AllOf(torch.distributed.batch_isend_irecv(ops)) if ops else None
    example = torch.zeros(options.microbatch_size, options.width, device=device)
    stages = []
    for index in shape.stages_of(rank):
        stage = PipelineStage(part_of_model(torch, options, index, device), index, shape.stages, device, input_args=(example.clone().requires_grad_(index > 0),))
        stage.stage_index_to_group_rank = dict(shape.rank_of_stage)
        if not hasattr(schedules, "_get_profiler_function_name"):
            label_stage(torch, stage)
        stages.append(stage)
    schedule = schedules._PipelineScheduleRuntime(stages, shape.microbatches, loss_fn=torch.nn.functional.mse_loss)
    schedule.stage_index_to_group_rank = dict(shape.rank_of_stage)
    schedule._load_csv(options.schedule, format=options.form or shape.form())
    return schedule, stages


def check_gradients(torch, options, shape, stages, step, device):
    """The largest relative difference to the whole model on the whole batch, on this rank alone."""
    parts = [part_of_model(torch, options, index, device) for index in range(shape.stages)]
    value, targets = whole_batch(torch, options, shape, step, device)
    for part in parts:
        value = part(value)
    torch.nn.functional.mse_loss(value, targets).backward()
    worst = 0.0
    for stage in stages:
        for mine, theirs in zip(stage.submod.parameters(), parts[stage.stage_index].parameters()):
            scale = float(theirs.grad.abs().max()) or 1.0
            worst = max(worst, float((mine.grad - theirs.grad).abs().max()) / scale)
    return worst


def work(rank, options):
    torch = import_torch()
    shape = Shape(options.schedule)
    local = int(os.environ.get("LOCAL_RANK", rank))
    if options.backend == "nccl":
        torch.cuda.set_device(local)
    device = torch.device("cuda", local) if options.backend == "nccl" else torch.device("cpu")
    torch.distributed.init_process_group(options.backend, rank=rank, world_size=shape.ranks)
    if options.backend == "gloo":
        torch.set_num_threads(1)
    schedule, stages = make_schedule(torch, options, shape, rank, device)
    parameters = [parameter for stage in stages for parameter in stage.submod.parameters()]

    def run_step(step):
        for parameter in parameters:
            parameter.grad = None
        inputs, targets = whole_batch(torch, options, shape, step, device)
        arguments = (inputs,) if shape.rank_of_stage[0] == rank else ()
        losses = []
        last = shape.rank_of_stage[shape.stages - 1] == rank
        schedule.step(*arguments, **({"target": targets, "losses": losses} if last else {}))
        return sum(float(loss.detach()) for loss in losses) / len(losses) if losses else None

    loss = run_step(0)
    worst = check_gradients(torch, options, shape, stages, 0, device) if options.check else 0.0
    if worst > 1e-4:
        sys.exit(f"run_schedule: rank {rank}: gradients differ by {worst:.1e} from those of the whole model")
    for step in range(1, options.warmup):
        run_step(step)
    torch.distributed.barrier()
    activities = [torch.profiler.ProfilerActivity.CPU]
    if options.backend == "nccl":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=activities, record_shapes=True, profile_memory=options.memory) as profiler:
        for step in range(options.steps):
            with torch.profiler.record_function("train_step"):
                loss = run_step(options.warmup + step)
            profiler.step()
    os.makedirs(options.traces, exist_ok=True)
    profiler.export_chrome_trace(os.path.join(options.traces, f"rank{rank}.json"))
    torch.distributed.barrier()
    if loss is not None:
        checked = f", gradients agree to {worst:.1e}" if options.check else ""
        print(f"{options.schedule}: {shape.ranks} ranks, {shape.stages} stages, {shape.microbatches} microbatches, {options.steps} steps, loss {loss:.4f}{checked}")
        print(f"traces in {options.traces}: stagewright import {options.traces} -o job.stagewright")
    torch.distributed.destroy_process_group()


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("schedule", help="the CSV: compute only, or with sends and receives")
    parser.add_argument("--traces", default="traces", help="folder for the profiler's files, rank0.json and so on [traces]")
    parser.add_argument("--backend", choices=["gloo", "nccl"], help="[nccl if there are enough GPUs, else gloo]")
    parser.add_argument("--form", choices=["compute_only", "compute_comms"], help="how PyTorch reads the CSV [by its cells]")
    parser.add_argument("--steps", type=int, default=3, help="recorded steps [3]")
    parser.add_argument("--warmup", type=int, default=2, help="steps before them, at least 1 [2]")
    parser.add_argument("--microbatch-size", type=int, default=32, help="samples of a microbatch [32]")
    parser.add_argument("--width", type=int, default=256, help="width of a layer [256]")
    parser.add_argument("--layers", type=int, default=2, help="layers of a stage [2]")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--memory", action="store_true", help="also record allocations")
    parser.add_argument("--check", action="store_true", help="compare the first step's gradients with those of the whole model")
    parser.add_argument("--describe", action="store_true", help="print what the CSV needs as JSON and exit")
    options = parser.parse_args(arguments)
    options.warmup = max(1, options.warmup)
    return options


def main(arguments=None):
    options = parse(arguments)
    try:
        shape = Shape(options.schedule)
    except (OSError, ValueError) as problem:
        sys.exit(f"run_schedule: {problem}")
    if options.describe:
        print(json.dumps({"ranks": shape.ranks, "stages": shape.stages, "microbatches": shape.microbatches, "form": shape.form(), "split_backward": shape.split,
                          "overlapped": shape.overlapped, "stages_of_rank": [shape.stages_of(rank) for rank in range(shape.ranks)]}))
        return
    torch = import_torch()
    if options.backend is None:
        options.backend = "nccl" if torch.cuda.is_available() and torch.cuda.device_count() >= int(os.environ.get("LOCAL_WORLD_SIZE", shape.ranks)) else "gloo"
    if "RANK" in os.environ:
        if int(os.environ["WORLD_SIZE"]) != shape.ranks:
            sys.exit(f"run_schedule: {os.environ['WORLD_SIZE']} processes were started, and the schedule has {shape.ranks} ranks")
        work(int(os.environ["RANK"]), options)
        return
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29611")
    torch.multiprocessing.spawn(work, args=(options,), nprocs=shape.ranks)


if __name__ == "__main__":
    main()
