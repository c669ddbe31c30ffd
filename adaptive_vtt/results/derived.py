"""Figures that follow from certified targets, with intervals that hold whenever theirs do.

The targets' intervals hold together, so what is computed from their ends does, too, and no
further probability is spent. Most figures are monotone in every rate: their ends are at corners of
the box of intervals, which is exact for the box. Differences, and figures divided by a baseline,
follow by interval arithmetic. Cohen's kappa is not monotone where it is negative; its ends are
among C + 1 corners, see ``kappa``. Rates depend on each other, as a missed class is a false alarm
of another, and no interval uses that. So all hold, and are wider than necessary.

Classes 0..C-1 have N_c images each, N in all. A class is missed in a share ``miss`` of its
images and predicted in a share ``alarm`` of the others: TP_c = N_c (1 - miss_c) and
FP_c = (N - N_c) alarm_c. An unanswered question is wrong about every class, by default.

BE is 1 - balanced accuracy. MedMNIST-C divides it by AlexNet's, and relative BE by the rise of
AlexNet's over clean images (Di Salvo et al., 2024, arXiv 2406.17536, section 2.2). The baselines
were published with it.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cache, cached_property, partial
from importlib.resources import files
from typing import Any, Literal

import numpy as np

from ..families import OfConcept, OfRelation, OfRelationConcept, Overall, TargetId
from ..journal.facts import SpaceFacts
from ..types import ERROR, IDENTITY, SIDES, Floats

MISS, ALARM = SIDES
LEVELS = {1, 2, 3, 4, 5}
"""The severities that AlexNet's figures are means over."""
TINY = 0.02
"""If AlexNet's error rises by less than this, relative BE is mostly a matter of chance."""
ALL = "all relations"
"""In place of a relation: all of them together, or the mean over them."""
Kind = Literal["classes", "concept", "difference", "BE", "normalised", "relative"]


@dataclass(frozen=True)
class Bounds:
    """An estimate and its interval: three numbers, or three arrays (C,)."""

    estimate: Any
    lower: Any
    upper: Any

    def minus(self, other: "Bounds") -> "Bounds":
        """Return the difference of two; exact for the box."""
        ends = self.lower - other.upper, self.upper - other.lower
        return Bounds(self.estimate - other.estimate, *ends)

    def over(self, divisor: float) -> "Bounds":
        """Return the bounds divided by a number; a negative one swaps the ends."""
        ends = sorted((self.lower / divisor, self.upper / divisor))
        return Bounds(self.estimate / divisor, *ends)

    def within(self, least: float, most: float) -> "Bounds":
        """Return the interval cut to this range, and the estimate cut to the interval."""
        lower, upper = (float(np.clip(end, least, most)) for end in (self.lower, self.upper))
        return Bounds(float(np.clip(self.estimate, lower, upper)), lower, upper)


Rates = Mapping[TargetId, Bounds]


def monotone(function: Callable[..., Any], *rates: Bounds, falls: bool = False) -> Bounds:
    """Return the bounds of a function that falls in no rate, or with ``falls`` rises in none."""
    ends = ("estimate", "upper", "lower") if falls else ("estimate", "lower", "upper")
    return Bounds(*(float(function(*(getattr(rate, end) for rate in rates))) for end in ends))


def stacked(parts: Sequence[Bounds | None]) -> Bounds | None:
    """Return several bounds as one with arrays; None if any is unknown, or there is none."""
    known = [astuple(part) for part in parts if part is not None]
    complete = known and len(known) == len(parts)
    return Bounds(*np.array(known, float).T) if complete else None


@dataclass(frozen=True)
class Figure:
    """A derived figure.

    Attributes:
        kind: Its kind, a table of the report.
        quantity: Its name, such as "accuracy".
        bounds: Its estimate and interval.
        relation: Its relation, ALL for a mixture of several or the mean over them, None if there is
            only one.
        concept: Its concept, None for all together.
        note: A caution, or "".
    """

    kind: Kind
    quantity: str
    bounds: Bounds
    relation: str | None = None
    concept: str | None = None
    note: str = ""

    @property
    def name(self) -> str:
        """The name for people."""
        relation = self.relation
        if relation not in (None, ALL):
            beyond = f" minus {IDENTITY}" if self.kind == "difference" else ""
            relation = f"relation {relation}{beyond}"
        about = ", ".join(filter(None, [relation, self.concept]))
        return f"{about}: {self.quantity}" if about else self.quantity


