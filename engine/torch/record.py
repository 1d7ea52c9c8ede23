"""Records a training loop of yours, with one import:

    from stagewright.torch import record

    with record("traces", run="job.stagewright"):
        train()

Under torch.distributed.pipelining (TorchTitan, too), Megatron-LM and DeepSpeed's pipeline engine nothing else is needed: each
schedule.step(), forward-backward call or train_batch() begins a step, and its ops are labelled. A loop written by hand says
both:

    with record("traces") as recording:
        for batch in batches:
            recording.step()
            with recording.op("F", stage=0, microbatch=0):
                ...

Every rank does so, and writes rankN.json.gz into the folder. The first `warmup` steps run without the profiler, then
`steps` are traced, each kept as soon as the next begins; what follows runs without it again. Nothing of the loop's order
changes. With `run`, the first rank then imports the traces into that file; else:

    stagewright import traces -o job.stagewright

Needs PyTorch 2.6 or newer. The folder has to be one that all ranks write into.
"""

import contextlib
import functools
import gzip
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
import zlib

KINDS = ("F", "B", "I", "W", "R", "OPT")


# engine/torch/trace.py


# engine/torch/loops.py


class record:
    """See above. operators: PyTorch's operators too, which takes far longer (always so on GPUs)."""

    def __init__(self, folder="traces", *, run=None, warmup=2, steps=3, rank=None, operators=False):
        if steps < 1 or warmup < 0:
            raise ValueError(f"steps={steps}, warmup={warmup}: trace 1 step or more, after 0 or more")
        self.folder, self.run, self.warmup, self.steps = folder, run, warmup, steps
        self.rank, self.operators = rank, operators
        self.begun, self.since = 0, None  # steps so far; when this one began
        self.traced = 0
        self.trace = self.range = None
        self.times = {True: [], False: []}  # of steps, traced and not
        self.stages = {}  # a stage's modules, where the loop's library names them
        self.inside = 0  # ops that are open
        self.stepped = set()  # stages with an OPT in this step
        self.patches = Patches()

    def __enter__(self):
        import torch

        self.torch = torch
        self.distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
        if self.rank is None:
            self.rank = torch.distributed.get_rank() if self.distributed else int(os.environ.get("RANK", "0"))
        self.gpu = torch.cuda.is_available()
        for label in (label_pipelining, label_megatron, label_deepspeed, label_optimizers):
            label(self, self.patches)
        return self

    def __exit__(self, kind, problem, traceback):
        self.patches.undo()
        if kind is None:
            self._end_step()
        elif self.range is not None:  # this step is not whole
            self.range.__exit__(None, None, None)
            self.trace.stop()
        if self.trace is not None:
            self.trace.close()
        if self.traced == 0:
            if kind is None:
                sys.stderr.write(f"stagewright: {self.begun} steps began, and the first {self.warmup} are not traced\n")
            return
        if self.rank == 0:
            self._say_times()
        if kind is None and self.run is not None:
            self._import()

    def step(self):
        """A step begins here, and the one before ends."""
        self._end_step()
        self.stepped.clear()
        tracing = self.warmup <= self.begun < self.warmup + self.steps
        if tracing:
            if self.trace is None:
                self.trace = Trace(self.torch, self.folder, self.rank, self.gpu, self.operators)
                self.held = self._held()
            self.trace.start()
            self.range = self.torch.profiler.record_function(f"ProfilerStep#{self.begun}")
            self.range.__enter__()
        self.begun += 1
        self.since = time.perf_counter()

    @contextlib.contextmanager
    def op(self, kind, stage, microbatch=None):
        """What is done within is this op: F, B, I, W or R of a microbatch, or a stage's OPT."""
        if kind not in KINDS:
            raise ValueError(f"{kind!r} is not an op; one of {', '.join(KINDS)}")
        self.inside += 1
        try:
            with self.torch.profiler.record_function(f"PP:{stage}{kind}{'' if microbatch is None else microbatch}"):
                yield
        finally:
            self.inside -= 1

    @property
    def tracing(self):
        return self.range is not None

    def _end_step(self):
        if self.begun == 0 or self.since is None:
            return
        if self.gpu:
            self.torch.cuda.synchronize()
        took, self.since = time.perf_counter() - self.since, None
        if self.begun > 1:  # the first makes things that the others find
            self.times[self.range is not None].append(took)
        if self.range is None:
            return
        self.range.__exit__(None, None, None)
        self.range = None
        self.trace.stop()
        self.trace.keep(self.held)
        self.traced += 1

    def _held(self):
        """Bytes by category and stage that are there before the first traced step."""
        found = []
        for stage, modules in sorted(self.stages.items()):
            parameters = [p for module in modules for p in module.parameters()]
            weights = sum(p.numel() * p.element_size() for p in parameters)
            kept = [getattr(p, "main_grad", None) if p.grad is None else p.grad for p in parameters]  # Megatron-LM's buffer
            gradients = sum(one.numel() * one.element_size() for one in kept if one is not None)
            found += [("weights", stage, weights), ("gradients", stage, gradients)]
        return [entry for entry in found if entry[2] > 0]

    def _say_times(self):
        with_it, without = ([1000 * t for t in self.times[traced]] for traced in (True, False))
        said = f"stagewright: {self.traced} steps of rank 0 in {self.trace.path}"
        if with_it:
            said += f"; a step took {statistics.median(with_it):.1f} ms under the profiler"
        if without:
            said += f", {statistics.median(without):.1f} ms without it"
        sys.stderr.write(said + "\n")

    def _import(self):
        if self.distributed:
            self.torch.distributed.barrier()  # all have written
        if self.rank != 0:
            return
        program = os.environ.get("STAGEWRIGHT") or shutil.which("stagewright")
        command = [program or "stagewright", "import", self.folder, "-o", self.run]
        if not program or subprocess.call(command, stdin=subprocess.DEVNULL) != 0:
            sys.stderr.write(f"stagewright: the traces are in {self.folder}; to import them: {' '.join(command)}\n")
