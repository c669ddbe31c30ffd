"""The families of targets: what a mean loss is certified of, a class per family.

A family's fields say which of its targets is meant; they are journaled, and columns of results.
``TargetId`` lists the families. A new one is a class here, beside its test and the schema of
``result.json``, which ``results/result_file.py`` writes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal, get_args

from .errors import InputError
from .population import Population
from .types import ERROR, SIDES

Fields = Mapping[str, Sequence[object]]
"""A filter: field -> allowed values; fields are relation, severity, concept, truth, or columns of
metadata."""
COLUMNS = ("kind", "concept", "side", "rate", "relation", "severity", "group", "value", "filter")
"""The fields of all families, in the order of journals and results."""


class Family:
    """What every family has, as it is where a family says nothing else."""

    asked: ClassVar[tuple[str, ...]] = ()
    """What ``--targets`` calls its targets; a word in capitals stands for a name."""
    disjoint: ClassVar[bool] = False
    """Whether a question belongs to one of its targets at most."""
    kind: str
    rate: str = ERROR

    @classmethod
    def listed(cls, space: Population, name: str) -> "Iterator[tuple[Any, Fields]]":
        """Its targets that ``name`` (see ``asked``) stands for in a space, and their questions."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        """The target in words, for people: nothing reads meaning out of it again."""
        raise NotImplementedError

    @property
    def handle(self) -> str:
        """How rules of a gate name it."""
        return self.kind

    @property
    def handles(self) -> set[str]:
        """How rules name it among others."""
        return set()

    @property
    def about(self) -> str:
        """Which questions it is made of, as it follows "of the questions"."""
        return f"of {self.name!r}"

    @property
    def heading(self) -> str:
        """The heading it stands under in the report: a key of ``report.evidence.KINDS``."""
        return self.kind

    def label(self, change: Callable[[str, int | None], str]) -> str:
        """Its name under that heading. ``change``: names a relation, at a severity or at all."""
        return self.name

    def columns(self) -> dict[str, Any]:
        """All of ``COLUMNS``, None where the family has no such field."""
        own = {"rate": self.rate} | asdict(self)  # type: ignore[call-overload]
        return {name: own.get(name) for name in COLUMNS}

    def as_dict(self) -> dict[str, str | int]:
        """The columns that are not None, for JSON."""
        return {name: value for name, value in self.columns().items() if value is not None}


@dataclass(frozen=True)
class Overall(Family):
    """All questions."""

    kind: Literal["overall"] = "overall"

    asked = ("overall",)
    name = "overall error"

    @classmethod
    def listed(cls, space: Population, name: str) -> "Iterator[tuple[Overall, Fields]]":
        yield cls(), {}


@dataclass(frozen=True)
class Misclassified(Family):
    """The images whose class is missed: one question per image, about its true class."""

    kind: Literal["misclassified"] = "misclassified"

    asked = ("misclassified",)
    name = "misclassification rate"
    heading = "overall"

    @classmethod
    def listed(cls, space: Population, name: str) -> "Iterator[tuple[Misclassified, Fields]]":
        if space.oracle.concepts_are != "classes":
            raise InputError(
                "target 'misclassified': needs an oracle whose concepts are classes, as those of "
                f"TopClass are; here they are {space.oracle.concepts_are!r}"
            )
        yield cls(), {"truth": [1]}


@dataclass(frozen=True)
class OfConcept(Family):
    """A concept where it is absent (``side`` 0) or present (1): the paper's two sides. ``rate`` is
    what the oracle calls the mean loss there."""

    concept: str
    side: int
    rate: str
    kind: Literal["concept"] = "concept"

    asked = ("concepts", "concept:NAME")
    disjoint = True

    @classmethod
    def listed(cls, space: Population, name: str) -> "Iterator[tuple[OfConcept, Fields]]":
        one = name.partition(":")[2]
        for concept in [one] if one else space.concepts:
            for rate, side in space.oracle.rates.items():
                yield cls(concept, side, rate), {"concept": [concept], "truth": [side]}

    @property
    def name(self) -> str:
        return f"{self.concept}: {self.rate}"

    @property
    def handle(self) -> str:
        return f"concept:{self.concept}:{self.rate}"

    @property
    def handles(self) -> set[str]:
        return {"concepts", f"concept:{self.concept}"}

    @property
    def about(self) -> str:
        return _about(self)

    @property
    def heading(self) -> str:
        return self.rate

    def label(self, change: Callable[[str, int | None], str]) -> str:
        return self.concept


@dataclass(frozen=True)
class OfRelation(Family):
    """A relation, at all of its severities."""

    relation: str
    kind: Literal["relation"] = "relation"

    asked = ("relations",)
    disjoint = True

    @classmethod
    def listed(cls, space: Population, name: str) -> "Iterator[tuple[OfRelation, Fields]]":
        for relation in _relations(space):
            yield cls(relation), {"relation": [relation]}

    @property
    def name(self) -> str:
        return f"relation {self.relation}: {self.rate}"

    @property
    def handle(self) -> str:
        return f"relation:{self.relation}"

    @property
    def handles(self) -> set[str]:
        return {"relations"}

    @property
    def about(self) -> str:
        return f"under {self.relation}"

    def label(self, change: Callable[[str, int | None], str]) -> str:
        return change(self.relation, None)


@dataclass(frozen=True)
class OfSeverity(Family):
    """A relation at one severity."""

    relation: str
    severity: int
    kind: Literal["severity"] = "severity"

    asked = ("severities",)
    disjoint = True

    @classmethod
    def listed(cls, space: Population, name: str) -> "Iterator[tuple[OfSeverity, Fields]]":
        for relation, severity in dict.fromkeys(
            (v.relation.name, v.severity) for v in space.variants
        ):
            yield cls(relation, severity), {"relation": [relation], "severity": [severity]}

    @property
    def name(self) -> str:
        return f"relation {self.relation} severity {self.severity}: {self.rate}"

    @property
    def handle(self) -> str:
        return f"severity:{self.relation}:{self.severity}"

    @property
    def handles(self) -> set[str]:
        return {"severities", f"severity:{self.relation}"}

    @property
    def about(self) -> str:
        return f"under {self.relation} at severity {self.severity}"

    def label(self, change: Callable[[str, int | None], str]) -> str:
        return change(self.relation, self.severity)


@dataclass(frozen=True)
class OfRelationConcept(Family):
    """A concept under a relation, on one side or (``side`` None) on both."""

    relation: str
    concept: str
    side: int | None = None
    rate: str = ERROR
    kind: Literal["relation-concept"] = "relation-concept"

    asked = ("relation-concepts", "relation-sides")
    disjoint = True

    @classmethod
    def listed(cls, space: Population, name: str) -> "Iterator[tuple[OfRelationConcept, Fields]]":
        rates: Mapping[str, int | None] = {ERROR: None}
        if name == "relation-sides":
            rates = dict(space.oracle.rates)
        for relation in _relations(space):
            for concept in space.concepts:
                for rate, side in rates.items():
                    truths = [0, 1] if side is None else [side]
                    yield (
                        cls(relation, concept, side, rate),
                        {"relation": [relation], "concept": [concept], "truth": truths},
                    )

    @property
    def name(self) -> str:
        return f"relation {self.relation}, {self.concept}: {self.rate}"

    @property
    def handle(self) -> str:
        return f"relation-concept:{self.relation}:{self.concept}"

    @property
    def handles(self) -> set[str]:
        return {"relation-concepts", f"concept:{self.concept}"}

    @property
    def about(self) -> str:
        return f"{_about(self)} under {self.relation}"

    @property
    def heading(self) -> str:
        return f"relation, {self.rate}"

    def label(self, change: Callable[[str, int | None], str]) -> str:
        return f"{change(self.relation, None)}, {self.concept}"


@dataclass(frozen=True)
class OfGroup(Family):
    """The samples with one ``value``, as text, in a column of metadata, ``group``."""

    group: str
    value: str
    kind: Literal["group"] = "group"

    asked = ("group:COLUMN",)

    @classmethod
    def listed(cls, space: Population, name: str) -> "Iterator[tuple[OfGroup, Fields]]":
        column = name.partition(":")[2]
        for value in dict.fromkeys(space.dataset.metadata_values(column).tolist()):
            yield cls(column, str(value)), {column: [value]}

    @property
    def name(self) -> str:
        return f"{self.group} {self.value}: {self.rate}"

    @property
    def handle(self) -> str:
        return f"group:{self.group}={self.value}"

    @property
    def handles(self) -> set[str]:
        return {"groups", f"group:{self.group}"}

    @property
    def about(self) -> str:
        return f"where {self.group} is {self.value}"


@dataclass(frozen=True)
class Filtered(Family):
    """What a filter of the user's selects; ``filter`` is its name."""

    filter: str
    kind: Literal["filter"] = "filter"

    @property
    def name(self) -> str:
        return self.filter

    @property
    def handle(self) -> str:
        return self.filter

    @property
    def handles(self) -> set[str]:
        return {"filters"}