def figures(space: SpaceFacts, rates: Rates) -> list[Figure]:
    """Return all figures that follow from certified targets.

    Args:
        space: The journal's facts about the question space.
        rates: The intervals of its targets.
    """
    known = _Known(space, rates)
    parts = [_classes(known, *scope) for scope in known.scopes]
    parts += [_balanced(known, *scope) for scope in known.scopes]
    return [figure for part in (*parts, _differences(known), _errors(known)) for figure in part]


@dataclass(frozen=True)
class _Known:
    """The certified rates of a space."""

    space: SpaceFacts
    rates: Rates

    @cached_property
    def counts(self) -> Floats:
        """Number of questions per concept and truth (C x 2)."""
        return np.array(self.space.cell_counts, float)

    @cached_property
    def levels(self) -> dict[str, set[int]]:
        """The severities of each relation."""
        levels: dict[str, set[int]] = {}
        for relation, severity in self.space.variants:
            levels.setdefault(relation, set()).add(severity)
        return levels

    @property
    def scopes(self) -> list[tuple[str | None, str | None]]:
        """Relations by which figures are looked up (None: any), with names; original images first.

        Figures of a mixture have the name ALL.
        """
        if len(self.levels) == 1:
            return [(None, None)]
        one_each = [(r, r) for r in sorted(self.levels, key=lambda r: r != IDENTITY)]
        return [*one_each, (None, ALL)]

    @property
    def one_class_each(self) -> bool:
        """True if the concepts are classes and every image has one."""
        return self.space.concepts_are == "classes" and len(self.space.concepts) > 1

    @cached_property
    def _others(self) -> dict[str, Bounds]:
        """Rates by the further names of their targets, which stand for equal questions."""
        return {name: bounds for target, bounds in self.rates.items() for name in target.also}

    def rate(self, target: TargetId) -> Bounds | None:
        """Return the rate of a target, or of one about the same questions."""
        # the handle of a relation's concept names no side
        name = target.name if isinstance(target, OfRelationConcept) else target.handle
        return self.rates.get(target) or self._others.get(name)

    def wrong(self, relation: str | None) -> Bounds | None:
        """Return the mean loss, under a relation or over all."""
        return self.rate(Overall() if relation is None else OfRelation(relation))

    def side(self, concept: str, rate: str, relation: str | None = None) -> Bounds | None:
        """Return a concept's miss or false-alarm rate, under a relation or over all."""
        side = SIDES[rate]
        if relation is None:
            whole = self.rate(OfConcept(concept, side, rate))
            if whole is not None or len(self.levels) > 1:
                return whole
            (relation,) = self.levels  # the only one, asked of all questions
        return self.rate(OfRelationConcept(relation, concept, side, rate))

    def every(self, rate: str, relation: str | None) -> Bounds | None:
        """Return this rate of all concepts (C,), if all are certified."""
        return stacked([self.side(concept, rate, relation) for concept in self.space.concepts])


# -- balanced accuracy, and figures of all classes together ------------------------------------


def _balanced(known: _Known, relation: str | None, name: str | None) -> Iterator[Figure]:
    for concept in known.space.concepts:
        both = stacked([known.side(concept, side, relation) for side in SIDES])
        if both is not None:
            bounds = monotone(lambda rates: 1 - np.mean(rates), both, falls=True).within(0, 1)
            yield Figure("concept", "balanced accuracy", bounds, name, concept)


