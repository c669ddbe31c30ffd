"""Compute accuracy, F1, kappa, BE and other figures from certified rates, with their intervals.

All intervals of the rates hold at the same time. Whenever they do, so does the interval of a
figure, so no further alpha is needed. The intervals of the rates form a box. Most figures are
monotone in every rate, so their extremes over the box are at two of its corners. Differences, and
figures divided by a baseline, follow by interval arithmetic. Cohen's kappa is not monotone where it
is negative; its extremes are among C + 1 corners, see ``kappa``. The intervals are valid and wider
than necessary, because none uses that rates depend on each other: an image that is missed by its
class is a false alarm of another.

Class c of C has N_c of all N images. A share miss_c of its images is missed, and a share alarm_c
of the other images is predicted as c. So TP_c = N_c (1 - miss_c) and FP_c = (N - N_c) alarm_c. By
default, an unanswered question is wrong about every class.

BE is 1 - balanced accuracy. MedMNIST-C (Di Salvo et al., 2024, arXiv 2406.17536, section 2.2)
divides a model's BE by that of AlexNet, and its rise over clean images by AlexNet's rise, which
gives relative BE. AlexNet's errors were published with it.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cache, cached_property, partial
from importlib.resources import files
from itertools import chain, product
from typing import Any, Literal

import numpy as np

from ..families import OfConcept, OfRelation, OfRelationConcept, Overall, TargetId
from ..journal.facts import SpaceFacts
from ..types import ERROR, IDENTITY, SIDES, Floats

MISS, ALARM = SIDES
LEVELS = {1, 2, 3, 4, 5}
"""The severities over which AlexNet's figures are means."""
TINY = 0.02
"""The least rise of AlexNet's error by which relative BE divides without a caution."""
ALL = "all relations"
"""Stands for a relation where a figure is about all of them, or is the mean over them."""
Kind = Literal["classes", "concept", "difference", "BE", "normalised", "relative"]


@dataclass(frozen=True)
class Bounds:
    """An estimate and its interval: three numbers, or three arrays (C,)."""

    estimate: Any
    lower: Any
    upper: Any

    def minus(self, other: "Bounds") -> "Bounds":
        """Return these bounds minus others, exact for the box."""
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
    """Return the bounds of a function that rises in every rate, or falls in every rate."""
    ends = ("estimate", "upper", "lower") if falls else ("estimate", "lower", "upper")
    return Bounds(*(float(function(*(getattr(rate, end) for rate in rates))) for end in ends))


def stacked(parts: Sequence[Bounds | None]) -> Bounds | None:
    """Return several bounds as one of arrays, None unless there are some and all are known."""
    known = [astuple(part) for part in parts if part is not None]
    complete = known and len(known) == len(parts)
    return Bounds(*np.array(known, float).T) if complete else None


