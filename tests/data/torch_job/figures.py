"""Figures of a step from the traces of this folder, without Stagewright: makespan_ns, then busy_ns of each rank.

    python3 figures.py 2        the step that its range ProfilerStep#2 names
"""

import gzip
import json
import os
import re
import sys

wanted = f"ProfilerStep#{sys.argv[1]}"
ops = []
for rank in (0, 1):
    with gzip.open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "traces", f"rank{rank}.json.gz"), "rt") as file:
        ranges = [event for event in json.load(file)["traceEvents"] if event.get("cat") == "user_annotation"]
    step = next(event for event in ranges if event["name"] == wanted)
    for event in ranges:
        if re.fullmatch(r"PP:\d+[FBIW]\d+", event["name"]) and step["ts"] <= event["ts"] <= step["ts"] + step["dur"]:
            ops.append((rank, round(event["ts"] * 1000), round(event["dur"] * 1000)))
print(max(start + length for _, start, length in ops) - min(start for _, start, _ in ops))
for rank in (0, 1):
    print(sum(length for of, _, length in ops if of == rank))
