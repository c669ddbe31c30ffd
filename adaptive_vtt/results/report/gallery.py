"""What went wrong, in pictures: every failing call, filtered by what it is about."""

from collections.abc import Sequence
from typing import Any

from ...oracles.caption_rules import ERROR_TYPES
from . import caption_violations
from .album import Album
from .evidence import Evidence
from .failures import Failure, Mistake
from .section import THIN, Section, data, fragment

SAID = 160
"""So much of an answer in words is shown."""
OTHER = (caption_violations.OTHER, "of another kind")

Options = list[tuple[Any, str]]


def section(evidence: Evidence) -> Section:
    """All failures, the surest mistakes first; gallery.js makes cards of them."""
    album = Album()
    if evidence.captioned:
        items = [_caption(evidence, p, album) for p in caption_violations.pairs(evidence)]
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


def _caption(evidence: Evidence, pair: caption_violations.Pair, album: Album) -> dict[str, Any]:
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
        kinds = [(kind, words) for kind, words in [*ERROR_TYPES.items(), OTHER] if kind in met]
    severities = sorted({severity for _, severity in evidence.variants})
    found: list[tuple[str, str, Options]] = [
        ("target", "Certified target", list(enumerate(certificate.targets if certificate else ()))),
        ("relation", "Relation", list(enumerate(evidence.relations))),
        ("severity", "Severity", [(k, str(k)) for k in severities]),
        ("concept", "Error type" if evidence.captioned else "Concept", kinds),
        ("truth", *truth),
    ]
    return [(name, title, options) for name, title, options in found if len(options) > 1]
