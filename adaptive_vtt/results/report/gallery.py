"""What went wrong, in pictures: failing calls, captions that break a rule, where two models
disagree, and slices. gallery.js makes cards of what is told here of each call.
"""

from base64 import b64encode
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...certify.decisions import ALIKE
from ...certify.tracks import unseen
from ...families import Overall
from ...journal.rows import AnswerRow, CallRow
from ...oracles.caption_rules import ERROR_TYPES, rule_text
from ...oracles.findings import found as found_in_captions
from ...oracles.findings import judged as judged_captions
from ...types import JsonObject
from ...utils.image_codec import declared_size
from ..difference import names_of
from .content import Failure, question_in_words
from .evidence import Evidence
from .section import THIN, Section, data, span

MAX_CHARACTERS = 6_000_000
"""Of all pictures of the gallery together, so that the page can be mailed."""
SLICES_ROOM = 1_000_000
"""Of all pictures of slices."""
SMALL_PNG = 6_000
"""PNGs of so many bytes stay as they are; larger ones become WebP, at a tenth of the size."""
QUALITY = 82
"""Of WebP, 1 to 100: faults of the compression do not show beside those of an image."""
LARGEST_SIDE = 1024
"""Pixels a side that are decoded, at most: a journal's own are far smaller."""
SAID = 160
"""So much of an answer in words is shown."""
OTHER = "other"
"""A broken rule for which the paper has no error type, as a number that changed."""
NO_ROOM = "left out: this page would be too large to send"
EXAMPLES = 6
"""Pictures of a slice, at most."""

Options = list[tuple[Any, str]]
Card = JsonObject
"""What gallery.js makes a card of; see ``_card``."""


# -- pictures ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Picture:
    """A picture as a data address, and its size in pixels."""

    address: str
    width: int
    height: int


class Album:
    """Pictures by number, the same one once, as long as their addresses have ``room``; ``full``:
    how many were left out for lack of it."""

    def __init__(self, room: int = MAX_CHARACTERS) -> None:
        self.pictures: list[Picture] = []
        self._places: dict[bytes, int] = {}
        self._room = room
        self.full = 0

    def add(self, png: bytes | None) -> int | None:
        """The picture's number; None where there is none, or where it no longer fits."""
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
        """A picture's number, None where there is none to show, with its caption; ``bare``: why
        it is left out."""
        number = self.add(png)
        why = {} if number is not None or png is None else {"bare": NO_ROOM}
        return {"picture": number, "caption": caption, **why}


def picture(png: bytes) -> Picture:
    """A PNG as it is, or, where that is large, as WebP."""
    width, height = declared_size(png) or (1, 1)
    kind, data = "png", png
    if len(png) > SMALL_PNG and max(width, height) <= LARGEST_SIDE:
        kind, data = _smaller(png)
    return Picture(f"data:image/{kind};base64," + b64encode(data).decode("ascii"), width, height)


def _smaller(png: bytes) -> tuple[str, bytes]:
    import cv2
    import numpy as np

    image = cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_COLOR)
    if image is None:
        return "png", png
    done, data = cv2.imencode(".webp", image, [cv2.IMWRITE_WEBP_QUALITY, QUALITY])
    return ("webp", data.tobytes()) if done and len(data) < len(png) else ("png", png)


# -- cards ---------------------------------------------------------------------------------------


def section(evidence: Evidence) -> Section:
    """All failures, the surest mistakes first."""
    album = Album()
    if evidence.captioned:
        intro = "Every follow-up whose caption breaks a rule"
        return _cards(evidence, _broken_captions(evidence, album), album, intro, ("Side", []))
    cards = [_failed(evidence, failure, album) for failure in evidence.failures]
    intro = "Every call with a wrong or missing answer, the surest mistakes first"
    sides: Options = [(1, "where it is present"), (0, "where it is absent")]
    return _cards(evidence, cards, album, intro, ("Side", sides if evidence.sided else []))


