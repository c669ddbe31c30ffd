"""How much easier drawn scenes are than photographs: REIC's scheme over both, by one command.

    python -m adaptive_vtt.experiments.reic.drawn_and_photographed --voc VOC2012
    python -m adaptive_vtt.experiments.reic.drawn_and_photographed --coco instances.json
        --images FOLDER

Both are images with boxes and nothing else: the masks of drawn scenes are left out, their longer
side is SIDE pixels as that of photographs, and a captioner that recognises them (by local
features) tells what is in the boxes, with the same rates of faults for all kinds. Labels that
are no everyday kinds stand for ones, as which words they are does not matter here: red cells
may be called "apples". So only the images differ, and how their boxes lie.

- "found at .5": boxes of which a region proposal overlaps half (intersection over union); each
  image has at most 20 proposals.
- "ambiguous", "disappeared", "retained": what REIC's follow-ups, three of each kind, do to the
  objects named; only of the last two may something be said.
- F1 at object level (``caption_tables``), and captions of hidden boxes paid for per image, with
  the boxes as they are and with region proposals.

Without a folder it measures drawn scenes, and says what it skips.
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
from .caption_verdicts import Bench, Remembered, confusion, hidden, percent, verdicts
from .drawn_scenes import scenes
from .reic_scheme import scheme, statuses
from .scene_plan import KINDS
from .seeing import RegisteredSight
from .template_captioner import TemplateCaptioner

SIDE = 336
"""The longer side of all images, in pixels."""
FOUND = 0.5
WHERE = (
    "photographs: skipped, as they take a folder with boxes: --voc FOLDER in PASCAL VOC's layout "
    "(such as BCCD of https://github.com/Shenggan/BCCD_Dataset), or --coco FILE --images FOLDER"
)


class Boxed(View):
    """The boxes of a dataset as its masks, images at most SIDE pixels long, labels as everyday
    kinds: those that are one stay, the others take what is left, the most frequent first; more
    kinds than there are everyday ones are left out."""

    def __init__(self, dataset: Dataset) -> None:
        samples = (dataset.sample(k) for k in range(len(dataset)))
        often = Counter(box.label for sample in samples for box in sample.boxes)
        free = (kind for kind in KINDS if kind not in often)
        other = [label for label, _ in often.most_common() if label not in KINDS]
        self.names = {label: label for label in often if label in KINDS}
        self.names |= dict(zip(other, free, strict=False))
        base = [k for k, label in enumerate(dataset.concepts) if label in self.names]
        super().__init__(dataset, [self.names[dataset.concepts[k]] for k in base], base)

    def sample(self, index: int) -> Sample:
        found = super().sample(index)
        image = found.require_image()
        scale = SIDE / max(image.shape[:2])
        height, width = (round(scale * side) for side in image.shape[:2])
        small = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
        boxes = tuple(self._boxes(found.boxes, scale))
        kinds = dict.fromkeys(box.label for box in boxes)
        masks = {
            kind: mask_of([b for b in boxes if b.label == kind], height, width) for kind in kinds
        }
        return replace(found, image=small, boxes=boxes, masks=masks)

    def _boxes(self, boxes: Sequence[Box], scale: float) -> Iterator[Box]:
        for box in boxes:
            if box.label in self.names:
                yield Box(self.names[box.label], *(scale * edge for edge in box.edges))


def measured(dataset: Dataset, seed: int) -> Row:
    """One row of the table; ``dataset`` has boxes as masks."""
    captioner = TemplateCaptioner(RegisteredSight(dataset), even=True, seed=seed)
    bench = Bench(dataset, Remembered(captioner))
    proposed = Detected(dataset, Regions())
    boxes = [dataset.sample(k).boxes for k in range(len(dataset))]
    row: Row = {
        "images": len(dataset),
        "boxes per image": round(float(np.mean([len(each) for each in boxes])), 1),
        "kinds per image": round(float(np.mean([len({b.label for b in e}) for e in boxes])), 1),
        "found at .5": percent(_found(boxes, proposed)),
    }
    oracle = ReducedCaptions(language.reader(), language.same())
    for name, seen in (("boxes", dataset), ("proposals", proposed)):
        steps = list(scheme(seen, bench.captioner, oracle, seed=seed))
        said = confusion(verdicts(steps, bench.truths(steps)))
        if name == "boxes":
            counts = statuses(steps)
            total = sum(counts.values())
            row |= {kind: percent(n / total if total else None) for kind, n in counts.items()}
        row |= {f"{score}, {name}": said[score] for score in ("precision", "recall", "F1")}
        row[f"hidden, {name}"] = hidden(steps)
    return row


def _found(boxes: Sequence[Sequence[Box]], proposed: Dataset) -> float:
    """The share of all boxes that a proposal overlaps by FOUND or more."""
    hits = [
        any(overlap(box, other) >= FOUND for other in proposed.sample(k).boxes)
        for k, each in enumerate(boxes)
        for box in each
    ]
    return float(np.mean(hits))


def overlap(one: Box, other: Box) -> float:
    """Intersection over union, 0..1."""
    both = common(one, other)
    return both / (one.area + other.area - both)


def some(dataset: Dataset, count: int, seed: int) -> Dataset:
    """Random ``count`` samples of a dataset, or all where there are fewer."""
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
        rows[name] = measured(Boxed(some(dataset, chosen.count, chosen.seed)), chosen.seed)
        show(rows[name], name)
    table = pd.DataFrame(rows).rename_axis("figure")
    save_table(table, chosen.out / "drawn_and_photographed.csv", index=True)


if __name__ == "__main__":
    main()
