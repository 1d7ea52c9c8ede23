#!/usr/bin/env python3
"""Training steps of GPT layers on one GPU: this engine against PyTorch, eager and compiled.

    tests/bench/compare_torch_cuda.py build/cuda/bin/stagewright [--hidden 2048 4096] [--layers 4] [--sequence 2048]
                                      [--microbatches 8] [--microbatch-size 1] [--steps 10] [--rounds 3] [--precision bf16] [--json]

Both train the same decoder on bytes (pre-norm blocks, GELU by tanh, untied head, AdamW with fp32 master weights, gradients clipped to
norm 1): forward and backward of one microbatch after the other, then one optimizer step. PyTorch attends with
scaled_dot_product_attention (the backend that it chooses is printed) and steps with its fused AdamW, eager and compiled. In bf16 it runs twice
each: under autocast, which casts every weight again each microbatch, with the residual stream in bf16; and as the engine does, with parameters
in bf16, fp32 masters and gradients summed up in fp32. The engine runs the schedule 1f1b on one rank, untraced. Step times are medians over
--rounds in turn of --steps each after warm-up, by the clock on the wall with the device synchronised. Ratios are engine / each of PyTorch's, and engine / its best,
eager and compiled.

    MFU = FLOP of a step / (step time * peak),   FLOP = 6 b s m (n 12 h^2 + h V) + 12 n b s^2 h m

n layers, width h, s tokens, b samples a microbatch, m microbatches, V = 256; peak: dense, of the precision, from --peak or the
device's name. Attention counts in full, as is usual, though half of it is masked. Without PyTorch, a GPU or the engine's CUDA module
it says so and ends with code 0.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

VOCABULARY = 256
# Dense peaks of the makers' data sheets, FLOP/s: bf16, tf32, fp32.
PEAKS = {"H200": (989e12, 495e12, 67e12), "H100": (989e12, 495e12, 67e12), "A100": (312e12, 156e12, 19.5e12)}


def step_flops(layers, hidden, sequence, samples, microbatches):
    tokens = samples * sequence * microbatches
    return 6 * tokens * (12 * layers * hidden * hidden + hidden * VOCABULARY) + 12 * layers * tokens * sequence * hidden


def peak_of(name, precision, given):
    if given:
        return given
    for key, peaks in PEAKS.items():
        if key in name:
            return peaks[("bf16", "tf32", "fp32").index(precision)]
    return None


def attention_backend(torch, options, hidden):
    """What scaled_dot_product_attention chooses for these shapes, by name."""
    kind = torch.bfloat16 if options.precision == "bf16" else torch.float32
    shape = (options.microbatch_size, hidden // 128, options.sequence, 128)
    q, k, v = (torch.empty(shape, device="cuda", dtype=kind, requires_grad=True) for _ in range(3))
    try:
        number = torch._fused_sdp_choice(q, k, v, None, 0.0, True)
        return torch.nn.attention.SDPBackend(number).name.lower()
    except (AttributeError, RuntimeError, TypeError, ValueError) as error:  # not a public function
        return f"unknown ({error})"


class Masters:
    """fp32 copies of bf16 parameters: gradients of microbatches are added to theirs, steps are theirs, and the parameters follow."""

    def __init__(self, torch, parameters):
        self.torch = torch
        self.parameters = list(parameters)
        self.masters = [p.detach().float() for p in self.parameters]
        for master in self.masters:
            master.grad = torch.zeros_like(master)

    def zero(self):
        self.torch._foreach_zero_([master.grad for master in self.masters])

    def add(self):
        self.torch._foreach_add_([master.grad for master in self.masters], [p.grad.float() for p in self.parameters])
        for parameter in self.parameters:
            parameter.grad = None

    def spread(self):
        with self.torch.no_grad():
            self.torch._foreach_copy_([p.data for p in self.parameters], self.masters)


def torch_trainer(torch, options, hidden, compiled, masters):
    """A function (number of steps) -> wall times of steps in seconds. masters: parameters in bf16 with fp32 masters, else autocast where
    bf16 is meant."""
    from torch import nn
    from torch.nn import functional

    heads = hidden // 128

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1 = nn.LayerNorm(hidden)
            self.qkv = nn.Linear(hidden, 3 * hidden)
            self.project = nn.Linear(hidden, hidden)
            self.norm2 = nn.LayerNorm(hidden)
            self.expand = nn.Linear(hidden, 4 * hidden)
            self.contract = nn.Linear(4 * hidden, hidden)

        def forward(self, x):
            b, t, h = x.shape
            q, k, v = (part.view(b, t, heads, h // heads).transpose(1, 2) for part in self.qkv(self.norm1(x)).split(h, dim=2))
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.project(y.transpose(1, 2).reshape(b, t, h))
            return x + self.contract(functional.gelu(self.expand(self.norm2(x)), approximate="tanh"))

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.token = nn.Embedding(VOCABULARY, hidden)
            self.position = nn.Parameter(torch.randn(options.sequence, hidden) * 0.02)
            self.blocks = nn.ModuleList(Block() for _ in range(options.layers))
            self.norm = nn.LayerNorm(hidden)
            self.head = nn.Linear(hidden, VOCABULARY, bias=False)

        def forward(self, ids, targets):
            x = self.token(ids) + self.position
            if options.precision == "bf16" and not masters:  # as the engine keeps it; autocast alone would carry it along in fp32
                x = x.to(torch.bfloat16)
            for block in self.blocks:
                x = block(x)
            logits = self.head(self.norm(x))
            return functional.cross_entropy(logits.float().view(-1, VOCABULARY), targets.reshape(-1))

    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = options.precision == "tf32"
    torch.backends.cudnn.allow_tf32 = options.precision == "tf32"
    model = Decoder().cuda()
    call = torch.compile(model) if compiled else model
    own = None
    if masters:
        model.to(torch.bfloat16)
        own = Masters(torch, model.parameters())
    stepped = own.masters if masters else list(model.parameters())
    optimizer = torch.optim.AdamW(stepped, lr=3e-3, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    samples = options.microbatch_size
    data = torch.randint(0, 128, (options.microbatches, samples, options.sequence + 1), device="cuda")

    def step():
        own.zero() if masters else optimizer.zero_grad()
        for batch in data:
            with torch.autocast("cuda", dtype=torch.bfloat16, enabled=options.precision == "bf16" and not masters):
                loss = call(batch[:, :-1], batch[:, 1:])
            (loss / options.microbatches).backward()
            if masters:
                own.add()
        nn.utils.clip_grad_norm_(stepped, 1.0)
        optimizer.step()
        if masters:
            own.spread()

    def run(steps):
        times = []
        for _ in range(steps):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            step()
            torch.cuda.synchronize()
            times.append(time.perf_counter() - begin)
        return times

    return run


def engine_steps(options, hidden):
    """Wall times of steps in seconds, after warm-up, and the mean loss of the last; None and why where it can't train here."""
    with tempfile.TemporaryDirectory() as folder:
        run = os.path.join(folder, "run.stagewright")
        command = [options.engine, "record", "--backend", "cuda", "--precision", options.precision, "--no-trace", "-s", "1f1b", "-p", "1",
                   "-m", str(options.microbatches), "--microbatch-size", str(options.microbatch_size), "--clock", "wall",
                   "--model", f"layers={options.layers},hidden={hidden},heads={hidden // 128},seq={options.sequence}",
                   "--steps", str(options.steps), "--warmup", str(options.warmup), "-o", run, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return None, done.stderr.strip() or done.stdout.strip()
        query = "select value from metrics where name='wall_time_ns' order by step"
        table = subprocess.run([options.engine, "sql", run, query, "--json"], capture_output=True, text=True, check=True)
        values = [float(row[0]) * 1e-9 for row in json.loads(table.stdout)["rows"]]
        return values[options.warmup:], ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", help="the program stagewright")
    parser.add_argument("--hidden", type=int, nargs="+", default=[2048, 4096])
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--sequence", type=int, default=2048)
    parser.add_argument("--microbatches", type=int, default=8)
    parser.add_argument("--microbatch-size", type=int, default=1)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3, help="of all, in turn")
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--precision", choices=["bf16", "tf32", "fp32"], default="bf16")
    parser.add_argument("--peak", type=float, help="FLOP/s of the device in this precision [by its name]")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()

    try:
        import torch
    except ImportError as error:
        print(f"skipped: PyTorch is not installed for {sys.executable} ({error})")
        return 0
    if not torch.cuda.is_available():
        print("skipped: PyTorch finds no GPU")
        return 0
    name = torch.cuda.get_device_name(0)
    peak = peak_of(name, options.precision, options.peak)
    results = []
    for hidden in options.hidden:
        times = {"engine": []}
        trainers = {}
        for mode, compiled in (("eager", False), ("compiled", True)):
            for weights in ("autocast", "masters") if options.precision == "bf16" else (options.precision,):
                trainers[f"{mode}, {weights}"] = torch_trainer(torch, options, hidden, compiled, weights == "masters")
                times[f"{mode}, {weights}"] = []
        for _ in range(options.rounds):  # in turn, so that what changes with time concerns all
            ours, why = engine_steps(options, hidden)
            if ours is None:
                print(f"skipped: the engine does not train here: {why}")
                return 0
            times["engine"] += ours
            for label, run in trainers.items():
                run(options.warmup)
                times[label] += run(options.steps)
        trainers.clear()
        torch.cuda.empty_cache()
        flops = step_flops(options.layers, hidden, options.sequence, options.microbatch_size, options.microbatches)
        medians = {label: statistics.median(values) for label, values in times.items()}
        best = {mode: min(value for label, value in medians.items() if label.startswith(mode)) for mode in ("eager", "compiled")}
        results.append({
            "device": name, "torch": torch.__version__, "precision": options.precision, "hidden": hidden, "layers": options.layers,
            "sequence": options.sequence, "microbatches": options.microbatches, "microbatch_size": options.microbatch_size,
            "flops_per_step": flops, "peak": peak,
            "step_seconds": medians,
            "spread": {label: [min(values), max(values)] for label, values in times.items()},
            "mfu": {label: flops / (value * peak) if peak else None for label, value in medians.items()},
            "attention": attention_backend(torch, options, hidden),
            "ratios": {label: medians["engine"] / value for label, value in medians.items() if label != "engine"},
            "ratio_eager": medians["engine"] / best["eager"], "ratio_compiled": medians["engine"] / best["compiled"],
            "ratio": medians["engine"] / min(best.values())})
    if options.json:
        print(json.dumps(results, indent=1))
        return 0
    print("MFU = FLOP of a step / (step time * peak); FLOP = 6 b s m (n 12 h^2 + h V) + 12 n b s^2 h m")
    for r in results:
        peak_text = f"{r['peak'] * 1e-12:.0f} TFLOP/s" if r["peak"] else "unknown, give --peak"
        print(f"\n{r['device']}, torch {r['torch']}, {r['precision']}: {r['layers']} layers, hidden {r['hidden']}, sequence {r['sequence']}, "
              f"{r['microbatches']} x {r['microbatch_size']} samples; {r['flops_per_step']:.3e} FLOP a step, peak {peak_text}; attention of PyTorch: {r['attention']}")
        for label, seconds in r["step_seconds"].items():
            low, high = r["spread"][label]
            mfu = r["mfu"][label]
            ratio = f"  engine / this {r['ratios'][label]:.3f}" if label in r["ratios"] else ""
            print(f"  {label:18} {seconds * 1e3:9.2f} ms  ({low * 1e3:.2f} … {high * 1e3:.2f})" + (f"  MFU {100 * mfu:.1f} %" if mfu else "") + ratio)
        print(f"  engine / best of PyTorch {r['ratio']:.3f}  (eager {r['ratio_eager']:.3f}, compiled {r['ratio_compiled']:.3f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
