"""The families of targets, each a class: groups of questions whose mean loss is certified.

A family's fields say which of its targets is meant; they are journaled, and columns of results.
``TargetId`` lists the families. A new one is a class here, with its test and the schema of
``result.json``, which ``python -m tests.helpers.result_file`` writes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

from .errors import InputError
from .population import Population
from .types import ERROR, IDENTITY, SIDES

Fields = Mapping[str, Sequence[object]]
"""A filter: field -> allowed values; fields are relation, severity, concept, truth, or columns of
metadata."""
MISCLASSIFIED = "misclassified"
"""The overall target where images have classes."""
COLUMNS = ("kind", "concept", "side", "rate", "relation", "severity", "group", "value", "filter")
"""The fields of all families, in the order of journals and results."""


def _rate() -> Any:
    """Return the field for the oracle's name of the mean loss, which distinguishes no targets."""
    return field(default=ERROR, compare=False)


@dataclass(frozen=True, kw_only=True)
class _Named:
    """``also``: the names of targets about the same questions, which are this one."""

    also: tuple[str, ...] = field(default=(), compare=False)


class Family(_Named):
    """Base of all families, with defaults.

    In texts a field's name in braces stands for its value, ``{where}`` for the side it is about,
    and ``{change}`` for relation and severity, as short as the report can name them.
    """

    asked: ClassVar[tuple[str, ...]] = ()
    """Names of its targets in ``--targets``; a word in capitals stands for a name."""
    disjoint: ClassVar[bool] = False
    """True if a question belongs to one of its targets at most."""
    words: ClassVar[str]
    """The target in words, for people."""
    rule: ClassVar[str] = "{kind}"
    """How rules of a gate name it; ``rules``: and it among others."""
    rules: ClassVar[tuple[str, ...]] = ()
    made_of: ClassVar[str] = ""
    """Which questions it is made of, as it follows "of the questions"; "": by its name."""
    under: ClassVar[str] = "{kind}"
    """Its heading in the report, a key of ``report.evidence.KINDS``."""
    scale: ClassVar[float] = 1.0
    """How far its figure moves where the mean loss moves by 1: 2 of a difference."""
    short: ClassVar[str] = ""
    """Its name under that heading; "": as everywhere."""
    kind: str
    rate: str

    @classmethod
    def listed(cls, space: Population, name: str) -> "Iterator[tuple[Any, Fields]]":
        """Yield its targets of a ``name`` (see ``asked``) in a space, and their questions."""
        raise TypeError(f"{cls.__name__} defines no listed")

    def measured(self, mean: Any) -> Any:
        """Return its figure, given the mean loss, a number or an array; with a ``scale`` of 2 that
        is a difference in [-1, 1]."""
        return self.scale * mean - (self.scale - 1)

    @property
    def signed(self) -> bool:
        """True of a difference, in [-1, 1]."""
        return self.scale != 1

    @property
    def name(self) -> str:
        """The target in words, for people: nothing reads meaning out of it again."""
        return self._filled(self.words)

    @property
    def handle(self) -> str:
        """How rules of a gate name it."""
        return self._filled(self.rule)

    @property
    def about(self) -> str:
        """Which questions it is made of, as it follows "of the questions"."""
        return self._filled(self.made_of) or f"of {self.name!r}"

    @property
    def heading(self) -> str:
        """See ``under``."""
        return self._filled(self.under)

    def label(self, change: Callable[[str, int | None], str]) -> str:
        """Return its ``short`` name. ``change`` names a relation at a severity; None: at all."""
        relation, severity = (self.columns()[name] for name in ("relation", "severity"))
        named = change(relation, severity) if relation else ""
        return self._filled(self.short, change=named) or self.name

    def is_named(self, about: str) -> bool:
        """Return whether a rule of a gate that is about ``about`` includes it."""
        return about in self.names

    @property
    def names(self) -> set[str]:
        """All its names in rules."""
        return {self.name, *map(self._filled, (self.rule, *self.rules)), *self.also}

    def columns(self) -> dict[str, Any]:
        """Return all of ``COLUMNS``, None where the family has no such field."""
        return {name: getattr(self, name, None) for name in COLUMNS}

    def as_dict(self) -> dict[str, Any]:
        """Return the columns that are not None, for JSON."""
        columns = {**self.columns(), "also": [*self.also] or None}
        return {name: value for name, value in columns.items() if value is not None}

    def _filled(self, text: str, **more: str) -> str:
        columns = self.columns()
        side = columns["side"] if self.rate in SIDES else None
        where = "" if side is None else f" where it is {'present' if side else 'absent'}"
        return text.format(**columns, **more, where=where)


