"""Failing follow-ups as a dataset of their own: to look at, to label, to train on.

A follow-up is a function of (seed, question), so the journal need not keep any image: each
one is made again, with the truth and the masks that its relation expects of it.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from string import ascii_uppercase
from textwrap import indent
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from ...datasets.base import CompleteDataset
from ...datasets.view import as_loaded
from ...datasets.vqa.question_table import write_questions
from ...errors import InputError
from ...journal import Journal
from ...oracles.choice import ASKED
from ...space import QuestionSpace
from ...types import UNKNOWN, Image, Indices, JsonObject, Mask, mask_of
from ...utils.files import file_names, safe_name, whole_folder, write_bytes, write_text
from ...utils.image_codec import png
from ...utils.tables import csv_text
from ..outcomes import with_metadata
from ..run import Run
from .questions import MORE, is_multiple_choice, judged_of, question_lines

# -- for other tools -------------------------------------------------------------------------------


class Outline(NamedTuple):
    """Where something is expected in a follow-up; ``box``: known as a box alone, which ``mask``
    fills."""

    label: str
    mask: Mask
    box: bool = False


class Annotated(NamedTuple):
    """A follow-up: its file's name without the ending, its size, its truths (concept -> 0 or 1),
    and what is expected where."""

    name: str
    height: int
    width: int
    truth: Mapping[str, int]
    outlines: Sequence[Outline]


def run_lengths(mask: Mask) -> list[int]:
    """COCO's run lengths of a mask (H x W of bool): down the columns, outside first."""
    flat = mask.T.reshape(-1)
    changes = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    lengths = np.diff(np.array([0, *changes, flat.size])).tolist()
    return [0, *lengths] if flat[0] else lengths


def coco(pictures: Iterable[Annotated], failures: Sequence[Mapping[str, Any]]) -> JsonObject:
    """``images``, ``categories`` and ``annotations`` of the pictures.

    Categories are whatever is outlined in any. Each image also has ``truth``, and ``failures``: its
    rows of ``failures``, told by their "id". An outline that is empty, moved out of view, is left
    out.
    """
    several = list(pictures)
    labels = list(dict.fromkeys(o.label for each in several for o in each.outlines))
    numbers = {label: number for number, label in enumerate(labels, 1)}
    about = _by_id(failures)
    images: list[JsonObject] = []
    annotations: list[JsonObject] = []
    for image_id, each in enumerate(several, 1):
        images.append(
            {
                "id": image_id,
                "file_name": f"{each.name}.png",
                "height": each.height,
                "width": each.width,
                "truth": dict(each.truth),
                "failures": about.get(each.name, []),
            }
        )
        for outline in each.outlines:
            if outline.mask.any():
                found = _annotation(outline)
                own = {"id": len(annotations) + 1, "image_id": image_id}
                annotations.append({**own, "category_id": numbers[outline.label], **found})
    categories = [{"id": number, "name": label} for label, number in numbers.items()]
    return {"images": images, "categories": categories, "annotations": annotations}


def fiftyone(failures: Sequence[Mapping[str, Any]]) -> JsonObject:
    """The concepts that failed of each image, as classifications with the rest as attributes."""
    labels = {
        name: [{"label": row.pop("concept"), "attributes": row} for row in rows]
        for name, rows in _by_id(failures).items()
    }
    return {"labels": labels}


def _annotation(outline: Outline) -> JsonObject:
    mask = outline.mask
    rows, columns = np.nonzero(mask)
    left, top = int(columns.min()), int(rows.min())
    right, bottom = int(columns.max()) + 1, int(rows.max()) + 1
    runs = {"size": list(mask.shape), "counts": run_lengths(mask)}
    return {
        "bbox": [left, top, right - left, bottom - top],
        "area": int(mask.sum()),
        "iscrowd": 0,
        "segmentation": [] if outline.box else runs,
    }


def _by_id(failures: Sequence[Mapping[str, Any]]) -> dict[str, list[JsonObject]]:
    rows: dict[str, list[JsonObject]] = {}
    for row in failures:
        rows.setdefault(str(row["id"]), []).append({k: v for k, v in row.items() if k != "id"})
    return rows


# -- a dataset of its own --------------------------------------------------------------------------


Format = Literal["coco", "fiftyone"]
"""What else may be written, for other tools."""
LONGEST = 120
"""Characters of a sample's id that stand in a file's name, at most; file systems allow 255 bytes
for the whole name."""
ANSWER_COLUMNS = (
    *("id", "sample", "relation", "severity", "concept"),
    *("truth", "answer", "loss", "draw"),
)
"""The columns of failures.csv."""
WORD_COLUMNS = ("asked", "options", "right", "said")
"""Its further columns where questions are in words."""
QUESTIONS = "questions.tsv"
_HEAD = "# A section for a SPEC.toml in this folder.\n"
_CHOICE = """
[oracle]
kind = "multiple-choice"
"""


@dataclass(frozen=True)
class Exported:
    """What was written: ``images`` follow-ups, ``answers`` that failed about them, and
    ``masks`` per concept."""

    images: int
    answers: int
    masks: dict[str, int]

    def as_dict(self) -> JsonObject:
        """The counts for JSON."""
        return asdict(self)


