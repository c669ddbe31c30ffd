"""Measure REIC's localisation on photographs with different detectors, within minutes.

    python -m adaptive_vtt.experiments.reic.caption_detectors --detector FastestDet.onnx

A captioner recognises the photographs (``photographs``) and describes the objects that were boxed
by hand, so all faults of its captions are known (``caption_truth``). Two tables have a row for each
detector:

- how many objects named by a faultless captioner are located, by the detector's names or by hiding
  its boxes, and how many of these rightly: with an intersection over union of at least RIGHT with
  the box drawn by hand;
- precision, recall and F1 of REIC's verdicts on objects, over ``--seeds`` captioners with the usual
  faults.

``--detector`` is an ONNX file of COCO's 80 classes in any layout that ``OnnxDetector`` reads, such
as FastestDet's (github.com/dog-qiuqiu/FastestDet, BSD-3-Clause). ``--labels`` is the text file of
its names, by default ``coco.names`` in the same folder. Without a file, the tables have the other
detectors alone. ``--sheet FILE`` writes a picture of the detected boxes.
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
    Cached,
    CachedCaptioner,
    by_relation,
    confusion,
    percent,
    verdicts,
)
from .photographs import VOCABULARY, photographs
from .recognition import RegisteredSight, Sight
from .reic_scheme import captions_of, locate, scheme
from .template_captioner import TemplateCaptioner
from .vocabulary import EVERYDAY
from .wordnet import EveryWay

MISSED, MISLABELLED = 0.1, 0.15
RIGHT = 0.5
"""Least intersection over union at which a location is right."""
WITHOUT_DETECTOR = (
    "tables have no real detector without --detector FILE.onnx (FastestDet.onnx and coco.names are "
    "in github.com/dog-qiuqiu/FastestDet)"
)


class Fallible(View):
    """A dataset with the boxes of a detector that misses some and mislabels others.

    Args:
        dataset: The dataset, with exact boxes.
        missed: Share of boxes that are missing.
        mislabelled: Share of boxes with the name of a similar kind.
        seed: Seed of the choice.
    """

    def __init__(self, dataset: Dataset, missed: float, mislabelled: float, seed: int = 0) -> None:
        super().__init__(dataset, dataset.concepts, range(len(dataset.concepts)))
        self.missed, self.mislabelled, self.seed = missed, mislabelled, seed

    def sample(self, index: int) -> Sample:
        sample = super().sample(index)
        chance = generator(self.seed, "fallible detector", index).random((len(sample.boxes), 2))
        boxes = [
            replace(box, label=EVERYDAY.taken_for[box.label])
            if mistaken < self.mislabelled
            else box
            for box, (lost, mistaken) in zip(sample.boxes, chance.tolist(), strict=True)
            if lost >= self.missed
        ]
        return replace(sample, boxes=tuple(boxes))


def with_detectors(dataset: Dataset, seed: int, real: Detector | None) -> dict[str, Dataset]:
    """Return drawn scenes with the boxes of three detectors, and of a real one if it is given."""
    datasets: dict[str, Dataset] = {
        "exact boxes": dataset,
        "missed and mislabelled": Fallible(dataset, MISSED, MISLABELLED, seed),
        "region proposals": Detected(dataset, Regions()),
    }
    return datasets | ({} if real is None else {"real detector": Detected(dataset, real)})


DETECTOR: Row = {"detector": Path, "labels": Path, "threshold": 0.5}
"""The options that ``real_detector`` takes."""


def real_detector(chosen: argparse.Namespace) -> OnnxDetector | None:
    """Return the detector of the command line; print a note if it names none."""
    file: Path | None = chosen.detector
    if file is None:
        show(WITHOUT_DETECTOR)
        return None
    labels = chosen.labels or file.parent / "coco.names"
    return OnnxDetector(file, labels=labels, threshold=chosen.threshold)


# -- photographs -----------------------------------------------------------------------


class CachedSight:
    """A sight that recognises the content of every picture once."""

    def __init__(self, sight: Sight) -> None:
        self.see = Cached(sight.see)


def localised(
    exact: Dataset, detected: Dataset, captioner: TemplateCaptioner, oracle: ReducedCaptions
) -> pd.DataFrame:
    """Return a row per object that captions of a dataset's images name.

    Args:
        exact: The dataset with exact masks.
        detected: The dataset with the boxes of a detector.
        captioner: The captioner.
        oracle: The oracle that locates the objects.

    Returns:
        Columns "image", "name", "how" (located by "name", by "hiding" or "not"), "iou" (of the
        located boxes and the mask) and "versions" (number of captions of hidden boxes).
    """
    rows = []
    for index in range(len(exact)):
        sample, boxed = exact.sample(index), detected.sample(index)
        received = captions_of(oracle, captioner, boxed)
        for one in locate(oracle, boxed, received):
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
    """Return the intersection over union of an object's boxes with the mask of its kind."""
    mask = sample.masks[KINDS_OF_WORDS[one.name]]
    boxes = mask_of(one.boxes, *mask.shape)
    return float((mask & boxes).sum() / (mask | boxes).sum())


