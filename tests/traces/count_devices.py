#!/usr/bin/env python3
"""Counts what devices do, from Kineto files or an export of Nsight Systems, without a line of Stagewright: the reference of tst_device_idle.

count_devices.py TRACE... prints a JSON list, one object a rank. Every instant at which something starts or ends cuts the time into pieces, and
each piece is looked at by itself; gaps are looked at between the pieces. Slow and simple on purpose.
"""
import gzip
import json
import sqlite3
import sys


def kineto(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as file:
        events = json.load(file)["traceEvents"]
    ns = lambda us: round(us * 1000)
    work, launches, syncs = [], {}, []
    sizes, steps = [], []  # of copies, beside their correlations
    threads, library = {}, []  # of launches, by correlation; ranges of NCCL's
    for e in events:
        cat = e.get("cat")
        if e.get("ph") != "X":
            continue
        if cat in ("kernel", "gpu_memcpy", "gpu_memset"):
            work.append((ns(e["ts"]), ns(e["ts"]) + ns(e["dur"]), "copy" if cat != "kernel" else e["name"], e["args"].get("correlation")))
            if cat != "kernel":
                sizes.append((e["args"].get("correlation"), e["args"].get("bytes", 0)))
        elif cat in ("cuda_runtime", "cuda_driver"):
            if "correlation" in e.get("args", {}):
                launches.setdefault(e["args"]["correlation"], ns(e["ts"]))
                threads.setdefault(e["args"]["correlation"], e["tid"])
            if "Synchronize" in e["name"]:
                syncs.append((ns(e["ts"]), ns(e["ts"]) + ns(e["dur"])))
        elif cat == "user_annotation" and e["name"].startswith("nccl:"):
            library.append((e["tid"], ns(e["ts"]), ns(e["ts"]) + ns(e["dur"]), e["name"]))
        elif cat == "user_annotation" and e["name"].startswith("ProfilerStep#"):
            steps.append((ns(e["ts"]), ns(e["ts"]) + ns(e["dur"])))
    # What was launched outside the steps, or before the trace, is in none.
    inside = lambda correlation: not steps or any(a <= launches.get(correlation, a - 1) <= b for a, b in steps)
    work = [one for one in work if inside(one[3])]
    copied = [sum(size for correlation, size in sizes if inside(correlation))]
    return [(named(work, launches, threads, library), launches, syncs, copied)]


def named(work, launches, threads, library):
    """NCCL runs an all-to-all as sends and receives: the range around the launch says so."""
    out = []
    for start, end, name, correlation in work:
        if "SendRecv" in name:
            at, thread = launches.get(correlation), threads.get(correlation)
            ranges = [text for tid, a, b, text in library if at is not None and tid == thread and a <= at <= b]
            if any("all_to_all" in text for text in ranges):
                name = "nccl all-to-all"
        out.append((start, end, name, correlation))
    return out


def nsight(path):
    db = sqlite3.connect("file:" + path + "?immutable=1", uri=True)
    names = dict(db.execute("SELECT id, value FROM StringIds"))
    ranks, threads, library = {}, {}, {}
    of = lambda pid: ranks.setdefault(pid >> 24, ([], {}, [], [0]))
    for start, end, pid, correlation, name in db.execute("SELECT start, end, globalPid, correlationId, shortName FROM CUPTI_ACTIVITY_KIND_KERNEL"):
        of(pid)[0].append((start, end, names[name], correlation))
    for table in ("MEMCPY", "MEMSET"):
        for start, end, pid, correlation, size in db.execute("SELECT start, end, globalPid, correlationId, bytes FROM CUPTI_ACTIVITY_KIND_" + table):
            of(pid)[3][0] += size
            of(pid)[0].append((start, end, "copy", correlation))
    for start, end, tid, correlation, name in db.execute("SELECT start, end, globalTid, correlationId, nameId FROM CUPTI_ACTIVITY_KIND_RUNTIME"):
        of(tid)[1].setdefault(correlation, start)
        threads.setdefault((tid >> 24, correlation), tid)
        if "Synchronize" in names[name]:
            of(tid)[2].append((start, end))
    for start, end, tid, text in db.execute("SELECT start, end, globalTid, text FROM NVTX_EVENTS WHERE text LIKE 'nccl:%' AND end IS NOT NULL"):
        library.setdefault(tid >> 24, []).append((tid, start, end, text))
    first = {pid: min(device for (device,) in db.execute("SELECT deviceId FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE globalPid >> 24 = ?", (pid,))) for pid in ranks if ranks[pid][0]}
    out = []
    for pid in sorted(first, key=first.get):
        work, launches, syncs, copied = ranks[pid]
        own = {correlation: tid for (process, correlation), tid in threads.items() if process == pid}
        out.append((named(work, launches, own, library.get(pid, [])), launches, syncs, copied))
    return out


def classes(name):
    if name == "copy":
        return "copying"
    if name.startswith("nccl"):
        return "send_receive" if "SendRecv" in name else "collective"
    return "computing"


def count(work, launches, syncs, copied):
    out = dict.fromkeys(("computing", "collective", "send_receive", "copying", "launch", "sync", "between", "queued", "unknown", "communicating", "busy"), 0)
    changes = []
    for start, end, name, _ in work:
        changes += [(start, 1, classes(name)), (end, -1, classes(name))]
    changes.sort(key=lambda change: change[0])
    running, before = dict.fromkeys(("computing", "collective", "send_receive", "copying"), 0), changes[0][0]
    for time, by, of in changes:
        piece = time - before
        for state in ("computing", "collective", "send_receive", "copying"):
            if running[state]:
                out[state] += piece
                break
        if running["collective"] or running["send_receive"]:
            out["communicating"] += piece
        if any(running.values()):
            out["busy"] += piece
        running[of] += by
        before = time
    out["window"] = before - changes[0][0]
    out["copied"] = copied[0]
    starts = {}
    for start, _, _, correlation in work:
        starts.setdefault(start, []).append(launches.get(correlation))
    spans = sorted((start, end) for start, end, _, _ in work)
    until, syncs = spans[0][0], sorted(syncs)
    for start, end in spans:
        if start > until:
            known = [time for time in starts[start] if time is not None and time < start]
            if not known:
                out["unknown"] += start - until
            elif min(known) > until:
                waited, at = 0, until
                for a, b in syncs:
                    a, b = max(a, at), min(b, min(known))
                    if b > a:
                        waited, at = waited + b - a, b
                out["sync"] += waited
                out["launch"] += start - until - waited
            else:
                out["between" if start - until < 30 else "queued"] += start - until
        until = max(until, end)
    return out


ranks = []
for path in sys.argv[1:]:
    for rank in (nsight if path.endswith(".sqlite") else kineto)(path):
        ranks.append(count(*rank))
print(json.dumps(ranks))