def two_answers_section(evidence: Evidence) -> Section:
    """Two models compared: the questions that only one of them answered rightly, with both
    answers."""
    a, b = names_of(evidence.facts)
    old, new = ("", "") if (a, b) == ("A", "B") else (f", {a}", f", {b}")
    intro = (
        "Every call in which one model lost more than the other, the largest differences first: "
        f"A is the old model{old}; B is the new one{new}"
    )
    album = Album()
    apart = [(call, rows) for call in evidence.calls if (rows := _lost_differently(call))]
    apart.sort(key=lambda told: (told[0].call not in evidence.pictures, -_apart(told[1][0])))
    cards = []
    for call, rows in apart:
        asked = evidence.asked(rows[0].question)
        change = evidence.change(asked.relation, asked.severity)
        views = _pair(evidence, call.call, change, album)
        lines = [_both_said(evidence, row) for row in rows]
        targets = evidence.targets_of(call.call, (row.question for row in rows))
        cards.append(_card(evidence, call.call, views, lines, targets))
    sides: Options = [(1, "the new model, B"), (0, "the old model, A")]
    return _cards(evidence, cards, album, intro, ("Who lost less", sides))


def _cards(
    evidence: Evidence,
    cards: Sequence[Card],
    album: Album,
    intro: str,
    truth: tuple[str, Options],
) -> Section:
    """The section of these cards. ``truth``: heading and values of what lines have as "truth"."""
    bare = sum(all(v["picture"] is None and "bare" not in v for v in c["views"]) for c in cards)
    items = evidence.sample_word == "item"
    pictures = [[p.address, p.width, p.height] for p in album.pictures]
    return Section.of(
        "Where it fails",
        "failures",
        "gallery.html",
        late=data("pictures", pictures),
        failed=len(cards),
        judged=len(evidence.table),
        bare=0 if items else bare,
        full=album.full,
        intro=intro,
        captioned=evidence.captioned,
        filters=_filters(evidence, cards, truth),
        items=data("failures-data", cards),
    )


def _filters(
    evidence: Evidence, cards: Sequence[Card], truth: tuple[str, Options]
) -> list[tuple[str, str, Options]]:
    """What there is to choose from: name, heading, values with their words."""
    certificate = evidence.certificate
    kinds: Options = list(enumerate(evidence.concepts))
    if evidence.captioned:
        met = {line["key"] for card in cards for line in card["lines"]}
        known = {**ERROR_TYPES, OTHER: "of another kind"}
        kinds = [(kind, words) for kind, words in known.items() if kind in met]
    severities = sorted({severity for _, severity in evidence.variants})
    found: list[tuple[str, str, Options]] = [
        ("target", "Certified target", list(enumerate(certificate.targets if certificate else ()))),
        ("relation", "Relation", list(enumerate(evidence.relations))),
        ("severity", "Severity", [(k, str(k)) for k in severities]),
        ("concept", "Error type" if evidence.captioned else "Concept", kinds),
        ("truth", *truth),
    ]
    return [(name, title, options) for name, title, options in found if len(options) > 1]


def _card(
    evidence: Evidence,
    call: int,
    views: list[JsonObject],
    lines: list[JsonObject],
    targets: frozenset[int],
    note: str = "",
) -> Card:
    """A call. A view is a picture's number with its caption; a line has ``key`` and ``truth`` to
    filter by, and the rest of it in words."""
    drawn = evidence.drawn[call]
    asked = evidence.asked(drawn.question)
    return {
        "id": call,
        "sample": drawn.sample,
        "relation": evidence.relations.index(asked.relation),
        "severity": asked.severity,
        "change": evidence.change(asked.relation, asked.severity),
        "views": views,
        "lines": lines,
        "note": note,
        "targets": sorted(targets),
    }


def _pair(evidence: Evidence, call: int, change: str, album: Album) -> list[JsonObject]:
    """The follow-up, after its source where that differs; none where nothing is an image."""
    if evidence.sample_word == "item":
        return []
    source, follow_up = evidence.pictures.get(call, (None, None))
    views = [album.view(follow_up, change)]
    if source is not None and source != follow_up:
        views.insert(0, album.view(source, "source"))
    return views


