"""Measure how much easier drawn scenes are than photographs for REIC's scheme.

    python -m adaptive_vtt.experiments.reic.scenes_and_photographs --voc VOC2012
    python -m adaptive_vtt.experiments.reic.scenes_and_photographs --coco instances.json
        --images FOLDER

Scenes and photographs differ only in their images and in the places of their boxes. Boxes serve as
masks, the longer side has SIDE pixels, and a captioner that recognises the images by local features
names the objects in the boxes, with the same rates of faults for all kinds. Labels that are no
everyday kinds get the names of such kinds, since words do not matter here: red cells may be called
"apples".

The table has a column per set of images, with these rows:

- "found at .5": share of boxes whose intersection over union with a region proposal is at least .5;
  an image has at most 20 proposals.
- "ambiguous", "disappeared", "retained": statuses of the named objects after REIC's follow-ups,
  three of each kind. Rules are about the last two only.
- precision, recall and F1 on objects (``caption_tables``), and the number of captions of hidden
  boxes per image, for the annotated boxes and for region proposals.

Without a folder it measures drawn scenes alone.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pandas as pd

from adaptive_vtt.datasets.base import Dataset
from adaptive_vtt.datasets.formats.coco import from_coco
from adaptive_vtt.datasets.formats.voc import from_voc
from adaptive_vtt.datasets.view import Subset, View
from adaptive_vtt.errors import InputError
from adaptive_vtt.oracles.captions import language
from adaptive_vtt.oracles.captions.detectors import Detected
from adaptive_vtt.oracles.captions.regions import Regions
from adaptive_vtt.oracles.reduced_captions import ReducedCaptions
from adaptive_vtt.types import Box, Sample, common, mask_of
from adaptive_vtt.utils.random_streams import generator

from ..program import Row, options, save_table, show
from .caption_verdicts import Bench, CachedCaptioner, confusion, hidden, percent, verdicts
from .drawn_scenes import scenes
from .recognition import RegisteredSight
from .reic_scheme import scheme, statuses
from .scene_plan import KINDS
from .template_captioner import TemplateCaptioner

SIDE = 336
"""The longer side of all images, in pixels."""
FOUND = 0.5
"""Least intersection over union at which a proposal finds a box."""
WHERE = (
    "photographs: skipped; name images with boxes by --voc FOLDER in PASCAL VOC's layout (such as "
    "BCCD of https://github.com/Shenggan/BCCD_Dataset), or by --coco FILE --images FOLDER"
)


class Boxed(View):
    """A dataset with boxes as masks, images at most SIDE pixels long, and everyday kinds as labels.

    Labels that are everyday kinds stay. The others, the most frequent first, get the names of kinds
    that do not occur. Labels for which no kind is left over are left out.
    """

    def __init__(self, dataset: Dataset) -> None:
        samples = (dataset.sample(k) for k in range(len(dataset)))
        counts = Counter(box.label for sample in samples for box in sample.boxes)
        free = (kind for kind in KINDS if kind not in counts)
        other = [label for label, _ in counts.most_common() if label not in KINDS]
        self.names = {label: label for label in counts if label in KINDS}
        self.names |= dict(zip(other, free, strict=False))
        base = [k for k, label in enumerate(dataset.concepts) if label in self.names]
        super().__init__(dataset, [self.names[dataset.concepts[k]] for k in base], base)

    def sample(self, index: int) -> Sample:
        sample = super().sample(index)
        image = sample.require_image()
        scale = SIDE / max(image.shape[:2])
        height, width = (round(scale * side) for side in image.shape[:2])
        small = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
        boxes = tuple(self._boxes(sample.boxes, scale))
        kinds = dict.fromkeys(box.label for box in boxes)
        masks = {
            kind: mask_of([b for b in boxes if b.label == kind], height, width) for kind in kinds
        }
        return replace(sample, image=small, boxes=boxes, masks=masks)

    def _boxes(self, boxes: Sequence[Box], scale: float) -> Iterator[Box]:
        for box in boxes:
            if box.label in self.names:
                yield Box(self.names[box.label], *(scale * edge for edge in box.edges))


def measured(dataset: Dataset, seed: int) -> Row:
    """Return the figures of a dataset with boxes as masks."""
    captioner = TemplateCaptioner(RegisteredSight(dataset), even=True, seed=seed)
    bench = Bench(dataset, CachedCaptioner(captioner))
    proposed = Detected(dataset, Regions())
    boxes = [dataset.sample(k).boxes for k in range(len(dataset))]
    row: Row = {
        "images": len(dataset),
        "boxes per image": round(float(np.mean([len(each) for each in boxes])), 1),
        "kinds per image": round(float(np.mean([len({b.label for b in e}) for e in boxes])), 1),
        "found at .5": percent(_found(boxes, proposed)),
    }
    oracle = ReducedCaptions(language.reader(), language.same())
    for name, boxed in (("boxes", dataset), ("proposals", proposed)):
        steps = list(scheme(boxed, bench.captioner, oracle, seed=seed))
        figures = confusion(verdicts(steps, bench.truths(steps)))
        if name == "boxes":
            counts = statuses(steps)
            total = sum(counts.values())
            row |= {kind: percent(n / total if total else None) for kind, n in counts.items()}
        row |= {f"{score}, {name}": figures[score] for score in ("precision", "recall", "F1")}
        row[f"hidden, {name}"] = hidden(steps)
    return row


def _found(boxes: Sequence[Sequence[Box]], proposed: Dataset) -> float:
    """Return the share of all boxes that a proposal finds."""
    hits = [
        any(overlap(box, other) >= FOUND for other in proposed.sample(k).boxes)
        for k, each in enumerate(boxes)
        for box in each
    ]
    return float(np.mean(hits))


def overlap(one: Box, other: Box) -> float:
    """Return the intersection over union, 0..1."""
    both = common(one, other)
    return both / (one.area + other.area - both)


def chosen_samples(dataset: Dataset, count: int, seed: int) -> Dataset:
    """Return ``count`` random samples of a dataset, or all if there are fewer."""
    if len(dataset) <= count:
        return dataset
    rng = generator(seed, "photographs")
    return Subset(dataset, np.sort(rng.choice(len(dataset), count, replace=False)))


def main(arguments: Sequence[str] | None = None) -> None:
    quick = {"count": 4}
    chosen = options(
        __doc__, arguments, quick=quick, voc=Path, coco=Path, images=Path, count=40, seed=0
    )
    if (chosen.coco is None) != (chosen.images is None):
        raise InputError("command line: --coco FILE goes with --images FOLDER")
    sources: dict[str, Dataset] = {"drawn": scenes(chosen.count, seed=chosen.seed)}
    if chosen.voc is not None:
        sources[chosen.voc.resolve().name] = from_voc(chosen.voc, broken="skip")
    if chosen.coco is not None:
        sources[chosen.coco.stem] = from_coco(chosen.coco, chosen.images, broken="skip")
    if len(sources) == 1:
        show(WHERE)
    rows = {}
    for name, dataset in sources.items():
        samples = chosen_samples(dataset, chosen.count, chosen.seed)
        rows[name] = measured(Boxed(samples), chosen.seed)
        show(rows[name], name)
    table = pd.DataFrame(rows).rename_axis("figure")
    save_table(table, chosen.out / "scenes_and_photographs.csv", index=True)


if __name__ == "__main__":
    main()
