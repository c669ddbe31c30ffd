"""A page on which somebody reviews multiple-choice questions: accept, edit or reject each.

EndoBench's questions were reviewed by physicians before they were used (section 3). Every decision
is written beside the table as it is taken, so a review goes on where it stopped.
"""

import csv
import io
import json
import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, astuple, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from string import ascii_uppercase

import pandas as pd

from ..datasets.formats.endobench import from_endobench
from ..datasets.vqa.paraphrasing import WORDED_BY
from ..datasets.vqa.question_table import OPTIONS
from ..errors import InputError
from ..results.report.section import data
from ..results.view.pages import Reply
from ..types import JsonObject
from ..utils.files import whole_file, why_unread, write_text
from ..utils.tables import csv_lines, original
from .cutting import POLICY, OwnPage, picture, words
from .sessions import page_of

ACCEPT, EDIT, REJECT = "accept", "edit", "reject"
REVIEW = "review.csv"
ROWS = 64
"""Rows of a table, with their images, that are in memory at a time."""


@dataclass(frozen=True)
class Decision:
    """What was decided about the question ``index``. ``asked``: how the table puts it;
    ``question``, ``answer`` (a letter) and ``options`` (A and so on, as JSON): how it is put from
    now on."""

    index: str
    verdict: str
    asked: str
    question: str
    answer: str
    options: str
    time: str


COLUMNS = tuple(field.name for field in fields(Decision))


