"""Helpers of all experiments: command lines, parallel processes, and tables."""

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
"""Default folder of files."""
QUICK = BENCH / "quick"
"""Default folder of short runs, whose files must not replace measurements."""
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
    **defaults: Any,
) -> argparse.Namespace:
    """Return the options of a command line, and limit PyTorch and OpenCV to one thread each.

    Every program has ``--out``, the folder to write to, by default BENCH, or QUICK for short runs.

    Args:
        about: Text of ``--help``.
        arguments: The command line; None: that of the process.
        quick: Name of an option -> its default with ``--quick``; None: there is no short run.
        rest: Name of arguments without an option; "": there are none.
        **defaults: Name of an option -> its default. False makes a flag. A list makes an option
            with several values of the same type. A mapping makes an option with several of its
            names (by default all; commas may separate them). A type, alone or in a list, makes an
            option of that type without a default.

    Raises:
        InputError: A name is not in its mapping.
    """
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    run = sys.modules["__main__"].__spec__
    parser = argparse.ArgumentParser(
        f"python -m {run.name}" if run else None,
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for name, value in {"out": BENCH, **defaults}.items():
        _add(parser, "--" + name.replace("_", "-"), value)
    if rest:
        parser.add_argument(rest, nargs="*")
    if quick is not None:
        parser.add_argument("--quick", action="store_true", help="a short run; no measurement")
        if parser.parse_known_args(arguments)[0].quick:
            parser.set_defaults(**{"out": QUICK, **quick})
    chosen = parser.parse_args(arguments)
    if quick is not None and chosen.quick:
        show("--quick: a short run, no measurement")
    for option, known in defaults.items():
        if isinstance(known, Mapping):
            names: list[str] = []
            for value in getattr(chosen, option):
                names += [value] if value in known else value.split(",")
            for name in names:
                check_known(option, name, known, "command line")
            setattr(chosen, option, names)
    return chosen


def _add(parser: argparse.ArgumentParser, flag: str, value: Any) -> None:
    """Add an option whose kind follows from its default."""
    if value is False:
        parser.add_argument(flag, action="store_true")
    elif isinstance(value, type):
        parser.add_argument(flag, type=value)
    elif isinstance(value, Mapping):
        about = f"some of: {', '.join(value)}".replace("%", "%%")  # argparse formats with %
        parser.add_argument(flag, nargs="+", default=[*value], metavar="NAME", help=about)
    elif isinstance(value, list) and isinstance(value[0], type):
        parser.add_argument(flag, nargs="+", type=value[0])
    elif isinstance(value, list):
        parser.add_argument(flag, nargs="+", type=type(value[0]), default=value)
    else:
        parser.add_argument(flag, type=type(value), default=value, help=f"(default: {value})")


def in_processes(
    work: Callable[[Job], Done],
    jobs: Sequence[Job],
    workers: int = 2,
    executor: str = "processes",
) -> list[Done]:
    """Return the results of ``work`` on all jobs, in ``workers`` processes of one thread each.

    With one worker the jobs are done in this process.
    """
    if workers == 1 and executor == "processes":
        return [work(job) for job in jobs]
    return run_all(partial(_on_one_thread, work), jobs, executor=executor, workers=workers)


def _on_one_thread(work: Callable[[Job], Done], job: Job) -> Done:
    with one_thread(models=True):  # NumPy's BLAS, too
        return work(job)


def in_own_process(function: Callable[..., Done], *arguments: Any) -> Done:
    """Return the result of a function that runs in a new process, which has its own memory peak."""
    with get_context("spawn").Pool(1, torch.set_num_threads, (1,)) as pool:
        return pool.apply(function, arguments)


def show(result: pd.DataFrame | Row | str, title: str = "", *, index: bool = False) -> None:
    """Print a table, a row or a sentence below its title, in lines of at most WIDTH characters.

    Columns that do not fit follow below, with the names of the rows again: the index, or the first
    column. Names that are too long are cut in print, but not in files.
    """
    if title:
        print(f"\n{title}")
    if isinstance(result, pd.DataFrame):
        print(_folded(result, index), flush=True)
        return
    if isinstance(result, dict):
        figures = ((k, f"{v:.4g}" if isinstance(v, float) else v) for k, v in result.items())
        result = ", ".join(f"{name}: {value}" for name, value in figures)
    # Paths stay whole, so that they can be copied.
    text = textwrap.fill(result, WIDTH, break_long_words=False, break_on_hyphens=False)
    print(text, flush=True)


def _folded(table: pd.DataFrame, index: bool) -> str:
    """Return a table as text in lines of at most WIDTH characters."""
    text: str = table.to_string(index=index, na_rep="")
    if max(map(len, text.splitlines())) <= WIDTH:
        return text
    named = table if index or table.shape[1] < 2 else table.set_index(table.columns[0])
    # A line has the names of its row, one column, and a sign that more columns follow.
    most = WIDTH // (named.index.nlevels + 1) - 3
    named = named.rename(index=lambda name: str(name)[:most], columns=lambda name: str(name)[:most])
    text = named.to_string(line_width=WIDTH, max_colwidth=most, na_rep="")
    return "\n".join(line.rstrip() for line in text.splitlines())


class Watch:
    """Callback of an audit that checks its intervals against the truth (K,) at every step.

    ``held`` is True while every interval has held the truth at every step.
    """

    def __init__(self, truth: Floats) -> None:
        self.truth, self.held = truth, True

    def __call__(self, step: Progress) -> None:
        lower = np.array([target.lower for target in step.state.targets])
        upper = np.array([target.upper for target in step.state.targets])
        inside = (lower <= self.truth + ROUNDING) & (self.truth <= upper + ROUNDING)
        self.held &= bool(inside.all())


def save_table(table: pd.DataFrame | list[Row], file: Path, *, index: bool = False) -> None:
    """Print a table and write it as CSV, with its index if ``index`` is True."""
    frame = pd.DataFrame(table)
    show(frame, file.stem, index=index)
    write_text(file, frame.to_csv(index=index))


def save_tables(tables: Mapping[str, pd.DataFrame], file: Path) -> None:
    """Print tables below their titles, and write their rows by title as JSON."""
    for title, table in tables.items():
        show(table.astype(object).fillna(""), title)
    rows = {title: json.loads(table.to_json(orient="records")) for title, table in tables.items()}
    write_text(file, json.dumps(rows, indent=1) + "\n")


def save_figure(figure: go.Figure, file: Path) -> None:
    """Write a figure as an HTML page, and print its path."""
    figure.write_html(file)
    show(f"figure: {file}")


def milliseconds(work: Callable[[], object], times: int) -> float:
    """Return the median milliseconds of ``times`` calls, after a first one that is not counted."""
    seconds = []
    for _ in range(times + 1):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return 1000 * median(seconds[1:])


def machine() -> str:
    """Return processor, cores, threads, GPU, and versions of PyTorch and the system, in a line."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    processor = names[0] if names else platform.processor() or platform.machine()
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "no CUDA device"
    cores = f"{os.cpu_count()} cores, {torch.get_num_threads()} threads"
    return f"{processor}, {cores}; {gpu}; torch {torch.__version__}, {platform.platform()}"
