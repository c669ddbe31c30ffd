"""Measure the seconds of each step of REIC (Table VIII): 480 x 640, one thread, no model's time.

- Localisation, per image: draw versions with hidden boxes, and read and match captions.
- Scoring, per image: draw the candidates of all three relations, score them, and choose follow-ups.
- Generation, per follow-up: its share of the scoring, and its picture.
- Checking, per follow-up: statuses of objects, reading and matching its caption, and the rules.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from adaptive_vtt.oracles.captions import Same, language
from adaptive_vtt.oracles.captions.localising import Located
from adaptive_vtt.oracles.reduced_captions import ReducedCaptions
from adaptive_vtt.relations.reic import KINDS
from adaptive_vtt.types import Image, Received, Sample

from ..tables.layout import tables_of
from .drawn_scenes import scenes
from .reic_scheme import Captioner, Reduction, Selection, captions_of, judge, locate
from .template_captioner import TemplateCaptioner

SIZE = (480, 640)
SECONDS = tables_of("reic")["VIII"].published()["seconds"]
PUBLISHED = dict(zip(SECONDS.index.get_level_values("step"), SECONDS.tolist(), strict=True))
PUBLISHED["localisation, all by hiding"] = PUBLISHED["localisation"]
"""Step -> the paper's seconds, whose localisation includes the model's time."""


class Timed:
    """A captioner that adds up its seconds."""

    def __init__(self, captioner: Captioner) -> None:
        self.captioner = captioner
        self.seconds = 0.0

    def caption(self, image: Image) -> str:
        start = time.perf_counter()
        caption = self.captioner.caption(image)
        self.seconds += time.perf_counter() - start
        return caption


class Watch:
    """The seconds of each step, without those of the captioner."""

    def __init__(self, captioner: Timed) -> None:
        self.captioner = captioner
        self.taken: dict[str, list[float]] = {}

    def time(self, step: str, call: Callable[..., Any], *arguments: Any, parts: int = 1) -> Any:
        """Return the result of a call, and add its seconds, divided by ``parts``, to the step."""
        start, asked = time.perf_counter(), self.captioner.seconds
        result = call(*arguments)
        spent = time.perf_counter() - start - (self.captioner.seconds - asked)
        self.taken.setdefault(step, []).append(spent / parts)
        return result

    def table(self) -> pd.DataFrame:
        """Return median and 95 % quantile of each step in seconds, and the paper's seconds."""
        rows = [
            {
                "step": step,
                "median": np.median(taken),
                "95 %": np.quantile(taken, 0.95),
                "paper": PUBLISHED.get(step),
            }
            for step, taken in sorted(self.taken.items())
        ]
        return pd.DataFrame(rows).round(4)


def seconds(count: int, same: Same, seed: int = 0) -> pd.DataFrame:
    """Return the table of ``count`` scenes, also for localisation without the names of boxes."""
    dataset, selection = scenes(count, seed=seed, size=SIZE), Selection(seed=seed)
    captioner = Timed(TemplateCaptioner(seed=seed))
    oracle = ReducedCaptions(language.reader(), same)
    hiding = ReducedCaptions(language.reader(), same, detection=False)
    watch = Watch(captioner)
    for index in range(count):
        sample = dataset.sample(index)
        watch.time("localisation, all by hiding", _received, hiding, captioner, sample)
        received, located = watch.time("localisation", _received, oracle, captioner, sample)
        watch.time("scoring, all candidates", _chosen, selection, sample, located, oracle)
        for kind in KINDS:
            drawn = watch.time(
                f"generation, {kind}",
                _drawn,
                selection,
                kind,
                sample,
                located,
                oracle,
                parts=selection.follow_ups,
            )
            for reduction, image in drawn:
                caption = captioner.caption(image)
                watch.time(f"checking, {kind}", judge, oracle, sample, received, reduction, caption)
    return watch.table()


def _received(
    oracle: ReducedCaptions, captioner: Captioner, sample: Sample
) -> tuple[Received, tuple[Located, ...]]:
    received = captions_of(oracle, captioner, sample)
    return received, locate(oracle, sample, received)


def _chosen(
    selection: Selection, sample: Sample, located: Sequence[Located], oracle: ReducedCaptions
) -> None:
    for kind in KINDS:
        selection.choose(kind, sample, located, oracle)


def _drawn(
    selection: Selection,
    kind: str,
    sample: Sample,
    located: Sequence[Located],
    oracle: ReducedCaptions,
) -> list[tuple[Reduction, Image]]:
    chosen = selection.choose(kind, sample, located, oracle)
    return [(reduction, reduction.image(sample.require_image())) for reduction in chosen]
