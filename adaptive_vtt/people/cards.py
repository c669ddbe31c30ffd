"""Cards with pictures, and questions for people to answer about each."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ..engine.settings import same_audit
from ..engine.source_calls import with_answers
from ..errors import AvttError, unexpected
from ..journal import Journal
from ..journal.facts import read_facts
from ..models.local.recorded import COLUMNS, NO, UNSURE, YES, latest, read_answers
from ..results.report.run_files import Realism
from ..space import QuestionSpace
from ..types import Image, JsonObject
from ..utils.files import write_text
from ..utils.image_codec import data_address, jpeg, png
from ..utils.tables import csv_text

NONE = "none"
"""The answer that there is no error, and so no type of one."""


@dataclass(frozen=True)
class Asked:
    """A question of a card.

    Attributes:
        id: Its name in files.
        text: The question.
        choices: Answer -> text of its button, without UNSURE; {} for answers in words.
        unsure: Whether UNSURE is a choice, too.
        suggested: The choice that Enter confirms.
    """

    id: str
    text: str
    choices: Mapping[str, str]
    unsure: bool = True
    suggested: str | None = None


@dataclass(frozen=True)
class Card:
    """One or more pictures that are judged together.

    Attributes:
        id: Its name in files.
        question: Number of the audit's question whose pictures it shows.
        call: Number of the call about that question.
        titles: One per picture.
        asked: The questions.
        captions: One per picture, or none.
        mark: Text that is marked in captions.
        boxes: Outlines in the first picture: left, top, right, bottom in pixels.
        size: Height and width of that picture.
        facts: Further lines, each a name and its text.
    """

    id: str
    question: int
    call: int
    titles: tuple[str, ...]
    asked: tuple[Asked, ...]
    captions: tuple[str, ...] = ()
    mark: str = ""
    boxes: tuple[tuple[float, float, float, float], ...] = ()
    size: tuple[int, int] = (1, 1)
    facts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Shown:
    """The pictures of a card as data addresses, and words that go with the questions."""

    pictures: tuple[str, ...] = ()
    words: str = ""


@dataclass(frozen=True)
class Summary:
    """The result of all answers: JSON ``figures``, ``tables`` by title, sentences to print
    (``notes``), and the judgements that the report shows (``realism``)."""

    figures: JsonObject
    tables: Mapping[str, pd.DataFrame]
    notes: Sequence[str]
    realism: Realism | None = None


@dataclass(frozen=True)
class Task:
    """One kind of labelling.

    Attributes:
        folder: Folder of answers, in that of the run.
        title: Top of the page.
        about: Text below it.
        cards: Returns the cards to show.
        known: All cards that may be answered.
        show: Returns the pictures of a card.
        summarise: Returns the result of all readers' answers.
        option: The option of ``avtt label`` that chooses it, "" for none.
    """

    folder: str
    title: str
    about: str
    cards: Callable[[], Sequence[Card]]
    known: Sequence[Card]
    show: Callable[[Card], Shown]
    summarise: Callable[[pd.DataFrame], Summary]
    option: str = ""


def yes_or_no(id: str, text: str) -> Asked:
    """Return a question to be answered with yes or no."""
    return Asked(id, text, {YES: "Yes", NO: "No"})


# -- files of answers: one per reader --------------------------------------------------------------


def read_folder(folder: Path) -> pd.DataFrame:
    """Return the answers of all readers, of ``folder``/NAME.csv."""
    files = [read_answers(path) for path in sorted(folder.glob("*.csv"))]
    return pd.concat(files, ignore_index=True) if files else pd.DataFrame(columns=[*COLUMNS])


def keep(folder: Path, answers: pd.DataFrame) -> int:
    """Add answers to their readers' files and return how many are new. Of two answers to a question
    the later one is kept. Each file is replaced in one step."""
    before = read_folder(folder)
    both = latest(pd.concat([before, answers], ignore_index=True))
    for reader, rows in both.groupby("reader"):
        write_text(folder / f"{reader}.csv", csv_text(rows))
    return len(both) - len(both.merge(before))


def check_answers(answers: pd.DataFrame, cards: Sequence[Card], where: str) -> None:
    """Raise InputError for an answer to a question that no card has, or that is no choice of it."""
    asked = {(card.id, one.id): one for card in cards for one in card.asked}
    rows = zip(answers["card"], answers["question"], answers["answer"], strict=True)
    for card, question, answer in rows:
        one = asked.get((card, question))
        if one is None:
            remedy = "is the file of another audit, or of another kind of labelling?"
            got = f"one to {question!r} of card {card}"
            raise unexpected(where, "answers to this page's questions", got, remedy)
        choices = [*one.choices, *([UNSURE] if one.unsure else [])]
        if one.choices and answer not in choices:
            wanted = f"one of {', '.join(choices)}"
            raise unexpected(f"{where}: card {card}, {question!r}", wanted, repr(answer))


# -- pictures --------------------------------------------------------------------------------------


SIDE = 1280
"""Pictures are shrunk to this many pixels on the longer side."""
SMALL = 256 * 256
"""Pixels of a picture that is kept as it is: a JPEG would blur it."""


class Pictures:
    """Source and follow-up of judged questions, as data addresses.

    Args:
        journal: The audit's journal.
        space: The audit's space. None if the data are gone: only a few failing calls have
            thumbnails then.
        alone: Whether to show follow-ups without their sources.

    Raises:
        JournalError: The space is another audit's.
    """

    def __init__(
        self, journal: Journal, space: QuestionSpace | None = None, *, alone: bool = False
    ) -> None:
        if space is not None:
            same_audit(read_facts(journal.facts()), space, {})
        self.space = None if space is None else with_answers(space, journal)
        self._kept, self._alone = journal.pictures(), alone

    def of(self, card: Card) -> Shown:
        """Return the pictures and words of a card; no pictures if none was kept."""
        pictures, words = tuple(map(data_address, self._kept.get(card.call, ()))), ""
        # the file may be gone by now; the journal may still have a thumbnail
        with suppress(AvttError):
            if self.space is not None:
                number = int(self.space.image_of(np.array([card.question]))[0])
                source, follow_up = self.space.pair(number)
                if source.image is not None and follow_up.image is not None:
                    pictures = address(source.image), address(follow_up.image)
                    words = follow_up.words
        return Shown(pictures[1:] if self._alone else pictures, words)


def address(image: Image) -> str:
    """Return an image as a data address, shrunk to SIDE."""
    import cv2

    height, width = image.shape[:2]
    if height * width <= SMALL:
        return data_address(png(image))
    if (scale := SIDE / max(height, width)) < 1:
        size = (max(1, round(scale * width)), max(1, round(scale * height)))
        image = np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)
    return data_address(jpeg(image, 92))
