"""REIC's rules 1 to 3: the names that a follow-up's caption must and must not have.

After REIC (TSE 2024, sections IV-E and VI-C). Objects that neither method could locate are
not checked, and keep rule 3 from being applied; the paper does not say.
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
"""REIC's error types. A finding's is a guess, to be confirmed by people."""
RULES: Mapping[int, str] = {
    1: "what is still in view must be named",
    2: "what is out of view must not be named",
    3: "where everything is still in view, nothing new must be named",
}
STATUS: Mapping[int, str] = {1: "retained", 0: "ambiguous", -1: "disappeared"}


def rule_text(finding: Mapping[str, Any]) -> str:
    """Return the text of the rule that a journaled finding breaks: its text, or REIC's."""
    return finding.get("rule_text") or RULES[finding["rule"]]


@dataclass(frozen=True)
class Finding:
    """An object of either caption, and the rule it breaks, if any.

    ``visible``: the share of it that the follow-up shows, None if unknown. ``status``: retained,
    ambiguous, disappeared, unlocated, or new, which means named in the follow-up alone.
    ``is_named``: whether the follow-up's caption names it. ``error``: see ERROR_TYPES.
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
    """Return a finding per object of the source's caption, and per new name of the follow-up's.

    Args:
        located: The objects of the source's caption.
        named: The names in the follow-up's caption.
        detected: All boxes of the source.
        same: Decides whether two names mean the same.
        received: The names in all captions of the source with boxes hidden.
    """
    new = [name for name in named if not any(same(name, one.name) for one in located)]
    findings = []
    for one in located:
        is_named = any(same(one.name, name) for name in named)
        finding = Finding(one.name, one.status, is_named, one.boxes, one.visible)
        if one.status == "retained" and not is_named:
            finding = replace(finding, rule=1, error=_missing(one, new, detected, same))
        elif one.status == "disappeared" and is_named:
            finding = replace(finding, rule=2, error="3")
        findings.append(finding)
    whole = bool(located) and all(one.status == "retained" for one in located)
    lost = [finding for finding in findings if finding.rule == 1]
    taken = {box for one in located for box in one.boxes}
    names = [*(one.name for one in located), *named]
    labelled = [box for box in detected if box.label]
    spare = [b for b in labelled if b not in taken and not any(same(n, b.label) for n in names)]
    for name in new:
        boxes = tuple(b for b in labelled if same(name, b.label))
        finding = Finding(name, "new", is_named=True, boxes=boxes)
        if whole:
            known = bool(boxes) or not labelled or any(same(name, n) for n in received)
            finding = replace(finding, rule=3, error=_added(finding, lost, known, bool(spare)))
        findings.append(finding)
    return tuple(findings)


def _added(new: Finding, lost: Sequence[Finding], known: bool, spare: bool) -> str:
    """Return the likely error where a thing is named in the follow-up alone.

    It may be another name for one that is no longer named: a wrong name in the source or, if the
    detector has no such thing, in the follow-up. Else the source left it out, if the detector or
    another caption of the source has it (``known``). Else it may be a wrong name for a thing that
    neither caption names, if there is one (``spare``); or it is made up.
    """
    if any(f.error == "1.1" and set(f.boxes) & set(new.boxes) for f in lost):
        return "1.1"
    if lost and not new.boxes:
        return "1.2"
    return "2.1" if known else "1.2" if spare else "3"


def _missing(one: Located, new: Sequence[str], detected: Sequence[Box], same: Same) -> str:
    """Return the likely error where an object in view is not named, by the detector's names.

    If the follow-up names the thing by the detector's word, the source was wrong. If the detector
    agrees with the source and the follow-up names a thing without a box, the follow-up was. Else it
    left the object out.
    """
    labels = [box.label for box in one.boxes if box.label]
    agrees = any(same(one.name, label) for label in labels)
    if not agrees and any(same(n, label) for n in new for label in labels):
        return "1.1"
    unseen = [n for n in new if not any(b.label and same(n, b.label) for b in detected)]
    return "1.2" if agrees and unseen else "2.2"


def comparable(findings: Sequence[Finding]) -> bool:
    """Return whether a rule could be broken: not if all objects are ambiguous or unlocated."""
    return any(f.status in ("retained", "disappeared") for f in findings)
