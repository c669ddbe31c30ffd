"""Targets: named subsets of the question space whose mean loss is to be known.

A target is a product: some samples x some variants x some concepts x some truths. That is
why its size is exact without listing it, and why membership is four look-ups.

Targets are written into the journal, so that no data are needed to check them. A question is a
number; which targets it belongs to follows from its sample, variant and concept. With the truths of
every sample and the targets' masks in the journal, membership, sizes and the number of calls can be
recomputed from the journal alone (``verify_draws``).
"""

import base64
import hashlib
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError, JournalError, unknown
from ..families import FAMILIES, Fields, Filtered, TargetId, family_of
from ..population import Population
from ..types import Bools, CallMode, Indices, JsonObject


@dataclass(frozen=True)
class Target:
    """A subset of a space. ``variants`` (V,), ``concepts`` (C,) and ``sides`` (2,) are masks.

    ``rows`` (r,) is a mask over the dataset's profile rows, or None for all samples.
    """

    id: TargetId
    variants: Bools
    concepts: Bools
    sides: Bools
    rows: Bools | None = None

    @property
    def name(self) -> str:
        """What it is called, for people."""
        return self.id.name


def fingerprint(targets: Sequence[Target]) -> str:
    """A short hash of the subsets that targets stand for, whatever they are called."""
    digest = hashlib.blake2b(digest_size=8)
    for t in targets:
        masks = [t.variants, t.concepts, t.sides] + ([] if t.rows is None else [t.rows])
        digest.update(repr([mask.shape for mask in masks]).encode())
        digest.update(b"".join(np.packbits(mask).tobytes() for mask in masks))
    return digest.hexdigest()


def size(space: Population, target: Target) -> int:
    """N, the exact number of the target's eligible questions."""
    return int(count(space, target).sum())


def count(space: Population, target: Target) -> Indices:
    """(C,): how many of the target's questions are about each concept."""
    truths, copies = _rows(space, target)
    samples = _wanted(truths, target).T @ copies
    return np.asarray(samples * space.applicable[target.variants].sum(axis=0))


def calls(space: Population, target: Target, answers: str) -> int:
    """How many calls bring an answer to at least one of the target's questions."""
    if answers == "one":
        return size(space, target)
    return int(counts_by_variant(space, target)[1].sum())


def largest(space: Population, target: Target, answers: str) -> int:
    """At most so many of the target's questions are answered by one call."""
    return 1 if answers == "one" else int(counts_by_variant(space, target)[2].max())


def counts_by_variant(space: Population, target: Target | None = None) -> Indices:
    """Return 3 x V: the target's questions about each variant, the calls that answer any where a
    call answers all questions about an image, and the most that one of them answers. Without a
    target, of all questions."""
    truths, copies = space.dataset.profile if target is None else _rows(space, target)
    wanted = truths >= 0 if target is None else _wanted(truths, target)
    patterns, place = np.unique(space.applicable, axis=0, return_inverse=True)
    each = [wanted[:, pattern].sum(axis=1) for pattern in patterns]
    figures = [(n @ copies, copies @ (n > 0), n.max(initial=0)) for n in each]
    return np.array(figures)[place.ravel()].T * (True if target is None else target.variants)


def member(
    space: Population,
    targets: Sequence[Target],
    sample: Indices,
    variant: Indices,
    concept: Indices,
    truth: npt.NDArray[np.integer],
) -> Bools:
    """K x n: which of n questions belong to which of K targets."""
    belongs = np.empty((len(targets), len(sample)), dtype=np.bool_)
    for k, target in enumerate(targets):
        inside = target.variants[variant] & target.concepts[concept] & target.sides[truth]
        if target.rows is not None:
            inside &= target.rows[space.dataset.profile_row(sample)]
        belongs[k] = inside
    return belongs


def members(space: Population, targets: Sequence[Target], questions: Indices) -> Bools:
    """K x n: which of K targets each of n questions, by number, belongs to."""
    sample, variant, concept = space.parts(questions)
    truth = space.dataset.truth(sample, concept)
    return member(space, targets, sample, variant, concept, truth)


