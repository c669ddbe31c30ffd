"""The failures in pictures: failing calls, captions that break a rule, questions on which two
models disagree, and slices. gallery.js makes a card of the data of each call.

Pictures stand in the page as data addresses, each once, as long as there is room.
"""

from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ...certify.decisions import ALIKE
from ...certify.tracks import unseen
from ...families import Overall
from ...journal.rows import AnswerRow
from ...oracles.caption_rules import ERROR_TYPES, rule_text
from ...oracles.findings import caption_findings
from ...oracles.findings import judged as judged_captions
from ...types import JsonObject
from ...utils.figures import shorten
from ...utils.image_codec import declared_size
from ..difference import names_of
from ..replies import MAX_REPLY
from .evidence import Evidence, Failure
from .section import THIN, Section, data

MAX_CHARACTERS = 6_000_000
"""Characters of all pictures of the gallery together, so that the page can be mailed."""
SMALL_PNG = 6_000
"""PNGs of so many bytes stay as they are; larger ones become WebP, at a tenth of the size."""
QUALITY = 82
"""Quality of WebP, 1 to 100: its faults do not show next to those of an image."""
LARGEST_SIDE = 1024
"""Pixels a side that are decoded, at most: a journal's own are far smaller."""
NO_ROOM = "left out: this page would be too large to send"


class Picture(NamedTuple):
    """A picture as a data address, and its size in pixels."""

    address: str
    width: int
    height: int


class Album:
    """Pictures by number, each once.

    Args:
        room: Most characters of their addresses together.

    Attributes:
        full: Number of pictures that were left out for lack of room.
    """

    def __init__(self, room: int = MAX_CHARACTERS) -> None:
        self.pictures: list[Picture] = []
        self._places: dict[bytes, int] = {}
        self._room, self.full = room, 0

    def add(self, png: bytes | None) -> int | None:
        """Return the picture's number; None if there is none, or it does not fit any more."""
        if png is None:
            return None
        if png not in self._places:
            made = picture(png)
            if len(made.address) > self._room:
                self.full += 1
                return None
            self._room -= len(made.address)
            self._places[png] = len(self.pictures)
            self.pictures.append(made)
        return self._places[png]

    def view(self, png: bytes | None, caption: str) -> JsonObject:
        """Return a picture's number and caption.

        The number is None if there is no picture to show; then ``bare`` is the reason.
        """
        number = self.add(png)
        why = {} if number is not None or png is None else {"bare": NO_ROOM}
        return {"picture": number, "caption": caption, **why}


def picture(png: bytes) -> Picture:
    """Return a PNG as it is, or, where that is large, as WebP."""
    width, height = declared_size(png) or (1, 1)
    kind, data = "png", png
    if len(png) > SMALL_PNG and max(width, height) <= LARGEST_SIDE:
        import cv2

        image = cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_COLOR)
        if image is not None:
            done, webp = cv2.imencode(".webp", image, [cv2.IMWRITE_WEBP_QUALITY, QUALITY])
            if done and len(webp) < len(png):
                kind, data = "webp", webp.tobytes()
    return Picture(f"data:image/{kind};base64," + b64encode(data).decode("ascii"), width, height)


SLICES_ROOM = 1_000_000
"""Characters of all pictures of slices."""
OTHER = "other"
"""A broken rule for which the paper has no error type, as a number that changed."""
EXAMPLES = 6
"""Pictures of a slice, at most."""

Menu = tuple[str, Iterable[tuple[Any, str]]]
"""A heading, and options: their values, and their words."""


