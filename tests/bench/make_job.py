#!/usr/bin/env python3
"""Writes the traces of a large job as PyTorch's profiler would, one gzip file a rank: make_job.py FOLDER [RANKS] [KERNELS] [RANKS_A_HOST]

Every rank runs KERNELS kernels with their launches in two steps, and after every tenth all ranks reduce. Two ranks are slow: one in 97 of all by 5 %, and
every rank of the third host by 2 %. Pipeline, data and tensor groups are listed as distributedInfo has them. Same arguments, same bytes.
"""
import gzip
import json
import os
import sys


def main(folder, ranks=64, kernels=1000, per_host=8):
    os.makedirs(folder, exist_ok=True)
    tensor, pipeline = 8, 4
    data = max(1, ranks // (tensor * pipeline))
    everyone = list(range(ranks))
    slow = lambda r: (1.05 if r % 97 == 96 else 1.0) * (1.02 if r // per_host == 2 else 1.0)
    for rank in range(ranks):
        t, p, d = rank % tensor, rank // tensor % pipeline, rank // (tensor * pipeline)
        groups = [
            {"pg_name": "0", "pg_desc": "default_pg", "ranks": everyone},
            {"pg_name": "1", "pg_desc": "mesh_tp", "ranks": [r for r in everyone if r // tensor == rank // tensor]},
            {"pg_name": "2", "pg_desc": "mesh_pp", "ranks": [t + tensor * q + tensor * pipeline * d for q in range(pipeline) if t + tensor * q + tensor * pipeline * d < ranks]},
            {"pg_name": "3", "pg_desc": "mesh_dp", "ranks": [t + tensor * p + tensor * pipeline * e for e in range(data) if t + tensor * p + tensor * pipeline * e < ranks]},
        ]
        events, at, correlation = [], 1000.0, 1
        for step in range(2):
            begin = at
            for k in range(kernels // 2):
                reduces = k % 10 == 9
                length = 40.0 if reduces else 20.0 + k % 7
                start = at if reduces else at
                if reduces:  # all leave it together, when the slowest has come
                    worst = 1.05 if ranks > 96 else 1.0
                    worst = max(worst, 1.02 if ranks > 2 * per_host else 1.0)
                    meet = begin + sum(20.0 + j % 7 for j in range(k) if j % 10 != 9) * worst + (k // 10) * 45.0
                    at = meet + length
                    args = {"Collective name": "allreduce", "In msg nelems": 1 << (10 + k // 10 % 8), "Out msg nelems": 1 << (10 + k // 10 % 8), "dtype": "BFloat16", "Process Group Name": "0", "Seq": step * kernels + k}
                    name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
                else:
                    at = start + length * slow(rank)
                    args, name = {}, f"sm90_xmma_gemm_bf16_{k % 5}"
                args.update({"stream": 7, "device": rank % per_host, "correlation": correlation, "grid": [24 if reduces else 64 << k % 3, 1, 1], "block": [512 if reduces else 128, 1, 1]})
                events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 100 + rank, "tid": 1, "ts": round(start - 200, 3), "dur": 4, "args": {"correlation": correlation}})
                events.append({"ph": "X", "cat": "kernel", "name": name, "pid": rank % per_host, "tid": 7, "ts": round(start, 3), "dur": round(at - start, 3), "args": args})
                correlation += 1
            events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 100 + rank, "tid": 1, "ts": round(begin - 250, 3), "dur": round(at - begin, 3)})
            at += 300
        trace = {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": ranks, "pg_config": groups}, "baseTimeNanoseconds": 1700000000000000000, "traceEvents": events}
        path = os.path.join(folder, f"gpu-{rank // per_host:03d}_{10_000 + rank}.1700000000000.pt.trace.json.gz")
        with open(path, "wb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=1) as file:
            file.write(json.dumps(trace).encode())


main(sys.argv[1], *map(int, sys.argv[2:]))