class Review(OwnPage):
    """The page about the questions of ``table``, a TSV as EndoBench's.

    Raises InputError for a table that cannot be read, and for decisions beside it about another
    one.
    """

    def __init__(self, table: Path) -> None:
        super().__init__()
        if table.suffix != ".tsv":
            raise InputError(f"{table}: expected a TSV of questions, as avtt build-vqa writes it")
        self.table, self.file = table, table.with_name(REVIEW)
        self._images = from_endobench(table)
        worded = _worded_by(table.with_name("sources.csv"))
        self.questions = [_question(row, worded) for part in _parts(table, True) for row in part]
        self.decisions = _read(self.file, {one["index"]: one["question"] for one in self.questions})
        self._lock = threading.Lock()

    @property
    def counts(self) -> dict[str, int]:
        """How many were accepted, edited, rejected, and are left."""
        said = Counter(one.verdict for one in self.decisions.values())
        left = len(self.questions) - len(self.decisions)
        return {verdict: said[verdict] for verdict in (ACCEPT, EDIT, REJECT)} | {"left": left}

    def at(self, step: str, query: dict[str, list[str]]) -> Reply | None:
        """``picture``, the image of a question; ``keep``, after which a decision is written."""
        if step == "picture":
            return picture(self._images.sample(self._at(query)).require_image())
        if step == "keep":
            self._keep(self._at(query), query)
            return words("kept")
        return None if step else Reply(self._page().encode(), policy=POLICY)

    def _at(self, query: dict[str, list[str]]) -> int:
        at = int(query.get("at", ["-1"])[0])
        if not 0 <= at < len(self.questions):
            raise InputError(f"expected a question from 0 to {len(self.questions) - 1}, got {at}")
        return at

    def _keep(self, at: int, query: dict[str, list[str]]) -> None:
        one = self.questions[at]
        verdict = query.get("verdict", [""])[0]
        said = one
        if verdict == EDIT:
            options = [" ".join(text.split()) for text in query.get("option", [])]
            question = " ".join(query.get("question", [""])[0].split())
            said = {"question": question, "answer": query.get("answer", [""])[0]}
            said["options"] = options
        decided = Decision(
            index=one["index"],
            verdict=verdict,
            asked=one["question"],
            question=said["question"],
            answer=said["answer"],
            options=json.dumps(said["options"], ensure_ascii=False),
            time=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        _check(decided, len(one["options"]), "this question")
        with self._lock:
            self.decisions[decided.index] = decided
            write_text(self.file, csv_lines([COLUMNS, *map(astuple, self.decisions.values())]))

    def _page(self) -> str:
        decided = {index: asdict(one) for index, one in self.decisions.items()}
        for one in decided.values():
            one["options"] = json.loads(one["options"])
        both = data("review-data", {"questions": self.questions, "decided": decided})
        return page_of("review.html", name=self.table.name, file=self.file, data=both)

    def write(self, path: Path) -> int:
        """Writes the table of what was accepted, as it was edited; how many questions that are.

        Images and all other cells are as they were. Raises InputError where nothing was accepted.
        """
        taken = {k: one for k, one in self.decisions.items() if one.verdict != REJECT}
        if not taken:
            raise InputError(f"{self.file}: expected an accepted question, got none: review first")
        with whole_file(path) as file:
            for number, part in enumerate(_parts(self.table)):
                rows = [_decided(row, taken[row["index"]]) for row in part if row["index"] in taken]
                columns = list(part[0])
                writer = csv.DictWriter(file, columns, delimiter="\t", lineterminator="\n")
                if not number:
                    writer.writeheader()
                writer.writerows(rows)
        return len(taken)


def _parts(table: Path, without_images: bool = False) -> Iterable[list[dict[str, str]]]:
    """The rows of a table that ``from_endobench`` could read, some at a time."""
    with pd.read_csv(
        table,
        sep="\t",
        dtype=str,
        keep_default_na=False,
        chunksize=ROWS,
        usecols=(lambda column: column != "image") if without_images else None,
    ) as parts:
        for part in parts:
            part["index"] = part["index"].str.strip()
            columns = [*map(str, part.columns)]
            yield [dict(zip(columns, row, strict=True)) for row in part.to_numpy().tolist()]


def _worded_by(sources: Path) -> dict[str, str]:
    """Index -> the model that worded a question, of those that one did."""
    try:
        rows = list(csv.DictReader(io.StringIO(sources.read_text(encoding="utf-8"), newline="")))
    except (OSError, UnicodeDecodeError, csv.Error):
        return {}
    return {r.get("index", ""): original(r[WORDED_BY]) for r in rows if r.get(WORDED_BY)}


def _question(row: dict[str, str], worded_by: dict[str, str]) -> JsonObject:
    options = [row[letter].strip() for letter in OPTIONS if row.get(letter, "").strip()]
    said = {name: row[name].strip() for name in ("index", "question", "task", "answer")}
    said |= {"answer": said["answer"].upper(), "worded_by": worded_by.get(said["index"], "")}
    return said | {"options": options}


def _decided(row: dict[str, str], one: Decision) -> dict[str, str]:
    if one.verdict == ACCEPT:
        return row
    options = json.loads(one.options)
    right = options[ascii_uppercase.index(one.answer)]
    said = {"question": one.question, "answer": one.answer, "gt": right}
    said |= dict(zip(OPTIONS, options, strict=False))
    return row | {name: text for name, text in said.items() if name in row}


def _check(one: Decision, count: int | None, where: str) -> None:
    """Raises InputError for a decision that is none; ``count``: of options, where it is known."""
    options = json.loads(one.options)
    if one.verdict not in (ACCEPT, EDIT, REJECT):
        raise InputError(f"{where}: expected accept, edit or reject, got {one.verdict!r}")
    if not one.question or len({*options}) < len(options) or not all(options):
        raise InputError(f"{where}: expected a question, and options that differ from each other")
    if count not in (None, len(options)):
        raise InputError(f"{where}: expected {count} options, got {len(options)}")
    if one.answer not in [*ascii_uppercase[: len(options)]]:
        raise InputError(f"{where}: expected the letter of an option, got {one.answer!r}")


def _read(file: Path, asked: dict[str, str]) -> dict[str, Decision]:
    """The decisions of a file, none where there is none; ``asked``: index -> the question."""
    if not file.exists():
        return {}
    try:
        rows = list(csv.reader(io.StringIO(file.read_text(encoding="utf-8"), newline="")))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: cannot be read: {why_unread(file, error)}") from None
    if not rows or rows[0] != [*COLUMNS]:
        raise InputError(f"{file}, row 1: expected {','.join(COLUMNS)}; move the file away")
    found = {}
    for number, row in enumerate(rows[1:], 2):
        where = f"{file}, row {number}"
        try:
            one = Decision(*map(original, row))
            _check(one, None, where)
        except InputError:
            raise
        except (TypeError, ValueError):
            raise InputError(f"{where}: expected {len(COLUMNS)} cells, options as JSON") from None
        if asked.get(one.index) != one.asked:
            raise InputError(
                f"{where}: expected a question of the table, got {one.asked!r} as number "
                f"{one.index}: it reviews another table; move it away to begin anew"
            )
        found[one.index] = one
    return found
