#!/usr/bin/env python3
"""Trains a Stagewright schedule under torch.distributed.pipelining and writes a profiler trace for each rank.

`stagewright record --engine torch` puts this file, a job and a schedule CSV into a job folder and starts it there, one process a
rank. By hand, in such a folder:

    python3 driver.py                       starts the ranks itself, gloo or NCCL
    torchrun --nproc-per-node=4 driver.py   or under torchrun
    python3 driver.py --check               compares the first step's gradients with those of the undivided model
    python3 driver.py --no-profile          without traces, to see how long a step takes by itself
    python3 driver.py --operators           traces PyTorch's operators too, which takes far longer (always so on GPUs)
    python3 driver.py --describe            prints what the schedule needs; works without PyTorch
    stagewright import traces -o job.stagewright

Needs PyTorch 2.6 or newer. Lines on standard output that begin with {"event": are for the program that started the ranks.
"""

import argparse
import csv
import functools
import gzip
import importlib.util
import json
import os
import re
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
import zlib

OLDEST = (2, 6)
CELL = re.compile(r"(\d+)(F|BW|B|I|W|UNSHARD|RESHARD|REDUCE_GRAD|SEND_F|RECV_F|SEND_B|RECV_B)(\d*)")
PAIR = re.compile(r"\(([^;]+);([^;]+)\)OVERLAP_F_B")
MESSAGES = ("SEND_F", "RECV_F", "SEND_B", "RECV_B")
NO_SCALING = "gradient scaling, and there is none here; use bfloat16 or float32"


class JobError(Exception):
    """What a user can mend: printed as one line."""


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
            raise JobError(f"{path}: no ops; one line per rank, cells like 2F0")
        self.stages = max(self.rank_of_stage) + 1
        missing = [stage for stage in range(self.stages) if stage not in self.rank_of_stage]
        if missing:
            raise JobError(f"{path}: stage {missing[0]} is missing, but there is a stage {self.stages - 1}")

    def _read(self, cell, rank, path):
        if not cell:
            return
        pair = PAIR.fullmatch(cell)
        if pair:
            self.overlapped = True
        for text in pair.groups() if pair else (cell,):
            op = CELL.fullmatch(text.strip())
            if not op:
                raise JobError(f"{path}: line {rank + 1}: '{cell}' is not an op of PyTorch's pipelining")
            stage, kind, microbatch = int(op[1]), op[2], op[3]
            if self.rank_of_stage.setdefault(stage, rank) != rank:
                raise JobError(f"{path}: stage {stage} is on ranks {self.rank_of_stage[stage]} and {rank}; PyTorch keeps it on one")
            if microbatch:
                self.microbatches = max(self.microbatches, int(microbatch) + 1)
            self.lowered = self.lowered or kind in MESSAGES
            self.split = self.split or kind in ("I", "W")

    def stages_of(self, rank):
        return [stage for stage in range(self.stages) if self.rank_of_stage[stage] == rank]

    def form(self):
        return "compute_comms" if self.lowered else "compute_only"


class Telling:
    """Progress of one rank: lines of JSON, and a sign of life every second."""

    def __init__(self, rank):
        self.rank = rank
        self.step = 0
        self.where = "starting"
        self.ops = 0
        self.stop = False
        self.lock = threading.Lock()

    def at(self, where):
        """Said before it is done: a call that keeps Python's lock also keeps the signs of life from being given."""
        self.where = where
        self.beat()

    def beat(self):
        self.tell("beat", step=self.step, ops=self.ops, where=self.where)

    def tell(self, event, **facts):
        line = json.dumps({"event": event, "rank": self.rank, **facts}) + "\n"
        with self.lock:
            sys.stdout.flush()
            sys.stdout.write(line)
            sys.stdout.flush()

    def live(self):
        def beat():
            while True:
                self.beat()
                time.sleep(1)

        threading.Thread(target=beat, daemon=True).start()

    def obey(self):
        """Standard input is the program that started this: the line "stop" ends after this step, its end ends at once."""

        def listen():
            for line in sys.stdin:
                if line.strip() == "stop":
                    self.stop = True
            os._exit(143)

        threading.Thread(target=listen, daemon=True).start()


