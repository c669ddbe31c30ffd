"""Families of targets: groups of questions whose mean loss is certified, a class per family.

The fields of a family identify one of its targets. They are journaled, and they are columns of
results. ``TargetId`` lists the families. A new family takes a class here, a test, and the schema of
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
"""Name of the overall target where images have classes."""
DROPS = "drops"
"""Name of the targets of ``OfDrop``."""
COLUMNS = ("kind", "concept", "side", "rate", "relation", "severity", "group", "value", "filter")
"""The fields of all families, in the order of journals and results."""


def _rate() -> Any:
    """Return a dataclass field for the oracle's name of the mean loss.

    Targets that differ in it alone are equal.
    """
    return field(default=ERROR, compare=False)


@dataclass(frozen=True, kw_only=True)
class _Named:
    """Base with the further names of a target, in ``also``: those of equal sets of questions."""

    also: tuple[str, ...] = field(default=(), compare=False)


class Family(_Named):
    """Base of all families, with defaults.

    Texts are templates. A field's name in braces stands for its value, ``{where}`` for the side
    that the target is about, and ``{change}`` for relation and severity, shortened for the report.
    """

    asked: ClassVar[tuple[str, ...]] = ()
    """Names in ``--targets`` that select its targets; a word in capitals stands for a name."""
    disjoint: ClassVar[bool] = False
    """True if a question belongs to one of its targets at most."""
    words: ClassVar[str]
    """Name of a target for people."""
    rule: ClassVar[str] = "{kind}"
    """Name of a target in rules of a gate."""
    rules: ClassVar[tuple[str, ...]] = ()
    """Names in rules of a gate that include this target and others."""
    made_of: ClassVar[str] = ""
    """Description that follows "of the questions"; "": "of NAME"."""
    under: ClassVar[str] = "{kind}"
    """Heading in the report, a key of ``report.evidence.KINDS``."""
    scale: ClassVar[float] = 1.0
    """Change of the target's figure when the mean loss changes by 1; 2 for a difference."""
    short: ClassVar[str] = ""
    """Name under that heading; "": the usual name."""
    kind: str
    rate: str

    @classmethod
    def listed(cls, space: Population, name: str) -> "Iterator[tuple[Any, Fields]]":
        """Yield (target, its filter) for each target in a space that ``name`` selects.

        Args:
            space: All questions.
            name: One of ``asked``, with a name in place of the capitals.
        """
        raise TypeError(f"{cls.__name__} defines no listed")

    def measured(self, mean: Any) -> Any:
        """Return the target's figure from its mean loss, a number or an array.

        It is the mean loss itself, or with a ``scale`` of 2 a difference in [-1, 1].
        """
        return self.scale * mean - (self.scale - 1)

    @property
    def signed(self) -> bool:
        """True if the figure is a difference in [-1, 1]."""
        return self.scale != 1

    @property
    def name(self) -> str:
        """Name of the target for people; no code parses it."""
        return self._filled(self.words)

    @property
    def handle(self) -> str:
        """Name of the target in rules of a gate."""
        return self._filled(self.rule)

    @property
    def about(self) -> str:
        """Description that follows "of the questions"."""
        return self._filled(self.made_of) or f"of {self.name!r}"

    @property
    def heading(self) -> str:
        """Heading of the target in the report."""
        return self._filled(self.under)

    def label(self, change: Callable[[str, int | None], str]) -> str:
        """Return the target's short name.

        Args:
            change: Returns the name of a relation at a severity; None: at all severities.
        """
        columns = self.columns()
        relation = columns["relation"]
        shortened = change(relation, columns["severity"]) if relation else ""
        return self._filled(self.short, change=shortened) or self.name

    def is_named(self, name: str) -> bool:
        """Return whether a rule of a gate with this name includes the target."""
        return name in self.names

    def resembles(self, name: str) -> bool:
        """Return whether a name is the target's for people without the rate, or its name in rules
        with ":" in place of "="."""
        return name in (self.name.removesuffix(f": {self.rate}"), self.handle.replace("=", ":", 1))

    @property
    def names(self) -> set[str]:
        """All names that rules may use for the target."""
        return {self.name, *map(self._filled, (self.rule, *self.rules)), *self.also}

    def columns(self) -> dict[str, Any]:
        """Return all of ``COLUMNS`` by name, None for fields that the family does not have."""
        return {name: getattr(self, name, None) for name in COLUMNS}

    def as_dict(self) -> dict[str, Any]:
        """Return the columns that are not None, for JSON."""
        columns = {**self.columns(), "also": [*self.also] or None}
        return {name: value for name, value in columns.items() if value is not None}

    def _filled(self, text: str, **more: str) -> str:
        """Return a template with the target's fields, and ``more``, in place of the braces."""
        columns = self.columns()
        side = columns["side"] if self.rate in SIDES else None
        where = "" if side is None else f" where it is {'present' if side else 'absent'}"
        return text.format(**columns, **more, where=where)


