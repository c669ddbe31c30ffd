"""What went wrong, in pictures: failing calls, captions that break a rule, where two models
disagree, and slices.
"""

from base64 import b64encode
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...certify.compared import ALIKE
from ...certify.unseen import Unseen, unseen
from ...journal.facts import SliceFacts
from ...journal.rows import AnswerRow, CallRow
from ...oracles.caption_findings import found
from ...oracles.caption_findings import judged as read
from ...oracles.caption_rules import ERROR_TYPES, rule_of
from ...utils.image_headers import declared_size
from .content import Failure, Mistake, question_in_words
from .evidence import Evidence, Standing
from .section import THIN, Section, data, fragment, span

# -- pictures of the page --------------------------------------------------------------------------


MAX_CHARACTERS = 6_000_000
"""Characters of all pictures together, so that the page can be mailed."""
SMALL_PNG = 6_000
"""PNGs of so many bytes stay as they are; larger ones become WebP, at a tenth of the size."""
QUALITY = 82
"""Of WebP, 1 to 100: faults of the compression do not show beside those of an image."""
LARGEST_SIDE = 1024
"""Pixels a side that are decoded, at most: a journal's own are far smaller."""


@dataclass(frozen=True)
class Picture:
    """A picture as a data address, and its size in pixels."""

    address: str
    width: int
    height: int


class Album:
    """Pictures by number, the same one once, as long as there is room."""

    def __init__(self, room: int = MAX_CHARACTERS) -> None:
        self.pictures: list[Picture] = []
        self._places: dict[bytes, int] = {}
        self._room = room

    def add(self, png: bytes) -> int | None:
        """The picture's number; None where it no longer fits."""
        if png not in self._places:
            made = picture(png)
            if len(made.address) > self._room:
                return None
            self._room -= len(made.address)
            self._places[png] = len(self.pictures)
            self.pictures.append(made)
        return self._places[png]


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


# -- captions that break a rule --------------------------------------------------------------------


OTHER = "other"
"""A broken rule for which the paper has no error type, as a number that changed."""


@dataclass(frozen=True)
class Boxed:
    """A picture with boxes: left, top, width and height in percent of it, what is in it, and
    whether that breaks a rule. ``png`` None where the journal keeps none."""

    png: bytes | None
    boxes: list[tuple[float, float, float, float, str, bool]]
    ratio: float


@dataclass(frozen=True)
class Violation:
    """One object that breaks a rule."""

    name: str
    rule: str
    error: str
    status: str


@dataclass(frozen=True)
class Pair:
    """One follow-up with at least one violation."""

    call: int
    sample: str
    relation: str
    severity: int
    change: str
    source: Boxed
    follow_up: Boxed
    caption: str
    said: str
    violations: list[Violation]
    others: list[str]
    targets: frozenset[int]


def captions_section(evidence: Evidence) -> Section | None:
    """How many objects were checked, and violations by relation and type of error; None where
    no answer is a caption with findings."""
    figures = found(evidence.calls, evidence.draws)
    if figures is None:
        return None
    table = _violations_by_type(evidence, read(evidence.calls))
    html = fragment("captions.html", figures=figures, table=table, types=ERROR_TYPES)
    return Section("Captions that break a rule", "captions", html)


def violating_pairs(evidence: Evidence) -> list[Pair]:
    """Every follow-up with a violation, those with pictures first."""
    every = [_pair(evidence, a.question, a.details or {}) for a in read(evidence.calls) if a.loss]
    return sorted((p for p in every if p), key=lambda p: p.source.png is None)


def _violations_by_type(
    evidence: Evidence, judged: Sequence[Any]
) -> list[tuple[str, list[int], int]]:
    """Per relation: violations by error type, and all of them."""
    found: dict[str, Counter[str]] = {name: Counter() for name in evidence.relations}
    for answer in judged:
        relation = evidence.asked(answer.question).relation
        for one in answer.details["objects"]:
            if one["rule"] is not None:
                found[relation][one["type"] or OTHER] += 1
    return [
        (name, [counts[kind] for kind in ERROR_TYPES], counts.total())
        for name, counts in found.items()
    ]


