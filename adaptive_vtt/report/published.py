"""EndoBench: the audit's accuracies beside the published ones, and what distinguishes the two."""

from dataclasses import asdict

import pandas as pd

from ..datasets.vqa.taxonomy import TASKS
from .beside import Row
from .endobench_published import OVERALL, accuracies, beside
from .endobench_regime import differences, temperature
from .evidence import Evidence
from .section import Section, fragment, span

SHOWN = 5
"""Published models that are shown, the best overall; a guessing one comes on top."""
CHANCE = "Random"


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
    table, models = beside(targets), _models()
    if not tasks.issuperset(evidence.concepts):
        table = table[table["kind"] != OVERALL]
    if table.empty:
        return None
    rows = [
        Row(
            r["what"],
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
            differences=differences(evidence.facts),
            temperature=temperature(evidence.facts),
        ),
    )


def _models() -> list[str]:
    overall = accuracies()[OVERALL].dropna().drop(CHANCE, errors="ignore")
    best = overall.sort_values(ascending=False).index[:SHOWN].tolist()
    return [*best, *([CHANCE] if CHANCE in accuracies().index else [])]


def _known(value: float) -> float | None:
    return None if pd.isna(value) else float(value)
