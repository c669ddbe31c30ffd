"""Targets: named subsets of the question space whose mean loss an audit certifies.

A target is a product of some samples, variants, concepts and truths. So its size is exact without
listing its questions, and membership takes four look-ups.

The journal holds the targets' masks and the truths of every sample. So ``verify_draws`` recomputes
membership, sizes and numbers of calls from the journal alone.
"""

import base64
import hashlib
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError, JournalError, unexpected, unknown
from ..families import FAMILIES, Fields, Filtered, TargetId, family_of
from ..population import Population
from ..types import Bools, CallMode, Indices, JsonObject

if TYPE_CHECKING:
    from ..journal.facts import Constant


MAX_SAMPLES = 2_000_000
"""Most samples whose truths are journaled. With more, the journal would hold little else."""


@dataclass(frozen=True)
class Target:
    """A subset of a space, as a product of masks.

    Attributes:
        id: What the target is about, with its names.
        variants: (V,) variants of images in it.
        concepts: (C,) concepts in it.
        sides: (2,) truths in it: absent, present.
        rows: (r,) the dataset's profile rows in it; None: all samples.
    """

    id: TargetId
    variants: Bools
    concepts: Bools
    sides: Bools
    rows: Bools | None = None

    @property
    def name(self) -> str:
        """Name for people."""
        return self.id.name


def fingerprint(targets: Sequence[Target]) -> str:
    """Return a short hash of the targets' masks, which does not depend on their names."""
    digest = hashlib.blake2b(digest_size=8)
    for t in targets:
        masks = [t.variants, t.concepts, t.sides] + ([] if t.rows is None else [t.rows])
        digest.update(repr([mask.shape for mask in masks]).encode())
        digest.update(b"".join(np.packbits(mask).tobytes() for mask in masks))
    return digest.hexdigest()


def size(space: Population, target: Target) -> int:
    """Return N, the exact number of the target's questions with a known truth."""
    return int(count(space, target).sum())


def count(space: Population, target: Target) -> Indices:
    """Return the number of the target's questions about each concept, (C,)."""
    truths, copies = _rows(space, target)
    samples = _wanted(truths, target).T @ copies
    return np.asarray(samples * space.applicable[target.variants].sum(axis=0))


def calls(space: Population, target: Target, answers: str) -> int:
    """Return the number of calls that ask at least one of the target's questions."""
    if answers == "one":
        return size(space, target)
    return int(counts_by_variant(space, target)[1].sum())


def largest(space: Population, target: Target, answers: str) -> int:
    """Return the most of the target's questions that one call asks."""
    return 1 if answers == "one" else int(counts_by_variant(space, target)[2].max())


def counts_by_variant(space: Population, target: Target | None = None) -> Indices:
    """Count a target's questions and calls by variant, where a call asks all about an image.

    Args:
        space: The space.
        target: The target; None: all questions of the space.

    Returns:
        3 x V: questions, calls that ask any of them, and the most of them in one call.
    """
    truths, copies = space.dataset.profile if target is None else _rows(space, target)
    wanted = truths >= 0 if target is None else _wanted(truths, target)
    # variants that apply to the same concepts have the same figures
    patterns, place = np.unique(space.applicable, axis=0, return_inverse=True)
    figures = []
    for pattern in patterns:
        asked = wanted[:, pattern].sum(axis=1)  # questions of a call about each profile row
        figures.append((asked @ copies, copies @ (asked > 0), asked.max(initial=0)))
    return np.array(figures)[place.ravel()].T * (True if target is None else target.variants)


def member(
    space: Population,
    targets: Sequence[Target],
    sample: Indices,
    variant: Indices,
    concept: Indices,
    truth: npt.NDArray[np.integer],
) -> Bools:
    """Return which of K targets hold each of n questions, given by their parts (n,), K x n."""
    inside = np.empty((len(targets), len(sample)), dtype=np.bool_)
    for k, target in enumerate(targets):
        inside[k] = target.variants[variant] & target.concepts[concept] & target.sides[truth]
        if target.rows is not None:
            inside[k] &= target.rows[space.dataset.profile_row(sample)]
    return inside