def _classes(known: _Known, relation: str | None, name: str | None) -> Iterator[Figure]:
    """Yield the figures of classes, one per image, as far as rates are known.

    Every relation is asked of the same images, so sizes are those of all. One binary concept is two
    classes, where missing one is predicting the other.
    """
    sizes, miss, alarm, wrong = known.counts[:, 1], None, None, None
    if known.one_class_each:
        miss, wrong = known.every(MISS, relation), known.wrong(relation)
        # an alarm is one of all other images, so all classes must be known of all images
        if (known.counts.sum(axis=1) == sizes.sum()).all():
            alarm = known.every(ALARM, relation)
    elif known.space.concepts_are == "labels" and len(known.space.concepts) == 1:
        sizes = known.counts[0, ::-1]
        sides = [known.side(known.space.concepts[0], side, relation) for side in (MISS, ALARM)]
        miss, alarm = stacked(sides), stacked(sides[::-1])
        wrong = known.wrong(relation) if miss else None
    parts: dict[str, Bounds] = {}
    if wrong is not None:
        parts["accuracy"] = monotone(lambda rate: 1 - rate, wrong, falls=True)
    elif miss is not None:
        parts["accuracy"] = monotone(lambda m: 1 - sizes @ m / sizes.sum(), miss, falls=True)
    if miss is not None:
        parts["macro recall"] = monotone(lambda m: 1 - np.mean(m), miss, falls=True)
    if miss is not None and alarm is not None:
        parts["macro precision"] = monotone(partial(_precision, sizes), miss, alarm, falls=True)
        parts["macro F1"] = monotone(partial(_f1, sizes), miss, alarm, falls=True)
        parts["Cohen's kappa"] = kappa(sizes, miss, alarm)
    for quantity, bounds in parts.items():
        least = -1 if quantity == "Cohen's kappa" else 0
        yield Figure("classes", quantity, bounds.within(least, 1), name)


def _precision(sizes: Floats, miss: Floats, alarm: Floats) -> Any:
    """Return macro precision; a class never predicted has precision 0."""
    true, false = sizes * (1 - miss), (sizes.sum() - sizes) * alarm
    given = true + false
    return np.divide(true, given, out=np.zeros_like(given), where=given > 0).mean()


def _f1(sizes: Floats, miss: Floats, alarm: Floats) -> Any:
    """Return macro F1, the mean over classes of 2 TP / (2 TP + FP + FN)."""
    true, false = sizes * (1 - miss), (sizes.sum() - sizes) * alarm
    return np.mean(2 * true / (true + false + sizes))


def kappa(sizes: Floats, miss: Bounds, alarm: Bounds) -> Bounds:
    """Return Cohen's kappa, (po - pe) / (1 - pe) = 1 - (1 - po) / (1 - pe); exact for the box.

    With shares p = N_c / N of the classes, the ratio on the right is sum(p miss) over
    sum(p (1 - p) (1 - alarm) + p^2 miss). It rises in every alarm. For given alarms its
    extremes over the misses are at corners. Which end of miss_c makes it larger depends only on
    whether p_c is above or below 1 / ratio. So all classes up to some size lie at one end and all
    larger ones at the other.
    """
    share = sizes / sizes.sum()
    small_first = np.argsort(np.argsort(share))

    def disagreement(miss: Floats, alarm: Floats) -> float:
        """Return (1 - po) / (1 - pe), and 1 where both are sure to agree by chance."""
        chance = share @ ((1 - share) * (1 - alarm) + share * miss)
        return float(share @ miss / chance) if chance > 0 else 1.0

    def corners(small: Floats, large: Floats, alarm: Floats) -> list[float]:
        cuts = range(len(share) + 1)
        return [disagreement(np.where(small_first < k, small, large), alarm) for k in cuts]

    return Bounds(
        1 - disagreement(miss.estimate, alarm.estimate),
        1 - max(corners(miss.upper, miss.lower, alarm.upper)),
        1 - min(corners(miss.lower, miss.upper, alarm.lower)),
    )


# -- against unchanged images, and against AlexNet ---------------------------------------------


def _differences(known: _Known) -> Iterator[Figure]:
    """Yield how much more goes wrong under a relation than on original images, each as the box of
    two intervals: of all questions, and of every concept and side."""
    ids = [target for target in known.rates if isinstance(target, OfRelationConcept)]
    sides = dict.fromkeys((target.rate, target.side) for target in ids)
    error = next((t.rate for t in known.rates if isinstance(t, Overall | OfRelation)), ERROR)
    for relation in known.levels:
        both = (relation, IDENTITY)
        pairs: list[tuple[str, str | None, list[Bounds | None]]]
        pairs = [(error, None, [known.wrong(one) for one in both])]
        pairs += [
            (rate, c, [known.rate(OfRelationConcept(one, c, side, rate)) for one in both])
            for c in known.space.concepts
            for rate, side in sides
        ]
        for rate, concept, (after, before) in pairs:
            if relation != IDENTITY and after is not None and before is not None:
                bounds = after.minus(before).within(-1, 1)
                yield Figure("difference", rate, bounds, relation, concept)