def _failed(evidence: Evidence, failure: Failure, album: Album) -> Card:
    views = _pair(evidence, failure.call, failure.change, album)
    lines = [_line(evidence, mistake) for mistake in failure.mistakes]
    note = f"{failure.right} other {'answer' if failure.right == 1 else 'answers'} right"
    told = note if failure.right else ""
    return _card(evidence, failure.call, views, lines, failure.targets, told)


def _line(evidence: Evidence, row: AnswerRow) -> JsonObject:
    at = row.answer
    if row.said is not None:
        at = None
        said = f"“{row.said[:SAID]}”" + (f": {row.unanswered}" if row.unanswered else "")
    elif at is None:
        said = f"no answer: {row.unanswered or 'no reason was given'}"
    else:
        said = _number(evidence, at)
    truth = (row.truth or 0) if evidence.sided else None
    return {**_about(evidence, row), "truth": truth, "said": said, "at": at}


def _about(evidence: Evidence, row: AnswerRow) -> JsonObject:
    side = f"is {'present' if row.truth else 'absent'}"
    return {
        "key": row.question % len(evidence.concepts),
        "truth": None,
        "name": evidence.asked(row.question).concept,
        "is": side if evidence.sided else "",
        "said": "",
        "at": None,
        "asked": question_in_words(row),
    }


def _number(evidence: Evidence, answer: float) -> str:
    what = "score" if evidence.scored else "P(yes)"
    if evidence.settings.oracle.tells_losses:
        what = "loss"
    return f"{what} {100 * answer:.0f}{THIN}%"


# -- captions that break a rule: both pictures with boxes, both captions, the object, the rule ---


def captions_section(evidence: Evidence) -> Section | None:
    """How many objects were checked, and violations by relation and type of error; None where
    no answer is a caption with findings."""
    figures = found_in_captions(evidence.calls, evidence.draws)
    if figures is None:
        return None
    counts: dict[str, Counter[str]] = {name: Counter() for name in evidence.relations}
    for answer in judged_captions(evidence.calls):
        relation = evidence.asked(answer.question).relation
        counts[relation].update(one["type"] or OTHER for one in _broken(answer))
    table = [
        (name, [types[kind] for kind in ERROR_TYPES], types.total())
        for name, types in counts.items()
    ]
    return Section.of(
        "Captions that break a rule",
        "captions",
        "captions.html",
        figures=figures,
        table=table,
        types=ERROR_TYPES,
    )


def _broken(answer: AnswerRow) -> list[Mapping[str, Any]]:
    return [one for one in (answer.details or {})["objects"] if one["rule"] is not None]


def _broken_captions(evidence: Evidence, album: Album) -> list[Card]:
    """Every follow-up with a violation, those with pictures first."""
    wrong = [a for a in judged_captions(evidence.calls) if a.loss and _broken(a)]
    wrong.sort(key=lambda answer: answer.call not in evidence.pictures)
    return [_broken_caption(evidence, answer, album) for answer in wrong]


def _broken_caption(evidence: Evidence, answer: AnswerRow, album: Album) -> Card:
    told = answer.details or {}
    source, follow_up = evidence.pictures.get(answer.call, (None, None))
    objects = told["objects"]
    first, second = (f"“{told[name]}”" for name in ("source", "caption"))
    views = [
        _boxed(album.view(source, first), objects, "boxes", told["size"]),
        _boxed(album.view(follow_up, second), objects, "shown", told.get("shown_size")),
    ]
    lines = [
        {
            "key": one["type"] or OTHER,
            "truth": None,
            "name": one["name"],
            "is": _status(one),
            "said": ERROR_TYPES.get(one["type"], "another error"),
            "at": None,
            "rule": rule_text(one),
        }
        for one in _broken(answer)
    ]
    others = [f"{one['name']} ({_status(one)})" for one in objects if one["rule"] is None]
    note = f"Also: {', '.join(others)}" if others else ""
    targets = evidence.targets_of(answer.call, [answer.question])
    return _card(evidence, answer.call, views, lines, targets, note)