def members(space: Population, targets: Sequence[Target], questions: Indices) -> Bools:
    """Return which of K targets hold each of n questions, given by their numbers (n,), K x n."""
    sample, variant, concept = space.parts(questions)
    truth = space.dataset.truth(sample, concept)
    return member(space, targets, sample, variant, concept, truth)


def common(id: TargetId, parts: Sequence[Target]) -> Target:
    """Return the intersection of one or more targets, called ``id``."""
    variants = np.all([part.variants for part in parts], axis=0)
    concepts = np.all([part.concepts for part in parts], axis=0)
    sides = np.all([part.sides for part in parts], axis=0)
    rows = [part.rows for part in parts if part.rows is not None]
    return Target(id, variants, concepts, sides, np.all(rows, axis=0) if rows else None)


def named_targets(
    space: Population, names: Sequence[str], where: Mapping[str, Fields] | None = None
) -> list[Target]:
    """Return the targets that ``names`` select, without those that hold no question.

    Names that select the same questions become one target, whose ``also`` are the other names. A
    name is one of

    - "overall", also called "misclassified" where images have classes;
    - "concepts": miss rate and false-alarm rate of each, or the rates that the oracle has instead;
    - "concept:NAME": those of one concept;
    - "relations", or "relation:NAME" for one; "relation:identity" are the original images;
    - "severities": each relation at each severity;
    - "relation-concepts": each relation for each concept;
    - "relation-sides": each relation for each rate of "concepts";
    - "group:COLUMN": each value of a metadata column;
    - a name of ``where``.

    Args:
        space: The space that questions are drawn from.
        names: The names.
        where: Filters by name: field -> allowed values. Fields are relation, severity, concept,
            truth, and the metadata columns.

    Raises:
        InputError: A name is unknown, a filter selects nothing or has the name of another target,
            or no target is left.
    """
    filters = dict(where or {})
    kept: dict[str, Target] = {}
    taken: set[str] = set()
    for name in names:
        for target in _family(space, name, filters):
            taken |= set() if name in filters else target.id.names
            if size(space, target) > 0:
                subset = fingerprint([target])
                kept[subset] = _merged([kept[subset], target]) if subset in kept else target
    for name in filters:
        if name in taken or family_of(name) is not None:
            raise InputError(
                f"where: expected a name for a filter that no target has, got {name!r}; call it "
                "something else"
            )
    if not kept:
        raise InputError(f"targets: expected some with questions, got none from {list(names)}")
    return list(kept.values())


def _merged(pair: list[Target]) -> Target:
    """Merge two targets about the same questions: the broader family's, with the names of both."""
    first, other = sorted(pair, key=lambda target: FAMILIES.index(type(target.id)))
    more = (first.id.names | other.id.names) - replace(first.id, also=()).names
    return replace(first, id=replace(first.id, also=tuple(sorted(more))))


def _family(space: Population, name: str, filters: Mapping[str, Fields]) -> list[Target]:
    """Return the targets that one of ``names`` selects (``named_targets``)."""
    if name in filters:
        target = selected(space, Filtered(name, space.oracle.error), filters[name])
        if size(space, target) == 0:
            raise InputError(
                f"target {name!r}: its filter {dict(filters[name])} selects no question"
            )
        return [target]
    family = family_of(name)
    if family is None and name in space.dataset.metadata_columns:
        raise unexpected("targets", f"'group:{name}' for the values of a column", repr(name))
    if family is None or not set(family.asked) & set(space.kinds):
        raise unknown("target", name, [*space.kinds, *filters])
    return [selected(space, id, fields) for id, fields in family.listed(space, name)]


