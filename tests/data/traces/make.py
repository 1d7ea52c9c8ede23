#!/usr/bin/env python3
# Writes the traces of this folder: small and synthetic, with deliberate peculiarities. See README.md.
import json
import os
import sqlite3
import struct

HERE = os.path.dirname(os.path.abspath(__file__))
BASE = 1_700_000_000_000_000_000


def write(name, trace, compact=False):
    with open(os.path.join(HERE, name), "w") as out:
        json.dump(trace, out, indent=None if compact else 1, separators=(",", ":") if compact else None)
        out.write("\n")


def gpu_rank(rank):
    """1F1B of two stages and two microbatches, two steps, on a GPU; ranks 4 and 6 of a job, clock of the second 3 ms ahead."""
    stage = rank
    job_rank = (4, 6)[rank]
    ahead = (0, 3000)[rank]
    events = []
    correlation = [100]

    def span(cat, name, tid, ts, dur, args=None, pid=900):
        events.append({"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts + ahead, "dur": dur, "args": args or {}})

    def kernel(name, launched, tid, ts, dur, stream=7, args=None, cat="kernel"):
        correlation[0] += 1
        span("cuda_runtime", "cudaLaunchKernel", tid, launched, 2, {"correlation": correlation[0]})
        values = {"device": rank, "stream": stream, "correlation": correlation[0]}
        values.update(args or {})
        span(cat, name, stream, ts, dur, values, pid=rank)

    def memory(ts, size, address, total):
        events.append({"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 900, "tid": 1, "ts": ts + ahead,
                       "args": {"Device Type": 1, "Device Id": rank, "Addr": address, "Bytes": size, "Total Allocated": total}})

    order = {0: ["F0", "F1", "B0", "B1"], 1: ["F0", "B0", "F1", "B1"]}[stage]
    times = {0: {"F0": 0, "F1": 100, "B0": 500, "B1": 800}, 1: {"F0": 200, "B0": 320, "F1": 500, "B1": 620}}[stage]
    for step in range(2):
        start = 10_000 + step * 2000
        span("user_annotation", f"ProfilerStep#{step + 5}", 1, start - 60, 1500)
        if step == 0:
            memory(start - 50, 1000, 1, 5000)
        for name in order:
            at = start + times[name]
            long = 90 if name[0] == "F" else 150
            span("user_annotation", f"PP:{stage}{name}", 1, at - 40, 60)
            thread = 1 if name[0] == "F" else 2  # backwards are launched by the framework's own thread
            kernel("gemm", at - 30, thread, at, long // 2)
            kernel("elementwise", at - 28, thread, at + long // 2, long // 2)
            kernel("Memcpy HtoD", at - 26, thread, at + long + 5, 3, stream=9, cat="gpu_memcpy", args={"bytes": 64})
            if step == 0 and name[0] == "F":
                memory(at - 20, 4096, 100 + int(name[1]), 9096)
                memory(at - 19, 512, 50, 9608)
                memory(at - 18, -512, 50, 9096)
            if step == 0 and name[0] == "B":
                memory(at - 15, -4096, 100 + int(name[1]), 5000)
                memory(at - 14, 256, 200 + int(name[1]), 5256)
        # messages: place in the group, not rank of the job
        group = {"Process Group Name": "pp", "Process Group Description": "mesh_pp", "Process Group Ranks": "[4, 6]"}
        for mb, (sent, got) in enumerate([(92, 190), (192, 490)]):
            if stage == 0:
                kernel("ncclDevKernel_SendRecv(x)", start + sent - 20, 1, start + sent, 90, 20,
                       {**group, "Collective name": "send", "Src Rank": 0, "Dst Rank": 1, "Seq": step * 10 + mb})
            else:
                kernel("ncclDevKernel_SendRecv(x)", start + got - 100, 1, start + got - 90, 88, 20,
                       {**group, "Collective name": "recv", "Src Rank": 0, "Dst Rank": 1, "Seq": step * 10 + mb})
        for mb, (sent, got) in enumerate([(472, 495), (772, 795)]):
            if stage == 1:
                kernel("ncclDevKernel_SendRecv(x)", start + sent - 20, 2, start + sent, 20, 21,
                       {**group, "Collective name": "send", "Src Rank": 1, "Dst Rank": 0, "Seq": step * 10 + mb})
            else:
                kernel("ncclDevKernel_SendRecv(x)", start + got - 100, 1, start + got - 90, 88, 21,
                       {**group, "Collective name": "recv", "Src Rank": 1, "Dst Rank": 0, "Seq": step * 10 + mb})
        kernel("ncclDevKernel_AllReduce_Sum_f32(x)", start + 970, 1, start + 1000 + rank * 10, 50 - rank * 10, 22,
               {"Collective name": "allreduce", "Process Group Name": "pp", "Seq": step, "Process Group Ranks": "[4, 6]"})
    events.append({"ph": "M", "name": "process_name", "pid": 900, "tid": 0, "args": {"name": "python"}})
    events.append({"ph": "s", "id": 1, "pid": 900, "tid": 1, "ts": 1, "cat": "ac2g", "name": "ac2g"})
    return {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "Fake GPU"}],
            "distributedInfo": {"backend": "nccl", "rank": job_rank, "world_size": 8},
            "traceEvents": events, "traceName": "synthetic", "displayTimeUnit": "ms", "baseTimeNanoseconds": BASE}


def old_format():
    """Categories and flows of 2021, ranges of the user among the operators, no distributedInfo, an array of one line."""
    events = []
    for mb in range(2):
        events.append({"ph": "X", "cat": "Operator", "name": f"Forward {mb}", "pid": 7, "tid": "7", "ts": 100 + mb * 50, "dur": 40, "args": {"Device": 7, "External id": mb}})
        events.append({"ph": "X", "cat": "Operator", "name": f"Backward {mb}", "pid": 7, "tid": "7", "ts": 300 + mb * 50, "dur": 45, "args": {}})
        events.append({"ph": "X", "cat": "Runtime", "name": "hipLaunchKernel", "pid": 7, "tid": "7", "ts": 105 + mb * 50, "dur": 1, "args": {"correlation": 10 + mb}})
        events.append({"ph": "X", "cat": "Kernel", "name": "Cijk_gemm", "pid": 0, "tid": "stream 0", "ts": 1000 + mb * 50, "dur": 30, "args": {"correlation": 10 + mb, "memory bandwidth (GB/s)": 1.5}})
        events.append({"ph": "s", "cat": "async", "name": "launch", "id": mb, "pid": 7, "tid": "7", "ts": 105})
        events.append({"ph": "f", "cat": "async", "name": "launch", "id": mb, "pid": 0, "tid": "stream 0", "ts": 1000, "bp": "e"})
        events.append({"ph": "X", "cat": "Memset", "name": "Memset", "pid": 0, "tid": "stream 0", "ts": 1040 + mb * 50, "dur": 2, "args": {"stream": 0}})
    return events


def chrome():
    events = []
    for rank in range(2):
        pid = 40 + rank
        events.append({"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": f"rank {rank}"}})
        events.append({"ph": "B", "name": "outer", "pid": pid, "tid": 1, "ts": 10 + rank})
        events.append({"ph": "X", "name": "F m0", "pid": pid, "tid": 1, "ts": 20 + rank * 30, "dur": 20.5})
        events.append({"ph": "X", "name": "B m0", "pid": pid, "tid": 1, "ts": 140 - rank * 40, "dur": 30})
        events.append({"ph": "E", "pid": pid, "tid": 1, "ts": 200})
        events.append({"ph": "E", "pid": pid, "tid": 1, "ts": 201})
        events.append({"ph": "b", "cat": "io", "id": "0x1", "name": "load", "pid": pid, "tid": 2, "ts": 5})
        events.append({"ph": "e", "cat": "io", "id": "0x1", "name": "load", "pid": pid, "tid": 2, "ts": 15})
        events.append({"ph": "C", "name": "queue", "pid": pid, "tid": 0, "ts": 50, "args": {"depth": 3, "waiting": 1.5}})
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def ascend():
    """A step on an NPU as torch_npu writes it: names behind the events, a thread that launches late, no bracket at the end."""
    python, cann, hardware, communication, overlap = 500, (500 << 10) | (7 << 5), (500 << 10) | (13 << 5) | 2, (500 << 10) | (14 << 5) | 2, (500 << 10) | (21 << 5) | 2
    start = 1_764_300_000_000_000
    lines = []

    def event(**fields):
        lines.append(json.dumps(fields))

    def at(microseconds):
        return f"{start + microseconds}.000"

    def span(pid, tid, name, ts, dur, args=None, **more):
        event(name=name, pid=pid, tid=tid, ts=at(ts), dur=dur, ph="X", args=args or {}, **more)

    def named(what, pid, tid, name):
        event(name=what, pid=pid, tid=tid, ph="M", args={"name": name})

    def task(tid, name, kind, ts, dur, number, connection):
        span(hardware, tid, name, ts, dur, {"Model Id": 4294967295, "Task Type": kind, "Physic Stream Id": tid, "Task Id": number,
                                            "Batch Id": 0, "Subtask Id": 4294967295, "connection_id": connection})

    def flow(asked, pid, tid, ts):
        event(ph="s", bp="e", name="torch_to_npu", id=(start + ts) * 1000, pid=python, tid=500, ts=at(asked), cat="async_npu")
        event(ph="f", bp="e", name="torch_to_npu", id=(start + ts) * 1000, pid=pid, tid=tid, ts=at(ts), cat="async_npu")

    named("process_name", cann, 0, "CANN")
    for name, tid, ts, dur, connection in (("Node@launch", 501, 30, 5, 1), ("AscendCL@aclrtSynchronizeStream", 500, 150, 50, 90),
                                           ("Node@launch", 501, 350, 5, 2), ("Runtime@KernelLaunch", 501, 351, 3, 2), ("Node@launch", 501, 360, 4, 3),
                                           ("AscendCL@aclrtMemcpyAsync", 501, 365, 3, 4), ("Communication@hcom_allReduce_", 501, 370, 3, 5)):
        span(cann, tid, name, ts, dur, {"Thread Id": tid, "Mode": "launch", "level": "node", "id": "0", "item_id": "0", "connection_id": connection})
    task(2, "aclnnMatmul_MatMulV2_MatMulV2", "AI_CORE", 40, 100, 1, 1)
    task(2, "aclnnAdd_Add_Add", "AI_VECTOR_CORE", 360, 40, 2, 2)
    task(2, "aclnnMatmul_MatMulV2_MatMulV2", "AI_CORE", 410, 200, 3, 3)
    task(2, "EVENT_WAIT", "EVENT_WAIT_SQE", 610, 100, 4, 4294967295)
    task(2, "MEMCPY_ASYNC", "SDMA_SQE", 720, 20, 5, 4)
    task(9, "NOTIFY_WAIT", "NOTIFY_WAIT_SQE", 600, 10, 3, 4294967295)
    task(9, "MEMCPY_ASYNC", "SDMA_SQE", 610, 30, 4, 5)
    named("process_name", hardware, 0, "Ascend Hardware")
    named("thread_name", hardware, 2, "Stream 2")
    named("thread_name", hardware, 9, "Stream 9")
    for name, kind, ts, dur, number in (("Notify Wait", "NOTIFY_WAIT", 600, 10, 3), ("Memcpy", "SDMA", 610, 30, 4)):
        span(communication, 1, name, ts, dur, {"notify_id": "0", "duration estimated(us)": 0, "stream id": 9, "task id": number, "task type": kind,
                                               "src rank": 0, "dst rank": 1, "transport type": "SDMA", "size(Byte)": 4000})
    span(communication, 0, "hcom_allReduce__459_0_1", 600, 100, {"connection_id": 5, "model id": 4294967295, "data_type": "FP32", "alg_type": "MESH", "count": 1000})
    named("process_name", communication, 0, "Communication")
    named("thread_name", communication, 0, "Group 0 Communication")
    named("thread_name", communication, 1, "Plane 0")
    for tid, name, ts, dur in ((1, "Communication", 600, 100), (2, "Computing", 40, 100), (3, "Free", 140, 220)):
        span(overlap, tid, name, ts, dur, {"analysis type": "x"})
    named("process_name", overlap, 0, "Overlap Analysis")
    for name, ts, dur in (("ProfilerStep#7", 0, 1000), ("PP:0F0", 10, 100), ("aten::matmul", 20, 10), ("aten::add", 40, 10), ("PP:0B0", 200, 100),
                          ("aten::matmul", 210, 10), ("c10d::allreduce_", 250, 10), ("aten::copy_", 280, 10)):
        span(python, 500, name, ts, dur, cat="cpu_op")
    span(python, 500, "Enqueue@aclnnMatmul", 22, 2, {"correlation_id": 1}, cat="enqueue")
    span(python, 501, "Dequeue@aclnnMatmul", 28, 9, {"correlation_id": 1}, cat="dequeue")
    for asked, pid, tid, ts in ((20, hardware, 2, 40), (40, hardware, 2, 360), (210, hardware, 2, 410), (250, communication, 0, 600), (280, hardware, 2, 720)):
        flow(asked, pid, tid, ts)
    named("process_name", python, 0, "Python")
    named("thread_name", python, 500, "Thread 500")
    with open(os.path.join(HERE, "ascend_rank0.json"), "w") as out:
        out.write("[" + ",\n".join(lines) + ",")


def zero_bubble():
    """Two ranks of ZBV, two chunks each: letters of the zero-bubble repository."""
    lists = {0: "F0.0.0 F1.0.0 F0.1.0 B0.1.0 F1.1.0 W0.1.0 B1.1.0 B0.0.0 W0.0.0 W1.1.0 B1.0.0 W1.0.0".split(),
             1: "F0.0.0 F0.1.0 F1.0.0 F1.1.0 B0.1.0 W0.1.0 B0.0.0 B1.1.0 W0.0.0 B1.0.0 W1.1.0 W1.0.0".split()}
    # stages: rank 0 holds 0 and 3, rank 1 holds 1 and 2; times only have to keep the order of what depends
    start = {0: [0, 10, 40, 50, 60, 70, 75, 90, 100, 105, 120, 130], 1: [10, 20, 30, 45, 60, 70, 80, 85, 95, 105, 112, 120]}
    traces = []
    for rank in range(2):
        events = [{"ph": "X", "cat": "user_annotation", "name": name, "pid": 1, "tid": 1, "ts": start[rank][i], "dur": 5} for i, name in enumerate(lists[rank])]
        traces.append({"schemaVersion": 1, "distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": events})
    return traces


def export(name, epoch):
    """An empty export of Nsight Systems, with the tables that are filled."""
    path = os.path.join(HERE, name)
    if os.path.exists(path):
        os.remove(path)
    db = sqlite3.connect(path)
    db.execute("PRAGMA page_size=1024")
    db.executescript("""
        CREATE TABLE StringIds(id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
        CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, streamId INTEGER NOT NULL,
            correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL);
        CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER NOT NULL, end INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL);
        CREATE TABLE NVTX_EVENTS(start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT, textId INTEGER, globalTid INTEGER);
        CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS(start INTEGER, globalPid INTEGER, address INTEGER, bytes INTEGER, memoryOperationType INTEGER);
        CREATE TABLE TARGET_INFO_SESSION_START_TIME(utcEpochNs INTEGER);
        INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'ncclDevKernel_SendRecv'), (3, 'cudaLaunchKernel'), (4, 'PP:0B0'), (5, 'ncclDevKernel_AllReduce_Sum_f32');
    """)
    db.execute("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (?)", (epoch,))
    return db


def nsight_node(node):
    """One of two nodes with two processes each: GPipe of four stages, two microbatches; all reduce in the end; the second clock 4 ms ahead."""
    db = export(f"nsight_node{node}.sqlite", BASE)
    us = 1000
    ahead = node * 4000 * us
    for local in range(2):
        rank = node * 2 + local
        pid = (700 + local) << 24
        tid = pid | (700 + local)
        work = [(f"PP:{rank}F{mb}", 1000 + (rank + mb) * 100, 100, 1) for mb in range(2)]
        work += [(f"PP:{rank}B{mb}", 2000 + (3 - rank + mb) * 200, 200, 1) for mb in range(2)]
        work += [("sync", 20000 + i * 1000 + rank * 5, 60 - rank * 5, 5) for i in range(6)]
        for correlation, (name, at, long, kernel) in enumerate(work, 1):
            start = at * us + ahead
            db.execute("INSERT INTO NVTX_EVENTS VALUES (?,?,59,?,NULL,?)", (start - 50 * us, start - 10 * us, name, tid))
            db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?,?,?,?,3)", (start - 40 * us, start - 39 * us, tid, correlation))
            db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?,?,?,7,?,?,?,?)", (start, start + long * us, local, correlation, pid, kernel, kernel))
    db.commit()
    db.execute("VACUUM")
    db.close()