@dataclass(frozen=True)
class Baseline:
    """AlexNet's BE on a data set: clean, and the mean over severities of one corruption."""

    clean: float
    corrupted: float

    @property
    def rise(self) -> float:
        """The part of the error that the corruption causes."""
        return self.corrupted - self.clean

    @property
    def note(self) -> str:
        """A caution if the rise, which relative BE divides by, is negative or tiny."""
        if self.rise < 0:
            return (
                f"AlexNet's error is smaller here than on clean images ({self.rise:.4f}), which "
                "turns the sign"
            )
        tiny = f"AlexNet's error rises by {self.rise:.4f} only, which magnifies everything"
        return tiny if self.rise < TINY else ""


@cache
def alexnet() -> dict[str, dict[str, Baseline]]:
    """Return data set -> corruption -> baseline, for the 131 pairs of MedMNIST-C."""
    text = (files(__package__) / "data" / "alexnet.json").read_text(encoding="utf-8")
    return {
        flag: {name: Baseline(facts["clean"], be) for name, be in facts["corruptions"].items()}
        for flag, facts in json.loads(text).items()
    }


def baseline(relation: str) -> Baseline | None:
    """Return AlexNet's errors under "medmnistc/<flag>/<corruption>"; None for other relations."""
    family, _, inner = relation.partition("/")
    flag, _, corruption = inner.partition("/")
    return alexnet().get(flag, {}).get(corruption) if family == "medmnistc" else None


def _errors(known: _Known) -> list[Figure]:
    """Return BE of every relation, by itself and against AlexNet, and the means over relations."""
    errors = {r: be for r in known.levels if (be := _balanced_error(known, r)) is not None}
    plain = [Figure("BE", "BE", be.within(0, 1), r) for r, be in errors.items()]
    clean, bases = errors.get(IDENTITY), {r: base for r in errors if (base := baseline(r))}
    normalised, relative = [], []
    for relation, base in bases.items():
        be, levels = errors[relation], known.levels[relation]
        listed = ", ".join(map(str, sorted(levels)))
        partly = f"over severities {listed} alone, AlexNet's over all five"
        partly = "" if levels == LEVELS else partly
        bounds = be.over(base.corrupted).within(0, 1 / base.corrupted)
        normalised.append(Figure("normalised", "BE / AlexNet", bounds, relation, note=partly))
        if clean is not None:
            most = 1 / abs(base.rise)
            bounds = be.minus(clean).over(base.rise).within(-most, most)
            note = "; ".join(filter(None, (base.note, partly)))
            relative.append(Figure("relative", "rBE", bounds, relation, note=note))
    whole = sum(len(alexnet()[flag]) for flag in {relation.split("/")[1] for relation in bases})
    missing = "" if len(bases) == whole else f"{len(bases)} of {whole} corruptions"
    changed = _mean([figure for figure in plain if figure.relation != IDENTITY])
    against = [*_mean(normalised, missing), *normalised, *_mean(relative, missing), *relative]
    return [*changed, *plain, *against]


def _balanced_error(known: _Known, relation: str) -> Bounds | None:
    """Return the mean over concepts of the mean of a concept's rates; None if one is not
    certified.

    The rates are the misses of classes, one per image, and both sides of concepts that are
    apart. A side without questions is left out.
    """
    wanted = (MISS,) if known.one_class_each else tuple(SIDES)
    means = []
    for concept, counts in zip(known.space.concepts, known.counts, strict=True):
        sides = [side for side in wanted if counts[SIDES[side]] > 0]
        if sides:
            rates = stacked([known.side(concept, side, relation) for side in sides])
            means.append(rates and monotone(np.mean, rates))
    together = stacked(means)
    return together and monotone(np.mean, together)


def _mean(parts: list[Figure], missing: str = "") -> list[Figure]:
    """Return the mean of several figures of a kind, which counts those with a note."""
    bounds = stacked([part.bounds for part in parts])
    if bounds is None or len(parts) < 2:
        return []
    noted = sum(bool(part.note) for part in parts)
    notes = [missing, f"{noted} of {len(parts)} relations come with a note" if noted else ""]
    note, mean = "; ".join(filter(None, notes)), monotone(np.mean, bounds)
    return [Figure(parts[0].kind, parts[0].quantity, mean, ALL, note=note)]
