# import stagewright: arrays over the program's memory, questions answered as the command line does, errors as exceptions, the notebook.
# shellcheck shell=bash
python=/usr/bin/python3
[ -x "$python" ] || python=python3
export PYTHONPATH=$PACKAGE
if ! "$python" -c 'import numpy; from stagewright import core' 2>why.txt; then
    echo "skipped: $(tail -1 why.txt) (needs python3-numpy, and the package built with pybind11-dev)"
    exit 77
fi
run stagewright simulate -s 1f1b -p 2 -m 4 -o demo.stagewright
run stagewright record -s zb-h1 -p 2 -m 4 --model layers=4,hidden=32,heads=2,seq=16 --steps 3 --clock virtual -o demo.stagewright
cat >check.py <<'P'
import gc, json, os, subprocess
import numpy as np
import stagewright as sw

def said(*words):
    return json.loads(subprocess.run([os.environ["STAGEWRIGHT"], *words, "--json"], capture_output=True, text=True).stdout)

file = sw.open("demo.stagewright")
assert len(file) == 2 and [run.name for run in file] == ["1f1b", "zb-h1"], file
run = file["zb-h1"]
assert run.report() == said("report", "demo.stagewright", "2")
assert sw.compare(file[1], run) == said("compare", "demo.stagewright#1", "demo.stagewright#2")

# Arrays are what SQL says of the same run, read-only, and outlive the run.
rows = said("sql", "demo.stagewright", "select start_ns, end_ns, stage, microbatch, step, kind, rank, name from spans where run = 2 order by span")["rows"]
rows = [list(row.values()) if isinstance(row, dict) else row for row in rows]
spans, ranks = run.spans, run.span_ranks
assert len(spans) == len(rows)
mine = [(int(span["start"]), int(span["end"]), int(span["step"]), sw.kinds[span["kind"]], rank, run.name_of(i))
        for i, (span, rank) in enumerate(zip(spans, ranks.tolist()))]
assert sorted(mine) == sorted((r[0], r[1], r[4], r[5], r[6], r[7]) for r in rows)
by_name = {run.name_of(i): (int(span["stage"]), int(span["microbatch"])) for i, span in enumerate(spans)}
assert all(by_name[row[7]] == (row[2], row[3]) for row in rows if row[5] in ("F", "I", "W"))
assert spans.ctypes.data == run.spans.ctypes.data and not spans.flags.owndata and not spans.flags.writeable
total = int((spans["end"] - spans["start"]).sum())
del run, file
gc.collect()
assert int((spans["end"] - spans["start"]).sum()) == total
run = sw.open("demo.stagewright")[2]
assert len(run.metrics["loss"]) == run.info["steps"] and np.isfinite(run.metrics["loss"]).all()
assert len(run.edges) == len(run.edges_to) and (run.edges_to < len(spans)).all() and (run.edges["from"] < len(spans)).all()
memory = run.memory
step = run.info["representative_step"]
assert {sw.categories[c] for c in memory["category"]} <= set(sw.categories)

# A schedule there and back.
order = sw.schedule("zb-h1", ranks=2, microbatches=4)
assert run.schedule.lists == order.lists
assert order.validate()["valid"]
assert sw.simulate(order).report()["makespan"] == sw.simulate("zb-h1", ranks=2, microbatches=4).report()["makespan"]
broken = sw.Schedule("0F0,0B0\n1B0,1F0\n")
assert not broken.validate()["valid"]

def refused(what, words, code):
    try:
        what()
    except sw.Error as error:
        assert words in str(error) and error.code == code, (error, error.code)
    else:
        raise AssertionError(words)

refused(lambda: sw.simulate("nonsense"), "unknown schedule 'nonsense'", 2)
refused(lambda: sw.open("absent.stagewright"), "absent.stagewright", 3)
refused(lambda: sw.call("report", "demo.stagewright", step=99), "99", 2)
refused(lambda: sw.simulate(broken), "full backward before forward", 1)
refused(lambda: sw.simulate("1f1b", comm=0.3, sends="rendezvous", lower="just-in-time"), "never ends", 1)
refused(lambda: sw.Run("demo.stagewright", 7, "x").spans, "7", 5)
refused(lambda: sw.simulate("1f1b", nonsense=1), "--nonsense", 2)
try:
    sw.open("demo.stagewright")["absent"]
except KeyError as error:
    assert "2 zb-h1" in str(error)
try:
    run.name_of(10**6)
except IndexError:
    pass
else:
    raise AssertionError("a span beyond the end")
print("all good")
P
run "$python" check.py
expect_code 0
expect_out '^all good$'
cat >cells.py <<'P'
import json, sys
names = {}
for cell in json.load(open(sys.argv[1]))["cells"]:
    if cell["cell_type"] == "code":
        exec(compile("".join(cell["source"]), "cell", "exec"), names)
assert abs(names["report"]["makespan"] - 33) < 1e-9
assert names["peaks"] == [4, 3, 2, 1]
print("every cell ran")
P
run "$python" cells.py "$ROOT/docs/examples/python/bubble.ipynb"
expect_code 0
expect_out '^every cell ran$'
# Without NumPy questions are still answered, and arrays say what is missing.
cat >bare.py <<'P'
import sys
sys.modules["numpy"] = None
import stagewright as sw
run = sw.open("demo.stagewright")[1]
assert run.report()["schedule"] == "1f1b"
try:
    run.spans
except sw.Error as error:
    print(error)
P
run "$python" bare.py
expect_code 0
expect_out 'install python3-numpy'