class Gallery:
    """Cards of calls, with their pictures. A card is what gallery.js shows of a call: its views (a
    picture's number with its caption) and its lines, which have ``key`` and ``truth`` to filter by
    and the rest in words.

    Args:
        evidence: What the cards are made of.
        failed: Number of all such calls, if not all of them have a card.
    """

    def __init__(self, evidence: Evidence, failed: int = 0) -> None:
        self.evidence, self.album, self.failed = evidence, Album(), failed
        self.cards: list[JsonObject] = []

    def add(
        self,
        call: int,
        lines: list[JsonObject],
        targets: Iterable[int],
        note: str = "",
        views: list[JsonObject] | None = None,
    ) -> None:
        """Add the card of a call. Its views are, by default, the follow-up, after its source where
        that differs; none of items."""
        evidence = self.evidence
        drawn = evidence.drawn[call]
        _, relation, severity = evidence.asked(drawn.question)
        change = evidence.change(relation, severity)
        if views is None:
            source, follow_up = evidence.pictures.get(call, (None, None))
            pictures: list[tuple[bytes | None, str]] = []
            pictures += [(source, "source")] if source is not None and source != follow_up else []
            pictures += [(follow_up, change)] if evidence.sample == "image" else []
            views = [self.album.view(*each) for each in pictures]
        # lines quote answers in words themselves
        reply = "" if evidence.in_words else evidence.call_of[call].reply
        self.cards.append(
            {
                "id": call,
                "sample": drawn.sample,
                "relation": evidence.relations.index(relation),
                "severity": severity,
                "change": change,
                "views": views,
                "lines": lines,
                "note": note,
                "reply": shorten(" ".join(reply.split()), MAX_REPLY),
                "targets": sorted(targets),
            }
        )

    def section(
        self, intro: str, first: str, concepts: Menu, sides: Menu, *, wide: bool = False
    ) -> Section:
        """Return the section of all cards: in turn from each image change and concept, so that the
        first ones are not all alike.

        Args:
            intro: Which calls these are.
            first: Which of each kind come first, in words: the order in which they were added.
            concepts: Menu of concepts.
            sides: Menu of sides.
            wide: Whether cards are wide.
        """
        evidence, album, cards, kinds = self.evidence, self.album, self.cards, list[str]()
        for name, of in ((concepts[0], _concept_of), ("image change", itemgetter("relation"))):
            if len(set(map(of, cards))) > 1:
                cards, kinds = in_turn(cards, of), [name.lower(), *kinds]
        cards.sort(key=lambda card: any(view["picture"] is None for view in card["views"]))
        certified = evidence.certificate.targets if evidence.certificate else ()
        severities = sorted({severity for _, severity in evidence.variants})
        filters = [
            ("target", "Certified target", list(enumerate(certified))),
            ("relation", "Relation", list(enumerate(evidence.relations))),
            ("severity", "Severity", [(k, str(k)) for k in severities]),
            ("concept", concepts[0], list(concepts[1])),
            ("truth", sides[0], list(sides[1])),
        ]
        bare = sum(all(v["picture"] is None and "bare" not in v for v in c["views"]) for c in cards)
        return evidence.section(
            "Failures",
            "failures",
            late=data("pictures", album.pictures),
            failed=max(self.failed, len(cards)),
            listed=len(cards),
            bare=0 if evidence.sample == "item" else bare,
            full=album.full,
            intro=intro,
            order=f"in turn from each {' and '.join(kinds)}, {first}" if kinds else first,
            filters=[each for each in filters if len(each[2]) > 1],
            items=data("failures-data", cards),
            wide=wide,
        )


def _concept_of(card: JsonObject) -> object:
    return card["lines"][0]["key"]


def in_turn(cards: Sequence[JsonObject], of: Callable[[JsonObject], object]) -> list[JsonObject]:
    """Return the first card of each kind, which is ``of`` a card, then the second of each, and so
    on."""
    kinds = pd.Series([of(card) for card in cards], dtype=object)
    turns = kinds.groupby(kinds, dropna=False).cumcount().sort_values(kind="stable")
    return [cards[place] for place in turns.index]


def failures_section(evidence: Evidence) -> Section:
    """Show all failures."""
    if not evidence.of_concepts:
        return _broken_captions(evidence)
    gallery = Gallery(evidence, failed=len(evidence.wrong))
    classes = evidence.space.concepts_are == "classes" and len(evidence.concepts) > 1
    for failure in evidence.failures:
        right, one = failure.right, _class_line(evidence, failure.call) if classes else None
        lines = [one] if one else [evidence.line(row) for row in failure.mistakes]
        note = f"{right} other {'answer' if right == 1 else 'answers'} right" if right else ""
        gallery.add(failure.call, lines, failure.targets, "" if one else note)
    sides = [(1, "where it is present"), (0, "where it is absent")]
    menus = (
        ("True class" if classes else "Concept", enumerate(evidence.concepts)),
        ("Side", sides if evidence.sided and not classes else []),
    )
    if evidence.by_people:
        words = "Items with a loss of 0.5 or more, or without one", "the highest losses first"
    else:
        words = "Calls with a wrong or missing answer", "the most confident mistakes first"
    return gallery.section(*words, *menus)


