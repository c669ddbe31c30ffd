"""Export the failures of an audit, or the disagreements of two models, as a dataset.

Failures of multiple choice can also be exported alone, as EndoBench's table of questions.

The journal holds no images, because a follow-up depends only on (seed, question). Each is made
again, with the truth and the masks that its relation expects.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from string import ascii_uppercase
from textwrap import indent
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from ...datasets.base import CompleteDataset
from ...datasets.view import as_loaded
from ...datasets.vqa.question_table import Line, write_questions
from ...datasets.vqa.taxonomy import category_of
from ...engine.judge import Judge
from ...engine.settings import same_audit
from ...errors import InputError, unexpected
from ...journal import Journal
from ...journal.facts import Facts
from ...oracles.choice import ASKED
from ...space import QuestionSpace
from ...types import UNKNOWN, Image, Indices, JsonObject, Mask, mask_of
from ...utils.files import file_names, safe_name, whole_folder, write_bytes, write_text
from ...utils.image_codec import png
from ...utils.tables import csv_text
from ..difference import names_of as models_of
from ..outcomes import FAILED, counting, with_metadata
from ..run import Run

Format = Literal["coco", "fiftyone"]
"""Formats of further files, which other tools read."""
LONGEST = 120
"""Most characters of a sample's id in a file name, which file systems limit to 255 bytes."""
ANSWER_COLUMNS = (
    *("id", "sample", "relation", "severity", "concept"),
    *("truth", "answer", "loss", "draw"),
)
"""The columns of failures.csv."""
WORD_COLUMNS = ("asked", "options", "right", "answer_text")
"""Further columns of failures.csv, for questions in words."""
OF_BOTH = ("loss_a", "loss_b", "answer_a", "answer_b")
"""Columns of disagreements.csv in place of one model's answer and loss."""
QUESTIONS = "questions.tsv"
MORE = ("sample", "relation", "severity", "draw", "loss")
"""Columns after those of EndoBench: the question's draw and the loss of its answer."""
_HEAD = "# A section for a SPEC.toml in this folder.\n"


class Outline(NamedTuple):
    """The expected place of an object in a follow-up.

    Attributes:
        label: The object's label.
        mask: Its pixels, (H, W).
        box: Whether only a box is known, which the mask fills.
    """

    label: str
    mask: Mask
    box: bool = False


class Annotated(NamedTuple):
    """Description of a follow-up, as it is exported.

    Attributes:
        name: Its file name without the ending.
        height: Height in pixels.
        width: Width in pixels.
        truth: Concept -> 1 if it is present, 0 if not.
        outlines: Expected places of concepts.
    """

    name: str
    height: int
    width: int
    truth: Mapping[str, int]
    outlines: Sequence[Outline]


@dataclass(frozen=True)
class Exported:
    """The counts of an export.

    Attributes:
        images: Number of follow-ups.
        answers: Number of failing answers about them.
        masks: Number of masks per concept.
    """

    images: int
    answers: int
    masks: dict[str, int]

    def as_dict(self) -> JsonObject:
        """Return the counts as a JSON object."""
        return asdict(self)


@dataclass(frozen=True)
class Disagreements(Exported):
    """The counts of an export of disagreements.

    Attributes:
        better_a: Number of questions where model A has the smaller loss.
        better_b: Number of questions where model B has the smaller loss.
        models: "a" and "b" -> the model's name.
    """

    better_a: int
    better_b: int
    models: dict[str, str]