def _status(one: Mapping[str, Any]) -> str:
    return one["status"] + ("" if one["visible"] is None else f", {one['visible']:.0%} in view")


def _boxed(
    view: JsonObject,
    objects: Sequence[Mapping[str, Any]],
    where: str,
    size: Sequence[int] | None,
) -> JsonObject:
    """The view with ``boxes``: left, top, width and height in percent of the picture, what is in
    it, and whether that breaks a rule. ``size``: height and width that objects are placed in."""
    if not size:
        return {**view, "boxes": [], "ratio": 1.0}
    height, width = size
    boxes = [
        (
            100 * left / width,
            100 * top / height,
            100 * (right - left) / width,
            100 * (bottom - top) / height,
            str(one["name"]),
            one["rule"] is not None,
        )
        for one in objects
        for left, top, right, bottom in one.get(where) or ()
    ]
    return {**view, "boxes": boxes, "ratio": width / height}


# -- where two models disagree -------------------------------------------------------------------


def _lost_differently(call: CallRow) -> list[AnswerRow]:
    rows = [a for a in call.answers if a.loss not in (None, ALIKE) and not a.excluded]
    return sorted(rows, key=lambda row: -_apart(row))


def _apart(row: AnswerRow) -> float:
    """How differently the models lost, 0 to 1/2."""
    return abs((row.loss or 0) - ALIKE)


def _both_said(evidence: Evidence, row: AnswerRow) -> JsonObject:
    details = row.details or {}
    both = "; ".join(f"{name.upper()} {_said(evidence, details.get(name, {}))}" for name in "ab")
    return {**_about(evidence, row), "truth": int((row.loss or 0) > ALIKE), "said": both}


def _said(evidence: Evidence, told: Mapping[str, Any]) -> str:
    """What a model said, and how far that was wrong."""
    said, loss = told.get("said"), float(told.get("loss", 0))
    lost = {0.0: "right", 1.0: "wrong"}.get(loss, f"lost {loss:.2f}")
    if isinstance(said, dict):
        words = f"no answer ({said['unanswered']})" if "unanswered" in said else "an answer"
    elif isinstance(said, int | float):
        words = _number(evidence, said)
    else:
        words = f"“{str(said)[:SAID]}”"
    return f"{words}, {lost}"


# -- slices --------------------------------------------------------------------------------------


def slices_section(evidence: Evidence) -> Section | None:
    """A card per slice: groups that the audit found to fail often, each with its interval and
    pictures; None where none was looked for."""
    certificate = evidence.certificate
    if certificate is None or not (certificate.set_aside or certificate.slices):
        return None
    album, own = Album(SLICES_ROOM), evidence.standings[certificate.registered :]
    rates = unseen(certificate, evidence.calls, [(s.lower, s.upper) for s in own])
    overall = [s.upper for s in evidence.standings if isinstance(s.id, Overall)]
    slices = [
        {
            "found": found,
            "standing": standing,
            "unseen": rate,
            # wholly above that of all questions: the failures it was found by speak for themselves
            "apart": bool(overall) and rate is not None and rate.lower > overall[0],
            "examples": _examples(
                [f for f in evidence.failures if standing.place in f.targets], album
            ),
        }
        for found, standing, rate in zip(certificate.slices, own, rates, strict=True)
    ]
    return Section.of(
        "Slices",
        "slices",
        "slices.html",
        slices=slices,
        share=certificate.set_aside,
        confidence=certificate.confidence,
        together=certificate.guarantee == "all",
        sample=evidence.sample_word,
        span=span,
    )


def _examples(failures: list[Failure], album: Album) -> list[tuple[Picture, str]]:
    """Failing follow-ups, the surest mistakes first, each image once."""
    found: dict[str, tuple[Picture, str]] = {}
    for failure in failures:
        if len(found) == EXAMPLES:
            break
        if failure.pictures is None or failure.sample in found:
            continue
        number = album.add(failure.pictures[1])
        if number is not None:
            said = f"{failure.sample}, {failure.change}"
            found[failure.sample] = (album.pictures[number], said)
    return list(found.values())
