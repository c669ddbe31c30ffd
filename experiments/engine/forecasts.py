"""Whether what a stopped audit says it still takes holds the truth, and how wide that range is.

Five kinds of audits of recorded answers: *several* targets of one call, *digits* and *proxies*
(real mistakes of real models, ``experiments.engine.digits``), *sides* of five concepts asked one by
one, and *rare* mistakes, one of a hundred. Each is audited to its end, and again with a budget of a
part of those calls, drawn evenly from .15 to .9; that one says its range and goes on to its end.

Prints a row per kind, and what the formula of before said, as a multiple of the truth: it took the
half-width to fall with the square root of the draws. Seeds below 100 are those that ``further``'s
constants were chosen on.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.datasets import from_table
from adaptive_vtt.journal import MemoryJournal
from adaptive_vtt.models import Recorded
from adaptive_vtt.types import Bools, CallMode, Floats

from ..program import Row, options, save_table, show
from ..vtt.label_sets import isic
from .digits import RecordedRelation, proxy_bench, severity_bench

EARLIEST, LATEST = 0.15, 0.9
"""Parts of the calls after which audits are stopped."""
Made = tuple[QuestionSpace, Recorded, dict[str, Any]]


def several(seed: int) -> Made:
    """200 images, three concepts that a call answers all, six changes, each worse than the last."""
    rng = np.random.default_rng([seed, 1])
    truth = rng.random((200, 3)) < (0.3, 0.5, 0.7)
    given = {"targets": ["overall", "relations", "concepts"], "half_width": 0.1}
    return *_recorded(_labelled(truth), truth, np.linspace(0.03, 0.35, 6), rng), given


def digits(seed: int) -> Made:
    """digits-severity: 600 digits under 50 changes."""
    bench = severity_bench()
    return bench.space(), bench.model(), {"targets": ["overall"], "half_width": 0.05}


def proxies(seed: int) -> Made:
    """digits-proxy, and what cheaper models answered."""
    bench = proxy_bench()
    given = {"targets": ["overall"], "half_width": 0.05, "proxies": bench.proxy_answers()}
    return bench.space(), bench.model(), given


def sides(seed: int) -> Made:
    """Misses and false alarms of five concepts, three of them seldom present."""
    dataset = isic(samples=1000)
    rows, columns = np.arange(len(dataset)), np.arange(len(dataset.concepts))
    truth = dataset.truth(rows[:, None], columns[None, :]) == 1
    rng = np.random.default_rng([seed, 2])
    given = {"targets": ["concepts"], "half_width": 0.1, "surrogate": False}
    return *_recorded(dataset, truth, np.array([0.15]), rng, "one"), given


def rare(seed: int) -> Made:
    """One concept, four changes: one of a hundred answers is wrong."""
    rng = np.random.default_rng([seed, 3])
    truth = rng.random((800, 1)) < 0.5
    given = {"targets": ["overall", "relations"], "half_width": 0.03, "surrogate": False}
    return *_recorded(_labelled(truth), truth, np.full(4, 0.01), rng), given


KINDS: dict[str, Callable[[int], Made]] = {
    made.__name__: made for made in (several, digits, proxies, sides, rare)
}


def _labelled(truth: Bools) -> Any:
    return from_table(None, pd.DataFrame(truth.astype(int)).add_prefix("c"))


def _recorded(
    dataset: Any, truth: Bools, rates: Floats, rng: np.random.Generator, per_call: CallMode = "all"
) -> tuple[QuestionSpace, Recorded]:
    """Changes, and a model that errs under each at its rate."""
    samples, count = truth.shape
    names = [f"change {k}" for k in range(len(rates))]
    wrong = rng.random((samples, len(rates), count)) < rates[:, None]
    said = (truth[:, None] ^ wrong).reshape(-1, count).astype(float)
    table = pd.DataFrame(said, columns=list(dataset.concepts))
    ids = [dataset.sample_id(k) for k in range(samples)]
    table.insert(0, "sample", np.repeat(ids, len(rates)))
    table.insert(1, "relation", names * samples)
    table.insert(2, "severity", 1)
    space = QuestionSpace(dataset, [RecordedRelation(name, [1]) for name in names])
    return space, Recorded(table, per_call=per_call)


def stopped(kind: str, seed: int) -> Row:
    """One audit: the calls it still took when it was stopped, the range that it said (None: it
    said that it cannot tell), and what the formula of before would have said."""
    space, model, given = KINDS[kind](seed)
    whole = Audit(space, model, seed=seed, journal=MemoryJournal(), **given).run()
    part = np.random.default_rng([seed, 4]).uniform(EARLIEST, LATEST)
    journal, budget = MemoryJournal(), round(part * whole.calls)
    then = Audit(space, model, seed=seed, journal=journal, budget=budget, **given).run()
    foretold = then.further
    now = Audit(space, model, seed=seed, journal=journal, **given).run()
    widest = float(then.targets["half_width"].max())
    before = min(budget * ((widest / given["half_width"]) ** 2 - 1), space.size - budget)
    return {
        "kind": kind,
        "seed": seed,
        "after": budget,
        "truth": now.calls - budget,
        "least": None if foretold is None else foretold.least,
        "likely": None if foretold is None else foretold.likely,
        "most": None if foretold is None else foretold.most,
        "wide": foretold is not None and foretold.wide,
        "before": round(before),
    }


def row(name: str, table: pd.DataFrame) -> Row:
    """One line of what is printed."""
    known = table[table["least"].notna()].astype({"least": float, "likely": float, "most": float})
    truth = known["truth"]
    held = (known["least"] <= truth) & (truth <= known["most"])
    return {
        "audits": name,
        "held": f"{int(held.sum())} of {len(known)}",
        "not told": len(table) - len(known),
        "between": int(known["wide"].sum()),
        "most / least": round(float((known["most"] / known["least"]).median()), 1),
        "likely / truth": _spread(known["likely"] / truth),
        "before / truth": _spread(known["before"] / truth),
    }


def _spread(values: "pd.Series[float]") -> str:
    low, middle, high = values.quantile([0.1, 0.5, 0.9])
    return f"{middle:.2f} ({low:.2f}-{high:.2f})"


def main(arguments: Sequence[str] | None = None) -> None:
    quick = {"kinds": ["several", "rare"], "seeds": 1}
    chosen = options(__doc__, arguments, quick=quick, seeds=8, first=100, kinds=KINDS)
    found = []
    for name in chosen.kinds:
        seeds = range(chosen.first, chosen.first + chosen.seeds)
        found.append(pd.DataFrame([stopped(name, seed) for seed in seeds]))
        show(row(name, found[-1]))
    table = pd.concat(found)
    save_table(table, chosen.out / "forecasts.csv")
    show(row("all", table))


if __name__ == "__main__":
    main()
