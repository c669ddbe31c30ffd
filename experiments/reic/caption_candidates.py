"""Compare follow-ups whose candidates are chosen before the caption with REIC's, chosen after it.

REIC locates the objects that the caption names, and then chooses follow-ups. An audit has to choose
candidates before anything is asked (``relations/reic.py``). It takes objects from the detector's
boxes, or from recorded captions: a box with the name of the caption, and, if captions of hidden
boxes are recorded, too, a box whose hiding removes the name. All follow-ups are judged by the same
rules. docs/papers.md explains when candidates after the caption are valid.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pandas as pd

from adaptive_vtt.datasets.base import Dataset
from adaptive_vtt.oracles.captions.recorded import RecordedNaming
from adaptive_vtt.oracles.reduced_captions import ReducedCaptions
from adaptive_vtt.relations.reic import KINDS, Naming, Reduced
from adaptive_vtt.types import Received

from .caption_verdicts import Bench
from .reic_scheme import STATUSES, Step, judge, statuses


def before_and_after(
    bench: Bench, detected: Dataset, oracle: ReducedCaptions, steps: list[Step]
) -> pd.DataFrame:
    """Return statuses of named objects and broken rules, per relation and choice of candidates.

    ``steps`` are those of the paper's scheme, on the same boxes.
    """
    versions = {detected.sample_id(step.sample): step.received for step in steps}
    sources = {sample: Received(one.answer, {}) for sample, one in versions.items()}
    by_source, by_versions = (
        RecordedNaming(each, oracle.reader, oracle.same) for each in (sources, versions)
    )
    choices = {
        "before the caption": list(presumed(bench, detected, oracle, steps)),
        "by recorded captions": list(presumed(bench, detected, oracle, steps, by_source)),
        "..., of hidden boxes, too": list(presumed(bench, detected, oracle, steps, by_versions)),
        "after the caption": steps,
    }
    return together(
        pd.DataFrame(
            {"relation": kind, "candidates": choice, **_counts(chosen, kind)}
            for kind in KINDS
            for choice, chosen in choices.items()
        )
    )


def together(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows of ``before_and_after`` of several seeds, added up by relation and choice."""
    counts = [*STATUSES, "follow-ups", "violations"]
    sums = rows.groupby(["relation", "candidates"], sort=False)[counts].sum().reset_index()
    share = 100 * sums["violations"] / sums["follow-ups"].where(sums["follow-ups"] > 0)
    return sums.assign(**{"per cent": share.round(1)})


def presumed(
    bench: Bench,
    detected: Dataset,
    oracle: ReducedCaptions,
    steps: Iterable[Step],
    naming: Naming | None = None,
) -> Iterator[Step]:
    """Yield each step with the audit's candidate of the same image, relation and rank.

    Steps without such a candidate are left out. ``naming`` gives the names of boxes; without it
    they are the detector's.
    """
    for step in steps:
        sample = detected.sample(step.sample)
        candidates = Reduced(step.kind, naming=naming).candidates(sample)
        if step.rank <= len(candidates):
            reduction = candidates[step.rank - 1]
            caption = bench.captioner.caption(reduction.image(sample.require_image()))
            outcome = judge(oracle, sample, step.received, reduction, caption)
            yield replace(step, reduction=reduction, caption=caption, outcome=outcome)


def _counts(steps: list[Step], kind: str) -> dict[str, int]:
    own = [step for step in steps if step.kind == kind]
    return {
        **statuses(own),
        "follow-ups": len(own),
        "violations": sum(bool(step.violations) for step in own),
    }