def export_failures(
    source: Journal | Run,
    space: QuestionSpace,
    out: Path | str,
    *,
    least_loss: float = 0.5,
    formats: Collection[Format] = (),
) -> Exported:
    """Writes the follow-ups that were answered with a loss of ``least_loss`` (0..1) or more.

    ``source`` and ``space``: of an audit, its run or journal, and its space. The
    folder ``out``, which must not exist or be empty, is written whole or not at all:

    images/NAME.png         the follow-up as the model saw it; NAME: sample, relation, severity
    masks/CONCEPT/NAME.png  255 where the concept is expected, for concepts with masks; black
                            where it is absent, and no file where nobody knows
    labels.csv              id (NAME), the truth expected of every concept, empty if unknown, and
                            the metadata of the source image
    failures.csv            every failing answer: id, sample, relation, severity, concept,
                            truth, answer (empty if there was none), loss, draw, and the metadata
                            of the source image
    dataset.toml            the section of a SPEC.toml that reads the folder back
    coco.json               with "coco" in ``formats``: images, masks and boxes as COCO has them,
                            and with every image the answers that failed
    fiftyone.json           with "fiftyone": of every image the concepts that failed, as
                            FiftyOneImageClassificationDataset has them

    Where questions are in words, failures.csv also says what was asked, with which options, what
    is right and what was said; of a chat model, the reply as it came. Of multiple choice,
    questions.tsv holds the questions with their images as EndoBench's table does, and is what is
    read back, in place of labels.csv, which would say of every question that it was asked.

    Raises InputError for a folder in use, a loss out of range, samples without images, two
    models, and where nothing failed; JournalError for a journal of another space.
    """
    run = Run.of(source)
    run.facts.refuse_pairs("export", "the report shows what differs")
    table = judged_of(run, space, least_loss)
    table = table[table["loss"] >= least_loss]
    if table.empty:
        raise InputError(f"export: no answer has a loss of {least_loss:g} or more")
    answers, words = in_words(table, run)
    columns = [*ANSWER_COLUMNS, *words]
    replies = {call.call: call.reply for call in run.calls if call.reply}
    if replies:
        answers = answers.assign(reply=answers["call"].map(replies).fillna(""))
        columns.append("reply")
    return write_dataset(space, answers, Path(out), "failures.csv", columns, formats)


def write_dataset(
    space: QuestionSpace,
    table: pd.DataFrame,
    out: Path,
    file: str,
    columns: Sequence[str],
    formats: Collection[Format] = (),
) -> Exported:
    """The follow-ups of the questions in ``table`` (as ``outcomes`` has them) as a dataset folder,
    and these ``columns`` of it, with the follow-ups' names as "id", in ``file``."""
    numbers = space.image_of(table["question"].to_numpy())
    names = names_of(space, numbers)
    with whole_folder(Path(out)) as folder:
        written = DatasetFolder(folder, as_loaded(space.dataset).concepts, outlines=bool(formats))
        for number, name in names.items():
            written.add(*expected_of(space, number, name))
        answers = table.assign(id=[names[number] for number in numbers.tolist()])[[*columns]]
        sources = space.numbering.image_parts(numbers)[0]
        answers = with_metadata(answers, space.dataset, sources)
        if choice := is_multiple_choice(space):
            lines = question_lines(space, table.drop_duplicates("question"))
            write_questions(folder / QUESTIONS, lines, image_format="png", more=MORE)
        write_text(folder / file, csv_text(answers))
        shown = space.numbering.image_parts(np.array([*names], np.int64))[0]
        masks = written.finish(choice, metadata=(space.dataset, shown))
        written.also(formats, answers)
    return Exported(len(names), len(table), masks)


