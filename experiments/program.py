"""What all experiments do alike: command lines, work in several processes, and tables."""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

import cv2
import pandas as pd
import torch

from adaptive_vtt.benchmark.executors import run_all
from adaptive_vtt.errors import check_known
from adaptive_vtt.utils.files import write_text

Row = dict[str, Any]
"""One row of a table: figures by the names of their columns."""
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

    ``--out`` names the folder to write to, by default ``bench``. Every one of ``given`` is an
    option: False is a flag, a list takes several values like its own, a mapping some of its names
    (all, unless any are given; commas may stand between them), anything else is a default; a type,
    alone or in a list, stands for what is None unless it is given. ``quick``: the defaults with
    ``--quick``; ``rest``: the name of arguments that need no option. Raises InputError for a name
    that a mapping lacks.
    """
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, value in {"out": Path("bench"), **given}.items():
        _add(parser, "--" + name.replace("_", "-"), value)
    if rest:
        parser.add_argument(rest, nargs="*")
    if quick is not None:
        parser.add_argument("--quick", action="store_true", help="a small run, to see it work")
        if parser.parse_known_args(arguments)[0].quick:
            parser.set_defaults(**quick)
    chosen = parser.parse_args(arguments)
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
        several = f"some of: {', '.join(value)}"
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
    torch.set_num_threads(1)
    return work(job)


def apart(function: Callable[..., Done], *arguments: Any) -> Done:
    """``function``'s result, of a process of its own, so that peaks of memory do not mix."""
    with get_context("spawn").Pool(1, torch.set_num_threads, (1,)) as pool:
        return pool.apply(function, arguments)


def told(table: pd.DataFrame | list[Row], file: Path, *, index: bool = False) -> None:
    """Prints a table and writes it, as CSV; its index, too, where that says what rows are."""
    frame = pd.DataFrame(table)
    print(f"\n{file.stem}\n{frame.to_string(index=index, na_rep='')}", flush=True)
    write_text(file, frame.to_csv(index=index))


def told_together(tables: Mapping[str, pd.DataFrame], file: Path) -> None:
    """Prints tables under their titles and writes their rows by title, as JSON."""
    for title, table in tables.items():
        text = table.astype(object).fillna("").to_string(index=False)
        print(f"\n{title}\n{text}", flush=True)
    rows = {title: json.loads(table.to_json(orient="records")) for title, table in tables.items()}
    write_text(file, json.dumps(rows, indent=1) + "\n")


def markdown(table: pd.DataFrame) -> str:
    """The table in Markdown, floats with two digits."""
    rules = ["---:" if pd.api.types.is_numeric_dtype(table[c]) else "---" for c in table.columns]
    rows = [
        [f"{v:.2f}" if isinstance(v, float) else str(v) for v in row]
        for row in table.itertuples(index=False, name=None)
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in [[*map(str, table)], rules, *rows]) + "\n"