def selected(space: Population, id: TargetId, fields: Fields) -> Target:
    """Return the target of all questions with allowed values.

    Where images have classes and no field is about truths, it holds only the questions about an
    image's true class. Their mean loss is the misclassification rate.

    Args:
        space: The space that questions are drawn from.
        id: The target's id.
        fields: Field -> allowed values, as in the filters of ``named_targets``.

    Raises:
        InputError: A field or a value does not exist.
    """
    values: dict[str, list[object]] = {
        "relation": [v.relation.name for v in space.variants],
        "severity": [v.severity for v in space.variants],
        "concept": [*space.concepts],
        "truth": [0, 1],
    }
    masks = {field: np.full(len(existing), True) for field, existing in values.items()}
    rows: Bools | None = None
    if space.oracle.concepts_are == "classes" and "truth" not in fields:
        fields = {**fields, "truth": [1]}
    for field, allowed in fields.items():
        if field in values:
            masks[field] = _mask(values[field], allowed, field, id.name)
        else:
            existing = space.dataset.metadata_values(field).tolist()
            mask = _mask(existing, allowed, field, id.name)
            rows = mask if rows is None else rows & mask
    variants = masks["relation"] & masks["severity"]
    return Target(id, variants, masks["concept"], masks["truth"], rows)


def _mask(existing: list[object], allowed: object, field: str, target: str) -> Bools:
    """Return which of the existing values are allowed."""
    if isinstance(allowed, str) or not isinstance(allowed, Sequence):
        raise InputError(f"target {target!r}: {field}: expected a list of values, got {allowed!r}")
    for value in allowed:
        if value not in existing:
            raise unknown(field, str(value), {str(v) for v in existing}, f"target {target!r}")
    return np.array([value in allowed for value in existing], dtype=np.bool_)


def _rows(space: Population, target: Target) -> tuple[npt.NDArray[np.int8], Indices]:
    """Return the truths and the number of samples of each profile row of the target."""
    truths, copies = space.dataset.profile
    if target.rows is None:
        return truths, copies
    return truths[target.rows], copies[target.rows]


def _wanted(truths: npt.NDArray[np.int8], target: Target) -> Bools:
    """Return which concepts the target asks about in each profile row, rows x C."""
    inside = np.zeros(truths.shape, dtype=bool)
    for side in np.flatnonzero(target.sides):  # np.isin takes ten times as long
        inside |= truths == side
    return inside & target.concepts


def describe_population(
    space: Population, answers: CallMode, targets: Sequence[Target]
) -> JsonObject | None:
    """Return the journal's fact "population", None where the dataset is too large.

    It holds the truths by profile row, the row of every sample, which variants apply to which
    concepts, and the masks of every target.
    """
    if len(space.dataset) > MAX_SAMPLES:
        return None
    truths, _ = space.dataset.profile
    return {
        "answers": answers,
        "truths": pack(truths.astype(np.int8)),
        "rows": pack(space.dataset.profile_row(np.arange(len(space.dataset))).astype(np.int32)),
        "applicable": pack(space.applicable),
        "targets": [masks_of(target) for target in targets],
    }


def selected_by(packed: Mapping[str, Any], ids: Sequence[TargetId]) -> list[Target]:
    """Return the targets of a fact "population" with these ids."""
    return [target_of(id, masks) for id, masks in zip(ids, packed["targets"], strict=True)]


def differs(packed: Mapping[str, Any], space: Population) -> str | None:
    """Return the first thing in which ``space`` differs from a fact "population", None for none.

    Where they differ, targets would select other questions.
    """
    own: dict[str, npt.NDArray[Any]] = {
        "truths": space.dataset.profile[0],
        "rows": space.dataset.profile_row(np.arange(len(space.dataset))),
        "applicable": space.applicable,
    }
    descriptions = {
        "applicable": "which questions can be judged",
        "rows": "the samples",
        "truths": "what is true of the samples",
    }
    for name, description in descriptions.items():
        if not np.array_equal(unpack(packed[name]), own[name]):
            return description
    return None


