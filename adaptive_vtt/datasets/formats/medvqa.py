"""MEDVQA-GI (ImageCLEFmed 2023): gt.json with folders images/ and, optionally, masks/.

gt.json is a list of {"ImageID", "Labels": [{"Question", "AnswerType", "Answer": [...]}]}. An answer
is a list, or one text with commas, and may be empty. Questions have our own wording, and the order
of MedTest; see ``datasets.vqa.medvqa_questions``.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd

from ...errors import InputError, check_known, unexpected
from ...types import UNKNOWN, Ask
from ...utils.files import reads, text_in
from ...utils.options import Option
from ..scanning import ENDINGS, BrokenOption, Folder, FolderOption, OutsideOption, Reading
from ..table import WordedDataset
from ..vqa.medvqa_questions import NAMES, QUESTIONS, recognised

Several = Literal["all", "any"]
SEGMENTATION = "segmentation"
_ASKS = {question.name: Ask(question.text) for question in QUESTIONS}
_MASKED = {"polyp": "polyp type", "instrument": "instruments present"}
"""Subject of a mask -> the question to which the mask belongs."""


def from_medvqa(
    path: FolderOption,
    *,
    questions: Annotated[
        Sequence[str | int] | None,
        Option("their names or numbers, 1 to 18 (default: the 14 that are not vague)"),
    ] = None,
    several: Annotated[Several, Option("a reply needs all true answers, or any")] = "all",
    broken: BrokenOption = "refuse",
    allow_outside: OutsideOption = False,
) -> WordedDataset:
    """Read images with questions that have free answers; each of the questions is a concept.

    A question without an answer is not asked about its image. Relations do not cover the masks.

    Args:
        path: The folder.
        questions: Names or numbers of questions. Default None: those of MedTest, which leaves out
            2, 10, 12 and 17.
        several: Whether a correct reply needs "all" (MedTest's rule) or "any" of several answers.
        broken: "skip" leaves out images that cannot be decoded.
        allow_outside: Whether names and links may lead out of the folders.

    Returns:
        The dataset.

    Raises:
        InputError: The file has another form, an image is missing, or an id occurs twice.
    """
    check_known("value of several", several, ("all", "any"), "MEDVQA-GI")
    root = Path(path)
    entries = _entries(root / "gt.json")
    chosen = _chosen(questions)
    images = Folder(root / "images", allow_outside, root)
    files = {name: _file(images, name, root) for name in entries}
    reading = Reading(broken, str(root))
    bad = reading.unreadable(files.values())
    kept = [name for name in entries if files[name] not in bad]
    answered = [_answers(entries[name], several, name) for name in kept]
    answers = [{c: texts for c, texts in a.items() if c in chosen} for a in answered]
    if not any(answers):
        raise InputError(f"{root}: expected answers to some of {', '.join(chosen)}, got none")
    procedures = [", ".join(a.get("procedure", ("unknown",))) for a in answered]
    truths = [[1 if c in known else UNKNOWN for c in chosen] for known in answers]
    folder = Folder(root / "masks", allow_outside, root)
    masks = {
        concept: [_mask(folder, name, entries[name], subject) for name in kept]
        for subject, concept in _MASKED.items()
        if concept in chosen and folder.path.is_dir()
    }
    return WordedDataset(
        [files[name] for name in kept],
        np.array(truths, np.int8),
        kept,
        tuple(chosen),
        asks=[{c: _ASKS[c] for c in chosen}] * len(kept),
        answers=answers,
        masks={concept: own for concept, own in masks.items() if any(own)},
        metadata=pd.DataFrame({"procedure": procedures}),
        **reading.named(root),
    )


def _entries(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the labels of each image in gt.json, by its id."""
    with reads(path, "answers"):
        table = json.loads(text_in(path))
    labels_of: dict[str, list[dict[str, Any]]] = {}
    for place, entry in enumerate(table if isinstance(table, list) else [table]):
        labels = entry.get("Labels") if isinstance(entry, dict) else None
        if not isinstance(labels, list) or not all(isinstance(x, dict) for x in labels):
            raise InputError(f"{path}: entry {place}: expected an ImageID and a list of Labels")
        name = str(entry.get("ImageID", ""))
        if not name or name in labels_of:
            raise InputError(f"{path}: entry {place}: the ImageID {name!r} is empty or repeated")
        labels_of[name] = labels
    return labels_of


def _chosen(questions: Sequence[str | int] | None) -> list[str]:
    """Return the names of the questions to ask, in order."""
    if questions is None:
        return [question.name for question in QUESTIONS if not question.vague]
    names = {str(q.number): q.name for q in QUESTIONS} | {name: name for name in NAMES}
    for question in questions:
        check_known("question", str(question), names, "MEDVQA-GI")
    wanted = {names[str(question)] for question in questions}
    return [name for name in NAMES if name in wanted]


def _file(images: Folder, name: str, root: Path) -> Path:
    names = (f"{name}{ending}" for ending in (".jpg", *ENDINGS, ""))
    path = images.find(names, f"{root / 'gt.json'}, ImageID {name!r}")
    if path is not None:
        return path
    raise InputError(f"sample {name!r}: image file {str(images.path / name)!r}.jpg does not exist")


def _answers(
    labels: Sequence[Mapping[str, Any]], several: str, image: str
) -> dict[str, tuple[str, ...]]:
    """Return the accepted answers by question, without questions whose answer is empty."""
    answers: dict[str, tuple[str, ...]] = {}
    for label in labels:
        if not _is_mask(label):
            name = recognised(str(label.get("Question", "")))
            if name is None:
                expected = "one of MEDVQA-GI's questions"
                raise unexpected(f"sample {image!r}", expected, repr(label.get("Question")))
            if texts := [text for text in _texts(label) if text]:
                answers[name] = tuple(texts) if several == "any" else (", ".join(texts),)
    return answers


def _is_mask(label: Mapping[str, Any]) -> bool:
    return str(label.get("AnswerType", "")).lower() == SEGMENTATION


def _texts(label: Mapping[str, Any]) -> list[str]:
    answer = label.get("Answer", "")
    return [str(text).strip() for text in (answer if isinstance(answer, list) else [answer])]


def _mask(
    folder: Folder, image: str, labels: Sequence[Mapping[str, Any]], subject: str
) -> Path | None:
    """Return the mask of a subject: the file that a segmentation label names, or one with the name
    of the image; None without such a label."""
    for label in labels:
        if _is_mask(label) and subject in str(label.get("Question", "")).lower():
            names = [Path(text).name for text in _texts(label)]
            names += [f"{image}{ending}" for ending in ENDINGS]
            return folder.find(filter(None, names), f"sample {image!r}, its mask")
    return None
