"""What all experiments do alike: command lines, work in several processes, and tables."""

import argparse
import json
import os
import platform
import sys
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import cv2
import numpy as np
import pandas as pd
import plotly.graph_objects as go
import torch

from adaptive_vtt.audit import Progress
from adaptive_vtt.benchmark.executors import run_all
from adaptive_vtt.benchmark.runs import ROUNDING
from adaptive_vtt.errors import check_known
from adaptive_vtt.types import Floats
from adaptive_vtt.utils.files import write_text
from adaptive_vtt.utils.threads import one_thread

Row = dict[str, Any]
"""One row of a table: figures by the names of their columns."""
BENCH = Path("bench")
QUICK = BENCH / "quick"
"""Where files are written, and those of short runs, which must not replace what was measured."""
WIDTH = 80
"""Characters of a line, so that tables can be read in a terminal of the usual size."""
Job = TypeVar("Job")
Done = TypeVar("Done")


def options(
    about: str | None,
    arguments: Sequence[str] | None,
    *,
    quick: Mapping[str, Any] | None = None,
    rest: str = "",
    **given: Any,
) -> argparse.Namespace:
    """What a command line says; PyTorch and OpenCV are left one thread each.

    ``--out`` names the folder to write to, by default BENCH, of short runs QUICK. Every one of
    ``given`` is an option: False is a flag, a list takes several values like its own, a mapping
    some of its names (all, unless any are given; commas may stand between them), anything else is a
    default; a type, alone or in a list, stands for what is None unless it is given. ``quick``: the
    defaults with ``--quick``; ``rest``: the name of arguments that need no option. Raises
    InputError for a name that a mapping lacks.
    """
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    run = sys.modules["__main__"].__spec__
    parser = argparse.ArgumentParser(
        f"python -m {run.name}" if run else None,
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for name, value in {"out": BENCH, **given}.items():
        _add(parser, "--" + name.replace("_", "-"), value)
    if rest:
        parser.add_argument(rest, nargs="*")
    if quick is not None:
        parser.add_argument("--quick", action="store_true", help="a small run, to see it work")
        if parser.parse_known_args(arguments)[0].quick:
            parser.set_defaults(**{"out": QUICK, **quick})
    chosen = parser.parse_args(arguments)
    if quick is not None and chosen.quick:
        show("--quick: a small run to see it work, not a measurement")
    for name, known in given.items():
        if isinstance(known, Mapping):
            names = [
                one
                for part in getattr(chosen, name)
                for one in ([part] if part in known else part.split(","))
            ]
            for one in names:
                check_known(name, one, known, "command line")
            setattr(chosen, name, names)
    return chosen


def _add(parser: argparse.ArgumentParser, flag: str, value: Any) -> None:
    if value is False:
        parser.add_argument(flag, action="store_true")
    elif isinstance(value, type):
        parser.add_argument(flag, type=value)
    elif isinstance(value, Mapping):
        several = f"some of: {', '.join(value)}".replace("%", "%%")  # argparse fills in after %
        parser.add_argument(flag, nargs="+", default=[*value], metavar="NAME", help=several)
    elif isinstance(value, list):
        (first, *_), known = value, not isinstance(value[0], type)
        kind = type(first) if known else first
        parser.add_argument(flag, nargs="+", type=kind, default=value if known else None)
    else:
        parser.add_argument(flag, type=type(value), default=value, help=f"(default: {value})")


def in_processes(
    work: Callable[[Job], Done],
    jobs: Sequence[Job],
    workers: int = 2,
    executor: str = "processes",
) -> list[Done]:
    """``work`` done on every job, in so many processes of one thread each; one worker: here."""
    if workers == 1 and executor == "processes":
        return [work(job) for job in jobs]
    return run_all(partial(_on_one_thread, work), jobs, executor=executor, workers=workers)


def _on_one_thread(work: Callable[[Job], Done], job: Job) -> Done:
    with one_thread(models=True):  # NumPy's BLAS, too
        return work(job)


def apart(function: Callable[..., Done], *arguments: Any) -> Done:
    """``function``'s result, of a process of its own, so that peaks of memory do not mix."""
    with get_context("spawn").Pool(1, torch.set_num_threads, (1,)) as pool:
        return pool.apply(function, arguments)


def show(found: pd.DataFrame | Row | str, title: str = "", *, index: bool = False) -> None:
    """Prints a table, a row of one, or a sentence, under its title; no line is wider than WIDTH.

    Columns that do not fit stand below, beside what names their rows again: the index, or else the
    first column. Words too long for that are cut; files have them whole.
    """
    if title:
        print(f"\n{title}")
    if isinstance(found, pd.DataFrame):
        print(_folded(found, index), flush=True)
        return
    if isinstance(found, dict):
        each = ((k, f"{v:.4g}" if isinstance(v, float) else v) for k, v in found.items())
        found = ", ".join(f"{name}: {value}" for name, value in each)
    # Paths stay whole, so that they can be copied.
    folded = textwrap.fill(found, WIDTH, break_long_words=False, break_on_hyphens=False)
    print(folded, flush=True)


def _folded(table: pd.DataFrame, index: bool) -> str:
    text: str = table.to_string(index=index, na_rep="")
    if max(map(len, text.splitlines())) <= WIDTH:
        return text
    named = table if index or table.shape[1] < 2 else table.set_index(table.columns[0])
    # A column has to stand beside all that names its rows, and a sign that more follow.
    most = WIDTH // (named.index.nlevels + 1) - 3
    named = named.rename(index=lambda name: str(name)[:most], columns=lambda name: str(name)[:most])
    text = named.to_string(line_width=WIDTH, max_colwidth=most, na_rep="")
    return "\n".join(line.rstrip() for line in text.splitlines())


class Watch:
    """Goes beside an audit: whether every interval ``held`` the truth (K,) at every moment."""

    def __init__(self, truth: Floats) -> None:
        self.truth, self.held = truth, True

    def __call__(self, step: Progress) -> None:
        lower = np.array([target.lower for target in step.state.targets])
        upper = np.array([target.upper for target in step.state.targets])
        inside = (lower <= self.truth + ROUNDING) & (self.truth <= upper + ROUNDING)
        self.held &= bool(inside.all())


def told(table: pd.DataFrame | list[Row], file: Path, *, index: bool = False) -> None:
    """Prints a table and writes it, as CSV; its index, too, where that says what rows are."""
    frame = pd.DataFrame(table)
    show(frame, file.stem, index=index)
    write_text(file, frame.to_csv(index=index))


def told_together(tables: Mapping[str, pd.DataFrame], file: Path) -> None:
    """Prints tables under their titles and writes their rows by title, as JSON."""
    for title, table in tables.items():
        show(table.astype(object).fillna(""), title)
    rows = {title: json.loads(table.to_json(orient="records")) for title, table in tables.items()}
    write_text(file, json.dumps(rows, indent=1) + "\n")


def drawn(figure: go.Figure, file: Path) -> None:
    """Writes a figure as a page, and says where it is."""
    figure.write_html(file)
    show(f"figure: {file}")


def milliseconds(work: Callable[[], object], times: int) -> float:
    """Median of so many calls by the clock, after a first one that loads what is needed."""
    taken = []
    for _ in range(times + 1):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return 1000 * median(taken[1:])


def machine() -> str:
    """Processor, cores and threads, GPU, and the versions that matter, in a line."""
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "no CUDA device"
    cores = f"{os.cpu_count()} cores, {torch.get_num_threads()} threads"
    return f"{_processor()}, {cores}; {gpu}; torch {torch.__version__}, {platform.platform()}"


def _processor() -> str:
    """The processor's name, where the system tells it."""
    known = Path("/proc/cpuinfo")
    lines = known.read_text(encoding="utf-8").splitlines() if known.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