def in_words(answers: pd.DataFrame, run: Run) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The answers with WORD_COLUMNS, and these names; where nothing was asked in words, neither."""
    rows = {row.question: row for call in run.calls for row in call.answers}
    words, any_asked = [], False
    for row in map(rows.__getitem__, answers["question"].tolist()):
        asked = (row.details or {}).get(ASKED) or {}
        lettered = zip(ascii_uppercase, asked.get("options", ()), strict=False)
        options = " | ".join(f"{letter}. {text}" for letter, text in lettered)
        right = " | ".join(asked.get("right", ()))
        any_asked |= bool(asked)
        words.append((asked.get("question", ""), options, right, row.said or ""))
    if not any_asked:
        return answers, ()
    columns = dict(zip(WORD_COLUMNS, zip(*words, strict=True), strict=True))
    return answers.assign(**columns), WORD_COLUMNS


class DatasetFolder:
    """A folder of images, labels and masks that reads back as a dataset, while it is being written;
    tables come last, when all images are known. ``outlines`` are kept where ``also`` is called."""

    def __init__(self, folder: Path, concepts: tuple[str, ...], *, outlines: bool = False) -> None:
        self._folder, self._concepts, self._outlines = folder, concepts, outlines
        self._mask_folders = {
            concept: folder / "masks" / name
            for concept, name in zip(concepts, file_names(concepts), strict=True)
        }
        self._pictures: list[Annotated] = []
        self._masks: dict[str, int] = {}

    def add(self, image: Image, about: Annotated) -> None:
        """Writes the image and the masks that there are."""
        write_bytes(self._folder / "images" / f"{about.name}.png", png(image))
        for outline in about.outlines:
            # samples may have masks of what is no concept here, as a view of another dataset does
            if not outline.box and outline.label in self._mask_folders:
                self._mask(outline.label, about.name, outline.mask)
        self._pictures.append(about if self._outlines else about._replace(outlines=()))

    def finish(
        self, choice: bool = False, metadata: tuple[CompleteDataset, Indices] | None = None
    ) -> dict[str, int]:
        """Writes labels and dataset.toml; the number of masks per concept. ``choice``: of multiple
        choice, whose questions were written. ``metadata``: the dataset whose metadata the labels
        have beside them, and the source of each image (n,)."""
        for concept in list(self._masks):  # where none has a mask, black ones would say nothing
            for each in self._pictures:
                if each.truth.get(concept) == 0:
                    self._mask(concept, each.name, np.zeros((each.height, each.width), np.bool_))
        if choice:
            sections = _HEAD + _section(kind="endobench", path=QUESTIONS) + _CHOICE
        else:
            rows = [{"id": each.name, **each.truth} for each in self._pictures]
            labels = pd.DataFrame(rows, columns=["id", *self._concepts])
            labels = labels.astype({c: "Int8" for c in self._concepts})  # whole numbers or empty
            described = labels if metadata is None else with_metadata(labels, *metadata)
            write_text(self._folder / "labels.csv", csv_text(described))
            sections = self._sections([*described.columns[len(labels.columns) :]])
        write_text(self._folder / "dataset.toml", sections)
        return self._masks

    def also(self, formats: Collection[Format], answers: pd.DataFrame) -> None:
        """Writes what other tools read."""
        rows = json.loads(answers.to_json(orient="records"))
        if "coco" in formats:
            write_text(self._folder / "coco.json", json.dumps(coco(self._pictures, rows)))
        if "fiftyone" in formats:
            write_text(self._folder / "fiftyone.json", json.dumps(fiftyone(rows)))

    def _mask(self, concept: str, name: str, mask: Mask) -> None:
        write_bytes(self._mask_folders[concept] / f"{name}.png", png(mask.astype(np.uint8) * 255))
        self._masks[concept] = self._masks.get(concept, 0) + 1

    def _sections(self, metadata: list[str]) -> str:
        """TOML: the folder as a table with these columns of metadata, and, commented, as masks of
        each concept with all."""
        declared: dict[str, Any] = {"metadata": metadata} if metadata else {}
        parts = [_section(kind="table", labels="labels.csv", images="images", **declared)]
        for concept, count in self._masks.items():
            if count == len(self._pictures):
                masks = f"masks/{self._mask_folders[concept].name}"
                section = _section(
                    kind="masks",
                    path=".",
                    images="images",
                    masks=masks,
                    concept=concept,
                    empty="absent",
                )
                parts.append("# or, with masks:\n" + indent(section, "# "))
        return _HEAD + "\n".join(parts)


def _section(**fields: str | list[str]) -> str:
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in fields.items()]
    return "\n".join(["[dataset]", *lines, ""])


def expected_of(space: QuestionSpace, number: int, name: str) -> tuple[Image, Annotated]:
    """The follow-up of this number, and what its relation expects of it."""
    index, variant = space.numbering.image_parts(number)
    relation, dataset = space.variants[variant].relation, as_loaded(space.dataset)
    source, follow_up = space.pair(number)
    known = dataset.truth(np.array([index]), np.arange(len(dataset.concepts))).tolist()
    truth = {
        concept: relation.expect(side, follow_up)
        for concept, side in zip(dataset.concepts, known, strict=True)
        if side != UNKNOWN and relation.applies(concept)
    }
    outlines: list[Outline] = []
    if not relation.masks_lost:
        outlines = [
            Outline(concept, relation.expect_mask(mask, follow_up))
            for concept, mask in source.masks.items()
            if truth.get(concept, 1) == 1
        ]
        size = source.require_image().shape[:2]
        filled = [(box.label, mask_of([box], *size)) for box in source.boxes]
        outlines += [Outline(n, relation.expect_mask(m, follow_up), box=True) for n, m in filled]
    image = follow_up.require_image()
    height, width = image.shape[:2]
    return image, Annotated(name, height, width, truth, outlines)


def names_of(space: QuestionSpace, numbers: Indices) -> dict[int, str]:
    """Number of a follow-up -> what its image is called; in the order of the numbers given."""
    found = {}
    for number in dict.fromkeys(numbers.tolist()):
        index, variant = space.numbering.image_parts(number)
        chosen = space.variants[variant]
        sample = safe_name(space.dataset.sample_id(index))[:LONGEST]
        found[number] = f"{sample}--{safe_name(chosen.relation.name)}-{chosen.severity}"
    return dict(zip(found, file_names(found.values()), strict=True))
