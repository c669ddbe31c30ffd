"""Review of multiple-choice questions before a model is asked: accept, correct or reject each.

EndoBench's questions were reviewed by physicians before they were used (section 3).
"""

import csv
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from ..datasets.formats.endobench import from_endobench
from ..datasets.vqa.question_table import OPTIONS
from ..errors import InputError
from ..utils.files import whole_file
from .agreement import agreement, answered, majority
from .cards import Asked, Card, Shown, Summary, Task, address

ABOUT = (
    "Is the question clear, and the marked answer right and the only right one? Enter accepts it; "
    "choose another answer to correct it, or reject the question."
)
VERDICT, REJECT = "right answer", "reject"
ROWS = 64
"""Most rows of a table, with their images, in memory at a time."""


def review_task(table: Path, sample: int | None) -> Task:
    """Return the review of the first ``sample`` questions of a TSV as EndoBench's, or all."""
    if sample is not None and sample < 1:
        raise InputError(f"--sample: expected 1 or more questions, got {sample}")
    images = from_endobench(table)
    cards = [_card(place, row) for place, row in enumerate(_rows(table, with_images=False))]

    def show(card: Card) -> Shown:
        return Shown((address(images.sample(card.question).require_image()),))

    def summary(answers: pd.DataFrame) -> Summary:
        right = {card.id: card.asked[0].suggested for card in cards}
        names = ("accepted", "corrected")
        counts = Counter(
            "rejected" if letter in (None, REJECT) else names[letter != right[index]]
            for index, letter in decided(answers).items()
        )
        readers = answers["reader"].value_counts(sort=False).to_dict()
        figures = {name: counts[name] for name in (*names, "rejected")}
        figures["left"] = len(cards) - sum(counts.values())
        kappa = {"verdicts": agreement(answered(answers).values(), len(readers))}
        rows = pd.DataFrame(figures.items(), columns=["verdict", "questions"])
        notes = ["--out FOLDER writes what was accepted or corrected; a tie rejects"]
        whole = {"readers": readers, **figures, "kappa": kappa}
        return Summary(whole, {"what most say": rows}, notes)

    return Task("review", "Review", ABOUT, lambda: cards[:sample], cards, show, summary)


def decided(answers: pd.DataFrame) -> dict[str, str | None]:
    """Return the letter, or REJECT, that most reviewers chose, by question; None for a tie."""
    return {card: majority(chosen) for (card, _), chosen in answered(answers).items()}


def write_accepted(table: Path, answers: pd.DataFrame, path: Path) -> int:
    """Write the rows that most reviewers accepted, with the answer that most chose, and return
    their number. All other cells, images included, stay as they were."""
    verdicts = decided(answers)
    count = 0
    with whole_file(path) as file:
        writer = None
        for row in _rows(table):
            letter = verdicts.get(row["index"])
            if letter in (None, REJECT):
                continue
            writer = writer or csv.DictWriter(file, [*row], delimiter="\t", lineterminator="\n")
            if not count:
                writer.writeheader()
            changed = {"answer": letter, "gt": row[letter]}
            writer.writerow(row | {name: text for name, text in changed.items() if name in row})
            count += 1
        if not count:
            raise InputError(f"{table}: expected an accepted question, got none: review first")
    return count


def _card(place: int, row: dict[str, str]) -> Card:
    options = {letter: row[letter].strip() for letter in OPTIONS if row.get(letter, "").strip()}
    choices = {**options, REJECT: "Reject this question"}
    right = row["answer"].strip().upper()
    asked = Asked(VERDICT, row["question"].strip(), choices, unsure=False, suggested=right)
    return Card(row["index"], place, place, (row.get("task", "").strip(),), (asked,))


def _rows(table: Path, *, with_images: bool = True) -> Iterator[dict[str, str]]:
    """Yield the rows of a table that ``from_endobench`` could read, some in memory at a time."""
    wanted = None if with_images else lambda column: column != "image"
    options: Any = {"dtype": str, "keep_default_na": False, "chunksize": ROWS, "usecols": wanted}
    with pd.read_csv(table, sep="\t", **options) as parts:
        for part in parts:
            part["index"] = part["index"].str.strip()
            yield from part.to_dict("records")
