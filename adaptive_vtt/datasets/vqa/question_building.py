"""Multiple-choice questions made from masks and labels, in EndoBench's format.

Kinds of questions and how they are made after EndoBench, section 3 and appendix A: wrong
options are other names of the same sort; wrong boxes are of similar size and overlap the
right one little; per class, questions are chosen by k-centre selection on embeddings. The
words are ours. ``write_tsv`` writes what ``datasets.from_endobench`` reads.
"""

import base64
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase

import cv2
import numpy as np
import numpy.typing as npt
import pandas as pd

from ...errors import InputError, unknown
from ...types import Image, Sample
from ...utils.files import write_text
from ...utils.random_streams import generator
from ..base import Dataset
from .question_making import MAKERS, Made, Plan, subjects
from .selection import k_centre, look

COLUMNS = (
    "index",
    "image",
    "image_path",
    "question",
    "category",
    "task",
    "subtask",
    "scene",
    "answer",
    "dataset",
    "gt",
    *"ABCDEF",
)

Embed = Callable[[Image], npt.ArrayLike]
_Place = tuple[int, str, str]
"""Sample, kind and class of a question."""


@dataclass(frozen=True)
class Built:
    """A question with its image and where it is from."""

    made: Made
    kind: str
    sample_id: str

    @property
    def answer(self) -> str:
        """The letter of the right option."""
        return ascii_uppercase[self.made.right]


def build(
    dataset: Dataset,
    kinds: Sequence[str] = tuple(MAKERS),
    *,
    concepts: Sequence[str] | None = None,
    per_class: int | None = None,
    counts: Mapping[str, str] | None = None,
    similar: tuple[float, float] = (0.8, 1.25),
    overlap: float = 0.1,
    smallest: float = 0.002,
    embed: Embed = look,
    seed: int = 0,
) -> list[Built]:
    """Questions about the samples of ``dataset``, in the order of kinds, classes and samples.

    ``kinds``: some of presence, type, counting, grounding, selection, box, contour,
    coordinate. ``concepts``: what is asked about (default: all); all but presence and type
    need masks. ``per_class``: at most so many questions per kind and right answer, chosen by
    k-centre selection on ``embed`` of the images. ``counts``: concept -> metadata column with
    its true number; otherwise connected pieces of its mask are counted. ``similar``: sides
    of a wrong box over those of the right one; ``overlap``: the largest share of the smaller of
    two boxes that may be shared, 0 to 1. Where no four such boxes fit, there is no question,
    nor about a region whose box is less than ``smallest``, a share of the image.
    Raises InputError for unknown kinds and concepts and values out of range.
    """
    chosen = list(concepts or dataset.concepts)
    for kind in kinds:
        if kind not in MAKERS:
            raise unknown("kind of question", kind, MAKERS, "build")
    for concept in chosen:
        if concept not in dataset.concepts:
            raise unknown("concept", concept, dataset.concepts, "build")
    if not (0 <= overlap < 1 and 0 < similar[0] <= similar[1] and 0 <= smallest < 1):
        raise InputError(
            f"build: expected an overlap and a smallest share in [0, 1) and a range of sizes "
            f"above 0, got {overlap}, {smallest} and {similar}"
        )
    plan = Plan(tuple(chosen), dict(counts or {}), similar, overlap, smallest)
    pool, looks = _pool(dataset, kinds, plan, seed, embed if per_class else None)
    taken = [place for klass in pool for place in _chosen(pool[klass], looks, per_class, klass)]
    found: dict[_Place, Built] = {}
    for place in sorted(taken, key=lambda place: place[0]):  # each image is decoded once
        sample = dataset.sample(place[0])
        made = _made(sample, place, plan, seed)
        if made is None:
            raise InputError(
                f"sample {sample.id!r}: expected the image and masks it was first read with, "
                f"got others; its files must not change while questions are built"
            )
        found[place] = Built(made, place[1], sample.id)
    return [found[place] for place in taken]


def _pool(
    dataset: Dataset, kinds: Sequence[str], plan: Plan, seed: int, embed: Embed | None
) -> tuple[dict[tuple[str, str], list[int]], dict[int, npt.NDArray[np.float64]]]:
    """(kind, class) -> the samples of which such a question can be made, and their looks."""
    pool: dict[tuple[str, str], list[int]] = {}
    looks: dict[int, npt.NDArray[np.float64]] = {}
    for index in range(len(dataset)):
        sample = dataset.sample(index)
        if sample.image is None:
            raise InputError(f"sample {sample.id!r}: expected an image to ask about, got none")
        for kind in kinds:
            for subject in subjects(kind, sample, plan):
                if _made(sample, (index, kind, subject), plan, seed) is not None:
                    pool.setdefault((kind, subject), []).append(index)
        if embed is not None:
            looks[index] = np.ravel(np.asarray(embed(sample.image), np.float64))
    order = sorted(pool, key=lambda klass: (list(kinds).index(klass[0]), klass[1]))
    return {klass: pool[klass] for klass in order}, looks


def _made(sample: Sample, place: _Place, plan: Plan, seed: int) -> Made | None:
    index, kind, subject = place
    return MAKERS[kind](sample, subject, plan, generator(seed, f"build/{kind}/{subject}", index))


def _chosen(
    samples: list[int],
    looks: Mapping[int, npt.NDArray[np.float64]],
    most: int | None,
    klass: tuple[str, str],
) -> list[_Place]:
    """At most ``most`` of a class, far from each other in their looks."""
    if most is not None and len(samples) > most:
        chosen = k_centre(np.stack([looks[i] for i in samples]), most)
        samples = [samples[k] for k in sorted(chosen)]
    return [(index, *klass) for index in samples]


def write_tsv(
    path: Path | str,
    built: Sequence[Built],
    *,
    scene: str = "",
    dataset: str = "",
    quality: int = 95,
) -> None:
    """Writes questions as EndoBench does: JPEGs (``quality`` 1..100) in base64, tabs between.

    Raises InputError where the file cannot be written.
    """
    rows = [_row(number, one, scene, dataset, quality) for number, one in enumerate(built)]
    table, text = pd.DataFrame(rows, columns=list(COLUMNS)), io.StringIO()
    table.to_csv(text, sep="\t", index=False)
    write_text(Path(path), text.getvalue())


def _row(number: int, one: Built, scene: str, dataset: str, quality: int) -> list[str]:
    made = one.made
    bgr = cv2.cvtColor(made.image, cv2.COLOR_GRAY2BGR if made.image.shape[2] == 1 else 4)
    _, jpeg = cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, quality])
    options = [*made.options, *[""] * (6 - len(made.options))]
    return [
        str(number),
        base64.b64encode(jpeg.tobytes()).decode(),
        f"image_{number}.jpg",
        made.question,
        made.category,
        made.task,
        made.subtask,
        scene,
        one.answer,
        dataset,
        made.options[made.right],
        *options,
    ]