@dataclass(frozen=True)
class OfSlice(Family):
    """A slice that the audit found; ``filter`` says in words what it is."""

    filter: str
    kind: Literal["slice"] = "slice"

    @property
    def name(self) -> str:
        return f"slice {self.filter}"

    @property
    def handle(self) -> str:
        return f"slice:{self.filter}"

    @property
    def handles(self) -> set[str]:
        return {self.filter}

    def label(self, change: Callable[[str, int | None], str]) -> str:
        return self.filter


TargetId = (
    Overall
    | Misclassified
    | OfConcept
    | OfRelation
    | OfSeverity
    | OfRelationConcept
    | OfGroup
    | Filtered
    | OfSlice
)
"""Which questions a target is about."""
FAMILIES: tuple[type[TargetId], ...] = get_args(TargetId)
ASKED = tuple(name for family in FAMILIES for name in family.asked)
"""The names of targets; see ``certify.named_targets``."""


def family_of(name: str) -> type[TargetId] | None:
    """The family that ``--targets`` asks for so, None where it is none's name."""
    head, _, rest = name.partition(":")
    for family in FAMILIES:
        if name in family.asked or (rest and any(a.startswith(f"{head}:") for a in family.asked)):
            return family
    return None


def _relations(space: Population) -> list[str]:
    return list(dict.fromkeys(variant.relation.name for variant in space.variants))


def _about(target: OfConcept | OfRelationConcept) -> str:
    sided = target.side is not None and target.rate in SIDES
    where = f" where it is {'present' if target.side else 'absent'}" if sided else ""
    return f"about {target.concept}{where}"
