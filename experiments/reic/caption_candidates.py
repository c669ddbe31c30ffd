"""Compare follow-ups whose candidates are chosen before the caption with REIC's, chosen after it.

REIC locates the objects that the caption names and then chooses follow-ups. An audit has to choose
candidates before anything is asked (``relations/reic.py``). It locates objects by the detector's
boxes, or by a caption recorded beforehand: a box with the same name, and, if captions of hidden
boxes are recorded, too, a box without which the name is missing. All follow-ups are judged alike,
by what the caption names. docs/papers.md explains when candidates after the caption would be valid.
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
    """Return what follow-ups do to named objects, and how many break a rule, per relation and way.

    ``steps`` are those of the paper's scheme, on the same boxes.
    """
    received = {detected.sample_id(step.sample): step.received for step in steps}
    said = {sample: Received(one.answer, {}) for sample, one in received.items()}
    plain, whole = (RecordedNaming(each, oracle.reader, oracle.same) for each in (said, received))
    ways = {
        "before the caption": list(presumed(bench, detected, oracle, steps)),
        "by recorded captions": list(presumed(bench, detected, oracle, steps, plain)),
        "..., of hidden boxes, too": list(presumed(bench, detected, oracle, steps, whole)),
        "after the caption": steps,
    }
    return together(
        pd.DataFrame(
            {"relation": kind, "candidates": way, **_counts(found, kind)}
            for kind in KINDS
            for way, found in ways.items()
        )
    )


def together(counted: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of ``before_and_after`` of several seeds, added up by relation and way."""
    counts = [*STATUSES, "follow-ups", "violations"]
    found = counted.groupby(["relation", "candidates"], sort=False)[counts].sum().reset_index()
    share = 100 * found["violations"] / found["follow-ups"].where(found["follow-ups"] > 0)
    return found.assign(**{"per cent": share.round(1)})


def presumed(
    bench: Bench,
    detected: Dataset,
    oracle: ReducedCaptions,
    steps: Iterable[Step],
    naming: Naming | None = None,
) -> Iterator[Step]:
    """Yield, for each step, the audit's candidate of the same image, relation and rank, if there is
    one.

    ``naming`` gives the names of boxes; without it, the detector does.
    """
    for step in steps:
        sample = detected.sample(step.sample)
        every = Reduced(step.kind, naming=naming).candidates(sample)
        if step.rank <= len(every):
            reduction = every[step.rank - 1]
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
