"""``avtt census``: every question asked once, for exact rates."""

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import pandas as pd
import typer

from ..config import Spec
from ..config.building import build_model, build_space
from ..models.base import ModelDefaults
from ..space import QuestionSpace
from ..utils.figures import outward
from .options import Json, Open, arg, opt
from .printing import plain_console, table_of
from .progress import counting
from .run_folder import open_report
from .signals import interrupted_as
from .spec_changes import Set, read

if TYPE_CHECKING:
    from ..audit.census import CensusResult

SHOWN = 16
"""Rates that are printed, at most; all are in the tables."""


def census(
    spec: Annotated[
        Path | None, arg("What to ask about; its model must cost nothing.", "SPEC.toml")
    ] = None,
    demo: Annotated[
        bool, opt("Ask the bundled model about bundled images instead.", flags="--demo")
    ] = False,
    processes: Annotated[
        int | None,
        opt(
            "Processes that make images beside the model. Default: one per spare processor, "
            "where that saves time.",
            "NUMBER",
            min=0,
        ),
    ] = None,
    sets: Set = None,
    out: Annotated[Path, opt("Folder to write census.db, census.html and tables/ into.")] = Path(
        "runs/census"
    ),
    open_it: Open = False,
    as_json: Json = False,
) -> None:
    """Evaluate every question: exact rates, for models that are free.

    Nothing is drawn and nothing estimated: rates are those of all images under
    all relations, as MedTest and MedMNIST-C report them, and tables/ has them
    for spreadsheets and LaTeX, beside the papers' own. The same command goes on
    with a census that was interrupted.

    Example: avtt census SPEC.toml --out runs/whole
    """
    chosen, base = read(spec, demo, {}, sets)
    ask_everything(chosen, base, out, as_json, processes=processes, open_it=open_it)


def ask_everything(
    spec: Spec,
    base: Path,
    out: Path,
    as_json: bool,
    *,
    processes: int | None = None,
    open_it: bool = False,
) -> None:
    """The census of a spec, its tables written into ``out``, and the rates on the terminal."""
    space, certify = build_space(spec, base), spec.certify
    again = f"'avtt census' goes on with it ({shlex.quote(str(out))} keeps what was answered)"
    with interrupted_as(lambda: again), build_model(spec, base, space.dataset) as model:
        wanted = {"targets": certify.targets, "where": certify.where}
        result = taken(space, model, out, "asking", as_json, processes=processes, **wanted)
    page = result.save(out)
    if as_json:
        typer.echo(json.dumps(result.to_dict(), indent=1, allow_nan=False))
    else:
        _show(result, page)
    if open_it:
        open_report(page)


def taken(
    space: QuestionSpace,
    model: ModelDefaults,
    out: Path,
    doing: str,
    quiet: bool,
    **options: Any,
) -> "CensusResult":
    """The census of a model, kept in ``out``, counted on the terminal as ``doing``; ``options`` are
    those of ``Census``."""
    from ..audit.census import Census

    with (
        Census(space, model, out=out, **options) as begun,
        counting(doing, begun.calls - begun.done, quiet) as advance,
    ):
        return begun.run(advance)


def _show(result: "CensusResult", page: Path) -> None:
    console = plain_console()
    rates = result.rates
    if len(rates) > SHOWN:  # the first is about everything; of the others the worst
        rates = pd.concat([rates.head(1), rates.iloc[1:].sort_values("exact", ascending=False)])
    cells = []
    for row in rates.head(SHOWN).to_dict(orient="records"):
        low, high = outward(row["lower"], row["upper"])
        elsewhere = f"{100 * low:.1f} to {100 * high:.1f} %"
        cells.append(
            (row["target"], f"{100 * row['exact']:.2f} %", f"{row['questions']:,}", elsewhere)
        )
    others = "other images" if result.space.dataset.has_images else "other items"
    columns = ("target", "rate", "questions", f"{others} (95 % each)")
    console.print(table_of(columns, cells, "exact rates"))
    if len(result.rates) > SHOWN:
        console.print(f"the {SHOWN - 1} highest of {len(rates)} rates; tables/rates.csv has all")
    silent, counts = result.outcomes["unanswered"] != "", result.outcomes["loss"].notna()
    asked = f"{len(result.outcomes):,} questions asked in {result.calls:,} calls"
    asked += f"; {int((silent & counts).sum()):,} without an answer"
    asked += f", {int((~counts).sum()):,} that do not count" if not counts.all() else ""
    console.print(asked)
    console.print(f"tables: {page.parent / 'tables'}; page: {page}", soft_wrap=True)
