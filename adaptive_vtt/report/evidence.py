"""What the journal says, read once and shared by all sections."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pandas as pd

from ..errors import JournalError
from ..journal import Journal
from ..journal.rows import AnswerRow, CallRow, DrawRow, SourceRow
from ..results import judged, warned

if TYPE_CHECKING:
    from .history import Track
    from .replay import Replay
    from .standing import Standing


@dataclass(frozen=True)
class Asked:
    """A question in words, as far as its number tells."""

    concept: str
    relation: str
    severity: int


@dataclass(frozen=True)
class Evidence:
    """A journal's content; ``table`` is its outcomes, one row per judged question."""

    facts: dict[str, Any]
    draws: list[DrawRow]
    calls: list[CallRow]
    pictures: dict[int, tuple[bytes, bytes]]
    table: pd.DataFrame
    sources: list[SourceRow] = field(default_factory=list)
    head: str = ""
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, journal: Journal) -> "Evidence":
        """Raises JournalError where no audit was begun."""
        facts = journal.facts()
        if "space" not in facts or "settings" not in facts:
            raise JournalError("journal: no audit was begun in it, so there is nothing to report")
        calls, draws = journal.calls(), journal.draws()
        pictures, sources = journal.pictures(), journal.sources()
        told, warnings = judged(facts, draws, calls), warned(facts, draws, calls, sources)
        return cls(facts, draws, calls, pictures, told, sources, journal.head, warnings)

    @property
    def concepts(self) -> list[str]:
        return list(self.facts["space"]["concepts"])

    @property
    def variants(self) -> list[tuple[str, int]]:
        """Relation and severity, in the order of their numbers."""
        return [(relation, severity) for relation, severity in self.facts["space"]["variants"]]

    @property
    def relations(self) -> list[str]:
        return list(dict.fromkeys(relation for relation, _ in self.variants))

    @property
    def settings(self) -> dict[str, Any]:
        return dict(self.facts["settings"])

    @property
    def adaptive(self) -> bool:
        """Whether earlier answers had a say in what was asked."""
        return bool(self.settings["strategy"] != "random")

    @property
    def certificate(self) -> dict[str, Any] | None:
        """What is certified, to what, and how sure; None in audits that certify nothing."""
        return self.facts.get("certificate") or None

    @property
    def in_words(self) -> bool:
        """Whether answers are words, of which neither P(yes) nor its sides mean anything."""
        return any(a.said is not None for call in self.calls for a in call.answers)

    @property
    def cost(self) -> float:
        """What all answers cost, those about source images included."""
        return sum(c.cost for c in self.calls) + sum(s.cost for s in self.sources)

    @property
    def elapsed(self) -> float:
        """Seconds of audit until the last thing journaled."""
        times = [d.elapsed for d in self.draws] + [c.elapsed for c in self.calls]
        times += [s.elapsed for s in self.sources]
        ended = self.facts.get("ended") or {}
        return float(max([*times, ended.get("elapsed", 0.0)]))

    @cached_property
    def captioned(self) -> bool:
        """Whether answers are captions whose objects were checked."""
        return any("objects" in (a.details or {}) for c in self.calls for a in c.answers)

    @cached_property
    def samples(self) -> dict[int, str]:
        """The source image's id by call."""
        return {row.call: row.sample for row in self.draws}

    @cached_property
    def answers(self) -> dict[int, AnswerRow]:
        """Every answered question by its number."""
        return {a.question: a for call in self.calls for a in call.answers}

    @cached_property
    def replay(self) -> "Replay":
        """The answer GPs, learnt again from the first answer to the last."""
        from .replay import replay

        return replay(self)

    @cached_property
    def history(self) -> "list[Track]":
        """Every target's interval over the draws, in the order of the certificate."""
        from .history import history

        return history(self)

    @cached_property
    def standings(self) -> "list[Standing]":
        """Where every target stands, in the order of the certificate."""
        from .standing import standings

        return standings(self)

    def asked(self, question: int) -> Asked:
        """What the question of this number is about."""
        image, concept = divmod(question, len(self.concepts))
        relation, severity = self.variants[image % len(self.variants)]
        return Asked(self.concepts[concept], relation, severity)

    def change(self, relation: str, severity: int) -> str:
        """Relation and severity as one name; the severity only where there is a choice."""
        alone = sum(name == relation for name, _ in self.variants) == 1
        return relation if alone else f"{relation} {severity}"