@dataclass(frozen=True)
class Figure:
    """A derived figure.

    Attributes:
        kind: The report's table that shows it.
        quantity: What it measures, such as "accuracy".
        bounds: Its estimate and interval.
        relation: The relation it is about, ALL for several, None if the space has only one.
        concept: The concept it is about, None for all together.
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
        """The name that readers see, such as "relation rotate, polyp: miss rate"."""
        relation = self.relation
        if relation not in (None, ALL):
            minus = f" minus {IDENTITY}" if self.kind == "difference" else ""
            relation = f"relation {relation}{minus}"
        subject = ", ".join(filter(None, [relation, self.concept]))
        return f"{subject}: {self.quantity}" if subject else self.quantity


def figures(space: SpaceFacts, rates: Rates) -> list[Figure]:
    """Return all figures that follow from certified targets.

    Args:
        space: The journal's facts about the question space.
        rates: The intervals of its targets.
    """
    known = _Known(space, rates)
    classes = (_classes(known, *scope) for scope in known.scopes)
    concepts = (_balanced(known, *scope) for scope in known.scopes)
    return [*chain(*classes, *concepts, _differences(known), _errors(known))]


@dataclass(frozen=True)
class _Known:
    """The certified rates of a space, looked up by concept and relation.

    A relation of None stands for all relations together.
    """

    space: SpaceFacts
    rates: Rates

    @cached_property
    def counts(self) -> Floats:
        """Numbers of questions, concepts x truths (C x 2)."""
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
        """Relations with their names in figures: original images first, all relations last."""
        if len(self.levels) == 1:
            return [(None, None)]
        identity_first = sorted(self.levels, key=lambda relation: relation != IDENTITY)
        return [*zip(identity_first, identity_first, strict=True), (None, ALL)]

    @property
    def one_class_each(self) -> bool:
        """True if the concepts are classes and every image has one."""
        return self.space.concepts_are == "classes" and len(self.space.concepts) > 1

    @cached_property
    def _by_further_name(self) -> dict[str, Bounds]:
        """Rates by the further names of their targets; all names of a target select the same."""
        return {name: bounds for target, bounds in self.rates.items() for name in target.also}

    def rate(self, target: TargetId) -> Bounds | None:
        """Return the rate of a target, or of another target with the same questions."""
        # the handle of a relation's concept names no side
        name = target.name if isinstance(target, OfRelationConcept) else target.handle
        return self.rates.get(target) or self._by_further_name.get(name)

    def mean_loss(self, relation: str | None) -> Bounds | None:
        """Return the mean loss of all questions under a relation."""
        return self.rate(Overall() if relation is None else OfRelation(relation))

    def of_concept(self, concept: str, rate: str, relation: str | None) -> Bounds | None:
        """Return a concept's miss or false-alarm rate under a relation."""
        side = SIDES[rate]
        if relation is None:
            overall = self.rate(OfConcept(concept, side, rate))
            if overall is not None or len(self.levels) > 1:
                return overall
            (relation,) = self.levels  # a single relation has the questions of all
        return self.rate(OfRelationConcept(relation, concept, side, rate))

    def of_all_concepts(self, rate: str, relation: str | None) -> Bounds | None:
        """Return this rate of every concept (C,), None unless all are certified."""
        return stacked([self.of_concept(name, rate, relation) for name in self.space.concepts])


# -- balanced accuracy, and figures of all classes together ------------------------------------


def _balanced(known: _Known, relation: str | None, name: str | None) -> Iterator[Figure]:
    for concept in known.space.concepts:
        rates = stacked([known.of_concept(concept, rate, relation) for rate in SIDES])
        if rates is not None:
            bounds = monotone(lambda both: 1 - np.mean(both), rates, falls=True).within(0, 1)
            yield Figure("concept", "balanced accuracy", bounds, name, concept)


def _classes(known: _Known, relation: str | None, name: str | None) -> Iterator[Figure]:
    """Yield the figures of classes, one per image, as far as their rates are certified.

    Every relation has the same images, so the sizes of classes do not depend on it.
    """
    space, counts = known.space, known.counts
    if known.one_class_each:
        sizes, error = counts[:, 1], known.mean_loss(relation)
        miss = known.of_all_concepts(MISS, relation)
        # false alarms are shares of all other images only if all truths are known
        complete = (counts.sum(axis=1) == sizes.sum()).all()
        alarm = known.of_all_concepts(ALARM, relation) if complete else None
    elif space.concepts_are == "labels" and len(space.concepts) == 1:
        # the classes are present and absent, and an image that one misses is predicted as the other
        sizes = counts[0, ::-1]
        sides = [known.of_concept(space.concepts[0], rate, relation) for rate in (MISS, ALARM)]
        miss, alarm = stacked(sides), stacked(sides[::-1])
        error = known.mean_loss(relation) if miss else None
    else:
        return
    result: dict[str, Bounds] = {}
    if error is not None:
        result["accuracy"] = monotone(lambda e: 1 - e, error, falls=True)
    elif miss is not None:
        result["accuracy"] = monotone(lambda m: 1 - sizes @ m / sizes.sum(), miss, falls=True)
    if miss is not None:
        result["macro recall"] = monotone(lambda m: 1 - np.mean(m), miss, falls=True)
    if miss is not None and alarm is not None:
        result["macro precision"] = monotone(partial(_precision, sizes), miss, alarm, falls=True)
        result["macro F1"] = monotone(partial(_f1, sizes), miss, alarm, falls=True)
        result["Cohen's kappa"] = kappa(sizes, miss, alarm)
    for quantity, bounds in result.items():
        least = -1 if quantity == "Cohen's kappa" else 0
        yield Figure("classes", quantity, bounds.within(least, 1), name)