def nsight():
    db = export("nsight.sqlite", BASE)
    for rank, process in enumerate((500, 501)):
        pid = process << 24
        tid = pid | process
        correlation = 1  # restarts in every process
        ops = [("PP:%dF0" % rank, 1000 + rank * 300), ("PP:%dB0" % rank, 2600 - rank * 400)]
        for name, at in ops:
            interned = name == "PP:0B0"
            db.execute("INSERT INTO NVTX_EVENTS VALUES (?,?,59,?,?,?)", (at - 100, at - 10, None if interned else name + ", op_id = 3", 4 if interned else None, tid))
            db.execute("INSERT INTO NVTX_EVENTS VALUES (?,?,59,?,NULL,?)", (at - 95, at - 20, "aten::linear, op_id = 4", tid))
            for kernel in range(2):
                db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?,?,?,?,3)", (at - 90 + kernel, at - 89 + kernel, tid, correlation))
                db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?,?,?,7,?,?,1,1)", (at + kernel * 100, at + 100 + kernel * 100, rank, correlation, pid))
                correlation += 1
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?,?,?,9,900,?,2,2)", (1200 + rank * 10, 1300, rank, pid))
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?,?,?,9,901,?,2,2)", (5000, 4000, rank, pid))  # ends before it starts
        db.execute("INSERT INTO NVTX_EVENTS VALUES (?,NULL,59,'open',NULL,?)", (3000, tid))
        db.execute("INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (?,?,?,?,0)", (950, pid, 77, 4096))
    db.commit()
    db.execute("VACUUM")
    db.close()


