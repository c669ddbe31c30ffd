"""What there is to label: every object that a caption audit looked at, with its pre-label."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ..errors import InputError, JournalError
from ..journal import Journal
from ..journal.facts import read_facts
from ..oracles.caption_rules import ERROR_TYPES, rule_text
from ..types import JsonObject
from ..utils.random_streams import generator
from ..utils.web import sentences
from .agreement import Scores, kappa_of, majority, scores
from .answers import Answers, by_question
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
    for none; ``rule_text``: its words; ``guess``: the automatic pre-label of a violation, None
    where there is none.
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
    rule_text: str = ""

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
                "" if entry["rule"] is None else rule_text(entry),
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
    named = "named" if item.said else "not named"
    if item.visible is None:
        return f"not known ({item.status}), {named}"
    return f"{100 * item.visible:.0f} % ({item.status}), {named}"


def _verdict(item: Item) -> str:
    if item.rule is None:
        return "no violation"
    return f"breaks rule {item.rule}: {item.rule_text}"


def _box(box: Sequence[Any]) -> tuple[float, float, float, float]:
    left, top, right, bottom = map(float, box)
    return left, top, right, bottom


# -- what the labels say of the audit's verdicts ---------------------------------------------------
# Tables I and VI of REIC for one audit. Each object, reported as a violation or not, is right or
# wrong by the majority of those who labelled it. Where only a part of the reported or of the other
# objects was labelled, its shares stand for the rest; labelled parts are random (``to_label``). All
# figures are about the follow-ups the audit asked about, which an adaptive audit does not choose
# evenly.


Verdict = Literal["error", "fine"]
UNKNOWN = "unknown"
"""Stands for the type of a violation without pre-label, or of which labels differ."""
_LABELS = (*ERROR_TYPES, NONE, UNKNOWN)


@dataclass(frozen=True)
class Level:
    """Verdicts at one level, against labels.

    ``reported`` and ``others``: how many there are; ``tp``, ``fp``, ``fn``, ``tn``: how many
    of them were labelled, and how; ``undecided``: opinions are divided. The scores hold for
    all, labelled or not, and are None where too little was labelled to tell.
    """

    reported: int
    others: int
    tp: int
    fp: int
    fn: int
    tn: int
    undecided: int
    scores: Scores


@dataclass(frozen=True)
class Agreement:
    """Fleiss' kappa over ``count`` objects that all inspectors labelled; None: undefined."""

    kappa: float | None
    count: int


@dataclass(frozen=True)
class Summary:
    """The figures of one audit's labels.

    ``labelled``: objects per inspector. ``types``: violations by majority type, those on
    whose type opinions are divided under UNKNOWN. ``confusion``: pre-label -> label -> count,
    of labelled violations. ``errors`` and ``kinds``: agreement on whether there is an error,
    and, of objects that all call one, on its type. ``notes``: what could not be told, and why.
    """

    labelled: dict[str, int]
    objects: Level
    cases: Level
    types: dict[str, int]
    confusion: dict[str, dict[str, int]]
    errors: Agreement
    kinds: Agreement
    notes: list[str] = field(default_factory=list)

    def as_dict(self) -> JsonObject:
        """The figures for JSON; what is unknown is null."""
        return asdict(self)


def summarise(items: Sequence[Item], folder: Mapping[str, Answers]) -> Summary:
    """The figures of ``folder``'s labels (inspector -> labels) of all judged ``items``."""
    known = {item.key: item for item in items}
    given = {key: labels for key, labels in by_question(folder).items() if key in known}
    verdicts = {key: _decided(labels) for key, labels in given.items()}
    errors = _agreement(given, len(folder), _is_error, lambda labels: True)
    kinds = _agreement(given, len(folder), str, lambda labels: all(map(_is_error, labels)))
    confusion = _confusion(known, given, verdicts)
    objects = _level([(item.reported, [item.key]) for item in items], verdicts)
    cases = _cases(items, verdicts)
    return Summary(
        labelled={name: sum(key in known for key in own) for name, own in folder.items()},
        objects=objects,
        cases=cases,
        types={
            kind: sum(row[kind] for row in confusion.values()) for kind in (*ERROR_TYPES, UNKNOWN)
        },
        confusion=confusion,
        errors=errors,
        kinds=kinds,
        notes=sentences(
            Path(__file__).with_name("captions_notes.txt"),
            levels=[("objects", objects), ("cases", cases)],
            inspectors=len(folder),
            kappas=[("errors", errors), ("types", kinds)],
        ),
    )