def summary(objects: pd.DataFrame) -> dict[str, Any]:
    """Return the numbers of objects of ``localised`` that were located in each way, and rightly."""
    right = objects["iou"] >= RIGHT
    row: dict[str, Any] = {"things": len(objects)}
    for how in ("name", "hiding"):
        by = objects["how"] == how
        row |= {f"by {how}": int(by.sum()), f"by {how}, right": int((by & right).sum())}
    row["not found"] = int((objects["how"] == "not").sum())
    row["right"] = percent(float(right.mean()))
    row["hidden"] = round(float(objects.groupby("image")["versions"].first().mean()), 1)
    return row


def on_photographs(
    exact: Dataset, real: Detector | None, same: Same, seeds: int
) -> dict[str, pd.DataFrame]:
    """Return the two tables of the module's docstring, by title."""
    detectors = {"boxes by hand": exact, "region proposals": Detected(exact, Regions())}
    if real is not None:
        detectors["real detector"] = Detected(exact, real)
    sight = CachedSight(RegisteredSight(exact))
    faultless = TemplateCaptioner(
        sight, vocabulary=VOCABULARY, omission=0, misclassification=0, fabrication=0, setting=0
    )
    oracle = ReducedCaptions(language.reader(), same)
    places, judged = [], []
    for name, detected in detectors.items():
        places.append({"detector": name, **summary(localised(exact, detected, faultless, oracle))})
        frames = []
        for seed in range(seeds):
            captioner = CachedCaptioner(TemplateCaptioner(sight, vocabulary=VOCABULARY, seed=seed))
            steps = list(scheme(detected, captioner, oracle, seed=seed))
            frames.append(verdicts(steps, Bench(exact, captioner).truths(steps)))
        judged += [
            {"detector": name, "relation": relation, **confusion(part)}
            for relation, part in by_relation(pd.concat(frames))
        ]
    return {
        "Photographs: how named objects are located": pd.DataFrame(places),
        "Photographs: verdicts at object level": pd.DataFrame(judged),
    }


def sheet(dataset: Dataset, width: int = 480) -> Image:
    """Return the images with their boxes, one below the other, each ``width`` pixels wide."""
    rows = []
    for index in range(len(dataset)):
        sample = dataset.sample(index)
        image = sample.require_image()
        scale = width / image.shape[1]
        size = width, round(image.shape[0] * scale)
        picture = cv2.resize(np.broadcast_to(image, (*image.shape[:2], 3)), size)
        for box in sample.boxes:
            left, top, right, bottom = (round(edge * scale) for edge in box.edges)
            cv2.rectangle(picture, (left, top), (right - 1, bottom - 1), (0, 255, 0), 2)
            text = f"{box.label} {box.score:.2f}"
            cv2.putText(picture, text, (left + 4, top + 18), 0, 0.5, (0, 255, 0), 1)
        rows.append(picture)
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
        show("skipped: expected photographs, found none; pip install scikit-image scikit-learn")
        return
    real = real_detector(chosen)
    if chosen.sheet and real is not None:
        write_bytes(chosen.sheet, png(sheet(Detected(exact, real))))
    tables = on_photographs(exact, real, EveryWay(chosen.wordnet), chosen.seeds)
    show(f"{len(exact)} photographs")
    save_tables(tables, chosen.out / "caption_detectors.json")


if __name__ == "__main__":
    main()