def export_failures(
    source: Journal | Run,
    space: QuestionSpace,
    out: Path | str,
    *,
    least_loss: float = 0.5,
    formats: Collection[Format] = (),
) -> Exported:
    """Write the follow-ups of all answers with a loss of ``least_loss`` or more, as a dataset.

    The folder is written whole or not at all. It contains:

    - images/NAME.png: the follow-up as the model saw it. NAME is sample, relation and severity.
    - masks/CONCEPT/NAME.png: 255 where a concept that has masks is expected, else 0. The file is
      missing if the truth is unknown.
    - labels.csv: id (NAME), the expected truth of every concept (empty if unknown), and the
      metadata of the source image.
    - failures.csv: id, sample, relation, severity, concept, truth, answer (empty if there was
      none), loss and draw of every failing answer, and the metadata of the source image.
    - dataset.toml: the section of a SPEC.toml that reads the folder as a dataset.
    - coco.json, with format "coco": images, masks and boxes in COCO's format, and the failing
      answers about every image.
    - fiftyone.json, with format "fiftyone": the failing concepts of every image, in the format of
      FiftyOneImageClassificationDataset.

    For questions in words, failures.csv also has the question, its options, the right ones, the
    answer in words, and a chat model's raw reply. For multiple choice, questions.tsv takes the
    place of labels.csv: it holds the questions with their images in the format of EndoBench.

    Args:
        source: An audit's run or journal.
        space: Its question space.
        out: The folder, new or empty.
        least_loss: The smallest loss that is exported, in (0, 1].
        formats: Formats of further files.

    Returns:
        The counts.

    Raises:
        InputError: The folder is in use, the loss is out of range, samples have no images, two
            models were asked, or nothing failed.
        JournalError: The journal is of another space.
    """
    run = Run.of(source)
    run.facts.refuse_pairs("export", "see the report, or --disagreements of two models")
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


def export_disagreements(
    source: Journal | Run,
    space: QuestionSpace,
    out: Path | str,
    *,
    formats: Collection[Format] = (),
) -> Disagreements:
    """Write the follow-ups of all questions where two compared models have different losses.

    The folder is that of ``export_failures``, with disagreements.csv in place of failures.csv. It
    has a row per question: id, sample, relation, severity, concept, truth, loss_a, loss_b,
    answer_a, answer_b, draw, and the metadata of the source image. A is the old model and B the
    new one. An answer is empty if there was none; of a mask it is the score. The loss in a
    questions.tsv is the new model's.

    Args:
        source: A comparison's run or journal (``versus.audit.journal``).
        space: Its space (``versus.space``).
        out: The folder, new or empty.
        formats: Formats of further files.

    Returns:
        The counts.

    Raises:
        InputError: Only one model was asked, or the models do not disagree; or see
            ``export_failures``.
    """
    run = Run.of(source)
    check_paired(run.facts)
    rows = (row for call in run.calls for row in call.answers if not row.excluded)
    details = {row.question: row.details for row in rows if row.details is not None}
    differing = [q for q, both in details.items() if both["a"]["loss"] != both["b"]["loss"]]
    table = judged_of(run, space)
    table = table[table["question"].isin(differing)]
    if table.empty:
        raise InputError("export: the models do not disagree on any question that was asked")
    pairs = [details[question] for question in table["question"].tolist()]
    for model in ("a", "b"):
        losses = [both[model]["loss"] for both in pairs]
        answers = [both[model]["answer"] for both in pairs]
        # a missing answer is journaled as an object, with its reason
        answers = [None if isinstance(answer, dict) else answer for answer in answers]
        table = table.assign(**{f"loss_{model}": losses, f"answer_{model}": answers})
    table = table.assign(loss=table["loss_b"])  # in place of the pair's loss
    table, words = in_words(table, run)
    columns = [name for name in ANSWER_COLUMNS if name not in ("answer", "loss", "draw")]
    columns += [*OF_BOTH, "draw", *(word for word in words if word != "answer_text")]
    counts = write_dataset(space, table, Path(out), "disagreements.csv", columns, formats)
    wins = int((table["loss_a"] < table["loss_b"]).sum())  # of model A
    models = dict(zip("ab", models_of(run.facts), strict=True))
    return Disagreements(**vars(counts), better_a=wins, better_b=len(table) - wins, models=models)


def check_paired(facts: Facts) -> None:
    """Raise InputError unless the journal holds the answers of two models."""
    if facts.certificate is None or not facts.certificate.paired:
        wanted = "a comparison in which both models were asked ('avtt versus' without --recorded-a)"
        remedy = "--failures has where that one erred"
        raise unexpected("export", wanted, "answers of one model", remedy)