def _is_error(label: str) -> bool:
    return label != NONE


def _decided(labels: Sequence[str]) -> Verdict | None:
    """What most say; None where opinions are divided."""
    error = majority(map(_is_error, labels))
    return None if error is None else "error" if error else "fine"


def _cases(items: Sequence[Item], verdicts: Mapping[Key, Verdict | None]) -> Level:
    """Follow-ups: a reported one is right where any violation reported in it is an error; any
    other is right where no object is one. It counts once all of these objects are labelled."""
    cases: dict[int, list[Item]] = {}
    for item in items:
        cases.setdefault(item.question, []).append(item)
    rows = []
    for case in cases.values():
        reported = [item.key for item in case if item.reported]
        rows.append((bool(reported), reported or [item.key for item in case]))
    return _level(rows, verdicts)


def _level(rows: Sequence[tuple[bool, list[Key]]], verdicts: Mapping[Key, Verdict | None]) -> Level:
    """``rows``: whether reported, and the objects of which any error makes it one."""
    counts: Counter[tuple[bool, Verdict]] = Counter()
    undecided = 0
    for reported, keys in rows:
        if any(key not in verdicts for key in keys):
            continue
        found = {verdicts[key] for key in keys}
        if None in found and "error" not in found:
            undecided += 1
        else:
            counts[reported, "error" if "error" in found else "fine"] += 1
    total = Counter(reported for reported, _ in rows)
    tp, fp = counts[True, "error"], counts[True, "fine"]
    fn, tn = counts[False, "error"], counts[False, "fine"]
    all_ = (*_scaled(tp, fp, total[True]), *_scaled(fn, tn, total[False]))
    return Level(total[True], total[False], tp, fp, fn, tn, undecided, scores(*all_))


def _scaled(one: int, other: int, total: int) -> tuple[float, float]:
    """The two counts, brought to add up to ``total``; NaN where there are none to tell by."""
    if one + other == 0:
        return (np.nan, np.nan) if total else (0.0, 0.0)
    return one / (one + other) * total, other / (one + other) * total


def _confusion(
    known: Mapping[Key, Item],
    given: Mapping[Key, Sequence[str]],
    verdicts: Mapping[Key, Verdict | None],
) -> dict[str, dict[str, int]]:
    """Pre-label -> label -> count, of violations on which people are decided."""
    found: dict[str, dict[str, int]] = {}
    for key, labels in given.items():
        if known[key].reported and verdicts[key]:
            # the type that most give of those who see an error
            kind = majority(filter(_is_error, labels)) or UNKNOWN
            label = kind if verdicts[key] == "error" else NONE
            row = found.setdefault(known[key].guess or UNKNOWN, dict.fromkeys(_LABELS, 0))
            row[label] += 1
    return {guess: found[guess] for guess in _LABELS if guess in found}


def _agreement(
    given: Mapping[Key, Sequence[str]],
    inspectors: int,
    choice: Callable[[str], Any],
    wanted: Callable[[Sequence[str]], bool],
) -> Agreement:
    """Of objects that all inspectors labelled and that are ``wanted``."""
    shared = [ls for ls in given.values() if len(ls) == inspectors and wanted(ls)]
    chosen = [[choice(label) for label in labels] for labels in shared]
    return Agreement(kappa_of(chosen), len(shared))