def common(id: TargetId, parts: Sequence[Target]) -> Target:
    """What all of ``parts``, one or more, have in common."""
    first, *others = parts
    variants, concepts, sides, rows = first.variants, first.concepts, first.sides, first.rows
    for part in others:
        variants, concepts = variants & part.variants, concepts & part.concepts
        sides = sides & part.sides
        if part.rows is not None:
            rows = part.rows if rows is None else rows & part.rows
    return Target(id, variants, concepts, sides, rows)


def named_targets(
    space: Population, names: Sequence[str], where: Mapping[str, Fields] | None = None
) -> list[Target]:
    """The targets that ``names`` stand for, without those that hold no question.

    "overall" (also called "misclassified" where images have classes); "concepts" (miss rate and
    false-alarm rate of each, or what the oracle has in their place); "concept:NAME" (those of one);
    "relations"; "relation:NAME" (one of them, such as "relation:identity", images as they are);
    "severities" (each relation at each severity); "relation-concepts" (each relation for each
    concept); "relation-sides" (each relation for what "concepts" has); "group:COLUMN" (each value
    of a metadata column); or a name of ``where``, a filter: field -> allowed values, the fields
    being relation, severity, concept, truth, or any metadata column. Names that select the same
    questions are one target, whose ``also`` are the other names. Raises InputError for an unknown
    name, and for a filter that selects nothing or has the name of another target.
    """
    filters = dict(where or {})
    kept: dict[str, Target] = {}
    own_names: set[str] = set()
    for name in names:
        for target in _family(space, name, filters):
            own_names |= set() if name in filters else target.id.names
            if size(space, target) > 0:
                subset = fingerprint([target])
                kept[subset] = _merged(kept[subset], target) if subset in kept else target
    for name in filters:
        if name in own_names or family_of(name) is not None:
            raise InputError(
                f"where: expected a name for a filter that no target has, got {name!r}; call it "
                "something else"
            )
    if not kept:
        raise InputError(f"targets: expected some with questions, got none from {list(names)}")
    return list(kept.values())


def _merged(*both: Target) -> Target:
    """Of two targets about the same questions that of the broader family, with the names of both,
    in whatever order these were asked for."""
    first, other = sorted(both, key=lambda target: FAMILIES.index(type(target.id)))
    more = (first.id.names | other.id.names) - replace(first.id, also=()).names
    return replace(first, id=replace(first.id, also=tuple(sorted(more))))


def _family(space: Population, name: str, filters: Mapping[str, Fields]) -> list[Target]:
    if name in filters:
        target = selected(space, Filtered(name, space.oracle.error), filters[name])
        if size(space, target) == 0:
            raise InputError(
                f"target {name!r}: its filter {dict(filters[name])} selects no question"
            )
        return [target]
    family = family_of(name)
    if family is None or not set(family.asked) & set(space.kinds):
        raise unknown("target", name, [*space.kinds, *filters])
    return [selected(space, id, fields) for id, fields in family.listed(space, name)]


def selected(space: Population, id: TargetId, fields: Fields) -> Target:
    """A target from field -> allowed values; fields are those of a filter (``named_targets``).

    Where images have classes, and no field is about truths, only questions about an image's true
    class belong to it: their mean loss is the misclassification rate.

    Raises InputError for values that are not there.
    """
    own: dict[str, list[object]] = {
        "relation": [v.relation.name for v in space.variants],
        "severity": [v.severity for v in space.variants],
        "concept": [*space.concepts],
        "truth": [0, 1],
    }
    masks = {field: np.full(len(values), True) for field, values in own.items()}
    rows: Bools | None = None
    if space.oracle.concepts_are == "classes" and "truth" not in fields:
        fields = {**fields, "truth": [1]}
    for field, allowed in fields.items():
        if field in own:
            masks[field] = _mask(own[field], allowed, field, id.name)
        else:
            there = space.dataset.metadata_values(field).tolist()
            mask = _mask(there, allowed, field, id.name)
            rows = mask if rows is None else rows & mask
    variants = masks["relation"] & masks["severity"]
    return Target(id, variants, masks["concept"], masks["truth"], rows)


