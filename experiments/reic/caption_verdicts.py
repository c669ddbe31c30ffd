"""Compare the verdicts of REIC's scheme with the truth, for a captioner whose faults are known.

``caption_truth`` defines the faults, and ``reic_scheme`` is the scheme.
"""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import pandas as pd

from adaptive_vtt.datasets.base import Dataset
from adaptive_vtt.oracles.reduced_captions import ReducedCaptions
from adaptive_vtt.people.agreement import scores
from adaptive_vtt.relations.reic import KINDS
from adaptive_vtt.types import Image

from .caption_truth import KINDS_OF_WORDS, Unit, truths_of
from .reic_scheme import Step, captions_of, judge
from .template_captioner import TemplateCaptioner

CAUSES = ("place named", "still to be seen", "other words", "partly in view")
"""Causes of false alarms."""

Content = TypeVar("Content")


class Cached(Generic[Content]):
    """A function of images whose results are kept, so that it is called once for every picture."""

    def __init__(self, look: Callable[[Image], Content]) -> None:
        self.look = look
        self._results: dict[tuple[tuple[int, ...], bytes], Content] = {}

    def __call__(self, image: Image) -> Content:
        key = image.shape, hashlib.blake2b(image.tobytes(), digest_size=16).digest()
        if key not in self._results:
            self._results[key] = self.look(image)
        return self._results[key]


class CachedCaptioner:
    """A captioner that describes every picture once and keeps the caption."""

    def __init__(self, captioner: TemplateCaptioner) -> None:
        self.captioner, self.explain = captioner, Cached(captioner.explain)

    def caption(self, image: Image) -> str:
        return self.explain(image).caption


Place = tuple[int, str, int]
"""Key of a follow-up: the image's index, the relation, and the rank."""


@dataclass(frozen=True)
class Bench:
    """Scenes and the captioner that describes them; ``dataset`` has the exact masks."""

    dataset: Dataset
    captioner: CachedCaptioner

    def truths(self, steps: Iterable[Step]) -> dict[Place, list[Unit]]:
        """Return the faults of each step's captions."""
        return {
            place(step): truths_of(self.captioner, self.dataset.sample(step.sample), step.reduction)
            for step in steps
        }

    def judged_again(
        self, detected: Dataset, steps: Iterable[Step], oracle: ReducedCaptions
    ) -> list[Step]:
        """Return the same follow-ups judged by another oracle, with the captions that it needs."""
        judged, received = [], {}
        for step in steps:
            sample = detected.sample(step.sample)
            if step.sample not in received:
                received[step.sample] = captions_of(oracle, self.captioner, sample, step.received)
            own = received[step.sample]
            outcome = judge(oracle, sample, own, step.reduction, step.caption)
            judged.append(replace(step, received=own, outcome=outcome))
        return judged


def hidden(steps: Iterable[Step]) -> float:
    """Return the mean number of captions of hidden boxes per image."""
    images = {step.sample: len(step.received.versions) for step in steps}
    return round(sum(images.values()) / len(images), 1) if images else 0.0


def place(step: Step) -> Place:
    """Return the key of a follow-up."""
    return step.sample, step.kind, step.rank


def verdicts(steps: Iterable[Step], truths: dict[Place, list[Unit]]) -> pd.DataFrame:
    """Return a row per name of a pair of captions, with its true error and the verdict on it.

    A word that the oracle reads as a name, although the captioner meant none ("room"), is a row
    without an error.

    Returns:
        Columns "relation", "case" (the pair), "name", "real" (there is a violation, or a reported
        error), "reported", "error" (true type), "guess" (the oracle's type) and "cause" (of a
        false alarm).
    """
    columns = ["relation", "case", "name", "real", "reported", "error", "guess", "cause"]
    rows = []
    for step in steps:
        units = {(unit.name, unit.new): unit for unit in truths[place(step)]}
        findings = {(each["name"], each["status"] == "new"): each for each in step.objects}
        for key in {**units, **findings}:
            unit, finding = units.get(key, Unit(*key)), findings.get(key, {})
            reported = finding.get("rule") is not None
            rows.append(
                {
                    "relation": step.kind,
                    "case": str(place(step)),
                    "name": key[0],
                    "real": unit.violation or (reported and unit.error is not None),
                    "reported": reported,
                    "error": unit.error or "none",
                    "guess": finding.get("type") or "none",
                    "cause": _cause(unit, finding) if reported and not unit.error else "",
                }
            )
    return pd.DataFrame(rows, columns=columns)


def _cause(unit: Unit, finding: dict[str, Any]) -> str:
    """Return why a name without an error was reported, one of CAUSES."""
    if unit.name not in KINDS_OF_WORDS:
        return "place named"
    if finding["rule"] == 2:
        return "still to be seen"
    return "other words" if unit.again else "partly in view"


def confusion(frame: pd.DataFrame) -> dict[str, Any]:
    """Return TP, FN, FP, TN of rows with ``real`` and ``reported``, and the scores in per cent."""
    real, reported = frame["real"].to_numpy(bool), frame["reported"].to_numpy(bool)
    tp, fn = int((real & reported).sum()), int((real & ~reported).sum())
    fp, tn = int((~real & reported).sum()), int((~real & ~reported).sum())
    shares = scores(tp, fp, fn, tn)
    names = {"accuracy": "accuracy", "precision": "precision", "recall": "recall", "F1": "f1"}
    counts = {"TP": tp, "FN": fn, "FP": fp, "TN": tn}
    return counts | {name: percent(shares[key]) for name, key in names.items()}


def by_relation(frame: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Return the rows of each relation, and "all" with those of all relations."""
    return [(kind, frame[frame["relation"] == kind]) for kind in KINDS] + [("all", frame)]


def percent(share: float | None) -> float | None:
    return None if share is None else round(100 * share, 1)