@dataclass(frozen=True)
class Overall(Family):
    """All questions of the unit: where images have classes, one of each image."""

    rate: str = _rate()
    kind: Literal["overall"] = "overall"

    asked = ("overall", MISCLASSIFIED)
    words = "overall {rate}"

    @classmethod
    def listed(cls, space: Population, name: str) -> "Iterator[tuple[Overall, Fields]]":
        if name == MISCLASSIFIED and space.oracle.concepts_are != "classes":
            raise InputError(
                f"target {name!r}: needs an oracle whose concepts are classes, as those of "
                f"TopClass are; here they are {space.oracle.concepts_are!r}"
            )
        also = (MISCLASSIFIED,) if space.oracle.concepts_are == "classes" else ()
        yield cls(space.oracle.error, also=also), {}


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
    words = "{concept}: {rate}"
    rule = "concept:{concept}:{rate}"
    rules = ("concepts", "concept:{concept}")
    made_of = "about {concept}{where}"
    under = "{rate}"
    short = "{concept}"

    @classmethod
    def listed(cls, space: Population, name: str) -> "Iterator[tuple[OfConcept, Fields]]":
        one = name.partition(":")[2]
        for concept in [one] if one else space.concepts:
            for rate, side in space.oracle.rates.items():
                yield cls(concept, side, rate), {"concept": [concept], "truth": [side]}


@dataclass(frozen=True)
class OfRelation(Family):
    """A relation, at all of its severities."""

    relation: str
    rate: str = _rate()
    kind: Literal["relation"] = "relation"

    asked = ("relations", "relation:NAME")
    disjoint = True
    words = "relation {relation}: {rate}"
    rule = "relation:{relation}"
    rules = ("relations",)
    made_of = "under {relation}"
    short = "{change}"

    @classmethod
    def listed(cls, space: Population, name: str) -> "Iterator[tuple[OfRelation, Fields]]":
        one = name.partition(":")[2]
        for relation in [one] if one else _relations(space):
            yield cls(relation, space.oracle.error), {"relation": [relation]}


DROPS = "drops"


@dataclass(frozen=True)
class OfDrop(Family):
    """How much larger the mean loss is under a relation than on the same original images, which
    ``oracles.Drops`` judges as pairs."""

    relation: str
    rate: str = _rate()
    kind: Literal["drop"] = "drop"

    asked = (DROPS,)
    disjoint = True
    scale = 2.0
    words = "drop under {relation}"
    rule = "drop:{relation}"
    rules = (DROPS, "drop relation:{relation}")
    made_of = "under {relation} and on the original images"
    short = "{change}"

    @classmethod
    def listed(cls, space: Population, name: str) -> "Iterator[tuple[OfDrop, Fields]]":
        if not space.oracle.whole_source:
            raise InputError(
                f"target {DROPS!r}: expected an audit of one model with these targets alone, got "
                "questions that are not judged together with their originals; certify drops in an "
                "audit of their own"
            )
        for relation in _relations(space):
            if relation != IDENTITY:
                yield cls(relation, space.oracle.error), {"relation": [relation]}


