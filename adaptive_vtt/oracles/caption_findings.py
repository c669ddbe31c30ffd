"""What the captions of a journal came to: how much could be checked, and what was found."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..journal.rows import AnswerRow, CallRow, DrawRow


@dataclass(frozen=True)
class Findings:
    """Follow-ups ``judged``, those of them that show something ``comparable``, the objects
    ``checked`` in them, ``ambiguous`` or ``unlocated``; ``violations``, and of so many
    ``distinct`` things (image and ``thing``)."""

    judged: int
    comparable: int
    checked: int
    ambiguous: int
    unlocated: int
    violations: int
    distinct: int

    def as_dict(self) -> dict[str, int]:
        """For JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"{self.comparable} of {self.judged} follow-ups could be checked: {self.violations} "
            f"violations, of {self.distinct} different things"
        )


def judged(calls: Sequence[CallRow]) -> list[AnswerRow]:
    """The answers whose objects were checked, those that do not count left out."""
    answers = (a for call in calls for a in call.answers)
    return [a for a in answers if "objects" in (a.details or {}) and not a.excluded]


def found(calls: Sequence[CallRow], draws: Sequence[DrawRow]) -> Findings | None:
    """None where nothing was about captions."""
    captioned = any("objects" in (a.details or {}) for call in calls for a in call.answers)
    if not captioned:
        return None
    samples = {draw.call: draw.sample for draw in draws}
    details: list[tuple[str, Any]] = [(samples[a.call], a.details) for a in judged(calls)]
    every = [(sample, one) for sample, each in details for one in each["objects"]]
    broken = [(sample, one) for sample, one in every if one["rule"] is not None]
    status = [one["status"] for _, one in every]
    return Findings(
        len(details),
        sum(each["comparable"] for _, each in details),
        status.count("retained") + status.count("disappeared"),
        status.count("ambiguous"),
        status.count("unlocated"),
        len(broken),
        len({(sample, thing(one)) for sample, one in broken}),
    )


def thing(one: Mapping[str, Any]) -> str:
    """What an object of the details is: the detector's label, or else its name."""
    return str(one.get("label") or one["name"])
