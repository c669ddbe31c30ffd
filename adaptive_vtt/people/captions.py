"""Labelling of an audit of captions: people confirm or correct its verdicts on objects.

The figures are Tables I and VI of REIC for one audit. The majority of those who labelled an object
decides whether the audit's verdict is right. If only some of the reported, or of the other, objects
are labelled, their shares are extrapolated to all: the labelled ones are random (``to_label``). All
figures are about the follow-ups that the audit asked about, which are no even sample.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from ..errors import InputError, JournalError
from ..journal import Journal
from ..journal.facts import read_facts
from ..journal.rows import AnswerRow
from ..models.local.recorded import card_id
from ..oracles.caption_rules import ERROR_TYPES, rule_text
from ..utils.random_streams import generator
from .agreement import agreement, answered, majority, scores
from .cards import NONE, Asked, Card, Pictures, Summary, Task

ABOUT = (
    "Is the object handled right by both captions? Enter confirms the audit's report, if there is "
    "one. The visible part of the object counts, not the words alone."
)
CHOICES = {NONE: "no error"} | {type: f"{type}: {what}" for type, what in ERROR_TYPES.items()}
UNKNOWN = "unknown"
"""Type of a violation without pre-label, or without a majority for one type."""


@dataclass(frozen=True)
class Item:
    """One object of one follow-up.

    Attributes:
        card: Its card.
        relation: The relation of the follow-up.
        reported: Whether the audit reports a violation.
        guess: Automatic pre-label of the violation's type, or None.
    """

    card: Card
    relation: str
    reported: bool
    guess: str | None

    @property
    def key(self) -> tuple[str, str]:
        return self.card.id, self.card.asked[0].id


def captions_task(
    journal: Journal, pictures: Pictures, sample: int | None, everything: bool
) -> Task:
    """Return the labelling of a caption audit's objects: all violations, and all other objects in
    ``sample`` random follow-ups, or in all."""
    listed, seed = items(journal), read_facts(journal.facts()).settings.seed

    def cards() -> list[Card]:
        chosen = to_label(listed, None if everything else sample or 0, seed)
        if not chosen:
            raise InputError("nothing to label: no violation; --sample or --all asks more")
        return [item.card for item in chosen]

    known, summary = [item.card for item in listed], partial(summarise, listed)
    return Task("labels", "Labels", ABOUT, cards, known, pictures.of, summary)


def items(journal: Journal) -> list[Item]:
    """Return all objects with journaled details, by call and question.

    Raises:
        JournalError: No audit was begun, no answer has details of captions, or they are not as
            the oracle writes them.
    """
    space = read_facts(journal.facts()).space
    samples = {draw.call: draw.sample for draw in journal.draws(proposals=False)}
    listed: list[Item] = []
    for call in journal.calls():
        for answer in call.answers:
            if answer.loss is None or answer.details is None or "objects" not in answer.details:
                continue
            details, where = answer.details, f"details of question {answer.question}"
            _, variant, _ = space.numbering.parts(answer.question)
            picture = (samples[call.call], *space.variants[variant])
            try:
                made = [_item(answer, picture, details, entry) for entry in details["objects"]]
            except (KeyError, TypeError, ValueError) as error:
                raise JournalError(
                    f"{where}: expected what an audit of captions writes, got something else "
                    f"({type(error).__name__}: {error})"
                ) from None
            if len({item.key for item in made}) < len(made):
                raise JournalError(f"{where}: expected each object once, got one twice")
            listed += made
    if listed:
        return listed
    raise JournalError(
        "labels: expected an audit of captions, got another; --realism and --questions take any"
    )


def _item(
    answer: AnswerRow,
    picture: tuple[str, str, int],
    details: Mapping[str, Any],
    entry: Mapping[str, Any],
) -> Item:
    name, rule, visible = str(entry["name"]), entry["rule"], entry["visible"]
    verdict = "no violation" if rule is None else f"breaks rule {rule}: {rule_text(entry)}"
    seen = "not known" if visible is None else f"{100 * visible:.0f} %"
    named = "named" if entry["named"] else "not named"
    height, width = details["size"]
    card = Card(
        card_id(*picture),
        answer.question,
        answer.call,
        (f"source {picture[0]}", f"{picture[1]} ({details['reduction']})"),
        (Asked(name, name, CHOICES, unsure=False, suggested=entry["type"] if rule else NONE),),
        (str(details["source"]), str(details["caption"])),
        name,
        tuple((float(x1), float(y1), float(x2), float(y2)) for x1, y1, x2, y2 in entry["boxes"]),
        (int(height), int(width)),
        (("verdict", verdict), ("visible", f"{seen} ({entry['status']}), {named}")),
    )
    return Item(card, picture[1], rule is not None, entry["type"])


def to_label(listed: Sequence[Item], sample: int | None, seed: int) -> list[Item]:
    """Return violations first, and then, for recall, the other objects in random follow-ups.

    The order of follow-ups is random, and the same for every reader, so that whoever stops early
    has labelled a random part.

    Args:
        listed: All objects.
        sample: Number of follow-ups for recall, drawn from all, those with violations included.
            None takes all, 0 none.
        seed: Seed of the order.

    Raises:
        InputError: The number is negative.
    """
    if sample is not None and sample < 0:
        raise InputError(f"--sample: expected 0 or more follow-ups, got {sample}")
    questions = sorted({item.card.question for item in listed})
    shuffled = generator(seed, "labelling").permutation(questions).tolist()
    place, drawn = {question: k for k, question in enumerate(shuffled)}, set(shuffled[:sample])
    ordered = sorted(listed, key=lambda item: place[item.card.question])
    others = [item for item in ordered if not item.reported and item.card.question in drawn]
    return [item for item in ordered if item.reported] + others


# -- scores of the audit's verdicts ----------------------------------------------------------------


def summarise(listed: Sequence[Item], answers: pd.DataFrame) -> Summary:
    """Return the summary of all readers' labels.

    It has the scores of the audit's verdicts on objects and on follow-ups, the types of right
    violations, and the readers' agreement.
    """
    known = {item.key: item for item in listed}
    given = {key: labels for key, labels in answered(answers).items() if key in known}
    is_error = {key: majority(label != NONE for label in labels) for key, labels in given.items()}
    cases: dict[str, list[Item]] = {}
    for item in listed:
        cases.setdefault(item.card.id, []).append(item)
    # the verdict on a follow-up with reported violations is right if any of these is an error; the
    # verdict on another follow-up is right if no object is an error
    parts = [([item for item in case if item.reported], case) for case in cases.values()]
    follow_ups = [(bool(reported), reported or case) for reported, case in parts]
    levels = {
        "objects": _level([(item.reported, [item]) for item in listed], is_error),
        "cases": _level(follow_ups, is_error),
    }
    decided = [key for key, error in is_error.items() if error is not None and known[key].reported]
    guesses = pd.Series([known[key].guess or UNKNOWN for key in decided], name="pre-label")
    # the commonest type among the readers who see an error
    typed = {key: majority(x for x in given[key] if x != NONE) or UNKNOWN for key in decided}
    labels = pd.Series([typed[key] if is_error[key] else NONE for key in decided])
    types = pd.crosstab(guesses, labels)
    readers = answers["reader"].value_counts(sort=False).to_dict()
    kappa = {
        "errors": agreement(given.values(), len(readers), lambda label: label != NONE),
        "types": agreement((row for row in given.values() if NONE not in row), len(readers)),
    }
    tables = {
        "verdicts against labels": pd.DataFrame(levels).T.reset_index(names=""),
        "violations: pre-label and label": types.reset_index(),
    }
    partly = f"{len(given)} of {len(listed)} objects are labelled, and stand for the rest"
    notes = [partly] * (len(given) < len(listed))
    figures = {"readers": readers, **levels, "types": types.to_dict("index"), "kappa": kappa}
    return Summary(figures, tables, notes)


def _level(
    rows: Sequence[tuple[bool, list[Item]]], is_error: Mapping[tuple[str, str], bool | None]
) -> dict[str, float | None]:
    """Return counts and scores of verdicts.

    Args:
        rows: For each verdict, whether a violation was reported, and the objects it is about. There
            is an error if any object is one. A verdict counts once all its objects are labelled.
        is_error: Key of an object -> whether it is an error, None for a tie.
    """
    counts: Counter[tuple[bool, bool | None]] = Counter()
    for reported, objects in rows:
        verdicts = {is_error[item.key] for item in objects if item.key in is_error}
        if all(item.key in is_error for item in objects):
            counts[reported, True in verdicts or (None if None in verdicts else False)] += 1
    whole: list[float] = []  # counts of labelled verdicts, scaled to the number of all
    for reported in (True, False):
        error, fine = counts[reported, True], counts[reported, False]
        total = sum(side is reported for side, _ in rows)
        scale = total / (error + fine) if error + fine else np.nan if total else 0
        whole += [error * scale, fine * scale]
    pairs = zip(("tp", "fp", "fn", "tn"), product((True, False), (True, False)), strict=True)
    return {
        **{name: counts[pair] for name, pair in pairs},
        "undecided": counts[True, None] + counts[False, None],
        **scores(*whole),
    }