def write_dataset(
    space: QuestionSpace,
    table: pd.DataFrame,
    out: Path,
    file: str,
    columns: Sequence[str],
    formats: Collection[Format] = (),
) -> Exported:
    """Write the follow-ups of some questions as a dataset.

    Args:
        space: The space.
        table: The questions, as rows of ``results.outcomes``.
        out: The folder.
        file: Name of the file with the answers.
        columns: Columns of ``table`` in that file; "id" is the follow-up's name.
        formats: Formats of further files.

    Returns:
        The counts.
    """
    numbers = space.image_of(table["question"].to_numpy())
    names = names_of(space, numbers)
    with whole_folder(out) as folder:
        dataset = DatasetFolder(folder, as_loaded(space.dataset).concepts)
        for number, name in names.items():
            image, description = expected_of(space, number, name)
            dataset.add(image, description, outlines=bool(formats))
        answers = table.assign(id=[names[number] for number in numbers.tolist()])[[*columns]]
        sources = space.numbering.image_parts(numbers)[0]
        answers = with_metadata(answers, space.dataset, sources)
        write_text(folder / file, csv_text(answers))
        if is_multiple_choice(space):
            lines = question_lines(space, table.drop_duplicates("question"))
            write_questions(folder / QUESTIONS, lines, image_format="png", more=MORE)
            dataset.complete_masks()
            section = _section(kind="endobench", path=QUESTIONS)
            oracle = '\n[oracle]\nkind = "multiple-choice"\n'
            write_text(folder / "dataset.toml", _HEAD + section + oracle)
        else:
            sources = space.numbering.image_parts(np.array([*names], np.int64))[0]
            dataset.finish((space.dataset, sources))
        rows = json.loads(answers.to_json(orient="records"))
        if "coco" in formats:
            write_text(folder / "coco.json", json.dumps(coco(dataset.pictures, rows)))
        if "fiftyone" in formats:
            labels = {
                name: [{"label": row.pop("concept"), "attributes": row} for row in about_image]
                for name, about_image in _by_id(rows).items()
            }
            write_text(folder / "fiftyone.json", json.dumps({"labels": labels}))
    return Exported(len(names), len(table), dict(dataset.masks))