def _precision(sizes: Floats, miss: Floats, alarm: Floats) -> Any:
    """Return macro precision; a class never predicted has precision 0."""
    true, false = sizes * (1 - miss), (sizes.sum() - sizes) * alarm
    predicted = true + false
    return np.divide(true, predicted, out=np.zeros_like(predicted), where=predicted > 0).mean()


def _f1(sizes: Floats, miss: Floats, alarm: Floats) -> Any:
    """Return macro F1, the mean over classes of 2 TP / (2 TP + FP + FN)."""
    true, false = sizes * (1 - miss), (sizes.sum() - sizes) * alarm
    return np.mean(2 * true / (true + false + sizes))


def kappa(sizes: Floats, miss: Bounds, alarm: Bounds) -> Bounds:
    """Return Cohen's kappa, (po - pe) / (1 - pe) = 1 - ratio, exact for the box.

    The ratio, (1 - po) / (1 - pe), is sum(p miss) / sum(p (1 - p) (1 - alarm) + p^2 miss), where
    p_c = N_c / N is the share of a class. The ratio rises in every alarm. For fixed alarms its
    extremes over the misses are at corners of the box. Which end of miss_c makes the ratio larger
    depends only on whether p_c is above or below 1 / ratio. So at an extreme, the k smallest
    classes are at one end of their intervals and all others at the other end, for some k.

    Args:
        sizes: Numbers of images, (C,).
        miss: Miss rates, (C,).
        alarm: False-alarm rates, (C,).
    """
    share = sizes / sizes.sum()
    rank = np.argsort(np.argsort(share))  # 0 for the smallest class

    def ratio(miss: Floats, alarm: Floats) -> float:
        """Return the ratio, 1 where agreement by chance is certain."""
        by_chance = share @ ((1 - share) * (1 - alarm) + share * miss)
        return float(share @ miss / by_chance) if by_chance > 0 else 1.0

    def at_corners(small: Floats, large: Floats, alarm: Floats) -> list[float]:
        """Return the ratio for each k, where the k smallest classes have misses ``small``."""
        return [ratio(np.where(rank < k, small, large), alarm) for k in range(len(share) + 1)]

    return Bounds(
        1 - ratio(miss.estimate, alarm.estimate),
        1 - max(at_corners(miss.upper, miss.lower, alarm.upper)),
        1 - min(at_corners(miss.lower, miss.upper, alarm.lower)),
    )


# -- against unchanged images, and against AlexNet ---------------------------------------------


def _differences(known: _Known) -> Iterator[Figure]:
    """Yield each rate under a relation minus the same rate on original images.

    The rates are the mean loss of all questions, and the rates of every concept.
    """
    ids = [target for target in known.rates if isinstance(target, OfRelationConcept)]
    sides = dict.fromkeys((target.rate, target.side) for target in ids)
    error = next((t.rate for t in known.rates if isinstance(t, Overall | OfRelation)), ERROR)

    def rates_under(relation: str) -> Iterator[tuple[str, str | None, Bounds | None]]:
        yield error, None, known.mean_loss(relation)
        for concept, (rate, side) in product(known.space.concepts, sides):
            yield rate, concept, known.rate(OfRelationConcept(relation, concept, side, rate))

    for relation in known.levels:
        pairs = zip(rates_under(relation), rates_under(IDENTITY), strict=True)
        for (rate, concept, changed), (_, _, before) in pairs:
            if relation != IDENTITY and changed is not None and before is not None:
                bounds = changed.minus(before).within(-1, 1)
                yield Figure("difference", rate, bounds, relation, concept)