def nsight_messages():
    """GPipe of four stages in one file, two microbatches; NCCL's calls with payloads, whose places in the communicator run backwards."""
    db = export("nsight_messages.sqlite", BASE)
    db.execute("ALTER TABLE NVTX_EVENTS ADD COLUMN domainId INTEGER")
    db.execute("ALTER TABLE NVTX_EVENTS ADD COLUMN binaryData TEXT")
    db.execute("CREATE TABLE NVTX_PAYLOAD_SCHEMAS (domainId INTEGER, schemaId INTEGER, name TEXT, type INTEGER, flags INTEGER, numEntries INTEGER, payloadSize INTEGER, alignTo INTEGER)")
    db.execute("CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId INTEGER, schemaId INTEGER, idx INTEGER, flags INTEGER, type INTEGER, name TEXT, description TEXT, arrayOrUnionDetail INTEGER, offset INTEGER)")
    begin, message, group = 16777218, 16777225, 16777230
    comm = (18, "NCCL communicator ID", None)
    schemas = {begin: [comm, (5, "No. of ranks", 8), (5, "Rank", 12), (5, "CUDA device", 16)], message: [comm, (22, "Message size [bytes]", 8), (5, "Peer rank", 16)], group: [comm]}
    names = ["ncclCommInitRankConfig", "ncclGroupStart", "ncclGroupEnd", "ncclSend", "ncclRecv", "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"]
    for index, name in enumerate(names):
        db.execute("INSERT INTO StringIds VALUES (?,?)", (100 + index, name))
    us = 1000
    where = 0xfeedc0ffee123456
    payload_of = lambda schema, *values: (lambda body: struct.pack("<IIIIQQ", 1, 0, schema, 0, len(body), 32 + len(body)) + body)(struct.pack({begin: "<QiiiI", message: "<QQiI", group: "<Q"}[schema], *values))
    for rank in range(4):
        pid = (700 + rank) << 24
        tid = pid | (700 + rank)
        for schema, entries in schemas.items():  # every process stores them
            db.execute("INSERT INTO NVTX_PAYLOAD_SCHEMAS VALUES (1,?,'',1,NULL,?,24,NULL)", (schema, len(entries)))
            for index, (kind, name, offset) in enumerate(entries):
                db.execute("INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES (1,?,?,NULL,?,?,NULL,NULL,?)", (schema, index, kind, name, offset))
        correlation = 0

        def call(name, start, end, payload):
            db.execute("INSERT INTO NVTX_EVENTS VALUES (?,?,59,NULL,?,?,1,?)", (start, end, 100 + names.index(name), tid, payload))

        def kernel(at, long, name, stream):
            nonlocal correlation
            correlation += 1
            db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?,?,?,?,3)", (at - 20 * us, at - 19 * us, tid, correlation))
            db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?,?,?,?,?,?,?,?)", (at, at + long, rank, stream, correlation, pid, name, name))

        def op(name, at, long):
            db.execute("INSERT INTO NVTX_EVENTS VALUES (?,?,59,?,NULL,?,0,NULL)", (at - 25 * us, at - 15 * us, name, tid))
            kernel(at, long, 1, 7)

        def messages(at, long, *ends):
            ends = [(name, peer, size) for name, peer, size in ends if 0 <= peer < 4]
            grouped = len(ends) != 1
            if not ends:
                return
            if grouped:
                call("ncclGroupStart", at - 30 * us, at - 29 * us, None)
            for index, (name, peer, size) in enumerate(ends):
                start = at - (28 - 2 * index) * us
                call(name, start, start + us if grouped else at - 15 * us, payload_of(message, where, size, 3 - peer, 0))
            if grouped:
                call("ncclGroupEnd", at - 22 * us, at - 15 * us, payload_of(group, where))
            kernel(at, long, 105, 20)

        call("ncclCommInitRankConfig", 100 * us, 200 * us, payload_of(begin, where, 4, 3 - rank, rank, 0))
        for kind, first, step, long, source, target in (("F", 1000 + rank * 150, 150, 100, rank - 1, rank + 1), ("B", 3000 + (3 - rank) * 250, 250, 200, rank + 1, rank - 1)):
            messages((first - 50) * us, 50 * us, ("ncclRecv", source, 4096))
            op(f"PP:{rank}{kind}0", first * us, long * us)
            messages((first + long) * us, 50 * us, ("ncclSend", target, 4096), ("ncclRecv", source, 8192))
            op(f"PP:{rank}{kind}1", (first + step) * us, long * us)
            messages((first + step + long) * us, 50 * us, ("ncclSend", target, 8192))
    db.commit()
    db.execute("VACUUM")
    db.close()


for index in range(2):
    write(f"gpu_rank{(4, 6)[index]}.json", gpu_rank(index))
write("old_rank0.json", old_format(), compact=True)
write("chrome.json", chrome())
ascend()
for index, trace in enumerate(zero_bubble()):
    write(f"zbv_rank{index}.json", trace, compact=True)
nsight()
for index in range(2):
    nsight_node(index)
nsight_messages()