def in_words(answers: pd.DataFrame, run: Run) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return the answers with the columns WORD_COLUMNS, and the names of these columns.

    If no question was asked in words, the answers are unchanged and there are no names.
    """
    rows = {row.question: row for call in run.calls for row in call.answers}
    words, any_asked = [], False
    for row in map(rows.__getitem__, answers["question"].tolist()):
        asked = (row.details or {}).get(ASKED) or {}
        lettered = zip(ascii_uppercase, asked.get("options", ()), strict=False)
        options = " | ".join(f"{letter}. {text}" for letter, text in lettered)
        right = " | ".join(asked.get("right", ()))
        any_asked |= bool(asked)
        words.append((asked.get("question", ""), options, right, row.answer_text or ""))
    if not any_asked:
        return answers, ()
    columns = dict(zip(WORD_COLUMNS, zip(*words, strict=True), strict=True))
    return answers.assign(**columns), WORD_COLUMNS


@dataclass
class DatasetFolder:
    """Writer of a dataset of images, labels and masks; ``finish`` writes its tables at the end.

    Attributes:
        folder: The dataset's folder.
        concepts: Its concepts.
        pictures: What was added so far.
        masks: Number of masks per concept so far.
    """

    folder: Path
    concepts: tuple[str, ...]
    pictures: list[Annotated] = field(default_factory=list)
    masks: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._folders = dict(zip(self.concepts, file_names(self.concepts), strict=True))

    def add(self, image: Image, annotated: Annotated, *, outlines: bool = False) -> None:
        """Write an image and its masks.

        Args:
            image: The image.
            annotated: What is expected of it.
            outlines: Whether to keep its outlines in ``pictures``, for further files.
        """
        write_bytes(self.folder / "images" / f"{annotated.name}.png", png(image))
        for outline in annotated.outlines:
            # a sample may have masks of objects that are no concepts of the dataset
            if not outline.box and outline.label in self._folders:
                self._mask(outline.label, annotated.name, outline.mask)
        self.pictures.append(annotated if outlines else annotated._replace(outlines=()))

    def complete_masks(self) -> None:
        """Write black masks for images without a concept, of concepts that have other masks."""
        for concept in list(self.masks):
            for each in self.pictures:
                if each.truth.get(concept) == 0:
                    self._mask(concept, each.name, np.zeros((each.height, each.width), np.bool_))

    def finish(self, metadata: tuple[CompleteDataset, Indices] | None = None) -> None:
        """Write the missing masks, labels.csv and dataset.toml.

        Args:
            metadata: A dataset whose metadata are further columns of labels.csv, and the position
                in it of each image's source, (n,). Default None: no such columns.
        """
        self.complete_masks()
        rows = [{"id": each.name, **each.truth} for each in self.pictures]
        labels = pd.DataFrame(rows, columns=["id", *self.concepts])
        labels = labels.astype({c: "Int8" for c in self.concepts})  # whole numbers or empty
        described = labels if metadata is None else with_metadata(labels, *metadata)
        write_text(self.folder / "labels.csv", csv_text(described))
        further = [*described.columns[len(labels.columns) :]]
        declared: dict[str, Any] = {"metadata": further} if further else {}
        parts = [_section(kind="table", labels="labels.csv", images="images", **declared)]
        shared: dict[str, Any] = {"kind": "masks", "path": ".", "images": "images"}
        for concept, count in self.masks.items():
            if count == len(self.pictures):
                masks = {"masks": f"masks/{self._folders[concept]}", "concept": concept}
                section = _section(**shared, **masks, empty="absent")
                parts.append("# or, with masks:\n" + indent(section, "# "))
        write_text(self.folder / "dataset.toml", _HEAD + "\n".join(parts))

    def _mask(self, concept: str, name: str, mask: Mask) -> None:
        path = self.folder / "masks" / self._folders[concept] / f"{name}.png"
        write_bytes(path, png(mask.astype(np.uint8) * 255))
        self.masks[concept] += 1


def _section(**fields: str | list[str]) -> str:
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in fields.items()]
    return "\n".join(["[dataset]", *lines, ""])


def expected_of(space: QuestionSpace, number: int, name: str) -> tuple[Image, Annotated]:
    """Return a follow-up, by its number, and what its relation expects of it."""
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
        present = [(c, mask, False) for c, mask in source.masks.items() if truth.get(c, 1) == 1]
        size = source.require_image().shape[:2]
        filled = [(box.label, mask_of([box], *size), True) for box in source.boxes]
        outlines = [
            Outline(label, relation.expect_mask(mask, follow_up), box)
            for label, mask, box in (*present, *filled)
        ]
    image = follow_up.require_image()
    height, width = image.shape[:2]
    return image, Annotated(name, height, width, truth, outlines)


def names_of(space: QuestionSpace, numbers: Indices) -> dict[int, str]:
    """Return the file names of follow-ups by their numbers, in the same order."""
    names = {}
    for number in dict.fromkeys(numbers.tolist()):
        index, variant = space.numbering.image_parts(number)
        chosen = space.variants[variant]
        sample = safe_name(space.dataset.sample_id(index))[:LONGEST]
        names[number] = f"{sample}--{safe_name(chosen.relation.name)}-{chosen.severity}"
    return dict(zip(names, file_names(names.values()), strict=True))


# -- questions with options, as EndoBench's table --------------------------------------------------


def export_questions(
    source: Journal | Run,
    space: QuestionSpace,
    path: Path | str,
    *,
    least_loss: float = FAILED,
    everything: bool = False,
    image_format: str = "jpeg",
) -> int:
    """Write a table of the questions whose answers have a loss of ``least_loss`` or more.

    A line holds the follow-up image, the question, the options, and the right letter by which the
    answer was judged. Lines are in the order of draws, without excluded questions.
    ``datasets.from_endobench`` and VLMEvalKit read the table.

    Args:
        source: An audit's run or journal.
        space: Its space.
        path: The table's file, which must not exist.
        least_loss: The smallest loss that is exported, in (0, 1].
        everything: Whether to write all questions that were asked, whatever their loss.
        image_format: How images are encoded.

    Returns:
        The number of questions.

    Raises:
        InputError: The file exists, questions have no options, samples have no images, or there is
            nothing to write.
        JournalError: The journal is of another space.
    """
    if Path(path).exists():
        raise InputError(f"{path}: exists already; nothing was written")
    table = counting(judged_of(Run.of(source), space, least_loss))
    wanted = table[everything | (table["loss"] >= least_loss)].drop_duplicates("question")
    if wanted.empty:
        what = "answer" if everything else f"answer has a loss of {least_loss:g} or more"
        raise InputError(f"export: no {what}")
    lines = question_lines(space, wanted)
    return write_questions(Path(path), lines, image_format=image_format, more=MORE)


def judged_of(run: Run, space: QuestionSpace, least_loss: float = FAILED) -> pd.DataFrame:
    """Return the outcomes of an audit, a row per question.

    Args:
        run: The audit's run.
        space: Its space.
        least_loss: The smallest loss that will be exported, which is only checked.

    Raises:
        InputError: The loss is not in (0, 1], or samples have no images.
        JournalError: The journal is of another space.
    """
    if not 0 < least_loss <= 1:
        raise InputError(f"least loss: expected a number above 0, up to 1, got {least_loss}")
    if not space.dataset.has_images:
        raise InputError(f"export: dataset {space.dataset.name!r} has no images")
    same_audit(run.facts, space, {})
    return run.table


def question_lines(space: QuestionSpace, asked: pd.DataFrame) -> Iterator[Line]:
    """Yield the table's line for each row of ``results.outcomes``.

    Raises:
        InputError: A question has no options, or not exactly one right letter.
    """
    judge = Judge(space, "one")
    for row in asked.to_dict("records"):
        number = int(row["question"])
        prompt = judge.prompt(number)
        sample = space.dataset.sample(space.numbering.parts(number)[0])
        (concept,), asks = prompt.concepts, prompt.asks
        letters = sample.answers.get(concept, ())
        if not asks or not asks[0].options or len(letters) != 1 or prompt.image is None:
            wanted = f"a question with options and one right letter about {concept!r}"
            got = "none: a table of questions holds multiple choice alone"
            raise unexpected(f"export: sample {sample.id!r}", wanted, got)
        metadata = {name: str(value) for name, value in sample.metadata.items()}
        task = metadata.get("task", concept)
        yield Line(
            prompt.image,
            f"{prompt.words} {asks[0].text}".lstrip(),
            asks[0].options,
            ascii_uppercase.index(letters[0]),
            metadata.get("category") or category_of(task),
            task,
            metadata.get("subtask", task),
            metadata.get("scene", ""),
            metadata.get("dataset", ""),
            tuple(f"{row[name]:g}" if name == "loss" else str(row[name]) for name in MORE),
        )
        judge.forget(number)


def is_multiple_choice(space: QuestionSpace) -> bool:
    """Return whether the dataset's questions have options."""
    asks = space.dataset.sample(0).asks if len(space.dataset) else {}
    return bool(asks) and all(ask.options for ask in asks.values())


