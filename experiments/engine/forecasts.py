"""Measure coverage and width of the forecast of further calls (``certify.further``).

    python -m adaptive_vtt.experiments.engine.forecasts --seeds 8

There are five kinds of audits of recorded answers: *several* targets per call, *digits* and
*proxies* (real errors of real models, ``experiments.engine.digits``), *sides* of five concepts, one
question per call, and *rare* errors, one in a hundred. Each audit runs to its end. Then it runs
again with a budget of a random share of those calls, .15 to .9, forecasts the rest, and is resumed
to its end.

The table has a row per kind. "before / truth" is the forecast of an earlier formula, by which
half-widths fall with the square root of the draws, as a multiple of the true number. The constants
of ``further`` were chosen on seeds below 100.
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
"""Least and largest share of the calls after which audits are stopped."""
Kind = tuple[QuestionSpace, Recorded, dict[str, Any]]
"""A space, a model, and the options of its audits."""


def several(seed: int) -> Kind:
    """Return 200 images, three concepts per call, and six changes of increasing difficulty."""
    rng = np.random.default_rng([seed, 1])
    truth = rng.random((200, 3)) < (0.3, 0.5, 0.7)
    options = {"targets": ["overall", "relations", "concepts"], "half_width": 0.1}
    return *_recorded(_labelled(truth), truth, np.linspace(0.03, 0.35, 6), rng), options


def digits(seed: int) -> Kind:
    """Return digits-severity: 600 digits under 50 changes."""
    bench = severity_bench()
    return bench.space(), bench.model(), {"targets": ["overall"], "half_width": 0.05}


def proxies(seed: int) -> Kind:
    """Return digits-proxy, with the answers of cheaper models."""
    bench = proxy_bench()
    options = {"targets": ["overall"], "half_width": 0.05, "proxies": bench.proxy_answers()}
    return bench.space(), bench.model(), options


def sides(seed: int) -> Kind:
    """Return misses and false alarms of five concepts, three of them rare."""
    dataset = isic(samples=1000)
    rows, columns = np.arange(len(dataset)), np.arange(len(dataset.concepts))
    truth = dataset.truth(rows[:, None], columns[None, :]) == 1
    rng = np.random.default_rng([seed, 2])
    options = {"targets": ["concepts"], "half_width": 0.1, "surrogate": False}
    return *_recorded(dataset, truth, np.array([0.15]), rng, "one"), options


def rare(seed: int) -> Kind:
    """Return one concept and four changes; one of a hundred answers is wrong."""
    rng = np.random.default_rng([seed, 3])
    truth = rng.random((800, 1)) < 0.5
    options = {"targets": ["overall", "relations"], "half_width": 0.03, "surrogate": False}
    return *_recorded(_labelled(truth), truth, np.full(4, 0.01), rng), options


KINDS: dict[str, Callable[[int], Kind]] = {
    kind.__name__: kind for kind in (several, digits, proxies, sides, rare)
}


def _labelled(truth: Bools) -> Any:
    return from_table(None, pd.DataFrame(truth.astype(int)).add_prefix("c"))


def _recorded(
    dataset: Any, truth: Bools, rates: Floats, rng: np.random.Generator, per_call: CallMode = "all"
) -> tuple[QuestionSpace, Recorded]:
    """Return a space of changes, and a model that is wrong under each at its rate."""
    samples, count = truth.shape
    names = [f"change {k}" for k in range(len(rates))]
    wrong = rng.random((samples, len(rates), count)) < rates[:, None]
    answers = (truth[:, None] ^ wrong).reshape(-1, count).astype(float)
    table = pd.DataFrame(answers, columns=list(dataset.concepts))
    ids = [dataset.sample_id(k) for k in range(samples)]
    table.insert(0, "sample", np.repeat(ids, len(rates)))
    table.insert(1, "relation", names * samples)
    table.insert(2, "severity", 1)
    space = QuestionSpace(dataset, [RecordedRelation(name, [1]) for name in names])
    return space, Recorded(table, per_call=per_call)


def stopped(kind: str, seed: int) -> Row:
    """Stop one audit and resume it.

    Returns:
        The calls that it still took (``truth``), its forecast (None: unknown), and that of the
        earlier formula (``before``).
    """
    space, model, options = KINDS[kind](seed)
    whole = Audit(space, model, seed=seed, journal=MemoryJournal(), **options).run()
    share = np.random.default_rng([seed, 4]).uniform(EARLIEST, LATEST)
    journal, budget = MemoryJournal(), round(share * whole.calls)
    first = Audit(space, model, seed=seed, journal=journal, budget=budget, **options).run()
    forecast = first.further
    resumed = Audit(space, model, seed=seed, journal=journal, **options).run()
    widest = float(first.targets["half_width"].max())
    before = min(budget * ((widest / options["half_width"]) ** 2 - 1), space.size - budget)
    return {
        "kind": kind,
        "seed": seed,
        "after": budget,
        "truth": resumed.calls - budget,
        "least": None if forecast is None else forecast.least,
        "likely": None if forecast is None else forecast.likely,
        "most": None if forecast is None else forecast.most,
        "wide": forecast is not None and forecast.wide,
        "before": round(before),
    }


def row(name: str, table: pd.DataFrame) -> Row:
    """Return a row of the printed table."""
    known = table[table["least"].notna()].astype({"least": float, "likely": float, "most": float})
    truth = known["truth"]
    held = (known["least"] <= truth) & (truth <= known["most"])
    return {
        "audits": name,
        "held": f"{int(held.sum())} of {len(known)}",
        "unknown": len(table) - len(known),
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
    tables = []
    for name in chosen.kinds:
        seeds = range(chosen.first, chosen.first + chosen.seeds)
        tables.append(pd.DataFrame([stopped(name, seed) for seed in seeds]))
        show(row(name, tables[-1]))
    table = pd.concat(tables)
    save_table(table, chosen.out / "forecasts.csv")
    show(row("all", table))


if __name__ == "__main__":
    main()
