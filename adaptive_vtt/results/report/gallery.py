"""What went wrong, in pictures: failing calls, captions that break a rule, where two models
disagree, and slices. gallery.js makes cards of what stands here about each call.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

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
from ..difference import names_of
from .answers import Words
from .evidence import Evidence, Failure
from .pictures import Album, Picture
from .section import THIN, Section, data

SLICES_ROOM = 1_000_000
"""Characters of all pictures of slices."""
QUOTED = 300
"""Characters of a reply that a card shows, at most."""
OTHER = "other"
"""A broken rule for which the paper has no error type, as a number that changed."""
EXAMPLES = 6
"""Pictures of a slice, at most."""

Options = list[tuple[Any, str]]


class Filter(NamedTuple):
    """What cards may be chosen by: a key of theirs, a heading, and values with their words."""

    key: str
    title: str
    options: Options


class Gallery:
    """Cards of calls, with their pictures. A card is what gallery.js shows of a call: its views (a
    picture's number with its caption) and its lines, which have ``key`` and ``truth`` to filter by
    and the rest in words."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence, self.album = evidence, Album()
        self.cards: list[JsonObject] = []

    def views(self, call: int, change: str) -> list[JsonObject]:
        """Return the follow-up, after its source where that differs; none of what is no image."""
        if self.evidence.sample == "item":
            return []
        source, follow_up = self.evidence.pictures.get(call, (None, None))
        views = [self.album.view(follow_up, change)]
        if source is not None and source != follow_up:
            views.insert(0, self.album.view(source, "source"))
        return views

    def add(
        self,
        call: int,
        lines: list[JsonObject],
        targets: Iterable[int],
        note: str = "",
        views: list[JsonObject] | None = None,
    ) -> None:
        """Add the card of a call."""
        drawn, reply = self.evidence.drawn[call], self.evidence.call_of[call].reply
        if isinstance(self.evidence.answers, Words):  # whose lines quote it
            reply = ""
        asked = self.evidence.asked(drawn.question)
        change = self.evidence.change(asked.relation, asked.severity)
        self.cards.append(
            {
                "id": call,
                "sample": drawn.sample,
                "relation": self.evidence.relations.index(asked.relation),
                "severity": asked.severity,
                "change": change,
                "views": self.views(call, change) if views is None else views,
                "lines": lines,
                "note": note,
                "reply": shorten(" ".join(reply.split()), QUOTED),
                "targets": sorted(targets),
            }
        )

    def section(self, intro: str, concept: Filter, truth: Filter, wide: bool = False) -> Section:
        """Return the section of all cards."""
        evidence, album, cards = self.evidence, self.album, self.cards
        certified = evidence.certificate.targets if evidence.certificate else ()
        severities = sorted({severity for _, severity in evidence.variants})
        filters = [
            Filter("target", "Certified target", list(enumerate(certified))),
            Filter("relation", "Relation", list(enumerate(evidence.relations))),
            Filter("severity", "Severity", [(k, str(k)) for k in severities]),
            concept,
            truth,
        ]
        items = evidence.sample == "item"
        bare = sum(all(v["picture"] is None and "bare" not in v for v in c["views"]) for c in cards)
        return Section.of(
            evidence,
            "Failures",
            "failures",
            "gallery.html",
            late=data("pictures", album.pictures),
            failed=len(cards),
            judged=len(evidence.table),
            bare=0 if items else bare,
            full=album.full,
            intro=intro,
            wide=wide,
            filters=[each for each in filters if len(each.options) > 1],
            items=data("failures-data", cards),
        )


def section(evidence: Evidence) -> Section:
    """Show all failures, the surest mistakes first."""
    if not evidence.answers.of_concepts:
        return _broken_captions(evidence)
    gallery = Gallery(evidence)
    classes = evidence.space.concepts_are == "classes" and len(evidence.concepts) > 1
    for failure in evidence.failures:
        right, one = failure.right, _class_line(evidence, failure.call) if classes else None
        lines = [one] if one else [_line(evidence, row) for row in failure.mistakes]
        note = f"{right} other {'answer' if right == 1 else 'answers'} right" if right else ""
        gallery.add(failure.call, lines, failure.targets, "" if one else note)
    sides: Options = [(1, "where it is present"), (0, "where it is absent")]
    return gallery.section(
        "Calls with a wrong or missing answer, the most confident first",
        Filter("concept", "True class" if classes else "Concept", [*enumerate(evidence.concepts)]),
        Filter("truth", "Side", sides if evidence.answers.sided and not classes else []),
    )


def _class_line(evidence: Evidence, call: int) -> JsonObject | None:
    """Return the true class of an image and the predicted one; None where the answers do not tell
    them."""
    rows = [row for row in evidence.call_of[call].answers if row.loss is not None]
    true = next((row for row in rows if row.truth == 1), None)
    given = [row for row in rows if row.answer is not None]
    top = max(given, key=lambda row: row.answer or 0.0, default=None)
    if true is None or top is None or top.truth == 1:
        return None
    name, predicted = (evidence.concepts[r.question % len(evidence.concepts)] for r in (true, top))
    words = {"name": f"true: {name}", "is": "", "said": f"predicted: {predicted}"}
    words["said"] += f" ({round(100 * (top.answer or 0.0))}{THIN}%)"
    return {**_line(evidence, true), **words, "at": None}


def _line(evidence: Evidence, row: AnswerRow) -> JsonObject:
    place = row.question % len(evidence.concepts)
    return evidence.answers.line(evidence.concepts[place], place, row)


def two_answers_section(evidence: Evidence) -> Section:
    """Show, of two models compared, the questions that only one of them answered rightly, with
    both answers."""
    a, b = names_of(evidence.facts)
    old, new = ("", "") if (a, b) == ("A", "B") else (f", {a}", f", {b}")
    gallery = Gallery(evidence)

    def apart(row: AnswerRow) -> float:
        """Return how differently the models lost, 0 to 1/2."""
        return abs((row.loss or 0) - ALIKE)

    calls = []
    for call in evidence.calls:
        rows = [a for a in call.answers if a.loss not in (None, ALIKE) and not a.excluded]
        if rows:
            calls.append((call.call, sorted(rows, key=lambda row: -apart(row))))
    calls.sort(key=lambda one: (one[0] not in evidence.pictures, -apart(one[1][0])))
    for number, rows in calls:
        lines = []
        for row in rows:
            details = row.details or {}
            both = (evidence.answers.of_model(details.get(name, {})) for name in "ab")
            said = "A {}; B {}".format(*both)
            truth = int((row.loss or 0) > ALIKE)
            lines.append({**_line(evidence, row), "truth": truth, "said": said, "at": None})
        gallery.add(number, lines, evidence.targets_of(number, (row.question for row in rows)))
    return gallery.section(
        "Every call in which one model lost more than the other, the largest differences first: "
        f"A is the old model{old}; B is the new one{new}",
        Filter("concept", "Concept", list(enumerate(evidence.concepts))),
        Filter("truth", "Who lost less", [(1, "the new model, B"), (0, "the old model, A")]),
    )


# -- captions that break a rule --------------------------------------------------------------------


def captions_section(evidence: Evidence) -> Section | None:
    """Show how many objects were checked, and violations by relation and type of error; None where
    no answer is a caption with findings."""
    figures = caption_findings(evidence.calls, evidence.draws)
    if figures is None:
        return None
    counts: dict[str, Counter[str]] = {name: Counter() for name in evidence.relations}
    for answer in judged_captions(evidence.calls):
        relation = evidence.asked(answer.question).relation
        counts[relation].update(one["type"] or OTHER for one in _broken(answer))
    rows = [
        {"relation": name, **{t: broken[k] for k, t in ERROR_TYPES.items()}, "all": broken.total()}
        for name, broken in counts.items()
    ]
    return Section.of(
        evidence,
        "Caption violations",
        "captions",
        "captions.html",
        figures=figures,
        counts=pd.DataFrame(rows),
    )


def _broken(answer: AnswerRow) -> list[Mapping[str, Any]]:
    return [one for one in (answer.details or {})["objects"] if one["rule"] is not None]


def _broken_captions(evidence: Evidence) -> Section:
    """Show every follow-up with a violation: both pictures with boxes, both captions, the object,
    the rule; those with pictures first."""
    gallery = Gallery(evidence)
    wrong = [a for a in judged_captions(evidence.calls) if a.loss and _broken(a)]
    wrong.sort(key=lambda answer: answer.call not in evidence.pictures)
    for answer in wrong:
        details = answer.details or {}
        objects, sizes = details["objects"], (details["size"], details.get("shown_size"))
        pictures = evidence.pictures.get(answer.call, (None, None))
        captions = [f"“{details[name]}”" for name in ("source", "caption")]
        views = [
            _boxed(gallery.album.view(png, caption), objects, where, size)
            for png, caption, where, size in zip(
                pictures, captions, ("boxes", "shown"), sizes, strict=True
            )
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
        gallery.add(answer.call, lines, targets, note, views)
    met = {line["key"] for card in gallery.cards for line in card["lines"]}
    kinds: Options = [*ERROR_TYPES.items(), (OTHER, "of another kind")]
    return gallery.section(
        "Every follow-up whose caption breaks a rule",
        Filter("concept", "Error type", [(kind, words) for kind, words in kinds if kind in met]),
        Filter("truth", "Side", []),
        wide=True,
    )


def _status(one: Mapping[str, Any]) -> str:
    return one["status"] + ("" if one["visible"] is None else f", {one['visible']:.0%} in view")


def _boxed(
    view: JsonObject, objects: Sequence[Mapping[str, Any]], where: str, size: Sequence[int] | None
) -> JsonObject:
    """Return the view with ``boxes``: left, top, width and height in percent of the picture, what
    is in it, and whether that breaks a rule. ``size``: height and width that objects are placed
    in."""
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


# -- slices ----------------------------------------------------------------------------------------


def slices_section(evidence: Evidence) -> Section | None:
    """Show a card per slice: groups that the audit found to fail often, each with its interval and
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
        evidence,
        "Slices",
        "slices",
        "slices.html",
        slices=slices,
        share=certificate.set_aside,
        confidence=certificate.confidence,
        together=certificate.guarantee == "all",
    )


def _examples(failures: Sequence[Failure], album: Album) -> list[tuple[Picture, str]]:
    """Return failing follow-ups, the surest mistakes first, each image once."""
    examples: dict[str, tuple[Picture, str]] = {}
    for failure in failures:
        if failure.pictures and failure.sample not in examples and len(examples) < EXAMPLES:
            number = album.add(failure.pictures[1])
            if number is not None:
                words = f"{failure.sample}, {failure.change}"
                examples[failure.sample] = (album.pictures[number], words)
    return list(examples.values())
