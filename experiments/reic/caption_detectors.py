"""REIC's localisation by different detectors: on drawn scenes and on photographs.

    python -m adaptive_vtt.experiments.reic.caption_detectors --detector FastestDet.onnx

The photographs (``photographs.py``) are described by a captioner that recognises them and sees
what was boxed by hand; what is really wrong with its captions is known (``caption_truth.py``).
Of each detector it says

- where what a faultless captioner names is found, by the detector's names or by hiding its boxes,
  and how much of that is right: intersection over union with the box drawn by hand of at least
  RIGHT;
- precision, recall and F1 at object level of REIC's scheme, of captioners with the usual faults
  by so many seeds.

``--detector`` is an ONNX file of COCO's 80 classes in any layout that ``OnnxDetector`` reads, such
as FastestDet's (github.com/dog-qiuqiu/FastestDet, BSD-3-Clause); ``--labels``: the text file of
its names, by default ``coco.names`` beside it. Without it there are the other detectors alone.
``--sheet FILE``: a picture of what it finds.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pandas as pd

from adaptive_vtt.datasets.base import Dataset
from adaptive_vtt.datasets.view import View
from adaptive_vtt.oracles.captions import Detector, Same, language
from adaptive_vtt.oracles.captions.detectors import Detected, OnnxDetector
from adaptive_vtt.oracles.captions.localising import Located
from adaptive_vtt.oracles.captions.regions import Regions
from adaptive_vtt.oracles.reduced_captions import ReducedCaptions
from adaptive_vtt.types import Image, Sample, mask_of
from adaptive_vtt.utils.files import write_bytes
from adaptive_vtt.utils.image_codec import png
from adaptive_vtt.utils.random_streams import generator

from ..program import Row, options, save_tables, show
from .caption_truth import KINDS_OF_WORDS
from .caption_verdicts import (
    Bench,
    Once,
    Remembered,
    by_relation,
    confusion,
    percent,
    verdicts,
)
from .photographs import VOCABULARY, photographs
from .reic_scheme import listen, locate, scheme
from .seeing import RegisteredSight, Sight
from .template_captioner import TemplateCaptioner
from .vocabulary import EVERYDAY
from .wordnet import EveryWay

MISSED, MISLABELLED = 0.1, 0.15
RIGHT = 0.5
"""Least intersection over union at which a place counts as found."""
NEEDS = (
    "no --detector FILE.onnx was given: tables without a real detector (FastestDet.onnx and "
    "coco.names are in github.com/dog-qiuqiu/FastestDet)"
)


class Fallible(View):
    """A dataset as a detector sees it that misses boxes and mislabels others, at set rates."""

    def __init__(self, dataset: Dataset, missed: float, mislabelled: float, seed: int = 0) -> None:
        super().__init__(dataset, dataset.concepts, range(len(dataset.concepts)))
        self.missed, self.mislabelled, self.seed = missed, mislabelled, seed

    def sample(self, index: int) -> Sample:
        found = super().sample(index)
        chance = generator(self.seed, "fallible detector", index).random((len(found.boxes), 2))
        boxes = [
            replace(box, label=EVERYDAY.taken_for[box.label])
            if mistaken < self.mislabelled
            else box
            for box, (lost, mistaken) in zip(found.boxes, chance.tolist(), strict=True)
            if lost >= self.missed
        ]
        return replace(found, boxes=tuple(boxes))


def drawn(dataset: Dataset, seed: int, real: Detector | None = None) -> dict[str, Dataset]:
    """Drawn scenes with the boxes of three detectors, and of a real one where there is one."""
    found = {
        "exact boxes": dataset,
        "missed and mislabelled": Fallible(dataset, MISSED, MISLABELLED, seed),
        "region proposals": Detected(dataset, Regions()),
    }
    return found if real is None else {**found, "real detector": Detected(dataset, real)}


DETECTOR: Row = {"detector": Path, "labels": Path, "threshold": 0.5}
"""The options that ``real_detector`` takes."""


def real_detector(chosen: argparse.Namespace) -> OnnxDetector | None:
    """The detector that was named on the command line; says so where there is none."""
    file: Path | None = chosen.detector
    if file is None:
        show(NEEDS)
        return None
    labels = chosen.labels or file.parent / "coco.names"
    return OnnxDetector(file, labels=labels, threshold=chosen.threshold)


# -- photographs -----------------------------------------------------------------------


class SeenOnce:
    """A sight that looks at every picture once, whoever asks."""

    def __init__(self, sight: Sight) -> None:
        self.see = Once(sight.see)


def localised(
    exact: Dataset, detected: Dataset, captioner: TemplateCaptioner, oracle: ReducedCaptions
) -> pd.DataFrame:
    """A row per thing that is named in a dataset's images: how it was found, and its overlap.

    ``exact`` has the masks, ``detected`` the boxes. ``how``: "name", "hiding" or "not"; ``iou``:
    of the boxes it was found in with its mask; ``versions``: captions of hidden boxes.
    """
    rows = []
    for index in range(len(exact)):
        sample, seen = exact.sample(index), detected.sample(index)
        received = listen(oracle, captioner, seen)
        for one in locate(oracle, seen, received):
            rows.append(
                {
                    "image": sample.id,
                    "name": one.name,
                    "how": _how(one, oracle.same),
                    "iou": _overlap(one, sample),
                    "versions": len(received.versions),
                }
            )
    return pd.DataFrame(rows)


def _how(one: Located, same: Same) -> str:
    if not one.boxes:
        return "not"
    named = all(box.label and same(one.name, box.label) for box in one.boxes)
    return "name" if named else "hiding"


def _overlap(one: Located, sample: Sample) -> float:
    """Intersection over union of an object's boxes with the mask of what it is called after."""
    mask = sample.masks[KINDS_OF_WORDS[one.name]]
    found = mask_of(one.boxes, *mask.shape)
    return float((mask & found).sum() / (mask | found).sum())


