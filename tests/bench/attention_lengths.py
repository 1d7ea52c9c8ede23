#!/usr/bin/env python3
"""From which sequence length on should attention on a GPU keep no probabilities?

    tests/bench/attention_lengths.py build/cuda/bin/stagewright [--head-width 64 128] [--hidden 2048] [--layers 4]
                                     [--sequence 128 256 512 1024 2048 4096] [--tokens 4096] [--steps 10] [--precision bf16]

Trains the same GPT layers twice at every length, with whole squares of probabilities and without (STAGEWRIGHT_CUDA_FLASH_FROM), as many
tokens a microbatch each time, one op at a time on the whole GPU, untraced. Prints the medians of F and of B over the steps after
warm-up, and the shortest length from which on F + B without probabilities is never slower: what engine/cuda/cuda_traits.cpp should say.
Squares that do not fit the device's memory count as slower.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

NEVER = 2**31 - 1


def durations(options, width, sequence, stream_from):
    """Median seconds of F and B, or the reason why they are missing."""
    with tempfile.TemporaryDirectory() as folder:
        run = os.path.join(folder, "run.stagewright")
        model = f"layers={options.layers},hidden={options.hidden},heads={options.hidden // width},seq={sequence}"
        command = [options.engine, "record", "--backend", "cuda", "--precision", options.precision, "--sharing", "serialised", "--no-trace",
                   "-s", "1f1b", "-p", "1", "-m", "4", "--microbatch-size", str(max(1, options.tokens // sequence)), "--model", model,
                   "--steps", str(options.steps), "-o", run]
        environment = dict(os.environ, STAGEWRIGHT_CUDA_FLASH_FROM=str(stream_from))
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        if done.returncode != 0:
            return None, done.stderr.strip().splitlines()[0] if done.stderr.strip() else f"code {done.returncode}"
        medians = []
        for kind in "FB":
            query = f"select duration_ns from spans where run = 1 and kind = '{kind}' and step > 0"
            table = subprocess.run([options.engine, "sql", run, query, "--json"], capture_output=True, text=True, check=True)
            medians.append(statistics.median(float(row[0]) for row in json.loads(table.stdout)["rows"]) * 1e-9)
        return medians, None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", help="the program stagewright")
    parser.add_argument("--head-width", type=int, nargs="+", default=[64, 128])
    parser.add_argument("--sequence", type=int, nargs="+", default=[128, 256, 512, 1024, 2048, 4096])
    parser.add_argument("--hidden", type=int, default=2048)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=4096, help="of a microbatch")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--precision", default="bf16")
    options = parser.parse_args()

    print(f"{'head':>5} {'tokens':>7} {'F squares':>10} {'F none':>10} {'B squares':>10} {'B none':>10}  none / squares")
    for width in options.head_width:
        best = None
        for sequence in sorted(options.sequence):
            squares, reason = durations(options, width, sequence, NEVER)
            streamed, failed = durations(options, width, sequence, 1)
            if streamed is None:
                sys.exit(f"heads of {width}, {sequence} tokens: {failed}")
            if squares is None:
                print(f"{width:>5} {sequence:>7} {'-':>10} {streamed[0] * 1e3:>7.3f} ms {'-':>10} {streamed[1] * 1e3:>7.3f} ms  {reason}")
            else:
                ratio = sum(streamed) / sum(squares)
                print(f"{width:>5} {sequence:>7} {squares[0] * 1e3:>7.3f} ms {streamed[0] * 1e3:>7.3f} ms {squares[1] * 1e3:>7.3f} ms "
                      f"{streamed[1] * 1e3:>7.3f} ms  {ratio:.3f}")
                if ratio > 1:
                    best = None
                    continue
            best = best or sequence
        print(f"heads of {width}: " + (f"from {best} tokens on" if best else f"not up to {max(options.sequence)} tokens"))


if __name__ == "__main__":
    main()