@dataclass(frozen=True)
class Baseline:
    """AlexNet's BE on a data set.

    Attributes:
        clean: Its BE on clean images.
        corrupted: Its mean BE over the severities of one corruption.
    """

    clean: float
    corrupted: float

    @property
    def rise(self) -> float:
        """The increase of BE that the corruption causes."""
        return self.corrupted - self.clean

    @property
    def note(self) -> str:
        """A caution if the rise, by which relative BE divides, is negative or tiny, else ""."""
        if self.rise < 0:
            return (
                f"AlexNet's error is smaller here than on clean images ({self.rise:.4f}), which "
                "turns the sign"
            )
        tiny = f"AlexNet's error rises by {self.rise:.4f} only, which magnifies everything"
        return tiny if self.rise < TINY else ""


@cache
def alexnet() -> dict[str, dict[str, Baseline]]:
    """Return the baselines of MedMNIST-C by data set and corruption, 131 in all."""
    text = (files(__package__) / "data" / "alexnet.json").read_text(encoding="utf-8")
    return {
        flag: {name: Baseline(facts["clean"], be) for name, be in facts["corruptions"].items()}
        for flag, facts in json.loads(text).items()
    }


def baseline(relation: str) -> Baseline | None:
    """Return AlexNet's errors under a relation, None unless it is "medmnistc/FLAG/CORRUPTION"."""
    family, _, inner = relation.partition("/")
    flag, _, corruption = inner.partition("/")
    return alexnet().get(flag, {}).get(corruption) if family == "medmnistc" else None


def _errors(known: _Known) -> list[Figure]:
    """Return the BE of every relation, those relative to AlexNet's, and their means."""
    errors = {r: be for r in known.levels if (be := _balanced_error(known, r)) is not None}
    absolute = [Figure("BE", "BE", be.within(0, 1), r) for r, be in errors.items()]
    clean, bases = errors.get(IDENTITY), {r: base for r in errors if (base := baseline(r))}
    normalised, relative = [], []
    for relation, base in bases.items():
        be, levels = errors[relation], known.levels[relation]
        listed = ", ".join(map(str, sorted(levels)))
        fewer = f"over severities {listed} alone, AlexNet's over all five"
        caution = "" if levels == LEVELS else fewer
        bounds = be.over(base.corrupted).within(0, 1 / base.corrupted)
        normalised.append(Figure("normalised", "BE / AlexNet", bounds, relation, note=caution))
        if clean is not None:
            most = 1 / abs(base.rise)
            bounds = be.minus(clean).over(base.rise).within(-most, most)
            note = "; ".join(filter(None, (base.note, caution)))
            relative.append(Figure("relative", "rBE", bounds, relation, note=note))
    published = sum(len(alexnet()[flag]) for flag in {name.split("/")[1] for name in bases})
    missing = "" if len(bases) == published else f"{len(bases)} of {published} corruptions"
    against = [*_mean(normalised, missing), *normalised, *_mean(relative, missing), *relative]
    changed = _mean([figure for figure in absolute if figure.relation != IDENTITY])
    return [*changed, *absolute, *against]


def _balanced_error(known: _Known, relation: str) -> Bounds | None:
    """Return the BE under a relation: the mean over concepts of the mean of a concept's rates.

    These are the miss rates of classes, one per image; of other concepts also the false-alarm
    rates. A rate without questions is left out. The result is None if any other is not certified.
    """
    names = (MISS,) if known.one_class_each else tuple(SIDES)
    means = []
    for concept, counts in zip(known.space.concepts, known.counts, strict=True):
        asked = [name for name in names if counts[SIDES[name]] > 0]
        if asked:
            rates = stacked([known.of_concept(concept, name, relation) for name in asked])
            means.append(rates and monotone(np.mean, rates))
    concepts = stacked(means)
    return concepts and monotone(np.mean, concepts)


def _mean(parts: list[Figure], missing: str = "") -> list[Figure]:
    """Return [the mean of figures of one kind], [] for fewer than two.

    Its note has the text ``missing``, and how many of the figures have a note.
    """
    bounds = stacked([part.bounds for part in parts])
    if bounds is None or len(parts) < 2:
        return []
    noted = sum(bool(part.note) for part in parts)
    notes = [missing, f"{noted} of {len(parts)} relations come with a note" if noted else ""]
    note, mean = "; ".join(filter(None, notes)), monotone(np.mean, bounds)
    return [Figure(parts[0].kind, parts[0].quantity, mean, ALL, note=note)]