def summary(found: pd.DataFrame) -> dict[str, Any]:
    """Of ``localised``: how many things were found in which way, and rightly."""
    right = found["iou"] >= RIGHT
    row: dict[str, Any] = {"things": len(found)}
    for how in ("name", "hiding"):
        by = found["how"] == how
        row |= {f"by {how}": int(by.sum()), f"by {how}, right": int((by & right).sum())}
    row["not found"] = int((found["how"] == "not").sum())
    row["right"] = percent(float(right.mean()))
    row["hidden"] = round(float(found.groupby("image")["versions"].first().mean()), 1)
    return row


def on_photographs(
    exact: Dataset, real: Detector | None, same: Same, seeds: int
) -> dict[str, pd.DataFrame]:
    """Both tables, by title."""
    detectors = {"boxes by hand": exact, "region proposals": Detected(exact, Regions())}
    if real is not None:
        detectors["real detector"] = Detected(exact, real)
    sight = SeenOnce(RegisteredSight(exact))
    faultless = TemplateCaptioner(
        sight, vocabulary=VOCABULARY, omission=0, misclassification=0, fabrication=0, setting=0
    )
    oracle = ReducedCaptions(language.reader(), same)
    places, judged = [], []
    for name, detected in detectors.items():
        found = localised(exact, detected, faultless, oracle)
        places.append({"detector": name, **summary(found)})
        frames = []
        for seed in range(seeds):
            captioner = Remembered(TemplateCaptioner(sight, vocabulary=VOCABULARY, seed=seed))
            steps = list(scheme(detected, captioner, oracle, seed=seed))
            frames.append(verdicts(steps, Bench(exact, captioner).truths(steps)))
        every = pd.concat(frames)
        judged += [
            {"detector": name, "relation": relation, **confusion(part)}
            for relation, part in by_relation(every)
        ]
    return {
        "Photographs: where named things are found": pd.DataFrame(places),
        "Photographs: verdicts at object level": pd.DataFrame(judged),
    }


def sheet(dataset: Dataset, width: int = 480) -> Image:
    """The images with their boxes, below one another, each ``width`` pixels wide."""
    rows = []
    for index in range(len(dataset)):
        sample = dataset.sample(index)
        image = sample.require_image()
        scale = width / image.shape[1]
        size = width, round(image.shape[0] * scale)
        shown = cv2.resize(np.broadcast_to(image, (*image.shape[:2], 3)), size)
        for box in sample.boxes:
            left, top, right, bottom = (round(edge * scale) for edge in box.edges)
            cv2.rectangle(shown, (left, top), (right - 1, bottom - 1), (0, 255, 0), 2)
            said = f"{box.label} {box.score:.2f}"
            cv2.putText(shown, said, (left + 4, top + 18), 0, 0.5, (0, 255, 0), 1)
        rows.append(shown)
    return np.vstack(rows)


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(
        __doc__,
        arguments,
        quick={"seeds": 1},
        **DETECTOR,
        photographs=[Path],
        seeds=5,
        wordnet=Path,
        sheet=Path,
    )
    exact = photographs(chosen.photographs)
    if exact is None:
        show("skipped: no photographs are here; pip install scikit-image scikit-learn")
        return
    real = real_detector(chosen)
    if chosen.sheet and real is not None:
        write_bytes(chosen.sheet, png(sheet(Detected(exact, real))))
    found = on_photographs(exact, real, EveryWay(chosen.wordnet), chosen.seeds)
    show(f"{len(exact)} photographs")
    save_tables(found, chosen.out / "caption_detectors.json")


if __name__ == "__main__":
    main()