def import_torch():
    try:
        import torch
    except ImportError:
        raise JobError("PyTorch is not installed; this needs 2.6 or newer") from None
    version = tuple(int(part) for part in re.findall(r"\d+", torch.__version__)[:2])
    if version < OLDEST:
        raise JobError(f"PyTorch is {torch.__version__}; this needs 2.6 or newer")
    return torch


# Weights and data, as the program's own engine has them.


class SafeTensors:
    """Reads a safetensors file: the length of a JSON header, the header, the numbers."""

    def __init__(self, path):
        self.path = path
        with open(path, "rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            self.header = json.loads(file.read(length))
        self.begin = 8 + length

    def read(self, torch, name):
        if name not in self.header:
            raise JobError(f"{self.path}: it has no tensor {name}")
        entry = self.header[name]
        if entry["dtype"] != "F32":
            raise JobError(f"{self.path}: {name} is {entry['dtype']}, and F32 is needed")
        first, last = entry["data_offsets"]
        with open(self.path, "rb") as file:
            file.seek(self.begin + first)
            numbers = bytearray(file.read(last - first))
        if len(numbers) != last - first:
            raise JobError(f"{self.path}: it ends within {name}")
        return torch.frombuffer(numbers, dtype=torch.float32).reshape(entry["shape"])


FORMS = {}  # of the own engine's workloads, by name: (torch, job, folder) gives a module of a stage, an example, a loss


# engine/workload/*/torch_form.py


def users_parts(torch, job):
    """The user's own model: FUNCTION(stages, total, microbatch_size) gives modules by stage, an example, and a loss."""
    path, name = os.path.join(job["folder"], job["model_file"]["path"]), job["model_file"]["function"]
    origin = os.path.dirname(job["model_file"].get("origin", ""))
    if os.path.isdir(origin):
        sys.path.append(origin)  # what it imports from beside it
    spec = importlib.util.spec_from_file_location("users_model", path)
    if spec is None or not os.path.isfile(path):
        raise JobError(f"--model-file {path}: there is no such Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules["users_model"] = module
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        raise JobError(f"--model-file {path}: it has no function {name}")

    if any(type(value).__name__ == "GradScaler" for value in vars(module).values()):
        raise JobError(f"--model-file {path}: it has a GradScaler for {NO_SCALING}")

    def parts(stages, total):
        torch.manual_seed(job["seed"])
        made = function(stages, total, job["microbatch_size"])
        if not isinstance(made, (tuple, list)) or len(made) != 3:
            raise JobError(f"--model-file {path}: {name}() must give three things: modules by stage, an example, a loss")
        return made

    return parts


def make_parts(torch, job, folder, stages, total):
    """Modules of these stages; the example, as a function of step and microbatch; the loss."""
    if "model_file" not in job:
        stage_of, example, loss = FORMS[job.get("workload", next(iter(FORMS)))](torch, job, folder)
        return {stage: stage_of(stage, total) for stage in stages}, example, loss
    modules, example, loss = users_parts(torch, job)(stages, total)
    if isinstance(modules, (list, tuple)):
        modules = dict(zip(stages, modules))
    missing = [stage for stage in stages if not isinstance(modules.get(stage), torch.nn.Module)]
    if missing:
        raise JobError(f"--model-file {job['model_file']['path']}: no torch.nn.Module for stage {missing[0]}")
    if callable(example):
        return modules, example, loss
    return modules, lambda step, microbatch: example, loss


def trained(module):
    """Parameters by name, each tensor once."""
    return {name: parameter for name, parameter in module.named_parameters() if parameter.requires_grad}


def described(torch, value):
    if not isinstance(value, torch.Tensor):
        return type(value).__name__
    return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"


class Tie:
    """A tensor that several stages share: the same numbers on all their ranks, and the sum of their gradients."""

    def __init__(self, torch, members, pipeline):
        shape = pipeline.shape
        ranks = sorted({shape.rank_of_stage[stage] for stage, _ in members})
        own = [pipeline.named[stage][name] for stage, name in members if stage in pipeline.named]
        if any(parameter is not own[0] for parameter in own):
            where = " and ".join(f"stage {stage}'s {name}" for stage, name in members)
            raise JobError(f"{where} are one tensor of the whole model, but several on rank {pipeline.rank}; share it there")
        self.torch, self.parameter = torch, own[0] if own else None
        self.group = torch.distributed.new_group(ranks) if len(ranks) > 1 else None  # a call of all ranks
        self.counted = not own or pipeline.rank == ranks[0]  # its gradient is part of one rank's norm
        if self.group and own:
            with torch.no_grad():
                torch.distributed.broadcast(self.parameter, src=ranks[0], group=self.group)

    def add(self):
        if self.group and self.parameter is not None:
            total = self.parameter.grad.float()
            self.torch.distributed.all_reduce(total, group=self.group)
            self.parameter.grad.copy_(total)


class Pipeline:
    """The stages of one rank and PyTorch's schedule over them."""

    def __init__(self, torch, job, folder, shape, rank, device, telling):
        self.torch, self.job, self.shape, self.rank, self.device, self.telling = torch, job, shape, rank, device, telling
        own = shape.stages_of(rank)
        modules, self.example, self.loss = make_parts(torch, job, folder, own, shape.stages)
        self.modules = {stage: modules[stage].to(device).train() for stage in own}
        self.has_first = shape.rank_of_stage[0] == rank
        self.has_last = shape.rank_of_stage[shape.stages - 1] == rank
        self.named = {stage: trained(module) for stage, module in self.modules.items()}
        for stage, named in self.named.items():
            for name, parameter in named.items():
                if parameter.dtype == torch.float16:
                    raise JobError(f"stage {stage}: {name} is float16, which needs {NO_SCALING}")
        self.ties = [Tie(torch, members, self) for members in self._tied()]
        # A tensor of several stages of this rank is one of the first's: zeroed, counted and stepped once.
        seen, self.parameters = set(), {}
        for stage, named in self.named.items():
            self.parameters[stage] = [p for p in named.values() if id(p) not in seen]
            seen.update(map(id, self.parameters[stage]))
        for parameters in self.parameters.values():
            for parameter in parameters:
                parameter.grad = torch.zeros_like(parameter)
        self.counted_elsewhere = {id(tie.parameter) for tie in self.ties if not tie.counted}
        self.optimizers = {stage: self._optimizer(parameters) for stage, parameters in self.parameters.items() if parameters}
        self.targets = []
        self.schedule, self.stages = self._schedule()

    def _optimizer(self, parameters):
        config, torch = self.job["optimizer"], self.torch
        groups = [
            {"params": [p for p in parameters if p.dim() > 1], "weight_decay": config["weight_decay"]},
            {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0},
        ]
        groups = [group for group in groups if group["params"]]
        if config["kind"] == "sgd":
            return torch.optim.SGD(groups, lr=config["learning_rate"], momentum=config["momentum"], foreach=True)
        return torch.optim.AdamW(groups, lr=config["learning_rate"], betas=(config["beta1"], config["beta2"]), eps=config["epsilon"], foreach=True)

    def _tied(self):
        """Tensors that several stages share, each as [(stage, name)]: as an undivided model without numbers has them."""
        torch, stages = self.torch, list(range(self.shape.stages))
        if "model_file" not in self.job:
            return []
        was = torch.random.get_rng_state()
        try:
            with torch.device("meta"):
                whole = make_parts(torch, self.job, self.job["folder"], stages, self.shape.stages)[0]
        except JobError:
            raise
        except Exception:  # it reads numbers, or needs them
            whole = make_parts(torch, self.job, self.job["folder"], stages, self.shape.stages)[0]
        torch.random.set_rng_state(was)
        places = {}
        for stage in stages:
            for name, parameter in trained(whole[stage]).items():
                places.setdefault(id(parameter), []).append((stage, name))
        return [members for members in places.values() if len({stage for stage, _ in members}) > 1]

    def _boundaries(self):
        """[(shape, type)] of the inputs of every stage, and of the loss: each stage is run once on zeros."""
        torch = self.torch
        found = []
        first = self.example(0, 0)[0] if self.has_first else None
        if first is not None and not isinstance(first, torch.Tensor):
            raise JobError(f"the example's inputs are {type(first).__name__}, and one tensor is needed")
        facts = [[(tuple(first.shape), first.dtype)] if first is not None else None]
        torch.distributed.broadcast_object_list(facts, src=self.shape.rank_of_stage[0])
        for stage in range(self.shape.stages):
            found.append(facts[0])
            if stage in self.modules:
                was = torch.random.get_rng_state()
                with torch.no_grad():
                    zeros = (torch.zeros(size, dtype=kind, device=self.device) for size, kind in facts[0])
                    output = self.modules[stage](*zeros)
                    if stage + 1 == self.shape.stages:
                        output = self.loss(output, self.example(0, 0)[1].to(self.device))
                torch.random.set_rng_state(was)
                facts = [self._checked(stage, output)]
            torch.distributed.broadcast_object_list(facts, src=self.shape.rank_of_stage[stage])
        return found + facts

    def _checked(self, stage, output):
        """What a stage gives, as [(shape, type)]; what the last one gives is the loss."""
        torch = self.torch
        if stage + 1 == self.shape.stages:
            if not isinstance(output, torch.Tensor) or output.numel() != 1 or not output.is_floating_point():
                raise JobError(f"the loss is {described(torch, output)}, and one floating-point number is needed")
            return [((1,), output.dtype)]
        tensors = output if isinstance(output, (tuple, list)) else (output,)
        for number, tensor in enumerate(tensors):
            if not isinstance(tensor, torch.Tensor) or not tensor.is_floating_point() or tensor.dtype == torch.float16:
                place = f"output {number}" if isinstance(output, (tuple, list)) else "its output"
                if isinstance(tensor, torch.Tensor) and tensor.dtype == torch.float16:
                    raise JobError(f"stage {stage}: {place} is float16, which needs {NO_SCALING}")
                raise JobError(
                    f"stage {stage}: {place} is {described(torch, tensor)}; a stage gives the next one a tensor of "
                    "float32 or bfloat16, or a tuple of such, for gradients come back the same way; "
                    "make masks and positions in each stage that needs them"
                )
        return [(tuple(tensor.shape), tensor.dtype) for tensor in tensors]

    def _schedule(self):
        from torch.distributed.pipelining import PipelineStage, schedules

        torch, shape = self.torch, self.shape
        if self.job["backend"] == "gloo" and not hasattr(schedules, "_wait_batch_p2p"):
            schedules._batch_p2p = lambda ops, desc=None: AllOf(torch.distributed.batch_isend_irecv(ops)) if ops else None
        boundaries = self._boundaries()
        empty = [tuple(torch.empty(size, dtype=kind, device="meta") for size, kind in facts) for facts in boundaries]
        stages = []
        for index, module in self.modules.items():
            if index + 1 == shape.stages:
                module = self._with_loss(module)
            stage = PipelineStage(
                module, index, shape.stages, self.device, input_args=empty[index], output_args=empty[index + 1]
            )
            stage.stage_index_to_group_rank = dict(shape.rank_of_stage)
            self._label(stage, not hasattr(schedules, "_get_profiler_function_name"))
            stages.append(stage)
        # The sum over microbatches: 1/m is applied below, where versions differ in applying it themselves.
        keywords = {"scale_grads": False} if "scale_grads" in parameters_of(schedules._PipelineScheduleRuntime.__init__) else {}
        schedule = schedules._PipelineScheduleRuntime(stages, shape.microbatches, loss_fn=lambda output, target: output.sum(), **keywords)
        schedule.stage_index_to_group_rank = dict(shape.rank_of_stage)
        schedule._load_csv(os.path.join(self.job["folder"], self.job["schedule"]), format=self.job.get("form") or shape.form())
        return schedule, stages

    def _with_loss(self, module):
        """The last stage with the loss in its forward pass, so that an op's label covers it."""
        pipeline, torch = self, self.torch

        class WithLoss(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.module = module

            def forward(self, *streams):
                loss = pipeline.loss(self.module(*streams), pipeline.targets[pipeline.microbatch])
                return loss * loss.new_ones(1)  # not a view: pipelining detaches it in place

        return WithLoss()

    def _label(self, stage, labels):
        """Keeps the op that runs, for the loss and for what is said of a rank that hangs; labels it where the runtime does not."""
        torch, telling = self.torch, self.telling

        def named(function, letter):
            @functools.wraps(function)
            def call(microbatch, *arguments, **keywords):
                kind = letter
                if letter == "B" and not keywords.get("full_backward", True):
                    kind = "I"
                op = f"{stage.stage_index}{kind}{microbatch}"
                self.microbatch = microbatch
                telling.where = "in " + op
                telling.ops += 1
                try:
                    if not labels:
                        return function(microbatch, *arguments, **keywords)
                    with torch.profiler.record_function("PP:" + op):
                        return function(microbatch, *arguments, **keywords)
                finally:
                    telling.where = "after " + op

            return call

        for method, letter in (("forward_one_chunk", "F"), ("backward_one_chunk", "B"), ("backward_weight_one_chunk", "W")):
            setattr(stage, method, named(getattr(stage, method), letter))

    def run(self, step):
        """One step. The mean loss on the rank of the last stage, else None."""
        torch, shape = self.torch, self.shape
        for parameters in self.parameters.values():
            if parameters:
                torch._foreach_zero_([parameter.grad for parameter in parameters])
        inputs, self.targets = [], []
        if self.has_first or self.has_last:
            for microbatch in range(shape.microbatches):
                one, target = self.example(step, microbatch)
                inputs.append(one)
                self.targets.append(target.to(self.device))
        arguments = (torch.cat(inputs).to(self.device),) if self.has_first else ()
        losses = []
        keywords = {"target": torch.zeros(shape.microbatches), "losses": losses} if self.has_last else {}
        self.schedule.step(*arguments, **keywords)
        for tie in self.ties:
            tie.add()
        return sum(float(loss.detach()) for loss in losses) / len(losses) if losses else None

    def update(self, step):
        """Mean over microbatches, clipping by the norm over all ranks, the optimizer: the own engine's rules."""
        torch, config = self.torch, self.job["optimizer"]
        scale = 1.0 / self.shape.microbatches
        squares = torch.zeros(1, dtype=torch.float64, device=self.device)
        for stage, parameters in self.parameters.items():
            if parameters:
                with torch.profiler.record_function(f"PP:{stage}REDUCE_GRAD"):
                    torch._foreach_mul_([p.grad for p in parameters], scale)
                    counted = [p.grad for p in parameters if id(p) not in self.counted_elsewhere]
                    wide = [grad.float() if grad.dtype == torch.bfloat16 else grad for grad in counted]
                    if wide:
                        squares += torch.stack(torch._foreach_norm(wide)).double().square().sum()
        torch.distributed.all_reduce(squares)
        norm = float(squares.sqrt())
        if norm != norm or norm == float("inf"):
            return
        clip = config["clip_norm"]
        rate = config["learning_rate"] * (min(1.0, (step + 1) / config["warmup_steps"]) if config["warmup_steps"] > 0 else 1.0)
        for stage, optimizer in self.optimizers.items():
            with torch.profiler.record_function(f"PP:{stage}OPT"):
                if 0 < clip < norm:
                    torch._foreach_mul_([p.grad for p in self.parameters[stage]], clip / norm)
                for group in optimizer.param_groups:
                    group["lr"] = rate
                optimizer.step()

    def rest(self):
        for stage in self.stages:
            stage.clear_runtime_states()

    def held(self):
        """Bytes by category and stage that are there before a step."""
        def size(tensors):
            return sum(tensor.numel() * tensor.element_size() for tensor in tensors)

        found, seen = [], set()
        for stage, parameters in self.parameters.items():
            found.append(("weights", stage, size(p for p in self.modules[stage].parameters() if id(p) not in seen)))
            seen.update(map(id, self.modules[stage].parameters()))
            found.append(("gradients", stage, size(p.grad for p in parameters)))
            state = [value for p in parameters for value in self.optimizers[stage].state.get(p, {}).values() if self.torch.is_tensor(value)]
            found.append(("optimizer", stage, size(state)))
        return [(category, stage, count) for category, stage, count in found if count > 0]

    def check(self):
        """The largest relative difference of the first step's gradients to those of the undivided model on the whole batch."""
        torch, shape = self.torch, self.shape
        self.run(0)
        whole, example, loss = make_parts(torch, self.job, self.job["folder"], list(range(shape.stages)), shape.stages)
        if "model_file" in self.job:  # its weights are random: every rank has its own stages'
            everyone = [None] * shape.ranks
            torch.distributed.all_gather_object(everyone, {stage: module.state_dict() for stage, module in self.modules.items()})
            for states in everyone:
                for stage, state in states.items():
                    whole[stage].load_state_dict(state)
        for module in whole.values():
            module.to(self.device)
        for microbatch in range(shape.microbatches):
            value, target = (tensor.to(self.device) for tensor in example(0, microbatch))
            for stage in range(shape.stages):
                value = whole[stage](*value) if isinstance(value, (tuple, list)) else whole[stage](value)
            loss(value, target).backward()
        worst = 0.0
        for stage, named in self.named.items():
            theirs_of = trained(whole[stage])
            for name, mine in named.items():
                theirs = theirs_of[name]
                if theirs.grad is not None:
                    worst = max(worst, float((mine.grad - theirs.grad).abs().max()) / (float(theirs.grad.abs().max()) or 1.0))
        return worst


class AllOf:
    """Waits for every message of a batch. Older versions keep only the last one, which is enough for NCCL but not for gloo."""

    def __init__(self, works):
        self.works = works

    def wait(self):
        for work in self.works:
            work.wait()


def parameters_of(function):
    return function.__code__.co_varnames[: function.__code__.co_argcount + function.__code__.co_kwonlyargcount]


# engine/torch/trace.py


def work(options, job, shape, rank, telling):
    torch = import_torch()
    from datetime import timedelta

    local = int(os.environ.get("LOCAL_RANK", rank))
    nccl = job["backend"] == "nccl"
    if nccl:
        if torch.cuda.device_count() <= local:
            raise JobError(f"rank {rank} needs GPU {local}, and PyTorch finds {torch.cuda.device_count()}; use --backend cpu")
        torch.cuda.set_device(local)
    device = torch.device("cuda", local) if nccl else torch.device("cpu")
    if not nccl:
        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    telling.at("joining the other ranks")
    torch.distributed.init_process_group(job["backend"], rank=rank, world_size=shape.ranks, timeout=timedelta(seconds=2 * job["timeout"] + 60))
    telling.at("building its stages")
    pipeline = Pipeline(torch, job, options.job, shape, rank, device, telling)
    telling.tell("ready", torch=torch.__version__, python=".".join(map(str, sys.version_info[:3])), device=torch.cuda.get_device_name(local) if nccl else "cpu",
                 stages=list(pipeline.modules), parameters=sum(p.numel() for module in pipeline.modules.values() for p in module.parameters()))
    if options.check:
        worst = pipeline.check()
        telling.tell("check", worst=worst)
        if worst > 1e-4:
            raise JobError(f"gradients differ by {worst:.1e} from those of the undivided model")

    trace = None if options.no_profile else Trace(torch, os.path.join(options.job, "traces"), rank, nccl, options.operators)
    last = job["warmup"] + job["steps"]  # the traced steps end there
    first = last - job.get("traced_steps", job["steps"])
    total = last + (job.get("steps_without_profiler", 0) if trace else 0)
    done, traced, held = 0, 0, []
    for step in range(total):
        telling.step, telling.where = step, "between steps"
        tracing = trace is not None and first <= step < last
        if tracing:
            if step == first:
                pipeline.rest()
                held = pipeline.held()
            trace.start()
        goes_on = torch.tensor([0 if telling.stop else 1], device=device)
        torch.distributed.broadcast(goes_on, src=0)  # all start the step together, or none
        if not int(goes_on):
            if tracing:
                trace.stop()
            break
        begin = time.perf_counter_ns()
        with torch.profiler.record_function(f"ProfilerStep#{step}"):
            loss = pipeline.run(step)
            pipeline.update(step)
            if nccl:
                torch.cuda.synchronize()
        took = time.perf_counter_ns() - begin
        done = step + 1
        if loss is not None:
            telling.tell("step", step=step, loss=loss, step_time_ns=took)
        if tracing:
            pipeline.rest()  # what a step leaves is its own
            telling.at("writing its trace")
            trace.stop()
            trace.keep(held)
            traced += 1
            telling.tell("traced", step=step)
    telling.at("leaving")
    torch.distributed.barrier()
    beside = {"profiler_ns": int(1e9 * trace.profiling), "writing_ns": int(1e9 * trace.writing)} if trace else {}
    telling.tell("done", steps=done, traced=traced, **beside)
    torch.distributed.destroy_process_group()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start_ranks(options, ranks):
    """Where nobody else starts them: one process a rank. torchrun needs libuv, which some builds lack."""
    shared = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "USE_LIBUV": "0", "GLOO_SOCKET_IFNAME": "lo"}
    shared.setdefault("OMP_NUM_THREADS", os.environ.get("OMP_NUM_THREADS", "1"))
    started = []
    for rank in range(ranks):
        environment = {**os.environ, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank)}
        started.append(subprocess.Popen([sys.executable, os.path.abspath(__file__), options.job] + options.flags, env=environment))
    worst = 0
    while started:
        time.sleep(0.1)
        for process in list(started):
            if process.poll() is None:
                continue
            started.remove(process)
            worst = worst or process.returncode
        if worst:
            for process in started:
                process.kill()
    return worst


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("job", nargs="?", default=os.path.dirname(os.path.abspath(__file__)), help="the job folder [this file's]")
    parser.add_argument("--check", action="store_true", help="compare the first step's gradients with those of the undivided model")
    parser.add_argument("--no-profile", action="store_true", help="write no traces: how long a step takes without the profiler")
    parser.add_argument("--operators", action="store_true", help="trace PyTorch's operators and their inputs too")
    parser.add_argument("--describe", action="store_true", help="print what the schedule needs as JSON and exit")
    options = parser.parse_args(arguments)
    chosen = {"--check": options.check, "--no-profile": options.no_profile, "--operators": options.operators}
    options.flags = [flag for flag, on in chosen.items() if on]
    return options


def main(arguments=None):
    options = parse(arguments)
    rank = int(os.environ.get("RANK", "0"))
    telling = Telling(rank)
    try:
        with open(os.path.join(options.job, "job.json"), encoding="utf-8") as file:
            job = json.load(file)
        job["folder"] = options.job
        shape = Shape(os.path.join(options.job, job["schedule"]))
        if options.describe:
            print(json.dumps({"ranks": shape.ranks, "stages": shape.stages, "microbatches": shape.microbatches, "form": shape.form(), "split_backward": shape.split,
                              "overlapped": shape.overlapped, "stages_of_rank": [shape.stages_of(rank) for rank in range(shape.ranks)]}))
            return
        if "RANK" not in os.environ:
            sys.exit(start_ranks(options, shape.ranks))
        if int(os.environ["WORLD_SIZE"]) != shape.ranks:
            raise JobError(f"{os.environ['WORLD_SIZE']} processes were started, and the schedule has {shape.ranks} ranks")
        if os.environ.get("STAGEWRIGHT_CONTROL") == "stdin":
            telling.obey()
        telling.live()
        work(options, job, shape, rank, telling)
    except (JobError, TraceError, OSError) as problem:
        telling.tell("error", message=str(problem), where=telling.where)
        sys.stderr.write(f"driver: {problem}\n")
        sys.stderr.flush()
        os._exit(1)
    except Exception as problem:
        traceback.print_exc()
        first = (str(problem).strip() or type(problem).__name__).splitlines()[0]
        telling.tell("error", message=f"{type(problem).__name__}: {first}", where=telling.where, peer="Connection" in str(problem) or "peer" in str(problem))
        sys.stderr.flush()
        os._exit(1)


if __name__ == "__main__":
    main()