def _mask(there: list[object], allowed: object, field: str, target: str) -> Bools:
    """Which of the values that are there are allowed."""
    if isinstance(allowed, str) or not isinstance(allowed, Sequence):
        raise InputError(f"target {target!r}: {field}: expected a list of values, got {allowed!r}")
    for value in allowed:
        if value not in there:
            raise unknown(field, str(value), {str(v) for v in there}, f"target {target!r}")
    return np.array([value in allowed for value in there], dtype=np.bool_)


def _rows(space: Population, target: Target) -> tuple[npt.NDArray[np.int8], Indices]:
    truths, copies = space.dataset.profile
    if target.rows is None:
        return truths, copies
    return truths[target.rows], copies[target.rows]


def _wanted(truths: npt.NDArray[np.int8], target: Target) -> Bools:
    """rows x C: which truths of which concepts the target asks about."""
    inside = np.zeros(truths.shape, dtype=bool)
    for side in np.flatnonzero(target.sides):
        inside |= truths == side
    return inside & target.concepts


MAX_SAMPLES = 2_000_000
"""Samples up to which the population is journaled; of a larger dataset the journal would hold
little else."""


def describe_population(
    space: Population, answers: CallMode, targets: Sequence[Target]
) -> JsonObject | None:
    """For the journal: truths by profile row, the row of every sample, what applies to what, and
    the masks of every target. None where the dataset is too large."""
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
    """The targets of ``describe_population``, under these names."""
    return [target_of(id, masks) for id, masks in zip(ids, packed["targets"], strict=True)]


def differs(packed: Mapping[str, Any], space: Population) -> str | None:
    """In what the questions of ``space`` are not those that ``describe_population`` wrote, so
    that targets would select others; None: in nothing."""
    own: dict[str, npt.NDArray[Any]] = {
        "truths": space.dataset.profile[0],
        "rows": space.dataset.profile_row(np.arange(len(space.dataset))),
        "applicable": space.applicable,
    }
    words = {
        "applicable": "which questions can be judged",
        "rows": "the samples",
        "truths": "what is true of the samples",
    }
    for name, text in words.items():
        if not np.array_equal(unpack(packed[name]), own[name]):
            return text
    return None


def masks_of(target: Target) -> JsonObject:
    """What a target is made of, as JSON."""
    rows = None if target.rows is None else pack(target.rows)
    return {
        "variants": pack(target.variants),
        "concepts": pack(target.concepts),
        "sides": pack(target.sides),
        "rows": rows,
    }


def pack(array: npt.NDArray[Any]) -> JsonObject:
    """An array as JSON: its kind, shape, and compressed bytes."""
    body = zlib.compress(np.ascontiguousarray(array).tobytes(), level=6)
    kind = array.dtype.newbyteorder("<").str
    return {"kind": kind, "shape": list(array.shape), "bytes": base64.b64encode(body).decode()}


def target_of(id: TargetId, masks: Mapping[str, Any]) -> Target:
    """The target that ``masks_of`` describes; raises JournalError where that is damaged."""
    rows = None if masks["rows"] is None else unpack(masks["rows"])
    variants, concepts, sides = (unpack(masks[name]) for name in ("variants", "concepts", "sides"))
    return Target(id, variants, concepts, sides, rows)


def unpack(packed: Mapping[str, Any]) -> npt.NDArray[Any]:
    """The array that ``pack`` wrote."""
    try:
        body = zlib.decompress(base64.b64decode(packed["bytes"]))
        return np.frombuffer(body, packed["kind"]).reshape(packed["shape"])
    except (ValueError, KeyError, TypeError, zlib.error):
        raise JournalError("journal: what a target consists of is damaged") from None
