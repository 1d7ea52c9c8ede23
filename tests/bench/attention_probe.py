#!/usr/bin/env python3
"""PyTorch's fused attentions on one GPU, forward and backward: FlashAttention, cuDNN's, the memory-efficient one.

    tests/bench/attention_probe.py [--heads 16] [--width 128] [--tokens 1024 2048] [--samples 1]

Not run on a GPU so far. For each that this PyTorch has: median time of a call by CUDA events, the rate (the masked half counts as
done, as docs/performance.md counts attention), and the backward also with deterministic sums. These are what the engine's own attention has to
beat to remain the default.
"""
import argparse
import sys

from kernel_table import time_call


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("--heads", 16), ("--width", 128), ("--samples", 1)):
        parser.add_argument(name, type=int, default=default)
    parser.add_argument("--tokens", type=int, nargs="+", default=[1024, 2048])
    options = parser.parse_args()
    try:
        import torch
        from torch.nn.attention import SDPBackend, sdpa_kernel
        from torch.nn.functional import scaled_dot_product_attention
    except ImportError as error:
        print(f"skipped: {error}")
        return
    if not torch.cuda.is_available():
        print("skipped: PyTorch sees no GPU")
        return

    def milliseconds(call):
        return time_call(torch, call) / 1e6

    print(f"PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}, {torch.cuda.get_device_name()}")
    for tokens in options.tokens:
        shape = (options.samples, options.heads, tokens, options.width)
        q, k, v = (torch.randn(shape, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
        grad = torch.randn_like(q)
        flops = 2 * options.samples * options.heads * tokens * tokens * options.width  # of one causal product, halved
        for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION, SDPBackend.EFFICIENT_ATTENTION):
            name = backend.name.lower()
            try:
                with sdpa_kernel(backend):
                    out = scaled_dot_product_attention(q, k, v, is_causal=True)
                    forward = milliseconds(lambda: scaled_dot_product_attention(q, k, v, is_causal=True))
                    backward = {}
                    for repeatable in (False, True):
                        torch.use_deterministic_algorithms(repeatable, warn_only=True)
                        backward[repeatable] = milliseconds(lambda: torch.autograd.grad(out, (q, k, v), grad, retain_graph=True))
                    torch.use_deterministic_algorithms(False)
            except RuntimeError as error:
                print(f"{name:20} {tokens:5} tokens: not here: {str(error).splitlines()[0]}")
                continue
            print(f"{name:20} {tokens:5} tokens: forward {forward:.3f} ms, {2 * flops / forward / 1e9:.0f} TFLOP/s; "
                  f"backward {backward[False]:.3f} ms, {5 * flops / backward[False] / 1e9:.0f} TFLOP/s, deterministic {backward[True]:.3f} ms")


if __name__ == "__main__":
    sys.exit(main())