# -- COCO ------------------------------------------------------------------------------------------


def run_lengths(mask: Mask) -> list[int]:
    """Return a mask (H x W) in COCO's run lengths, column by column, outside first."""
    flat = mask.T.reshape(-1)
    changes = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    lengths = np.diff(np.array([0, *changes, flat.size])).tolist()
    return [0, *lengths] if flat[0] else lengths


def coco(pictures: Sequence[Annotated], failures: Sequence[Mapping[str, Any]]) -> JsonObject:
    """Return the content of coco.json: "images", "categories" and "annotations".

    Categories are the labels of all outlines. An outline is left out if no pixel of it is in view.

    Args:
        pictures: The images. Each entry also has its "truth".
        failures: Failing answers. Each image's entry has those with its name as "id".
    """
    labels = list(dict.fromkeys(o.label for each in pictures for o in each.outlines))
    failures_of = _by_id(failures)
    images: list[JsonObject] = []
    annotations: list[JsonObject] = []
    for image_id, each in enumerate(pictures, 1):
        size = {"height": each.height, "width": each.width}
        more = {"truth": dict(each.truth), "failures": failures_of.get(each.name, [])}
        images.append({"id": image_id, "file_name": f"{each.name}.png", **size, **more})
        for label, mask, box in each.outlines:
            if mask.any():
                rows, columns = np.nonzero(mask)
                box_ends = columns.min(), rows.min(), np.ptp(columns) + 1, np.ptp(rows) + 1
                runs = {"size": list(mask.shape), "counts": run_lengths(mask)}
                annotations.append(
                    {
                        "id": len(annotations) + 1,
                        "image_id": image_id,
                        "category_id": labels.index(label) + 1,
                        "bbox": [*map(int, box_ends)],
                        "area": int(mask.sum()),
                        "iscrowd": 0,
                        "segmentation": [] if box else runs,
                    }
                )
    categories = [{"id": number, "name": label} for number, label in enumerate(labels, 1)]
    return {"images": images, "categories": categories, "annotations": annotations}


def _by_id(failures: Sequence[Mapping[str, Any]]) -> dict[str, list[JsonObject]]:
    """Return the failures, without their "id", by it."""
    rows: dict[str, list[JsonObject]] = {}
    for row in failures:
        rows.setdefault(str(row["id"]), []).append({k: v for k, v in row.items() if k != "id"})
    return rows
