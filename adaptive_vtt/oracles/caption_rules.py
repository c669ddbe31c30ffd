"""REIC's three rules on the names that a follow-up's caption must and must not contain.

Source: REIC (TSE 2024, sections IV-E and VI-C). Objects that could not be located are not checked,
and rule 3 is not applied to images with such objects; the paper does not specify this.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..types import Box
from .captions import Same
from .captions.localising import Located

ERROR_TYPES: Mapping[str, str] = {
    "1.1": "misclassification in the source",
    "1.2": "misclassification in the follow-up",
    "2.1": "omission in the source",
    "2.2": "omission in the follow-up",
    "3": "fabrication",
}
"""REIC's error types. That of a finding is only likely, and is to be confirmed by people."""
RULES: Mapping[int, str] = {
    1: "what is still in view must be named",
    2: "what is out of view must not be named",
    3: "where everything is still in view, nothing new must be named",
}
STATUS: Mapping[int, str] = {1: "retained", 0: "ambiguous", -1: "disappeared"}


def rule_text(finding: Mapping[str, Any]) -> str:
    """Return the text of the rule that a journaled finding breaks, by default REIC's."""
    return finding.get("rule_text") or RULES[finding["rule"]]


@dataclass(frozen=True)
class Finding:
    """An object of either caption, and the rule that it breaks, if any.

    Attributes:
        name: Its name.
        status: "retained", "ambiguous", "disappeared", "unlocated", or "new": named only in the
            follow-up's caption.
        is_named: Whether the follow-up's caption names it.
        boxes: Its boxes in the source.
        visible: Share of it that the follow-up shows, in [0, 1]; None: unknown.
        rule: Number of the broken rule; None: none.
        error: The likely error, one of ERROR_TYPES; None: no rule is broken.
    """

    name: str
    status: str
    is_named: bool
    boxes: tuple[Box, ...] = ()
    visible: float | None = None
    rule: int | None = None
    error: str | None = None


def check(
    located: Sequence[Located],
    named: Sequence[str],
    detected: Sequence[Box],
    same: Same,
    received: Sequence[str] = (),
) -> tuple[Finding, ...]:
    """Return a finding for each object of the source's caption, and each new name of the other.

    Args:
        located: The objects of the source's caption.
        named: The names in the follow-up's caption.
        detected: All boxes of the source.
        same: Function that decides whether two names mean the same.
        received: The names in all captions of the source with boxes hidden.
    """
    new = [name for name in named if not any(same(name, source.name) for source in located)]
    findings = []
    for source in located:
        is_named = any(same(source.name, name) for name in named)
        finding = Finding(source.name, source.status, is_named, source.boxes, source.visible)
        if source.status == "retained" and not is_named:
            finding = replace(finding, rule=1, error=_missing(source, new, detected, same))
        elif source.status == "disappeared" and is_named:
            finding = replace(finding, rule=2, error="3")
        findings.append(finding)
    all_retained = bool(located) and all(source.status == "retained" for source in located)
    missing = [finding for finding in findings if finding.rule == 1]
    used = {box for source in located for box in source.boxes}
    names = [*(source.name for source in located), *named]
    labelled = [box for box in detected if box.label]
    unused = [box for box in labelled if box not in used]
    unnamed = not all(any(same(name, box.label) for name in names) for box in unused)
    for name in new:
        boxes = tuple(b for b in labelled if same(name, b.label))
        finding = Finding(name, "new", is_named=True, boxes=boxes)
        if all_retained:
            known = bool(boxes) or not labelled or any(same(name, n) for n in received)
            finding = replace(finding, rule=3, error=_added(finding, missing, known, unnamed))
        findings.append(finding)
    return tuple(findings)


def _added(new: Finding, missing: Sequence[Finding], known: bool, unnamed: bool) -> str:
    """Return the likely error if an object is named only in the follow-up's caption.

    - It may be another name for an object that is missing there: a wrong name in the source's
      caption, or, if no box has the new name, in the follow-up's.
    - Else it may be omitted in the source's caption, if it is ``known`` from a box or another
      caption of the source.
    - Else it may be a wrong name for an object that is ``unnamed`` in both captions, or invented.
    """
    if any(f.error == "1.1" and set(f.boxes) & set(new.boxes) for f in missing):
        return "1.1"
    if missing and not new.boxes:
        return "1.2"
    return "2.1" if known else "1.2" if unnamed else "3"


def _missing(source: Located, new: Sequence[str], detected: Sequence[Box], same: Same) -> str:
    """Return the likely error if a visible object is not named in the follow-up's caption.

    - If the follow-up's caption uses the detector's label instead, the source's name is wrong.
    - If the detector agrees with the source's name, and the follow-up's caption has a new name
      without a box, the follow-up's name is wrong.
    - Else the follow-up's caption omits the object.
    """
    labels = [box.label for box in source.boxes if box.label]
    agrees = any(same(source.name, label) for label in labels)
    if not agrees and any(same(n, label) for n in new for label in labels):
        return "1.1"
    without_box = [n for n in new if not any(b.label and same(n, b.label) for b in detected)]
    return "1.2" if agrees and without_box else "2.2"


def comparable(findings: Sequence[Finding]) -> bool:
    """Return whether a rule can be broken: not if all objects are ambiguous or unlocated."""
    return any(f.status in ("retained", "disappeared") for f in findings)
