"""Measure the coverage of audits under hostile conditions.

    python -m adaptive_vtt.experiments.engine.hostile [--quick] [--seeds 200] [--only lies]

A *cell* is one condition: wrong predictions, losses that are rare or never quite 0 or 1, answers
that come late and out of order, unanswered questions, or a pool that is asked to its end. Each
audit is of a small pool at 95 % confidence. It misses if any of its intervals excludes the true
rate at any moment, as for someone who looks after every answer and stops at the worst one.

The table has for each cell the audits, those that missed, and the number that an error of 5 %
exceeds with a probability of .001.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binom

from adaptive_vtt import Audit, Pool
from adaptive_vtt.models import Unanswered
from adaptive_vtt.types import Floats

from ..program import Row, in_processes, options, save_table

ITEMS, CALLS, LEVEL = 120, 60, 0.95
GROUPS = [60, 40, 15, 5]
"""Items in each group; all of the last group are asked long before the audit ends."""


@dataclass(frozen=True)
class Cell:
    """The losses of a pool, their predictions, and the order of the answers."""

    rate: float = 0.3
    """Mean loss. Half of the items fail three times as often as the others."""
    graded: bool = False
    """True if losses are .001 and .999 instead of 0 and 1."""
    predictions: str = ""
    """They are "" (none), "truth", "lies" (1 - loss), "half" (lies about every other item) or
    "noise"."""
    groups: bool = False
    batch: int = 1
    backwards: bool = False
    """True if the answers of a batch come in the opposite order."""
    silent: float = 0.0
    """Share of the failing items without an answer, which counts as a loss of 1."""
    calls: int = CALLS
    options: tuple[tuple[str, Any], ...] = ()
    """Further arguments of the audit."""


CELLS = {
    "no predictions": Cell(),
    "true predictions": Cell(predictions="truth"),
    "lies": Cell(predictions="lies"),
    "half lies": Cell(predictions="half"),
    "noise": Cell(predictions="noise"),
    "groups": Cell(groups=True),
    "groups, lies": Cell(groups=True, predictions="lies"),
    "rare": Cell(rate=0.02),
    "rare, lies": Cell(rate=0.02, predictions="lies"),
    "nearly all lost": Cell(rate=0.64),
    "graded": Cell(graded=True),
    "graded, half lies": Cell(graded=True, predictions="half"),
    "batches": Cell(batch=8),
    "backwards, lies": Cell(batch=8, backwards=True, predictions="lies"),
    "silent": Cell(silent=0.5),
    "silent, groups, batches": Cell(silent=0.5, groups=True, batch=8),
    "little explored": Cell(predictions="lies", options=(("exploration", 0.02),)),
    "drawn at random": Cell(predictions="half", options=(("strategy", "random"),)),
    "to the end": Cell(groups=True, calls=ITEMS),
}


def losses_of(cell: Cell, seed: int) -> Floats:
    """Return the loss of every item (n,) in [0, 1], fixed before anything is asked."""
    rng = np.random.default_rng([seed, 7])
    likely = cell.rate * np.where(rng.random(ITEMS) < 0.5, 1.5, 0.5)
    losses = (rng.random(ITEMS) < likely).astype(float)
    return np.clip(losses, 0.001, 0.999) if cell.graded else losses


def proxies_of(cell: Cell, losses: Floats, seed: int) -> dict[str, Floats] | None:
    """Return the proxy that predicts every loss, between .05 and .95; None without predictions."""
    if not cell.predictions:
        return None
    rng = np.random.default_rng([seed, 8])
    predictions = {
        "truth": losses,
        "lies": 1 - losses,
        "half": np.where(np.arange(ITEMS) % 2, losses, 1 - losses),
        "noise": rng.random(ITEMS),
    }[cell.predictions]
    return {"proxy": 0.05 + 0.9 * predictions}


def missed(job: tuple[str, int]) -> bool:
    """Return whether an interval of this cell's audit with this seed ever excludes the truth."""
    name, seed = job
    cell = CELLS[name]
    losses = losses_of(cell, seed)
    silent = np.random.default_rng([seed, 9]).random(ITEMS) < cell.silent * losses
    group = np.repeat(np.arange(len(GROUPS)), GROUPS)
    audit = Audit(
        Pool(ITEMS, None, pd.DataFrame({"g": group.astype(str)}) if cell.groups else None),
        half_width=0.01,
        targets=["overall", "group:g"] if cell.groups else ["overall"],
        proxies=proxies_of(cell, losses, seed),
        budget=cell.calls,
        confidence=LEVEL,
        seed=seed,
        **dict(cell.options),
    )
    counts = np.where(silent, 1.0, losses)
    rates = np.array([counts.mean()])
    if cell.groups:
        rates = np.append(rates, np.bincount(group, counts) / GROUPS)
    with audit:
        while calls := audit.ask(cell.batch):
            for call in reversed(calls) if cell.backwards else calls:
                assert call.item is not None
                answer = Unanswered("silent") if silent[call.item] else losses[call.item]
                audit.tell(call, answer)
                intervals = audit.belief.certifying.sequences
                above = intervals.lower > rates + 1e-9
                if (above | (intervals.upper < rates - 1e-9)).any():
                    return True
    return False


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(
        __doc__, arguments, quick={"seeds": 4}, seeds=200, only=CELLS, workers=2, first=0
    )
    seeds = range(chosen.first, chosen.first + chosen.seeds)
    rows: list[Row] = []
    for name in chosen.only:
        misses = sum(in_processes(missed, [(name, seed) for seed in seeds], chosen.workers))
        rows.append({"cell": name, "audits": len(seeds), "missed": misses})
    sums = {name: sum(row[name] for row in rows) for name in ("audits", "missed")}
    table = pd.DataFrame([*rows, {"cell": "all", **sums}])
    table["5 % is"] = (table["audits"] * (1 - LEVEL)).round().astype(int)
    table["with .001 over"] = binom.ppf(0.999, table["audits"], 1 - LEVEL).astype(int)
    save_table(table, chosen.out / "hostile.csv")


if __name__ == "__main__":
    main()
