"""What went wrong, in pictures."""

import struct
from base64 import b64encode
from dataclasses import dataclass
from itertools import accumulate

from ..journal.rows import AnswerRow, CallRow
from .evidence import Evidence
from .section import Section, fragment

FIRST = 12
"""Failing calls that are shown before the reader asks for all."""
LISTED = 6
"""Mistakes of one call that are listed before the reader asks for all."""
MOST = 2_700_000
"""Characters of all pictures together, so that the page stays small."""
TINY = 96
"""Pictures narrower than this are enlarged pixel by pixel."""


@dataclass(frozen=True)
class Picture:
    """A PNG as a data address."""

    address: str
    width: int
    height: int

    @property
    def tiny(self) -> bool:
        return max(self.width, self.height) < TINY


@dataclass(frozen=True)
class Mistake:
    """One concept answered wrongly, or not at all."""

    concept: int
    name: str
    truth: int
    answer: float | None
    reason: str | None
    said: str | None = None

    @property
    def distance(self) -> float:
        """How far the answer lies from the truth; an unanswered question comes last."""
        return -1.0 if self.answer is None else abs(self.answer - self.truth)


@dataclass(frozen=True)
class Failure:
    """One call that went wrong, and its pictures; ``source`` None where nothing was changed."""

    sample: str
    relation: int
    change: str
    source: Picture | None
    follow_up: Picture
    mistakes: list[Mistake]
    right: int

    @property
    def size(self) -> int:
        """Characters of its pictures."""
        return len(self.follow_up.address) + (len(self.source.address) if self.source else 0)


def section(evidence: Evidence) -> Section | None:
    """All failures with pictures, the surest mistakes first; captions have their own section."""
    if evidence.captioned:
        return None
    kept = sorted(_failures(evidence), key=lambda f: -f.mistakes[0].distance)
    failures = _fitting(kept)
    concepts = sorted({(m.concept, m.name) for f in failures for m in f.mistakes})
    relations = sorted({f.relation for f in failures})
    html = fragment(
        "gallery.html",
        failures=failures,
        kept=len(kept),
        failed=_failed(evidence),
        concepts=concepts,
        relations=[(i, evidence.relations[i]) for i in relations],
        first=FIRST,
        listed=LISTED,
    )
    return Section("Wrong answers", "gallery", html)


def _fitting(failures: list[Failure]) -> list[Failure]:
    """The first failures, as many as MOST allows."""
    sizes = accumulate(f.size for f in failures)
    return [f for f, size in zip(failures, sizes, strict=True) if size <= MOST]


def _failed(evidence: Evidence) -> int:
    """How many calls went wrong, with pictures or without."""
    return sum(any(map(_is_wrong, call.answers)) for call in evidence.calls)


def _failures(evidence: Evidence) -> list[Failure]:
    shown = [c for c in evidence.calls if c.call in evidence.pictures]
    failures = [_failure(evidence, call, evidence.samples[call.call]) for call in shown]
    return [f for f in failures if f.mistakes]


def _failure(evidence: Evidence, call: CallRow, sample: str) -> Failure:
    asked = evidence.asked(call.answers[0].question)
    source, follow_up = evidence.pictures[call.call]
    wrong = [_mistake(evidence, a) for a in call.answers if _is_wrong(a)]
    return Failure(
        sample,
        evidence.relations.index(asked.relation),
        evidence.change(asked.relation, asked.severity),
        None if source == follow_up else picture(source),
        picture(follow_up),
        sorted(wrong, key=lambda m: -m.distance),
        sum(a.loss is not None for a in call.answers) - len(wrong),
    )


def _is_wrong(answer: AnswerRow) -> bool:
    return answer.loss is not None and answer.loss >= 0.5


def _mistake(evidence: Evidence, row: AnswerRow) -> Mistake:
    concept = row.question % len(evidence.concepts)
    name = evidence.concepts[concept]
    return Mistake(concept, name, row.truth or 0, row.answer, row.unanswered, row.said)


def picture(png: bytes) -> Picture:
    """A PNG, with its size read from its header."""
    width, height = struct.unpack(">II", png[16:24]) if len(png) >= 24 else (1, 1)
    return Picture("data:image/png;base64," + b64encode(png).decode("ascii"), width, height)