def _pair(evidence: Evidence, question: int, details: Mapping[str, Any]) -> Pair | None:
    wrong = [o for o in details["objects"] if o["rule"] is not None]
    if not wrong:
        return None
    asked, call = evidence.asked(question), evidence.answers[question].call
    sources, followed = evidence.pictures.get(call, (None, None))
    return Pair(
        call,
        evidence.drawn[call].sample,
        asked.relation,
        asked.severity,
        evidence.change(asked.relation, asked.severity),
        _boxed(sources, details["objects"], "boxes", details["size"]),
        _boxed(followed, details["objects"], "shown", details.get("shown_size")),
        details["source"],
        details["caption"],
        [_violation(o, asked.relation) for o in wrong],
        [_kept_rule(o) for o in details["objects"] if o["rule"] is None],
        evidence.targets_of(call, [question]),
    )


def _violation(one: Mapping[str, Any], relation: str) -> Violation:
    share = "" if one["visible"] is None else f", {one['visible']:.0%} in view"
    return Violation(
        one["name"], rule_of(relation, one["rule"]), one["type"] or OTHER, f"{one['status']}{share}"
    )


def _kept_rule(one: Mapping[str, Any]) -> str:
    """An object that breaks no rule, in words."""
    share = "" if one["visible"] is None else f", {one['visible']:.0%} in view"
    return f"{one['name']} ({one['status']}{share})"


def _boxed(
    png: bytes | None,
    objects: Sequence[Mapping[str, Any]],
    where: str,
    size: Sequence[int] | None,
) -> Boxed:
    if not size:
        return Boxed(png, [], 1.0)
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
    return Boxed(png, boxes, width / height)


# -- cards -----------------------------------------------------------------------------------------


SAID = 160
"""So much of an answer in words is shown."""
OTHER_KIND = (OTHER, "of another kind")

Options = list[tuple[Any, str]]


def section(evidence: Evidence) -> Section:
    """All failures, the surest mistakes first; gallery.js makes cards of them."""
    album = Album()
    if evidence.captioned:
        items = [_caption(evidence, p, album) for p in violating_pairs(evidence)]
    else:
        items = [_item(evidence, f, album) for f in evidence.failures]
    intro = "Every call with a wrong or missing answer, the surest mistakes first"
    if evidence.captioned:
        intro = "Every follow-up whose caption breaks a rule"
    sides: Options = [(1, "where it is present"), (0, "where it is absent")]
    return cards(
        evidence, items, album, intro=intro, truth=("Side", sides if evidence.sided else [])
    )


def cards(
    evidence: Evidence,
    items: Sequence[dict[str, Any]],
    album: Album,
    *,
    intro: str,
    truth: tuple[str, Options],
) -> Section:
    """The section of these cards. ``truth``: what their lines' "truth" may be, and its heading."""
    bare = sum(all(v["picture"] is None for v in item["views"]) for item in items)
    html = fragment(
        "gallery.html",
        failed=len(items),
        judged=len(evidence.table),
        bare=0 if evidence.settings.oracle.tells_losses else bare,
        intro=intro,
        captioned=evidence.captioned,
        filters=_filters(evidence, items, truth),
        items=data("failures-data", items),
    )
    pictures = [[p.address, p.width, p.height] for p in album.pictures]
    return Section("Where it fails", "failures", html, data("pictures", pictures))


def _item(evidence: Evidence, failure: Failure, album: Album) -> dict[str, Any]:
    source, follow_up = failure.pictures or (None, None)
    views = [view(album, follow_up, failure.change)]
    if source is not None and failure.changed:
        views.insert(0, view(album, source, "source"))
    note = f"{failure.right} other {'answer' if failure.right == 1 else 'answers'} right"
    return {
        "id": failure.call,
        "sample": failure.sample,
        "relation": evidence.relations.index(failure.relation),
        "severity": failure.severity,
        "change": failure.change,
        "views": views,
        "lines": [_line(evidence, m) for m in failure.mistakes],
        "note": note if failure.right else "",
        "targets": sorted(failure.targets),
    }


