"""Runs of pipeline-parallel training as values: read, simulated, planned, compared, drawn.

    import stagewright as sw

    file = sw.open("demo.stagewright")
    run = file["zb-h1"]                     # by name or number
    run.spans["end"] - run.spans["start"]   # NumPy, over the program's memory
    run.report()["bubble_fraction"]         # what `stagewright report --json` says
    sw.simulate("zb-h1", ranks=8, microbatches=16, comm=0.1).report()
    sw.compare(file["1f1b"], run)["headline"]
    run.draw("zb-h1.svg")

Arrays need python3-numpy and the Python this was built with; all else needs the program alone: beside this package, on
PATH, or named by the variable STAGEWRIGHT. Times are in ns and sizes in bytes where `time_unit` and `memory_unit` are 1.
"""

from __future__ import annotations

import glob as _glob
import json as _json
import os as _os
import shutil as _shutil
import subprocess as _subprocess
import sys as _sys
import tempfile as _tempfile
from pathlib import Path as _Path
from typing import TYPE_CHECKING, Any, Iterator, Optional, Union

if TYPE_CHECKING:
    import numpy

__all__ = ["Error", "File", "Run", "Schedule", "call", "compare", "open", "plan", "schedule", "simulate"]

_here = _Path(__file__).resolve().parent
# The compiled part is beside this file, or where an installation has such parts.
__path__ += _glob.glob(str(_here.parents[3] / "lib*" / "stagewright")) + _glob.glob(
    str(_here.parents[3] / "lib" / "*" / "stagewright"))


class Error(Exception):
    """What the program refuses: its message, what to do about it (`remedy`), and its exit code (`code`)."""

    def __init__(self, message: str, remedy: str = "", code: int = 5):
        super().__init__(message + ("\n  " + remedy if remedy else ""))
        self.message, self.remedy, self.code = message, remedy, code


def _program() -> str:
    named = _os.environ.get("STAGEWRIGHT")
    for path in [named] if named else [_here.parents[3] / "bin" / "stagewright", _here.parents[2] / "bin" / "stagewright"]:
        if _os.access(path, _os.X_OK):
            return str(path)
    found = None if named else _shutil.which("stagewright")
    if found is None:
        raise Error(f"the program stagewright is not {'at ' + named if named else 'on PATH'}",
                    "install it, or name it by the variable STAGEWRIGHT", 4)
    return found


def _core() -> Any:
    try:
        import numpy  # noqa: F401
    except ImportError:
        raise Error("arrays need NumPy, which this Python does not have", "install python3-numpy", 4) from None
    try:
        from stagewright import core
    except ImportError as missing:
        version = "%d.%d" % _sys.version_info[:2]
        raise Error(f"the compiled part of the package can't be loaded by Python {version}: {missing}",
                    "build Stagewright with pybind11-dev for this Python; reports, plans and pictures work without", 4) from None
    return core


def call(verb: str, *words: str, **options: Any) -> dict:
    """Calls `stagewright VERB WORDS… --json` and returns its object.

    Options are named as on the command line with _ for -: memory_limit="26MiB"; True is a flag, a list gives the option
    several times, None leaves it out. A check that does not hold is an answer, too.
    """
    line = [_program(), verb, *[str(word) for word in words]]
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is True:
                line.append(option)
            elif one is not None and one is not False:
                line.append(f"{option}={one}")
    said = _subprocess.run(line + ["--json", "--log-level=error"], stdin=_subprocess.DEVNULL, capture_output=True, text=True)
    answer: Any = None
    try:
        answer = _json.loads(said.stdout)
    except ValueError:
        pass
    wrong = answer.get("error") if isinstance(answer, dict) else None
    if wrong:
        raise Error(wrong.get("message") or said.stderr.strip(), wrong.get("remedy") or "", said.returncode)
    if said.returncode not in (0, 1) or answer is None:
        raise Error(said.stderr.strip() or f"stagewright {verb} ended with exit code {said.returncode}", "", said.returncode)
    return answer


class _Folder:
    """Where runs and schedules are that no file was named for; removed with the last of them."""

    def __init__(self) -> None:
        self._folder = _tempfile.TemporaryDirectory(prefix="stagewright-")

    def file(self, name: str) -> str:
        return str(_Path(self._folder.name) / name)


class Schedule:
    """Lists of ops for each rank, as schedule CSV."""

    def __init__(self, csv: str, name: str = "schedule"):
        self.csv, self.name = csv, name

    @property
    def lists(self) -> list[list[str]]:
        """The ops of each rank: [["0F0", "0F1", "0B0"], …]."""
        return [[op.strip() for op in line.split(",") if op.strip()] for line in self.csv.splitlines() if line]

    def save(self, path: Union[str, _os.PathLike]) -> None:
        _Path(path).write_text(self.csv)

    def validate(self) -> dict:
        """What `stagewright validate` says of it."""
        folder = _Folder()
        return call("validate", _stored(self, folder))

    def __repr__(self) -> str:
        lists = self.lists
        return f"<Schedule {self.name}: {len(lists)} ranks, {sum(map(len, lists))} ops>"


def _stored(given: Union[str, Schedule], folder: _Folder) -> str:
    if isinstance(given, str):
        return given
    path = folder.file("schedule.csv")
    given.save(path)
    return path


