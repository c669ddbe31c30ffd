"""What people are shown: cards with pictures, and questions to answer about each."""

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ..engine.judge import with_answers
from ..engine.settings import same_audit
from ..errors import AvttError, InputError
from ..journal import Journal
from ..journal.facts import read_facts
from ..models.local.recorded import COLUMNS, NO, UNSURE, YES, latest, read_answers
from ..results.report.run_files import Realism
from ..space import QuestionSpace
from ..types import Image, JsonObject
from ..utils.files import write_text
from ..utils.image_codec import jpeg, png
from ..utils.tables import csv_text

NONE = "none"
"""The answer that there is no error, and so no type of one."""


@dataclass(frozen=True)
class Asked:
    """A question of a card. ``id``: its name in files; ``choices``: answer -> text of its button,
    UNSURE left out; {}: any words; ``suggested``: the choice that Enter confirms."""

    id: str
    text: str
    choices: Mapping[str, str]
    unsure: bool = True
    suggested: str | None = None


@dataclass(frozen=True)
class Card:
    """What is judged at once. ``id``: its name in files; ``question`` and ``call``: of the audit,
    where its pictures come from; ``titles``: one per picture; ``captions``: one per picture, or
    none, in which ``mark`` is marked; ``boxes``: what is outlined in the first picture of ``size``
    (height, width): left, top, right, bottom in pixels; ``told``: name and text of what else is
    known."""

    id: str
    question: int
    call: int
    titles: tuple[str, ...]
    asked: tuple[Asked, ...]
    captions: tuple[str, ...] = ()
    mark: str = ""
    boxes: tuple[tuple[float, float, float, float], ...] = ()
    size: tuple[int, int] = (1, 1)
    told: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Shown:
    """The pictures of a card as data addresses, and what is said of them with the questions."""

    pictures: tuple[str, ...] = ()
    words: str = ""


@dataclass(frozen=True)
class Summary:
    """What answers come to: JSON ``figures``, ``tables`` by title and sentences to print, and what
    the report is to show of ``realism``."""

    figures: JsonObject
    tables: Mapping[str, pd.DataFrame]
    notes: Sequence[str]
    realism: Realism | None = None


@dataclass(frozen=True)
class Task:
    """One kind of labelling. ``folder``: of answers, in that of the run; ``title`` and ``about``
    stand at the top of the page; ``cards``: those to show; ``known``: all that may be answered;
    ``summarise``: what the answers of all readers come to; ``option``: of ``avtt label``, which
    chose it."""

    folder: str
    title: str
    about: str
    cards: Callable[[], Sequence[Card]]
    known: Callable[[], Sequence[Card]]
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
    """Add answers to their readers' files, of two to one question the later; return how many are
    new. Each file is replaced in one step."""
    before = read_folder(folder)
    both = latest(pd.concat([before, answers], ignore_index=True))
    for reader, rows in both.groupby("reader"):
        write_text(folder / f"{reader}.csv", csv_text(rows))
    return len(both) - len(both.merge(before))


def check_answers(answers: pd.DataFrame, cards: Sequence[Card], where: str) -> None:
    """Raise InputError for an answer to what was not asked, and for one that is no choice."""
    asked = {(card.id, one.id): one for card in cards for one in card.asked}
    rows = zip(answers["card"], answers["question"], answers["answer"], strict=True)
    for card, question, answer in rows:
        one = asked.get((card, question))
        if one is None:
            raise InputError(
                f"{where}: expected answers to this page's questions, got one to {question!r} of "
                f"card {card}; is the file of another audit, or of another kind of labelling?"
            )
        choices = [*one.choices, *([UNSURE] if one.unsure else [])]
        if one.choices and answer not in choices:
            raise InputError(
                f"{where}: card {card}, {question!r}: expected one of {', '.join(choices)}, got "
                f"{answer!r}"
            )


# -- pictures --------------------------------------------------------------------------------------


SIDE = 1280
"""Pictures are shrunk to this many pixels on the longer side."""
SMALL = 256 * 256
"""Pixels of a picture that is kept as it is: a JPEG would blur it."""


class Pictures:
    """Source and follow-up of judged questions, as data addresses.

    ``space``: that of the audit, or None where the data are gone; then there are thumbnails of a
    few failing calls. ``alone``: the follow-up without its source. Raises JournalError for another
    space.
    """

    def __init__(
        self, journal: Journal, space: QuestionSpace | None = None, *, alone: bool = False
    ) -> None:
        if space is not None:
            same_audit(read_facts(journal.facts()), space, {})
        self.space = None if space is None else with_answers(space, journal)
        self._kept, self._alone = journal.pictures(), alone

    def of(self, card: Card) -> Shown:
        """Return what a card shows; no pictures where there are none."""
        shown = self._made(card)
        if not shown.pictures and card.call in self._kept:
            shown = Shown(tuple(_address(data, "png") for data in self._kept[card.call]))
        return Shown(shown.pictures[1:], shown.words) if self._alone else shown

    def _made(self, card: Card) -> Shown:
        if self.space is None:
            return Shown()
        number = int(self.space.image_of(np.array([card.question]))[0])
        try:
            source, follow_up = self.space.pair(number)
        except AvttError:  # a file is gone since; the journal may still have a thumbnail
            return Shown()
        if source.image is None or follow_up.image is None:
            return Shown()
        return Shown((address(source.image), address(follow_up.image)), follow_up.words)


def address(image: Image) -> str:
    """Return an image as a data address, shrunk to SIDE."""
    import cv2

    height, width = image.shape[:2]
    if height * width <= SMALL:
        return _address(png(image), "png")
    if (scale := SIDE / max(height, width)) < 1:
        size = (max(1, round(scale * width)), max(1, round(scale * height)))
        image = np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)
    return _address(jpeg(image, 92), "jpeg")


def _address(data: bytes, kind: str) -> str:
    return f"data:image/{kind};base64,{b64encode(data).decode('ascii')}"