def _class_line(evidence: Evidence, call: int) -> JsonObject | None:
    """Return the true class of an image and the likeliest of all classes that have a probability.

    None if the true class is not known, or is the likeliest.
    """
    rows = evidence.call_of[call].answers
    true = next((row for row in rows if row.truth == 1 and row.loss is not None), None)
    given = [row for row in rows if row.answer is not None]
    top = max(given, key=lambda row: row.answer or 0.0, default=None)
    if true is None or top is true:
        return None
    line, names = evidence.line(true), evidence.concepts
    if top is not None:  # else the text says why there is no answer
        share = f"{round(100 * (top.answer or 0.0))}{THIN}%"
        line["text"] = f"predicted: {names[top.question % len(names)]} ({share})"
    return {**line, "name": f"true: {line['name']}", "is": "", "at": None}


def two_answers_section(evidence: Evidence) -> Section:
    """Show the questions that only one of two models answered rightly, with both answers; of drops
    those that were answered rightly about one of the changed and the original image."""
    names, gallery = names_of(evidence.facts), Gallery(evidence)
    old, new = ("", "") if names == ("A", "B") else (f", {name}" for name in names)
    drops = evidence.certificate is not None and evidence.certificate.drops
    first, second = ("changed", "original") if drops else ("A", "B")
    true_class = drops and evidence.space.concepts_are == "classes"

    def apart(row: AnswerRow) -> float:
        """Return half the difference of the models' losses, 0 to 1/2."""
        return abs((row.loss or 0) - ALIKE)

    calls = []
    for call in evidence.calls:
        rows = [a for a in call.answers if a.loss not in (None, ALIKE) and not a.excluded]
        rows = [row for row in rows if row.truth == 1 or not true_class]
        if rows:
            calls.append((call.call, sorted(rows, key=lambda row: -apart(row))))
    calls.sort(key=lambda each: -apart(each[1][0]))
    targets = evidence.targets_of({n: [row.question for row in rows] for n, rows in calls})
    for number, rows in calls:
        lines = []
        for row in rows:
            a, b = (evidence.of_model((row.details or {}).get(n, {})) for n in "ab")
            both = {"text": f"{first} {a}; {second} {b}", "truth": int((row.loss or 0) > ALIKE)}
            lines.append({**evidence.line(row), **both, "at": None})
        gallery.add(number, lines, targets[number])
    intro = f"Calls in which the models disagree (A: the old model{old}; B: the new one{new})"
    sides: Menu = "Better model", [(1, "the new model, B"), (0, "the old model, A")]
    if drops:
        intro = "Calls whose answer is better or worse than that about the original image"
        sides = "Changed image", [(1, "worse"), (0, "better")]
    concepts = "Concept", enumerate(evidence.concepts)
    return gallery.section(intro, "the largest differences first", concepts, sides)


# -- captions that break a rule --------------------------------------------------------------------


def captions_section(evidence: Evidence) -> Section | None:
    """Show how many objects were checked, and violations by relation and type of error; None if
    no answer is a caption with findings."""
    figures = caption_findings(evidence.calls, evidence.draws)
    if figures is None:
        return None
    counts: dict[str, Counter[str]] = {name: Counter() for name in evidence.relations}
    for answer in judged_captions(evidence.calls):
        _, relation, _ = evidence.asked(answer.question)
        counts[relation].update(each["type"] or OTHER for each in _broken(answer))
    rows = [
        {"relation": name, **{t: broken[k] for k, t in ERROR_TYPES.items()}, "all": broken.total()}
        for name, broken in counts.items()
    ]
    table = pd.DataFrame(rows)
    return evidence.section("Caption violations", "captions", figures=figures, counts=table)


def _broken(answer: AnswerRow) -> list[Mapping[str, Any]]:
    return [each for each in (answer.details or {})["objects"] if each["rule"] is not None]


