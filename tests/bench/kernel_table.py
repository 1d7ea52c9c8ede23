#!/usr/bin/env python3
"""Each kernel of the engine beside PyTorch's own at the same shapes, on one GPU.

    tests/bench/kernel_table.py build/cuda/bin/stagewright [--model hidden=2048,heads=16,seq=2048] [--microbatch-size 1] [--precision bf16] [--json]

The engine's times come from `devices --kernels`; PyTorch's are medians of batches of calls between two CUDA events, eager, after warm-up, in the
same order. Where PyTorch has no kernel for the same work in one call, the calls that it would make are timed together. Rates count the same
operations and bytes for both. Without PyTorch or a GPU the engine's half is printed alone, with the reason.
"""
import argparse
import json
import statistics
import subprocess
import sys


def engine_kernels(options):
    done = subprocess.run([options.program, "devices", "--kernels", options.model, "--backend", options.backend, "--precision", options.precision,
                           "--microbatch-size", str(options.microbatch_size), "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr.strip())
    return json.loads(done.stdout)["kernels"]


def torch_calls(torch, options):
    """Kernel name → a function that does the same work in PyTorch."""
    from torch.nn import functional

    model = {"hidden": 128, "heads": 4, "seq": 128, "vocab": 256, **{k: int(v) for k, v in (pair.split("=") for pair in options.model.split(","))}}
    h, heads, seq, vocab, samples = model["hidden"], model["heads"], model["seq"], model["vocab"], options.microbatch_size
    rows = samples * seq
    kind = torch.bfloat16 if options.precision == "bf16" else torch.float32
    torch.backends.cuda.matmul.allow_tf32 = options.precision == "tf32"

    def random(*shape, dtype=kind):
        return torch.rand(*shape, device="cuda", dtype=torch.float32).sub_(0.5).to(dtype)

    stream, wide = random(rows, h), random(rows, 4 * h)
    qkv_weight, project_weight, expand_weight, contract_weight, head_weight = random(3 * h, h), random(h, h), random(4 * h, h), random(h, 4 * h), random(vocab, h)
    qkv_bias, expand_bias, gamma, beta = random(3 * h), random(4 * h), random(h), random(h)
    qkv = random(rows, 3 * h)
    large = min(8 * h, 4096)
    a, b = random(large, large), random(large, large)
    source, target = torch.empty(16 << 20, device="cuda"), torch.empty(16 << 20, device="cuda")
    expand_grad, project_grad = torch.zeros(4 * h, h, device="cuda"), torch.zeros(h, h, device="cuda")
    q, k, v = (random(samples, heads, seq, h // heads).requires_grad_() for _ in range(3))
    attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    attended_grad = random(*attended.shape)
    normal_in, normal_gamma, normal_beta = stream.clone().requires_grad_(), gamma.clone().requires_grad_(), beta.clone().requires_grad_()
    normed = functional.layer_norm(normal_in, (h,), normal_gamma, normal_beta)
    expanded = random(rows, 4 * h).requires_grad_()
    gelu = functional.gelu(expanded, approximate="tanh")
    tokens = torch.randint(0, min(vocab, 256), (rows,), device="cuda")
    table = random(vocab, h).requires_grad_()
    embedded = functional.embedding(tokens, table)
    embedded_grad = random(rows, h)
    logits = random(rows, vocab).requires_grad_()
    parameter = torch.nn.Parameter(torch.rand(4 * h, h, device="cuda"))
    parameter.grad = torch.rand_like(parameter)
    optimizer = torch.optim.AdamW([parameter], fused=True)

    def gelu_input_grad():
        (grad,) = torch.autograd.grad(gelu, expanded, stream @ contract_weight, retain_graph=True)
        return grad.sum(0)

    def cross_entropy():
        loss = functional.cross_entropy(logits.float(), tokens)
        torch.autograd.grad(loss, logits)

    def weight_grad(total, grad, x):
        total.add_(grad.t() @ x)  # the GEMM in the elements' type, added to fp32

    return {
        "large GEMM": lambda: a @ b.t(),
        "large copy": lambda: target.copy_(source),
        "query, key, value with bias": lambda: functional.linear(stream, qkv_weight, qkv_bias),
        "projection added to the stream": lambda: torch.addmm(stream, stream, project_weight.t()),
        "expand with GELU": lambda: functional.gelu(functional.linear(stream, expand_weight, expand_bias), approximate="tanh"),
        "contract added to the stream": lambda: torch.addmm(stream, wide, contract_weight.t()),
        "gradient through contract, GELU and bias sums": gelu_input_grad,
        "gradient of expand's input": lambda: wide @ expand_weight,
        "gradient of projection's input": lambda: stream @ project_weight,
        "gradient of query, key, value's input": lambda: qkv @ qkv_weight,
        "gradient of expand's weight": lambda: weight_grad(expand_grad, wide, stream),
        "gradient of projection's weight": lambda: weight_grad(project_grad, stream, stream),
        "head": lambda: functional.linear(stream, head_weight),
        "attention": lambda: functional.scaled_dot_product_attention(q, k, v, is_causal=True),
        "attention, backward": lambda: torch.autograd.grad(attended, (q, k, v), attended_grad, retain_graph=True),
        "layer norm": lambda: functional.layer_norm(stream, (h,), gamma, beta),
        "layer norm, backward with sums": lambda: torch.autograd.grad(normed, (normal_in, normal_gamma, normal_beta), stream, retain_graph=True),
        "scale and shift": lambda: torch.addcmul(beta, stream, gamma),
        "sums of columns": lambda: qkv.sum(0, dtype=torch.float32),
        "embedding": lambda: functional.embedding(tokens, table),
        "gradient of the embedding": lambda: torch.autograd.grad(embedded, table, embedded_grad, retain_graph=True),
        "cross entropy": cross_entropy,
        "AdamW": optimizer.step,
        "sum of squares": lambda: expand_grad.square().sum(),
        "sum of gradients": lambda: expand_grad.add_(parameter.grad),
    }


def time_call(torch, call):
    def batch(calls):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(calls):
            call()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) * 1e6 / calls  # ns

    batch(3)
    calls = max(1, min(200, int(3e6 / max(1.0, batch(1)))))
    return statistics.median(batch(calls) for _ in range(7))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--model", default="hidden=2048,heads=16,seq=2048")
    parser.add_argument("--microbatch-size", type=int, default=1)
    parser.add_argument("--precision", default="bf16", choices=("bf16", "tf32", "fp32"))
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()

    kernels = engine_kernels(options)
    calls, reason = {}, ""
    try:
        import torch

        if not torch.cuda.is_available():
            raise RuntimeError("PyTorch sees no GPU")
        calls = torch_calls(torch, options)
    except (ImportError, RuntimeError) as error:
        reason = f"PyTorch's half is missing: {error}"
    for kernel in kernels:
        kernel["torch_ns"] = None
        if kernel["kernel"] in calls:
            try:
                kernel["torch_ns"] = time_call(torch, calls[kernel["kernel"]])
            except RuntimeError as error:
                kernel["torch_error"] = str(error).splitlines()[0]
    if options.json:
        print(json.dumps({"model": options.model, "precision": options.precision, "reason": reason, "kernels": kernels}))
        return
    print(f"{'kernel':46} {'engine µs':>10} {'PyTorch µs':>11} {'ratio':>6} {'rate':>14} {'of the large':>12}")
    for kernel in kernels:
        flops, theirs = kernel["flops"], kernel["torch_ns"]
        rate = (flops or kernel["bytes"]) / kernel["time_ns"]
        text = f"{rate / 1e3:.1f} TFLOP/s" if flops else f"{rate:.0f} GB/s"
        print(f"{kernel['kernel']:46} {kernel['time_ns'] / 1e3:10.1f} {'' if theirs is None else f'{theirs / 1e3:.1f}':>11} "
              f"{'' if theirs is None else format(kernel['time_ns'] / theirs, '.2f'):>6} {text:>14} {100 * kernel['share_of_large']:11.0f} % {kernel.get('torch_error', '')}".rstrip())
    if reason:
        print(reason)


if __name__ == "__main__":
    main()