@dataclass(frozen=True)
class Overall(Family):
    """All questions; where images have classes, one question per image."""

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
    """A concept on one of the paper's two sides: absent (``side`` 0) or present (1).

    ``rate`` is the oracle's name of the mean loss on that side.
    """

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
        chosen = name.partition(":")[2]
        for concept in [chosen] if chosen else space.concepts:
            for rate, side in space.oracle.rates.items():
                yield cls(concept, side, rate), {"concept": [concept], "truth": [side]}


@dataclass(frozen=True)
class OfRelation(Family):
    """A relation at all of its severities."""

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
        chosen = name.partition(":")[2]
        for relation in [chosen] if chosen else _relations(space):
            yield cls(relation, space.oracle.error), {"relation": [relation]}


@dataclass(frozen=True)
class OfDrop(Family):
    """The rise of the mean loss under a relation, compared with the same original images.

    ``oracles.Drops`` judges both as a pair.
    """

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
    """A concept under a relation, on one side or on both (``side`` None)."""

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
    """The samples with one ``value``, as text, in the metadata column ``group``."""

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
    """The questions that a filter of the user selects; ``filter`` is the filter's name."""

    filter: str
    rate: str = _rate()
    kind: Literal["filter"] = "filter"

    words = "{filter}"
    rule = "{filter}"
    rules = ("filters",)


@dataclass(frozen=True)
class OfSlice(Family):
    """A slice that the audit discovered; ``filter`` describes it in words for people."""

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
"""Identity of a target: the questions that it is about."""
FAMILIES: tuple[type[TargetId], ...] = get_args(TargetId)
ASKED = tuple(name for family in FAMILIES for name in family.asked)
"""The names of targets; see ``certify.named_targets``."""


def family_of(name: str) -> type[TargetId] | None:
    """Return the family that a name of ``--targets`` selects; None for other names."""
    head, _, part = name.partition(":")
    for family in FAMILIES:
        if name in family.asked or (part and any(a.startswith(f"{head}:") for a in family.asked)):
            return family
    return None


def shared(relations: Iterable[str]) -> str:
    """Return the prefix, up to its slash, of all relations but identity; "" if they differ."""
    prefixes = {name[: name.rfind("/") + 1] for name in relations if name != IDENTITY}
    return prefixes.pop() if len(prefixes) == 1 else ""


def in_short(target: TargetId, variants: Sequence[tuple[str, int]]) -> str:
    """Return a target's ``short`` name.

    It omits the severity of a relation that has one severity, and the prefix that all relations
    share.

    Args:
        target: The target.
        variants: (relation, severity) of each variant of the space.
    """
    relations = [relation for relation, _ in variants]

    def change(relation: str, severity: int | None) -> str:
        alone = severity is None or relations.count(relation) == 1
        return (relation if alone else f"{relation} {severity}").removeprefix(shared(relations))

    return target.label(change)


def distinct_name(target: TargetId, variants: Sequence[tuple[str, int]]) -> str:
    """Return a short name that distinguishes a target from all others of an audit.

    It has the rate only for families whose targets differ in it. Arguments are those of
    ``in_short``.
    """
    if target.rate != ERROR and isinstance(target, OfConcept | OfRelationConcept):
        return target.name
    return in_short(target, variants).removesuffix(f" {target.rate}").removesuffix(":")


def _relations(space: Population) -> list[str]:
    return list(dict.fromkeys(variant.relation.name for variant in space.variants))