@dataclass(frozen=True)
class OfSeverity(Family):
    """A relation at one severity."""

    relation: str
    severity: int
    rate: str = _rate()
    kind: Literal["severity"] = "severity"

    asked = ("severities",)
    disjoint = True
    words = "relation {relation} severity {severity}: {rate}"
    rule = "severity:{relation}:{severity}"
    rules = ("severities", "severity:{relation}")
    made_of = "under {relation} at severity {severity}"
    short = "{change}"

    @classmethod
    def listed(cls, space: Population, name: str) -> "Iterator[tuple[OfSeverity, Fields]]":
        variants = dict.fromkeys((v.relation.name, v.severity) for v in space.variants)
        for relation, severity in variants:
            about: Fields = {"relation": [relation], "severity": [severity]}
            yield cls(relation, severity, space.oracle.error), about


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
    words = "relation {relation}, {concept}: {rate}"
    rule = "relation-concept:{relation}:{concept}"
    rules = ("relation-concepts", "concept:{concept}")
    made_of = "about {concept}{where} under {relation}"
    under = "relation, {rate}"
    short = "{change}, {concept}"

    @classmethod
    def listed(cls, space: Population, name: str) -> "Iterator[tuple[OfRelationConcept, Fields]]":
        rates: Mapping[str, int | None] = space.oracle.rates
        if name == "relation-concepts":
            classes = space.oracle.concepts_are == "classes"  # an image of one class can miss it
            rates = {"miss rate": 1} if classes else {space.oracle.error: None}
        for relation in _relations(space):
            for concept in space.concepts:
                for rate, side in rates.items():
                    truths = [0, 1] if side is None else [side]
                    yield (
                        cls(relation, concept, side, rate),
                        {"relation": [relation], "concept": [concept], "truth": truths},
                    )


@dataclass(frozen=True)
class OfGroup(Family):
    """The samples with one ``value``, as text, in a column of metadata, ``group``."""

    group: str
    value: str
    rate: str = _rate()
    kind: Literal["group"] = "group"

    asked = ("group:COLUMN",)
    words = "{group} {value}: {rate}"
    rule = "group:{group}={value}"
    rules = ("groups", "group:{group}")
    made_of = "where {group} is {value}"

    @classmethod
    def listed(cls, space: Population, name: str) -> "Iterator[tuple[OfGroup, Fields]]":
        column = name.partition(":")[2]
        for value in dict.fromkeys(space.dataset.metadata_values(column).tolist()):
            yield cls(column, str(value), space.oracle.error), {column: [value]}


@dataclass(frozen=True)
class Filtered(Family):
    """The questions that a filter of the user selects; ``filter`` is its name."""

    filter: str
    rate: str = _rate()
    kind: Literal["filter"] = "filter"

    words = "{filter}"
    rule = "{filter}"
    rules = ("filters",)


@dataclass(frozen=True)
class OfSlice(Family):
    """A slice that the audit discovered; ``filter`` describes it in words."""

    filter: str
    rate: str = _rate()
    kind: Literal["slice"] = "slice"

    words = "slice {filter}"
    rule = "slice:{filter}"
    rules = ("{filter}",)
    short = "{filter}"


TargetId = (
    Overall
    | OfConcept
    | OfRelation
    | OfDrop
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
    """Return the family of a name of ``--targets``; None for other names."""
    head, _, part = name.partition(":")
    for family in FAMILIES:
        if name in family.asked or (part and any(a.startswith(f"{head}:") for a in family.asked)):
            return family
    return None


def shared(relations: Iterable[str]) -> str:
    """Return the family of all relations but identity, with its slash; "" where they differ."""
    families = {name[: name.rfind("/") + 1] for name in relations if name != IDENTITY}
    return families.pop() if len(families) == 1 else ""


def in_short(target: TargetId, variants: Sequence[tuple[str, int]]) -> str:
    """Return a target's ``short`` name: severities only where there is a choice, and without the
    prefix that all relations of the ``variants`` (relation and severity) share."""
    relations = [relation for relation, _ in variants]

    def change(relation: str, severity: int | None) -> str:
        alone = severity is None or relations.count(relation) == 1
        return (relation if alone else f"{relation} {severity}").removeprefix(shared(relations))

    return target.label(change)


def distinct_name(target: TargetId, variants: Sequence[tuple[str, int]]) -> str:
    """Return a name that distinguishes a target where there is little room, with its rate only
    where few targets have that rate."""
    if target.rate != ERROR and isinstance(target, OfConcept | OfRelationConcept):
        return target.name
    return in_short(target, variants).removesuffix(f" {target.rate}").removesuffix(":")


def _relations(space: Population) -> list[str]:
    return list(dict.fromkeys(variant.relation.name for variant in space.variants))