def _broken_captions(evidence: Evidence) -> Section:
    """Show every follow-up with a violation: both pictures with boxes, both captions, the object,
    the rule."""

    def status(each: Mapping[str, Any]) -> str:
        visible = each["visible"]
        return each["status"] + ("" if visible is None else f", {visible:.0%} in view")

    gallery = Gallery(evidence)
    wrong = [a for a in judged_captions(evidence.calls) if a.loss and _broken(a)]
    targets = evidence.targets_of({answer.call: [answer.question] for answer in wrong})
    for answer in wrong:
        details = answer.details or {}
        source, follow_up = evidence.pictures.get(answer.call, (None, None))
        album, objects = gallery.album, details["objects"]
        before = album.view(source, f"“{details['source']}”")
        after = album.view(follow_up, f"“{details['caption']}”")
        views = [
            _boxed(before, details["size"], objects, "boxes"),
            _boxed(after, details.get("shown_size"), objects, "shown"),
        ]
        lines = [
            {
                "key": each["type"] or OTHER,
                "truth": None,
                "name": each["name"],
                "is": status(each),
                "text": ERROR_TYPES.get(each["type"], "another error"),
                "at": None,
                "rule": rule_text(each),
            }
            for each in _broken(answer)
        ]
        others = [f"{each['name']} ({status(each)})" for each in objects if each["rule"] is None]
        note = f"Also: {', '.join(others)}" if others else ""
        gallery.add(answer.call, lines, targets[answer.call], note, views)
    met = {line["key"] for card in gallery.cards for line in card["lines"]}
    kinds = [*ERROR_TYPES.items(), (OTHER, "of another kind")]
    intro, first = "Follow-ups whose caption breaks a rule", "in the order of the audit"
    types = [(kind, words) for kind, words in kinds if kind in met]
    return gallery.section(intro, first, ("Error type", types), ("Side", []), wide=True)


def _boxed(
    view: JsonObject, size: Sequence[int] | None, objects: Sequence[Mapping[str, Any]], where: str
) -> JsonObject:
    """Return the view with ``boxes``: left, top, width and height in percent of the picture, the
    object in it, and whether that breaks a rule. ``size``: height and width that objects are placed
    in."""
    if not size:
        return {**view, "boxes": [], "ratio": 1.0}
    (height, width), boxes = size, []
    for each in objects:
        for left, top, right, bottom in each.get(where) or ():
            place = left / width, top / height, (right - left) / width, (bottom - top) / height
            broken = each["rule"] is not None
            boxes.append((*(100 * share for share in place), str(each["name"]), broken))
    return {**view, "boxes": boxes, "ratio": width / height}


# -- slices ----------------------------------------------------------------------------------------


def slices_section(evidence: Evidence) -> Section | None:
    """Show a card per slice: groups that the audit noticed to fail often, each with its interval
    and pictures; None if the audit did not look for any."""
    certificate = evidence.certificate
    if certificate is None or not (certificate.set_aside or certificate.slices):
        return None
    album, own = Album(SLICES_ROOM), evidence.standings[certificate.registered :]
    rates = unseen(certificate, evidence.calls, [(s.lower, s.upper) for s in own])
    overall = [s.upper for s in evidence.standings if isinstance(s.id, Overall)]
    slices = []
    for noticed, standing, rate in zip(certificate.slices, own, rates, strict=True):
        failures = [f for f in evidence.failures if standing.place in f.targets]
        # wholly above that of all questions: the failures it was noticed by speak for themselves
        apart = bool(overall) and rate is not None and rate.lower > overall[0]
        slices.append((noticed, standing, rate, apart, _examples(failures, album)))
    return evidence.section("Slices", "slices", slices=slices)


def _examples(failures: Sequence[Failure], album: Album) -> list[tuple[Picture, str]]:
    """Return failing follow-ups, the surest mistakes first, each image once."""
    examples: dict[str, tuple[Picture, str]] = {}
    for failure in failures:
        if failure.pictures and failure.sample not in examples and len(examples) < EXAMPLES:
            number = album.add(failure.pictures[1])
            if number is not None:
                caption = f"{failure.sample}, {failure.change}"
                examples[failure.sample] = (album.pictures[number], caption)
    return list(examples.values())