def view(album: Album, png: bytes | None, caption: str, **more: Any) -> dict[str, Any]:
    """A picture of a card, with its caption."""
    place = None if png is None else album.add(png)
    return {"picture": place, "caption": caption, **more}


def _line(evidence: Evidence, mistake: Mistake) -> dict[str, Any]:
    """What was wrong: ``key`` and ``truth`` to filter by, the rest in words."""
    at = mistake.answer
    if mistake.said is not None:
        at = None
        said = f"“{mistake.said[:SAID]}”" + (f": {mistake.reason}" if mistake.reason else "")
    elif at is None:
        said = f"no answer: {mistake.reason or 'no reason was given'}"
    else:
        said = f"{'score' if evidence.scored else 'P(yes)'} {100 * at:.0f}{THIN}%"
    side = f"is {'present' if mistake.truth else 'absent'}"
    return {
        "key": mistake.concept,
        "truth": mistake.truth if evidence.sided else None,
        "name": mistake.name,
        "is": side if evidence.sided else "",
        "said": said,
        "at": at,
        "asked": mistake.asked,
    }


def _caption(evidence: Evidence, pair: Pair, album: Album) -> dict[str, Any]:
    views = [
        view(album, shown.png, f"“{said}”", boxes=shown.boxes, ratio=shown.ratio)
        for shown, said in ((pair.source, pair.caption), (pair.follow_up, pair.said))
    ]
    return {
        "id": pair.call,
        "sample": pair.sample,
        "relation": evidence.relations.index(pair.relation),
        "severity": pair.severity,
        "change": pair.change,
        "views": views,
        "lines": [
            {
                "key": v.error,
                "truth": None,
                "name": v.name,
                "is": v.status,
                "said": ERROR_TYPES.get(v.error, "another error"),
                "at": None,
                "rule": v.rule,
            }
            for v in pair.violations
        ],
        "note": f"Also: {', '.join(pair.others)}" if pair.others else "",
        "targets": sorted(pair.targets),
    }


def _filters(
    evidence: Evidence, items: Sequence[dict[str, Any]], truth: tuple[str, Options]
) -> list[tuple[str, str, Options]]:
    """What there is to choose from: name, heading, values with their words."""
    certificate = evidence.certificate
    kinds: Options = list(enumerate(evidence.concepts))
    if evidence.captioned:
        met = {line["key"] for item in items for line in item["lines"]}
        kinds = [(kind, words) for kind, words in [*ERROR_TYPES.items(), OTHER_KIND] if kind in met]
    severities = sorted({severity for _, severity in evidence.variants})
    found: list[tuple[str, str, Options]] = [
        ("target", "Certified target", list(enumerate(certificate.targets if certificate else ()))),
        ("relation", "Relation", list(enumerate(evidence.relations))),
        ("severity", "Severity", [(k, str(k)) for k in severities]),
        ("concept", "Error type" if evidence.captioned else "Concept", kinds),
        ("truth", *truth),
    ]
    return [(name, title, options) for name, title, options in found if len(options) > 1]


# -- where two models disagree ---------------------------------------------------------------------


INTRO = (
    "Every call in which one model lost more than the other, the largest differences first: "
    "A is the old model, B the new one"
)


def two_answers_section(evidence: Evidence) -> Section:
    """All disagreements; gallery.js makes cards of them."""
    album = Album()
    found = [(call, _apart(call)) for call in evidence.calls]
    kept = [(call, rows) for call, rows in found if rows]
    kept.sort(key=lambda item: (_pictures_of(evidence, item[0]) is None, -_how_far(item[1])))
    items = [_disagreement(evidence, call, rows, album) for call, rows in kept]
    sides = [(1, "the new model, B"), (0, "the old model, A")]
    return cards(evidence, items, album, intro=INTRO, truth=("Who lost less", sides))


def _apart(call: CallRow) -> list[AnswerRow]:
    rows = [a for a in call.answers if a.loss not in (None, ALIKE) and not a.excluded]
    return sorted(rows, key=lambda row: -abs((row.loss or 0) - ALIKE))


def _how_far(rows: list[AnswerRow]) -> float:
    return abs((rows[0].loss or 0) - ALIKE)


