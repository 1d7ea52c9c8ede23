#!/usr/bin/env python3
"""Seeds of the fuzzing tests: a trace with every kind of record, a memory snapshot, small archives. Run in this folder; same bytes each time."""
import bz2, gzip, io, json, lzma, pathlib, shutil, subprocess, tarfile, zipfile

here = pathlib.Path(__file__).parent
events = []


def span(cat, name, start, length, args=None, tid=1, pid=1):
    events.append({"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": start, "dur": length, "args": args or {}})


def trace(rank):
    events.clear()
    for step in range(2):
        begin = 1000 + 1000 * step
        span("user_annotation", f"ProfilerStep#{step}", begin, 900)
        for i, (name, start) in enumerate((("PP:0F0", 10), ("PP:0B0", 300), ("## optimizer ##", 600))):
            number = 10 * step + i + 1
            span("user_annotation", name, begin + start, 100)
            span("cpu_op", "aten::addmm", begin + start + 5, 20, {"External id": number})
            span("cuda_runtime", "cudaLaunchKernel", begin + start + 8, 4, {"correlation": number, "External id": number})
            span("kernel", "void at::native::vectorized_elementwise_kernel<4>(int)", begin + start + 20, 60, {"device": 0, "stream": 7, "correlation": number, "External id": number}, 7, 0)
            events.append({"ph": "s", "id": number, "pid": 1, "tid": 1, "ts": begin + start + 8, "cat": "ac2g", "name": "ac2g"})
            events.append({"ph": "f", "id": number, "pid": 0, "tid": 7, "ts": begin + start + 20, "cat": "ac2g", "name": "ac2g", "bp": "e"})
            events.append({"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": begin + start + 9,
                           "args": {"Total Allocated": 1000 + i, "Bytes": 100 if i < 2 else -100, "Addr": 77, "Device Id": 0, "Device Type": 1, "category": "activations", "stage": 0, "microbatch": 0}})
        span("gpu_user_annotation", "PP:0F0", begin + 30, 60, {}, 7, 0)
        span("cpu_op", "record_param_comms", begin + 700, 5, {"Collective name": "allreduce", "dtype": "BFloat16", "In msg nelems": 64, "Out msg nelems": 64, "Process Group Name": "1", "Group size": 2, "Seq": step, "Src Rank": 0, "Dst Rank": 1})
        span("kernel", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", begin + 710, 50, {"device": 0, "stream": 20, "correlation": 90 + step, "Collective name": "allreduce", "dtype": "BFloat16", "In msg nelems": 64, "Out msg nelems": 64, "Process Group Name": "1", "Process Group Ranks": "[0, 1]", "Seq": step}, 20, 0)
        span("kernel", "ncclDevKernel_SendRecv", begin + 770, 20, {"device": 0, "stream": 21, "correlation": 80 + step, "Collective name": "send" if rank == 0 else "recv", "dtype": "Float", "In msg nelems": 8, "Out msg nelems": 8, "Process Group Name": "1", "Src Rank": 0, "Dst Rank": 1, "Seq": step}, 21, 0)
        span("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", begin + 800, 10, {"device": 0, "stream": 7, "bytes": 4096, "correlation": 70 + step}, 7, 0)
        span("gpu_memset", "Memset (Device)", begin + 815, 5, {"device": 0, "stream": 7, "bytes": 64}, 7, 0)
        span("cuda_runtime", "cudaStreamSynchronize", begin + 820, 40, {"correlation": 60 + step})
        events.append({"ph": "b", "cat": "work", "name": "async", "id": "0x1", "pid": 1, "ts": begin + 5})
        events.append({"ph": "e", "cat": "work", "name": "async", "id": "0x1", "pid": 1, "ts": begin + 50})
        events.append({"ph": "C", "name": "clock", "pid": 1, "ts": begin, "args": {"MHz": 1980}})
    events.append({"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "main"}})
    head = {"schemaVersion": 1, "baseTimeNanoseconds": 1700000000000000000, "traceName": "seed",
            "deviceProperties": [{"id": 0, "name": "NVIDIA H100", "totalGlobalMem": 85899345920}],
            "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2, "pg_count": 2, "pg_config": [
                {"pg_name": "0", "pg_desc": "default_pg", "ranks": [0, 1]}, {"pg_name": "1", "pg_desc": "mesh_pp", "ranks": [0, 1]}]}}
    return json.dumps({**head, "traceEvents": events}, separators=(",", ":"))


def xla():
    """As JAX writes it: processes are devices, all values of args are texts, an empty object at the end."""
    out = [{"ph": "M", "name": "process_name", "pid": 701, "args": {"name": "/host:CPU"}}, {"ph": "M", "name": "thread_name", "pid": 701, "tid": 5, "args": {"name": "python"}}]
    for device, kind in ((1, "GPU:0"), (2, "GPU:1"), (3, "TPU:0")):
        out.append({"ph": "M", "name": "process_name", "pid": device, "args": {"name": "/device:" + kind}})
        for tid, name in ((14, "Stream #14(Compute,MemcpyD2H)"), (90, "XLA Ops"), (91, "Steps"), (92, "XLA Modules")):
            out.append({"ph": "M", "name": "thread_name", "pid": device, "tid": tid, "args": {"name": name}})
    for step in range(2):
        at = 500 * step
        out.append({"ph": "X", "pid": 701, "tid": 5, "ts": at, "dur": 100, "name": "train", "args": {"step_num": str(step)}})
        for device in (1, 2, 3):
            number = {"correlation_id": str(10 * step + device)}
            out.append({"ph": "X", "pid": 701, "tid": 5, "ts": at + 10, "dur": 1, "name": "cuLaunchKernel", "args": number})
            out.append({"ph": "X", "pid": device, "tid": 14, "ts": at + 110, "dur": 200.5, "name": "gemm_fusion_dot_4", "args": {**number, "hlo_op": "dot.4", "hlo_module": "jit_step"}})
            out.append({"ph": "X", "pid": device, "tid": 90, "ts": at + 110, "dur": 200.5, "name": "dot.4", "args": {"long_name": "dot"}})
            out.append({"ph": "X", "pid": device, "tid": 91, "ts": at + 100, "dur": 300, "name": str(step), "args": {"group_id": str(step)}})
            out.append({"ph": "X", "pid": device, "tid": 14, "ts": at + 320, "dur": 40, "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "args": {}})
            out.append({"ph": "X", "pid": device, "tid": 14, "ts": at + 400, "dur": 10, "name": "MemcpyD2H", "args": {"memcpy_details": "size:64"}})
    return json.dumps({"displayTimeUnit": "ns", "traceEvents": out + [{}]}, separators=(",", ":"))


def ascend():
    """As msprof writes it: a bare array, times as texts, processes without categories; cut, so without its bracket."""
    out = []
    for pid, name in ((1, "Python"), (2, "CANN"), (3, "Ascend Hardware"), (4, "Communication"), (5, "Overlap Analysis")):
        out.append({"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}})
    out += [{"ph": "M", "name": "thread_name", "pid": 3, "tid": 2, "args": {"name": "Stream 2"}}, {"ph": "M", "name": "thread_name", "pid": 4, "tid": 7, "args": {"name": "Group 0 Communication"}}]
    for step in range(2):
        at = 1704161511420306 + 1000 * step
        def one(pid, tid, start, length, name, args, **more):
            out.append({"ph": "X", "pid": pid, "tid": tid, "ts": f"{at + start}.491", "dur": length, "name": name, "args": args, **more})
        one(1, "main", 0, 900, f"ProfilerStep#{step}", {}, cat="user_annotation")
        one(1, "main", 10, 20, "aten::mm", {"Call stack": "a.py"}, cat="cpu_op")
        one(2, 1, 15, 5, "AscendCL@aclnnMatmul", {"connection_id": 5 + step})
        one(3, 2, 100, 200.25, "MatMulV2", {"Model Id": 4294967295, "Task Type": "AI_CORE", "Physic Stream Id": 2, "Task Id": step, "connection_id": 5 + step})
        one(4, 7, 310, 50, "hcom_allReduce__123_0", {"connection_id": 15 + step, "Src Rank": 0, "Dst Rank": 1, "Transport Type": "HCCS", "Size(Byte)": 4096})
        one(5, 0, 100, 200, "Computing", {})
        out.append({"ph": "s", "bp": "e", "id": str(step), "cat": "async_npu", "name": "torch_to_npu", "pid": 1, "tid": "main", "ts": f"{at + 12}.5"})
        out.append({"ph": "f", "bp": "e", "id": str(step), "cat": "async_npu", "name": "torch_to_npu", "pid": 3, "tid": 2, "ts": f"{at + 100}.491"})
    return json.dumps(out, separators=(",", ":"))[:-1]


snapshot = {"segments": [{"device": 0, "total_size": 4096, "blocks": [{"size": 1000, "state": "active_allocated"}, {"size": 3096, "state": "inactive"}]}],
            "device_traces": [[{"action": "segment_alloc", "addr": 1, "size": 2048, "time_us": 10}, {"action": "alloc", "addr": 100, "size": 300, "time_us": 1020, "frames": [{"name": "f", "size": 5}]},
                               {"action": "free_requested", "addr": 100, "size": 300, "time_us": 2050}, {"action": "free_completed", "addr": 100, "size": 300, "time_us": 2060}, {"action": "oom", "size": 1, "time_us": 2080}], []],
            "external_annotations": [{"stage": "START", "name": "PP:0F0", "device": 0, "time_us": 1000}, {"stage": "END", "name": "PP:0F0", "device": 0, "time_us": 1100}]}

time = 1759300000000000  # us: memory timelines, sizes by category at times and single changes in ns
sizes = [[time, time, time + 10, time + 20],
         [[0, 4096, 2048, 0, 0, 0, 0, 0, 0], [0, 4096, 2048, 128, 0, 0, 0, 0, 0], [0, 4096, 2048, 128, 64, 1024, 0, 0, 0], [0, 4096, 2048, 128, 0, 1024, 512, 16, 8]]]
changes = [[-1, 1, 4096, 0], [-1, 1, 2048, 1], [time * 1000, 2, 128, 2], [time * 1000 + 9, 2, 1024, 4], [time * 1000 + 20, 3, -1024, 4], [time * 1000 + 20, 3, 1024, 5],
           [time * 1000 + 35, 4, -1024, 5]]


def nsys_lines():
    process = 77 << 24
    device = {"deviceId": "0", "streamId": "7", "globalPid": str(process)}
    lines = []
    for i in range(3):
        lines.append({"Type": 79, "CudaEvent": {"startNs": str(1000 + 100 * i), "endNs": str(1060 + 100 * i), **device, "correlationId": i + 1, "eventClass": 3,
                                                "kernel": {"shortName": "2", "demangledName": "2", "gridX": 12, "gridY": 1, "gridZ": 1, "blockX": 128, "blockY": 1, "blockZ": 1}}})
        lines.append({"Type": 48, "TraceProcessEvent": {"startNs": str(980 + 100 * i), "endNs": str(990 + 100 * i), "correlationId": i + 1, "name": "0", "globalTid": str(process)}})
    lines.append({"Type": 80, "CudaEvent": {"startNs": "1400", "endNs": "1450", **device, "correlationId": 9, "memcpy": {"copyKind": 1, "sizebytes": "4096"}}})
    lines.append({"Type": 80, "CudaEvent": {"startNs": "1460", "endNs": "1470", **device, "correlationId": 10, "memset": {"sizebytes": "64"}}})
    lines.append({"Type": 106, "CudaEvent": {"startNs": "1500", "endNs": "1510", "streamId": "4294967295", "sync": {"syncType": 1}}})
    lines.append({"Type": 59, "NvtxEvent": {"Timestamp": "950", "EndTimestamp": "1300", "TextId": "3", "GlobalTid": str(process)}})
    lines.append({"Type": 59, "NvtxEvent": {"Timestamp": "960", "EndTimestamp": "1310", "Text": "range", "GlobalTid": str(process)}})
    lines.append({"type": "String", "id": "5", "value": "more"})
    lines.append({"data": ["cudaLaunchKernel", "", "gemm", "PP:0F0"]})
    return "".join(json.dumps(line) + "\n" for line in lines)


traces = [trace(0), trace(1)]
(here / "json" / "records_rank0.json").write_text(traces[0])
(here / "json" / "records_rank1.json").write_text(traces[1])
(here / "json" / "xla.json").write_text(xla())
(here / "json" / "trace_view.json").write_text(ascend())
(here / "json" / "snapshot.json").write_text(json.dumps(snapshot, separators=(",", ":")))
(here / "json" / "memory_sizes.json").write_text(json.dumps(sizes))
(here / "json" / "memory_changes.json").write_text(json.dumps(changes))
(here / "nsight" / "lines.json").write_text(nsys_lines())

small = '{"traceEvents":[{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":1,"dur":5,"args":{"stream":7}}]}'.encode()
out = here / "archives"
members = [("job/rank0.json", small), ("job/rank1.json", small), ("../outside.json", small)]
with zipfile.ZipFile(out / "job.zip", "w", zipfile.ZIP_DEFLATED) as archive:
    for name, data in members:
        archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
buffer = io.BytesIO()
with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
    for name, data in members:
        info = tarfile.TarInfo(name)
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
(out / "job.tar").write_bytes(buffer.getvalue())
(out / "job.tar.gz").write_bytes(gzip.compress(buffer.getvalue(), mtime=0))
(out / "job.tar.xz").write_bytes(lzma.compress(buffer.getvalue()))
(out / "rank0.json.bz2").write_bytes(bz2.compress(small))
(out / "rank0.json.gz").write_bytes(gzip.compress(small, mtime=0))
if shutil.which("zstd"):
    (out / "rank0.json.zst").write_bytes(subprocess.run(["zstd", "-q", "-c"], input=small, stdout=subprocess.PIPE, check=True).stdout)
