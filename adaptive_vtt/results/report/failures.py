"""The calls that went wrong: what was said of each concept, and which targets they are part of."""

from dataclasses import dataclass
from typing import Any

from ...journal.rows import AnswerRow, CallRow
from .content import Content
from .wording import asked


@dataclass(frozen=True)
class Mistake:
    """One concept answered wrongly, or not at all."""

    concept: int
    name: str
    truth: int
    answer: float | None
    reason: str | None
    said: str | None = None
    asked: dict[str, Any] | None = None
    """See ``wording.asked``."""

    @property
    def distance(self) -> float:
        """How far the answer lies from the truth; an unanswered question comes last."""
        return -1.0 if self.answer is None else abs(self.answer - self.truth)


@dataclass(frozen=True)
class Failure:
    """One call that went wrong.

    ``pictures``: PNGs of the source and the follow-up image, None where none were kept;
    ``targets``: places of the targets that a wrong answer of the call belongs to.
    """

    call: int
    sample: str
    relation: str
    severity: int
    change: str
    pictures: tuple[bytes, bytes] | None
    mistakes: list[Mistake]
    right: int
    targets: frozenset[int]

    @property
    def changed(self) -> bool:
        """Whether there are two pictures to compare."""
        return self.pictures is not None and self.pictures[0] != self.pictures[1]

    def about(self, concept: str, truth: int) -> bool:
        """Whether a mistake is about this side of this concept."""
        return any(m.name == concept and m.truth == truth for m in self.mistakes)


def failures(content: Content) -> list[Failure]:
    """Every call with a wrong answer: those with pictures first, then the surest mistakes."""
    found = [_failure(content, call) for call in content.calls]
    kept = [f for f in found if f.mistakes]
    return sorted(kept, key=lambda f: (f.pictures is None, -f.mistakes[0].distance))


def _failure(content: Content, call: CallRow) -> Failure:
    asked = content.asked(call.answers[0].question)
    wrong = [a for a in call.answers if _is_wrong(a)]
    mistakes = [_mistake(content, a) for a in wrong]
    return Failure(
        call.call,
        content.drawn[call.call].sample,
        asked.relation,
        asked.severity,
        content.change(asked.relation, asked.severity),
        content.pictures.get(call.call),
        sorted(mistakes, key=lambda m: -m.distance),
        sum(a.loss is not None and not a.excluded for a in call.answers) - len(wrong),
        content.targets_of(call.call, (a.question for a in wrong)),
    )


def _is_wrong(answer: AnswerRow) -> bool:
    return answer.loss is not None and answer.loss >= 0.5


def _mistake(content: Content, row: AnswerRow) -> Mistake:
    concept = row.question % len(content.concepts)
    name = content.concepts[concept]
    told = asked(row)
    return Mistake(concept, name, row.truth or 0, row.answer, row.unanswered, row.said, told)
