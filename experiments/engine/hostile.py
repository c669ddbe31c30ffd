"""How often an audit misses where everything is against it.

A *cell* is a way to make audits err: predictions that lie, losses that are rare or never quite 0
or 1, answers told late and out of order, questions without an answer, a pool that is asked to its
end. Each audit is of a small pool at 95 %, and misses if any of its intervals leaves out the true
rate at any moment, which is what someone reaches who looks after every answer and stops at the
worst one.

    python -m adaptive_vtt.experiments.engine.hostile [--quick] [--seeds 200] [--only lies]

Prints, of every cell, its audits, those that missed, and how many of an error of 5 % would be
exceeded with a probability of .001.
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
"""Items in each group: the last is asked whole long before the audit ends."""


@dataclass(frozen=True)
class Cell:
    """What is against an audit: how losses come about, what foretells them, how it is told."""

    rate: float = 0.3
    """Mean loss of the likeliest half of the items is three times that of the others."""
    graded: bool = False
    """Losses lie between .001 and .999, near either end."""
    believed: str = ""
    """"truth", "lies" (one minus each loss), "half" (lies about every other item) or "noise"."""
    groups: bool = False
    batch: int = 1
    backwards: bool = False
    """Answers of a batch are told in the opposite order."""
    silent: float = 0.0
    """Share of the lost items that have no answer, which counts as lost."""
    calls: int = CALLS
    given: tuple[tuple[str, Any], ...] = ()
    """Other arguments of the audit."""


CELLS = {
    "nothing foretold": Cell(),
    "truth foretold": Cell(believed="truth"),
    "lies": Cell(believed="lies"),
    "half lies": Cell(believed="half"),
    "noise": Cell(believed="noise"),
    "groups": Cell(groups=True),
    "groups, lies": Cell(groups=True, believed="lies"),
    "rare": Cell(rate=0.02),
    "rare, lies": Cell(rate=0.02, believed="lies"),
    "nearly all lost": Cell(rate=0.64),
    "graded": Cell(graded=True),
    "graded, half lies": Cell(graded=True, believed="half"),
    "batches": Cell(batch=8),
    "backwards, lies": Cell(batch=8, backwards=True, believed="lies"),
    "silent": Cell(silent=0.5),
    "silent, groups, batches": Cell(silent=0.5, groups=True, batch=8),
    "little explored": Cell(believed="lies", given=(("exploration", 0.02),)),
    "drawn at random": Cell(believed="half", given=(("strategy", "random"),)),
    "to the end": Cell(groups=True, calls=ITEMS),
}


def lost(cell: Cell, seed: int) -> Floats:
    """The loss of every item, (n,), in [0, 1]: fixed before anything is asked."""
    rng = np.random.default_rng([seed, 7])
    likely = cell.rate * np.where(rng.random(ITEMS) < 0.5, 1.5, 0.5)
    losses = (rng.random(ITEMS) < likely).astype(float)
    return np.clip(losses, 0.001, 0.999) if cell.graded else losses


def foretold(cell: Cell, losses: Floats, seed: int) -> dict[str, Floats] | None:
    """A proxy of every loss, kept off 0 and 1."""
    if not cell.believed:
        return None
    rng = np.random.default_rng([seed, 8])
    said = {
        "truth": losses,
        "lies": 1 - losses,
        "half": np.where(np.arange(ITEMS) % 2, losses, 1 - losses),
        "noise": rng.random(ITEMS),
    }[cell.believed]
    return {"proxy": 0.05 + 0.9 * said}


def missed(job: tuple[str, int]) -> bool:
    """Whether an interval of this cell's audit with this seed ever leaves out the truth."""
    name, seed = job
    cell = CELLS[name]
    losses = lost(cell, seed)
    silent = np.random.default_rng([seed, 9]).random(ITEMS) < cell.silent * losses
    group = np.repeat(np.arange(len(GROUPS)), GROUPS)
    audit = Audit(
        Pool(ITEMS, None, pd.DataFrame({"g": group.astype(str)}) if cell.groups else None),
        half_width=0.01,
        targets=["overall", "group:g"] if cell.groups else ["overall"],
        proxies=foretold(cell, losses, seed),
        budget=cell.calls,
        confidence=LEVEL,
        seed=seed,
        **dict(cell.given),
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
                kept = audit.belief.certifying.sequences
                if (kept.lower > rates + 1e-9).any() or (kept.upper < rates - 1e-9).any():
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
    whole = pd.DataFrame([*rows, {"cell": "all", **sums}])
    whole["5 % is"] = (whole["audits"] * (1 - LEVEL)).round().astype(int)
    whole["with .001 over"] = binom.ppf(0.999, whole["audits"], 1 - LEVEL).astype(int)
    save_table(whole, chosen.out / "hostile.csv")


if __name__ == "__main__":
    main()