class Run:
    """A run of a file. Figures are read when they are asked for; arrays are read-only and keep their memory."""

    def __init__(self, file: str, id: int, name: str, folder: Optional[_Folder] = None):
        self.file, self.id, self.name = file, id, name
        self._folder = folder
        self._read: Any = None

    @property
    def reference(self) -> str:
        """FILE#RUN, as the command line takes it."""
        return f"{self.file}#{self.id}"

    @property
    def _data(self) -> Any:
        if self._read is None:
            core = _core()
            try:
                self._read = core.read(self.file, str(self.id))
            except core.Fault as fault:
                raise Error(*fault.args) from None
        return self._read

    @property
    def info(self) -> dict:
        """Name, schedule, ranks, stages, microbatches, steps, warmup_steps, clock, units, configuration."""
        return self._data.info

    @property
    def spans(self) -> "numpy.ndarray":
        """One record a span: start, end (ns), microbatch, stage, count, slice, kind (place in `kinds`), step (from 0)."""
        return self._data.spans

    @property
    def span_ranks(self) -> "numpy.ndarray":
        """The rank of each span."""
        return self._data.span_ranks

    @property
    def tracks(self) -> list[tuple[int, str, str, int, int]]:
        """(rank, lane, name, first, last) of each lane: its spans are spans[first:last], by start."""
        return self._data.tracks

    @property
    def memory(self) -> "numpy.ndarray":
        """One record a change: time, delta (bytes), microbatch, step, rank, stage, category (place in `categories`)."""
        return self._data.memory

    @property
    def edges(self) -> "numpy.ndarray":
        """One record an edge: from (a span), arrival (ns); `edges_to` has the spans that they lead to."""
        return self._data.edges

    @property
    def edges_to(self) -> "numpy.ndarray":
        return self._data.edges_to

    @property
    def metrics(self) -> dict[str, "numpy.ndarray"]:
        """A value for each step: loss, step_time_ns, …"""
        return self._data.metrics

    @property
    def schedule(self) -> Optional[Schedule]:
        """None: the run has none, as traces whose ops are not known."""
        csv = self._data.csv
        return None if csv is None else Schedule(csv, self.info["schedule"])

    def name_of(self, span: int) -> str:
        """"3B1", or the label of foreign work."""
        return self._data.name_of(span)

    def report(self, **options: Any) -> dict:
        """What `stagewright report --json` says; options as there: step=3, table="all", what_if=["B*0.5"]."""
        return call("report", self.reference, **options)

    def draw(self, path: Optional[Union[str, _os.PathLike]] = None, **options: Any) -> str:
        """Writes the timeline and the memory as .svg, .png or .pdf; without a path returns the SVG text."""
        if path is not None:
            call("export", self.reference, output=_os.fspath(path), **options)
            return _os.fspath(path)
        folder = _Folder()
        picture = folder.file("picture.svg")
        call("export", self.reference, output=picture, **options)
        return _Path(picture).read_text()

    def _repr_svg_(self) -> Optional[str]:
        try:
            return self.draw()
        except Error:
            return None

    def __repr__(self) -> str:
        return f"<Run {self.name}: {self.reference}>"


class File:
    """The runs of a file, in order; by number or name as file[1] and file["zb-h1"]."""

    def __init__(self, path: Union[str, _os.PathLike], folder: Optional[_Folder] = None):
        self.path = _os.fspath(path)
        self._folder = folder
        self._runs = [(one["run"], one["name"]) for one in call("runs", self.path)["runs"]]

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[Run]:
        return (Run(self.path, id, name, self._folder) for id, name in self._runs)

    def __getitem__(self, which: Union[int, str]) -> Run:
        for id, name in reversed(self._runs):  # of a name the newest
            if which in (id, name):
                return Run(self.path, id, name, self._folder)
        raise KeyError(f"{self.path} has no run {which!r}; it has {', '.join(f'{id} {name}' for id, name in self._runs)}")

    def __repr__(self) -> str:
        return f"<File {self.path}: {', '.join(name for _, name in self._runs)}>"


def open(path: Union[str, _os.PathLike]) -> File:
    """A run file; traces of other tools are imported first (`stagewright import`)."""
    if str(_os.fspath(path)).endswith(".stagewright"):
        return File(path)
    folder = _Folder()
    stored = folder.file("import.stagewright")
    call("import", _os.fspath(path), output=stored)
    return File(stored, folder)


def schedule(name: str, **options: Any) -> Schedule:
    """A schedule of the library, as `stagewright schedules NAME --csv`: schedule("zb-h1", ranks=4, microbatches=8)."""
    return Schedule(call("schedules", name, csv=True, **options)["csv"], name)


def simulate(schedule: Union[str, Schedule] = "1f1b", **options: Any) -> Run:
    """A simulated run; options as of `stagewright simulate`: ranks=4, costs="F=1,I=1,W=1", comm=0.5, perturb="rank=2:1.2"."""
    folder = _Folder()
    stored = folder.file("simulated.stagewright")
    order = _stored(schedule, folder)
    call("simulate", schedule=order, output=stored, **options)
    if not _os.path.exists(stored):
        faults = call("validate", order)["faults"] if order.endswith(".csv") else []
        raise Error(faults[0]["message"] if faults else "this order never ends: ranks wait for each other",
                    faults[0].get("remedy") or "" if faults else "Schedule.validate() says how to mend it", 1)
    return next(iter(File(stored, folder)))


def plan(**options: Any) -> dict:
    """The best order found and its bound, as `stagewright plan`: plan(ranks=4, microbatches=8, memory_limit="26MiB")."""
    return call("plan", **options)


def compare(before: Run, after: Run, *more: Run, **options: Any) -> dict:
    """What `stagewright compare` says; gate=True judges the last run by those before."""
    return call("compare", *(run.reference for run in (before, after, *more)), **options)


def __getattr__(name: str) -> Any:
    if name in ("kinds", "categories"):  # texts of `kind` and `category` in arrays, by place
        return getattr(_core(), name)
    raise AttributeError(f"module 'stagewright' has no attribute {name!r}")
