#!/usr/bin/python3
"""One training step of the engine against the same step in PyTorch's eager mode: one thread each, CPU time, in turn.

    tests/bench/compare_torch.py build/release/bin/bench_engine [--repeats 15] [--hidden 256 512] [--precision fp32] [--json]

Both train the same decoder (4 layers, 128 tokens, microbatches of 4): forward, backward, AdamW, gradients zeroed. PyTorch attends
with scaled_dot_product_attention and steps with its fused AdamW where it has them (2.0 and 2.4; what it used is printed); in bf16 it
computes under autocast.
The order within a round alternates; the ratio is engine / torch of the medians, its spread the quartiles of the rounds'
own ratios. Without PyTorch it says so and ends with code 0.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

OPENBLAS = "/usr/lib/x86_64-linux-gnu/openblas-pthread"


def torch_decoder(torch, hidden, heads, layers, tokens):
    """The engine's decoder; the type of its blocks; and whether it attends fused."""
    from torch import nn
    from torch.nn import functional

    fused_attention = hasattr(functional, "scaled_dot_product_attention")

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1 = nn.LayerNorm(hidden)
            self.qkv = nn.Linear(hidden, 3 * hidden)
            self.project = nn.Linear(hidden, hidden)
            self.norm2 = nn.LayerNorm(hidden)
            self.expand = nn.Linear(hidden, 4 * hidden)
            self.contract = nn.Linear(4 * hidden, hidden)
            self.register_buffer("mask", torch.triu(torch.ones(tokens, tokens, dtype=torch.bool), diagonal=1))

        def forward(self, x):
            b, t, h = x.shape
            q, k, v = self.qkv(self.norm1(x)).split(h, dim=2)
            q, k, v = (part.view(b, t, heads, h // heads).transpose(1, 2) for part in (q, k, v))
            if fused_attention:
                y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            else:
                scores = (q @ k.transpose(-2, -1)) * (h // heads) ** -0.5
                y = functional.softmax(scores.masked_fill(self.mask, float("-inf")), dim=-1) @ v
            x = x + self.project(y.transpose(1, 2).reshape(b, t, h))
            return x + self.contract(functional.gelu(self.expand(self.norm2(x)), approximate="tanh"))

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.token = nn.Embedding(256, hidden)
            self.position = nn.Parameter(torch.randn(tokens, hidden) * 0.02)
            self.blocks = nn.ModuleList(Block() for _ in range(layers))
            self.norm = nn.LayerNorm(hidden)
            self.head = nn.Linear(hidden, 256, bias=False)

        def forward(self, ids):
            x = self.token(ids) + self.position
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    torch.manual_seed(1)
    return Decoder(), Block, fused_attention


def torch_step(torch, hidden, heads, layers, tokens, batch, bf16):
    """A function that trains one step and returns its loss; and what it uses, in words."""
    from torch.nn import functional

    model, _, fused_attention = torch_decoder(torch, hidden, heads, layers, tokens)
    settings = {"lr": 3e-3, "betas": (0.9, 0.95), "weight_decay": 0.1}
    fused_step = True
    try:
        optimizer = torch.optim.AdamW(model.parameters(), fused=True, **settings)
    except (RuntimeError, TypeError):  # before 2.4 for GPUs only, before 1.13 not at all
        fused_step = False
        optimizer = torch.optim.AdamW(model.parameters(), **settings)
    ids = torch.randint(0, 128, (batch, tokens + 1))

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16):
            logits = model(ids[:, :-1])
        loss = functional.cross_entropy(logits.float().reshape(-1, 256), ids[:, 1:].reshape(-1))
        loss.backward()
        optimizer.step()
        return loss

    uses = ("scaled_dot_product_attention" if fused_attention else "softmax of stored scores") + (", fused AdamW" if fused_step else ", AdamW")
    return step, uses + (", autocast" if bf16 else "")


def quartiles(values):
    ordered = sorted(values)
    return ordered[len(ordered) // 4], ordered[(3 * len(ordered)) // 4]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", help="the program bench_engine")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--hidden", type=int, nargs="+", default=[256, 512])
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()

    # Both sides use the same BLAS. The loader reads its path at the start only: start again with it.
    if os.path.isdir(OPENBLAS) and OPENBLAS not in os.environ.get("LD_LIBRARY_PATH", ""):
        environment = dict(os.environ, LD_LIBRARY_PATH=OPENBLAS + ":" + os.environ.get("LD_LIBRARY_PATH", ""),
                           OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
        os.execve(sys.executable, [sys.executable] + sys.argv, environment)
    try:
        import torch
    except ImportError as error:
        print(f"skipped: PyTorch is not installed for {sys.executable} ({error}); apt-get install python3-torch")
        return 0
    torch.set_num_threads(1)

    layers, tokens, batch = 4, 128, 4
    results = []
    for hidden in options.hidden:
        heads = hidden // 64
        server = subprocess.Popen(
            [options.engine, "--serve"] + [str(n) for n in (hidden, heads, layers, tokens, batch)] +
            (["bf16"] if options.precision == "bf16" else []),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

        def engine_step():
            server.stdin.write("\n")
            server.stdin.flush()
            return int(server.stdout.readline().split()[0]) / 1e6

        step, uses = torch_step(torch, hidden, heads, layers, tokens, batch, options.precision == "bf16")

        def peer_step():
            start = time.process_time_ns()
            step()
            return (time.process_time_ns() - start) / 1e6

        for _ in range(3):
            engine_step()
            peer_step()
        ours, theirs = [], []
        for repeat in range(options.repeats):
            if repeat % 2:
                theirs.append(peer_step())
                ours.append(engine_step())
            else:
                ours.append(engine_step())
                theirs.append(peer_step())
        server.stdin.close()
        server.wait()
        low, high = quartiles([a / b for a, b in zip(ours, theirs)])
        results.append({"hidden": hidden, "heads": heads, "repeats": options.repeats, "torch": torch.__version__,
                        "precision": options.precision, "torch_uses": uses,
                        "engine_ms": statistics.median(ours), "torch_ms": statistics.median(theirs),
                        "ratio": statistics.median(ours) / statistics.median(theirs),
                        "ratio_quartiles": [low, high]})
    if options.json:
        print(json.dumps(results, indent=1))
    else:
        for r in results:
            print(f"hidden {r['hidden']:4}  heads {r['heads']}  engine {r['engine_ms']:7.1f} ms  torch {r['torch_ms']:7.1f} ms  "
                  f"ratio {r['ratio']:.3f}  quartiles {r['ratio_quartiles'][0]:.3f} … {r['ratio_quartiles'][1]:.3f}  "
                  f"({r['repeats']} steps each in turn, CPU time, {r['precision']}, torch {r['torch']}: {r['torch_uses']})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