def masks_of(target: Target) -> JsonObject:
    """Return a target's masks as JSON."""
    return {
        "variants": pack(target.variants),
        "concepts": pack(target.concepts),
        "sides": pack(target.sides),
        "rows": None if target.rows is None else pack(target.rows),
    }


def pack(array: npt.NDArray[Any]) -> JsonObject:
    """Return an array as JSON: its type, shape and compressed bytes."""
    body = zlib.compress(np.ascontiguousarray(array).tobytes(), level=6)
    kind = array.dtype.newbyteorder("<").str
    return {"kind": kind, "shape": list(array.shape), "bytes": base64.b64encode(body).decode()}


def target_of(id: TargetId, masks: Mapping[str, Any]) -> Target:
    """Return the target of journaled masks. Raise JournalError where they are damaged."""
    variants, concepts, sides = (unpack(masks[name]) for name in ("variants", "concepts", "sides"))
    rows = None if masks["rows"] is None else unpack(masks["rows"])
    return Target(id, variants, concepts, sides, rows)


def unpack(packed: Mapping[str, Any]) -> npt.NDArray[Any]:
    """Return the array that ``pack`` wrote. Raise JournalError where it is damaged."""
    try:
        body = zlib.decompress(base64.b64decode(packed["bytes"]))
        return np.frombuffer(body, packed["kind"]).reshape(packed["shape"])
    except (ValueError, KeyError, TypeError, zlib.error):
        raise JournalError("journal: the masks of a target are damaged") from None


# -- the loss of a constant answer, from the labels alone ------------------------------------------


def constants(space: Population, targets: Sequence[Target]) -> "list[Constant | None]":
    """Return each target's best constant answer and its loss.

    It is always the commonest class, always Yes or No, or always the same letter. It is None for
    targets about one truth of a concept, and where answers are none of these.
    """
    letters = _right_letters(space) if space.oracle.concepts_are == "choices" else None
    return [_best_constant(space, target, letters) for target in targets]


def _best_constant(
    space: Population, target: Target, letters: npt.NDArray[np.str_] | None
) -> "Constant | None":
    """Return a target's best constant answer; ``letters``: the right ones, for choices."""
    kind, sides = space.oracle.concepts_are, target.sides.tolist()
    answers: Sequence[str] = ()
    right = np.zeros(0, np.int64)  # how often each answer is right
    if kind == "classes" and sides == [False, True] and target.concepts.sum() > 1:
        answers, right = space.concepts, count(space, target)
    elif kind == "labels" and all(sides):
        answers = "No", "Yes"
        halves = [replace(target, sides=side) for side in np.eye(2, dtype=bool)]
        right = np.array([count(space, half).sum() for half in halves])
    elif letters is not None:
        times = target.concepts * space.applicable[target.variants].sum(axis=0)
        if target.rows is not None:
            rows = space.dataset.profile_row(np.arange(len(letters)))
            letters = letters[target.rows[rows]]
        answers = sorted({*np.unique(letters).tolist()} - {""})
        right = np.array([((letters == answer) * times).sum() for answer in answers])
    if not right.any():
        return None
    from ..journal.facts import Constant  # loads pydantic, which targets need not

    place = int(right.argmax())
    return Constant(str(answers[place]), 1 - float(right[place] / right.sum()))


def _right_letters(space: Population) -> npt.NDArray[np.str_]:
    """Return the right letter of each question, samples x concepts; "" without one."""
    right = np.full((len(space.dataset), len(space.concepts)), "", "U1")
    columns = {concept: column for column, concept in enumerate(space.concepts)}
    for row in range(len(right)):
        for concept, letters in space.dataset.answers(row).items():
            right[row, columns[concept]] = letters[0]
    return right


def constants_of(space: Population, targets: Sequence[Target]) -> list[JsonObject | None]:
    """Return ``constants`` as the journal keeps them."""
    best = constants(space, targets)
    return [None if constant is None else asdict(constant) for constant in best]
