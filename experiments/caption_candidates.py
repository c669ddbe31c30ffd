"""What it changes that an audit's candidates are fixed before the caption, the paper's after it.

REIC locates what the caption names and then chooses follow-ups; an audit here chooses them from
what the detector found, before anything is asked (``relations/reic.py``). Both are judged alike,
by what the caption names. docs/papers.md says when candidates after the caption would be valid.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pandas as pd

from adaptive_vtt.datasets.base import Dataset
from adaptive_vtt.oracles.reduced_captions import ReducedCaptions
from adaptive_vtt.relations.reic import KINDS, Reduced

from .caption_verdicts import Bench
from .reic_scheme import Step, judge

STATUSES = ("ambiguous", "disappeared", "retained")


def before_and_after(
    bench: Bench, detected: Dataset, oracle: ReducedCaptions, steps: list[Step]
) -> pd.DataFrame:
    """What follow-ups do to the objects named, and how many break a rule; a row per relation and
    way. ``steps``: of the paper's scheme, on the same boxes."""
    ways = {
        "before the caption": list(presumed(bench, detected, oracle, steps)),
        "after the caption": steps,
    }
    return pd.DataFrame(
        [
            {"relation": kind, "candidates": way, **_counts(found, kind)}
            for kind in KINDS
            for way, found in ways.items()
        ]
    )


def presumed(
    bench: Bench, detected: Dataset, oracle: ReducedCaptions, steps: Iterable[Step]
) -> Iterator[Step]:
    """For each step the candidate of the same image, relation and rank that an audit has; none
    where it has fewer."""
    for step in steps:
        sample = detected.sample(step.sample)
        every = Reduced(step.kind).candidates(sample)
        if step.rank <= len(every):
            reduction = every[step.rank - 1]
            caption = bench.captioner.caption(reduction.image(sample.require_image()))
            outcome = judge(oracle, sample, step.heard, reduction, caption)
            yield replace(step, reduction=reduction, caption=caption, outcome=outcome)


def _counts(steps: list[Step], kind: str) -> dict[str, Any]:
    own = [step for step in steps if step.kind == kind]
    status = [each["status"] for step in own for each in step.objects]
    broken = sum(bool(step.violations) for step in own)
    return {
        **{each: status.count(each) for each in STATUSES},
        "follow-ups": len(own),
        "violations": broken,
        "per cent": round(100 * broken / len(own), 1) if own else None,
    }
