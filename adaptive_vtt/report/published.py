"""EndoBench: the audit's accuracies beside the published ones, and what distinguishes the two."""

from dataclasses import asdict

import pandas as pd

from ..datasets.vqa.taxonomy import GRANULARITIES, TASKS
from .beside import Row
from .endobench_physicians import CONFIDENCE, compared
from .endobench_published import OVERALL, accuracies, beside
from .endobench_regime import differences, temperature
from .evidence import Evidence
from .section import Section, fragment, span, sure

SHOWN = 5
"""Published models that are shown, the best overall of those that are published by more than
that; a guessing one comes on top."""
CHANCE = "Random"
GROUPED = {"prompt": "visual prompt: ", "granularity": "granularity: "}
"""Before values that say little alone, or the same in both groups."""


def section(evidence: Evidence) -> Section | None:
    """None where nothing is certified, or no concept is one of EndoBench's tasks.

    Sets of one's own may ask other questions besides; their overall accuracy is then another's.
    """
    tasks = {task.name for task in TASKS}
    if not evidence.standings or tasks.isdisjoint(evidence.concepts):
        return None
    targets = pd.DataFrame(
        [
            {**asdict(s.id), "estimate": s.estimate, "lower": s.lower, "upper": s.upper}
            for s in evidence.standings
        ]
    )
    table = beside(targets)
    if not tasks.issuperset(evidence.concepts):
        table = table[table["kind"] != OVERALL]
    if table.empty:
        return None
    table = _in_order(table)
    models, left_out = _models(table)
    rows = [
        Row(
            GROUPED.get(r["kind"], "") + r["what"],
            r["accuracy"],
            span(r["lower"], r["upper"]),
            tuple(_known(r[m]) for m in models),
        )
        for r in table.to_dict(orient="records")
    ]
    return Section(
        "Beside published results",
        "published",
        fragment(
            "published.html",
            rows=rows,
            models=models,
            left_out=left_out,
            physicians=compared(table),
            sure=sure(CONFIDENCE),
            levels=bool((table["kind"] == "granularity").any()),
            differences=differences(evidence.facts),
            temperature=temperature(evidence.facts),
        ),
    )


def _in_order(table: pd.DataFrame) -> pd.DataFrame:
    """Granularities as EndoBench names them; a task that is its own subtask once."""
    once = table[~(table["what"].duplicated() & (table["kind"] == "subtask"))]
    kinds, levels = list(dict.fromkeys(once["kind"])), list(GRANULARITIES)
    places = [
        (kinds.index(kind), levels.index(what) if kind == "granularity" and what in levels else 9)
        for kind, what in zip(once["kind"], once["what"], strict=True)
    ]
    return once.iloc[sorted(range(len(once)), key=places.__getitem__)]


def _models(table: pd.DataFrame) -> tuple[list[str], list[tuple[str, float]]]:
    """Who is shown; and whoever did better, but of whom the overall figure alone is published."""
    overall = accuracies()[OVERALL].dropna().drop(CHANCE, errors="ignore")
    ranked = overall.sort_values(ascending=False)
    parts = table[table["kind"] != OVERALL]
    told = [m for m in ranked.index if parts.empty or parts[m].notna().any()][:SHOWN]
    least = min((ranked[m] for m in told), default=1.0)
    left_out = [(str(m), float(v)) for m, v in ranked.items() if v > least and m not in told]
    shown = left_out if OVERALL in set(table["kind"]) else []
    return [*told, *([CHANCE] if CHANCE in accuracies().index else [])], shown


def _known(value: float) -> float | None:
    return None if pd.isna(value) else float(value)
