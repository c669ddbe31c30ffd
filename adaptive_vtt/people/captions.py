"""What there is to label: every object that a caption audit looked at, with its pre-label."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import InputError, JournalError
from ..journal import Journal
from ..journal.facts import read_facts
from ..oracles.caption_rules import ERROR_TYPES, rule_of
from ..utils.random_streams import generator
from .cards import NONE, Asked, Card, Key

CHOICES = {NONE: "no error"} | {type: f"{type}: {what}" for type, what in ERROR_TYPES.items()}
"""What may be said of an object."""


@dataclass(frozen=True)
class Item:
    """One object of one follow-up as it was judged.

    ``relation`` and ``reduction``: what was done to the source; ``source`` and ``caption``:
    both captions; ``size``: height and width of the source; ``boxes``: where in it the object
    is (left, top, right, bottom in pixels); ``visible``: the share of it that the follow-up
    shows, None where not located; ``status``: retained, ambiguous, disappeared, unlocated or
    new; ``said``: whether the follow-up's caption names it; ``rule``: the one it breaks, None
    for none; ``guess``: the automatic pre-label of a violation, None where there is none.
    """

    question: int
    call: int
    sample: str
    relation: str
    reduction: str
    source: str
    caption: str
    object: str
    size: tuple[int, int]
    boxes: tuple[tuple[float, float, float, float], ...]
    visible: float | None
    status: str
    said: bool
    rule: int | None
    guess: str | None

    @property
    def key(self) -> Key:
        return self.question, self.object

    @property
    def change(self) -> str:
        """Relation and reduction in words."""
        return f"{self.relation} ({self.reduction})"

    @property
    def reported(self) -> bool:
        """Whether the audit calls it a violation."""
        return self.rule is not None

    @property
    def prelabel(self) -> str | None:
        """The label to confirm: a type or NONE; None for a violation of no known type."""
        return self.guess if self.reported else NONE


def items(journal: Journal) -> list[Item]:
    """All objects with journaled details, by call and question.

    Raises JournalError where no audit was begun, where no answer carries the details of a
    caption audit, and for details that are not as the oracle writes them.
    """
    space = read_facts(journal.facts()).space
    samples = {draw.call: draw.sample for draw in journal.draws(proposals=False)}
    found = []
    for call in journal.calls():
        for answer in call.answers:
            details = answer.details
            if answer.loss is None or details is None or "objects" not in details:
                continue
            _, variant, _ = space.numbering.parts(answer.question)
            relation, _ = space.variants[variant]
            found += of_details(answer.question, call.call, samples[call.call], relation, details)
    if not found:
        raise JournalError(
            "labels: no answer in this journal names objects; only audits of captions can be "
            "labelled"
        )
    return found


def of_details(
    question: int, call: int, sample: str, relation: str, details: Mapping[str, Any]
) -> list[Item]:
    """The objects of one judged answer; ``details`` as journaled by the oracle."""
    try:
        height, width = map(int, details["size"])
        found = [
            Item(
                question,
                call,
                sample,
                relation,
                str(details["reduction"]),
                str(details["source"]),
                str(details["caption"]),
                str(entry["name"]),
                (height, width),
                tuple(_box(box) for box in entry["boxes"]),
                None if entry["visible"] is None else float(entry["visible"]),
                str(entry["status"]),
                bool(entry["said"]),
                None if entry["rule"] is None else int(entry["rule"]),
                entry["type"],
            )
            for entry in details["objects"]
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise JournalError(
            f"details of question {question}: expected what an audit of captions writes, got "
            f"something else ({type(error).__name__}: {error})"
        ) from None
    if len({item.key for item in found}) < len(found):
        raise JournalError(f"details of question {question}: an object stands there twice")
    return found


def to_label(found: Sequence[Item], sample: int | None, seed: int) -> list[Item]:
    """Violations first; then, for recall, what else stands in ``sample`` random follow-ups.

    Follow-ups come in one random order (by ``seed``, the same for every inspector), so that
    whatever was labelled when somebody stops is a random part. The ``sample`` follow-ups are
    drawn from all, those with violations included; None takes all, 0 none. Raises
    InputError for a negative number.
    """
    if sample is not None and sample < 0:
        raise InputError(f"sample: expected 0 or more follow-ups, got {sample}")
    questions = sorted({item.question for item in found})
    shuffled = generator(seed, "labelling").permutation(questions).tolist()
    drawn = set(shuffled[:sample])
    place = {question: k for k, question in enumerate(shuffled)}
    ordered = sorted(found, key=lambda item: place[item.question])
    rest = [item for item in ordered if not item.reported and item.question in drawn]
    return [item for item in ordered if item.reported] + rest


def card_of(item: Item) -> Card:
    """The object as a card: of the number of its question, which it shares with other objects."""
    asked = Asked(item.object, item.object, CHOICES, unsure=False, suggested=item.prelabel)
    return Card(
        item.question,
        item.question,
        item.call,
        (f"source {item.sample}", item.change),
        (asked,),
        captions=(item.source, item.caption),
        mark=item.object,
        boxes=item.boxes,
        size=item.size,
        told=(("verdict", _verdict(item)), ("visible", _visibility(item))),
    )


def _visibility(item: Item) -> str:
    """How much of the object the follow-up shows, and whether its caption names it."""
    named = "named" if item.said else "not named"
    if item.visible is None:
        return f"not known ({item.status}), {named}"
    return f"{100 * item.visible:.0f} % ({item.status}), {named}"


def _verdict(item: Item) -> str:
    """What the audit says of the object; the rule is spelt out."""
    if item.rule is None:
        return "no violation"
    return f"breaks rule {item.rule}: {rule_of(item.relation, item.rule)}"


def _box(box: Sequence[Any]) -> tuple[float, float, float, float]:
    left, top, right, bottom = map(float, box)
    return left, top, right, bottom