def _pictures_of(evidence: Evidence, call: CallRow) -> tuple[bytes, bytes] | None:
    return evidence.pictures.get(call.call)


def _disagreement(
    evidence: Evidence, call: CallRow, rows: list[AnswerRow], album: Album
) -> dict[str, Any]:
    asked = evidence.asked(rows[0].question)
    source, follow_up = _pictures_of(evidence, call) or (None, None)
    change = evidence.change(asked.relation, asked.severity)
    views = [view(album, follow_up, change)]
    if source is not None and source != follow_up:
        views.insert(0, view(album, source, "source"))
    return {
        "id": call.call,
        "sample": evidence.drawn[call.call].sample,
        "relation": evidence.relations.index(asked.relation),
        "severity": asked.severity,
        "change": change,
        "views": views,
        "lines": [_both_said(evidence, row) for row in rows],
        "note": "",
        "targets": sorted(evidence.targets_of(call.call, (row.question for row in rows))),
    }


def _both_said(evidence: Evidence, row: AnswerRow) -> dict[str, Any]:
    details = row.details or {}
    both = "; ".join(
        f"{name.upper()} {_one_said(evidence, details.get(name, {}))}" for name in "ab"
    )
    side = f"is {'present' if row.truth else 'absent'}"
    return {
        "key": row.question % len(evidence.concepts),
        "truth": int((row.loss or 0) > ALIKE),
        "name": evidence.asked(row.question).concept,
        "is": side if evidence.sided else "",
        "said": both,
        "at": None,
        "asked": question_in_words(row),
    }


def _one_said(evidence: Evidence, told: Mapping[str, Any]) -> str:
    """What a model said, and how far that was wrong."""
    said, loss = told.get("said"), float(told.get("loss", 0))
    lost = {0.0: "right", 1.0: "wrong"}.get(loss, f"lost {loss:.2f}")
    if isinstance(said, dict):
        words = f"no answer ({said['unanswered']})" if "unanswered" in said else "an answer"
    elif isinstance(said, int | float):
        words = f"{'score' if evidence.scored else 'P(yes)'} {100 * said:.0f}{THIN}%"
    else:
        words = f"“{str(said)[:SAID]}”"
    return f"{words}, {lost}"


# -- slices ----------------------------------------------------------------------------------------


EXAMPLES = 6
"""Pictures of a slice, at most."""
SLICES_ROOM = 1_000_000
"""Characters of all pictures together."""


@dataclass(frozen=True)
class ShownSlice:
    """One slice, ``found``. ``standing``: where its interval stands; ``unseen``: where the rate of
    the questions unseen by then lies; ``apart``: whether that lies wholly above the interval of all
    questions, where they are a target: the failures by which it was found speak for themselves."""

    found: SliceFacts
    standing: Standing
    unseen: Unseen | None
    apart: bool
    examples: list[tuple[Picture, str]]


def slices_section(evidence: Evidence) -> Section | None:
    """A card per slice; None where none was looked for."""
    certificate = evidence.certificate
    if certificate is None or not (certificate.set_aside or certificate.slices):
        return None
    album, own = Album(SLICES_ROOM), evidence.standings[certificate.registered :]
    rates = unseen(certificate, evidence.calls, [(s.lower, s.upper) for s in own])
    html = fragment(
        "slices.html",
        slices=[
            _shown_slice(evidence, found, standing, rate, album)
            for found, standing, rate in zip(certificate.slices, own, rates, strict=True)
        ],
        share=certificate.set_aside,
        confidence=certificate.confidence,
        together=certificate.guarantee == "all",
        span=span,
    )
    return Section("Slices", "slices", html)


def _shown_slice(
    evidence: Evidence, found: SliceFacts, standing: Standing, rate: Unseen | None, album: Album
) -> ShownSlice:
    overall = [s.upper for s in evidence.standings if s.id.kind == "overall"]
    return ShownSlice(
        found,
        standing,
        rate,
        bool(overall) and rate is not None and rate.lower > overall[0],
        _examples([f for f in evidence.failures if standing.place in f.targets], album),
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
