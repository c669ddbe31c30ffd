"""Journals of small audits, one for every kind of report."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import adaptive_vtt as avtt
from adaptive_vtt.datasets import from_endobench
from adaptive_vtt.experiments.medtest import phantoms
from adaptive_vtt.journal import Journal, MemoryJournal
from adaptive_vtt.models import ModelDefaults
from adaptive_vtt.oracles import MaskDrop, MultipleChoice
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from adaptive_vtt.types import Answer, Prompt
from tests.helpers.captioned import faulty
from tests.helpers.captioned import space as caption_space
from tests.helpers.endobench_rows import Clever, row, write
from tests.helpers.report_pages import audit, unfinished

RELATIONS = ["identity", "rotation", "gaussian_noise"]
QUICK = {"surrogate": False, "seed": 0}


class Bright(ModelDefaults):
    """Segmenter that marks the brightest pixels of a frame."""

    name, answers = "bright", "all"

    def ask(self, prompts: Sequence[Prompt]) -> list[Any]:
        return [Answer((self._mask(p),) * len(p.concepts), 0.01) for p in prompts]

    def _mask(self, prompt: Prompt) -> Any:
        assert prompt.image is not None
        grey = prompt.image.astype(float).mean(axis=2)
        return grey > np.quantile(grey, 0.7)


def labels(**options: Any) -> Journal:
    """Return an audit of labels with several targets, costs and some refusals."""
    model = ScriptedModel(refuse=0.05)
    chosen = {"budget": 60, "half_width": 0.1, **QUICK, **options}
    return audit(tiny_dataset(20), model, RELATIONS, **chosen)


def words(folder: Path) -> Journal:
    """Return an audit of multiple choice, like EndoBench's."""
    rows = [row(k) for k in range(24)]
    space = avtt.QuestionSpace(
        from_endobench(write(folder / "e.tsv", rows)), oracle=MultipleChoice()
    )
    targets = ["overall", "concepts", "group:scene"]
    return _run(space, Clever(), half_width=0.2, targets=targets, strategy="random")


def masks() -> Journal:
    """Return an audit of a segmenter, by drops of the score."""
    dataset = phantoms.frames(10, size=64, polyps="always", concepts=["polyp"])
    space = avtt.QuestionSpace(dataset, ["medtest"], oracle=MaskDrop())
    return _run(space, Bright(), half_width=0.2, budget=30, targets=["concepts", "relations"])


def captions() -> Journal:
    return _run(caption_space(), faulty(), half_width=0.2, targets=["relations"])


def _run(space: avtt.QuestionSpace, model: Any, **options: Any) -> Journal:
    journal = MemoryJournal()
    avtt.Audit(space, model, journal=journal, **{**QUICK, **options}).run()
    return journal


KINDS: dict[str, Callable[[Path], Journal]] = {
    "labels": lambda _: labels(),
    "each": lambda _: labels(guarantee="each"),
    "decisions": lambda _: labels(half_width=None, at_most=0.3),
    "explore": lambda _: labels(half_width=None),
    "uncertified": lambda _: labels(half_width=None, strategy="random"),
    "running": lambda _: unfinished(3, half_width=0.1),
    "nothing": lambda _: unfinished(0),
    "words": words,
    "masks": lambda _: masks(),
    "captions": lambda _: captions(),
}
"""Name -> function that makes the journal, given an empty folder."""
