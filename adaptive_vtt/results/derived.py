"""Figures that follow from certified targets, with intervals that hold whenever theirs do.

The targets' intervals hold together, so what is computed from their ends does, too, and no
further probability is spent. Most figures are monotone in every rate and are taken at corners;
differences, and what is divided by a baseline, by interval arithmetic.

A monotone function takes its ends at corners of the box of intervals; that is exact for the
box. Cohen's kappa is not monotone where it is negative; its ends are found among C + 1
corners, see ``kappa``. No interval uses that rates hang together (that every class missed is
another one's false alarm): it holds, and is wider than it would have to be.

Classes 0..C-1 have N_c images each, N in all; a class is missed in a share ``miss`` of its own
images and said in a share ``alarm`` of the others: TP_c = N_c (1 - miss_c) and
FP_c = (N - N_c) alarm_c. An unanswered question is wrong about every class, by default.

BE is 1 - balanced accuracy. Divided by AlexNet's, or as relative BE by AlexNet's rise over
clean images, it is the measure of MedMNIST-C (Di Salvo et al., 2024, arXiv 2406.17536,
section 2.2); the baselines are those that were published with it.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..families import OfConcept, OfRelation, OfRelationConcept, Overall, TargetId
from ..types import ERROR, IDENTITY, SIDES, Floats

if TYPE_CHECKING:
    from ..journal.facts import SpaceFacts


@dataclass(frozen=True)
class Bounds:
    """An estimate and the interval it stands in: three numbers, or three arrays (C,)."""

    estimate: Any
    lower: Any
    upper: Any

    def minus(self, other: "Bounds") -> "Bounds":
        """The difference of two; exact for the box."""
        return Bounds(
            self.estimate - other.estimate, self.lower - other.upper, self.upper - other.lower
        )

    def over(self, divisor: float) -> "Bounds":
        """Divided by a number, whose sign turns the ends round where it is negative."""
        ends = sorted((self.lower / divisor, self.upper / divisor))
        return Bounds(self.estimate / divisor, *ends)

    def within(self, least: float, most: float) -> "Bounds":
        """Cut to what is possible, the estimate to the interval."""
        lower, upper = (float(np.clip(end, least, most)) for end in (self.lower, self.upper))
        return Bounds(float(np.clip(self.estimate, lower, upper)), lower, upper)


def stack(parts: list[Bounds]) -> Bounds:
    """Several as one, with arrays."""
    ends = np.array([(b.estimate, b.lower, b.upper) for b in parts], float)
    return Bounds(*ends.T)


def rising(function: Callable[..., float], *rates: Bounds) -> Bounds:
    """A function that falls in no rate."""
    return Bounds(
        function(*(r.estimate for r in rates)),
        function(*(r.lower for r in rates)),
        function(*(r.upper for r in rates)),
    )


def falling(function: Callable[..., float], *rates: Bounds) -> Bounds:
    """A function that rises in no rate."""
    return rising(function, *(Bounds(r.estimate, r.upper, r.lower) for r in rates))


def accuracy(sizes: Floats, miss: Floats) -> float:
    """The share of images whose class is said; falls in every rate."""
    return 1 - float(sizes @ miss / sizes.sum())


def recall(miss: Floats) -> float:
    """Macro recall, which is balanced accuracy; falls in every rate."""
    return 1 - float(np.mean(miss))


def precision(sizes: Floats, miss: Floats, alarm: Floats) -> float:
    """Macro precision; falls in every rate. A class never said has precision 0."""
    true, false = _said(sizes, miss, alarm)
    said = true + false
    return float(np.divide(true, said, out=np.zeros_like(said), where=said > 0).mean())


def f1(sizes: Floats, miss: Floats, alarm: Floats) -> float:
    """Macro F1, the mean over classes of 2 TP / (2 TP + FP + FN); falls in every rate."""
    true, false = _said(sizes, miss, alarm)
    return float(np.mean(2 * true / (true + false + sizes)))


def kappa(sizes: Floats, miss: Bounds, alarm: Bounds) -> Bounds:
    """Cohen's kappa, (po - pe) / (1 - pe) = 1 - (1 - po) / (1 - pe); exact for the box.

    With shares p = N_c / N of the classes, the ratio on the right is sum(p miss) over
    sum(p (1 - p) (1 - alarm) + p^2 miss). It rises in every alarm. For given alarms its
    extremes over the misses are at corners, and which end of miss_c makes it larger depends
    only on whether p_c is above or below 1 / ratio: all classes up to some size lie at
    one end and all larger ones at the other.
    """
    share = sizes / sizes.sum()
    small_first = np.argsort(np.argsort(share))

    def disagreement(missed: Floats, said: Floats) -> float:
        """(1 - po) / (1 - pe), and 1 where both are sure to agree by chance."""
        chance = share @ ((1 - share) * (1 - said) + share * missed)
        return float(share @ missed / chance) if chance > 0 else 1.0

    def corners(small: Floats, large: Floats, said: Floats) -> list[float]:
        cuts = range(len(share) + 1)
        return [disagreement(np.where(small_first < k, small, large), said) for k in cuts]

    return Bounds(
        1 - disagreement(miss.estimate, alarm.estimate),
        1 - max(corners(miss.upper, miss.lower, alarm.upper)),
        1 - min(corners(miss.lower, miss.upper, alarm.lower)),
    )


def _said(sizes: Floats, miss: Floats, alarm: Floats) -> tuple[Floats, Floats]:
    """TP and FP of every class."""
    return sizes * (1 - miss), (sizes.sum() - sizes) * alarm


MISS, ALARM = SIDES
LEVELS = {1, 2, 3, 4, 5}
"""The severities that AlexNet's figures are means over."""
TINY = 0.02
"""Where AlexNet's error rises by less than this, relative BE is mostly a matter of chance."""

ALL = "all relations"
"""In place of a relation: all of them together, or the mean over them."""

Kind = Literal["classes", "concept", "difference", "BE", "normalised", "relative"]
Rates = Mapping[TargetId, Bounds]


@dataclass(frozen=True)
class Figure:
    """A derived figure.

    Attributes:
        kind: What sort of figure it is.
        quantity: What it is called.
        bounds: Its estimate and interval.
        relation: The image change it is about; ALL: a mixture of, or the mean over, several; None:
            there is one.
        concept: The concept it is about, None for all together.
        note: What to mind, or empty.
    """

    kind: Kind
    quantity: str
    bounds: Bounds
    relation: str | None = None
    concept: str | None = None
    note: str = ""

    @property
    def name(self) -> str:
        """What it is called, for people."""
        relation = self.relation
        if relation not in (None, ALL):
            beyond = f" minus {IDENTITY}" if self.kind == "difference" else ""
            relation = f"relation {relation}{beyond}"
        about = ", ".join(filter(None, [relation, self.concept]))
        return f"{about}: {self.quantity}" if about else self.quantity


@dataclass(frozen=True)
class Baseline:
    """AlexNet's BE on a data set: clean, and the mean over severities of one corruption."""

    clean: float
    corrupted: float

    @property
    def rise(self) -> float:
        return self.corrupted - self.clean


def figures(space: "SpaceFacts", rates: Rates) -> list[Figure]:
    """Return all that follows from certified targets.

    Args:
        space: What a journal says of the space.
        rates: The intervals of its targets.
    """
    known = _Known(space, rates)
    parts = [_classes(known, *scope) for scope in known.scopes]
    parts += [_balanced(known, *scope) for scope in known.scopes]
    return [figure for part in (*parts, _differences(known), _errors(known)) for figure in part]


@cache
def alexnet() -> dict[str, dict[str, Baseline]]:
    """Data set -> corruption -> baseline, for the 131 pairs of MedMNIST-C."""
    text = (files(__package__) / "data" / "alexnet.json").read_text(encoding="utf-8")
    return {
        flag: {name: Baseline(facts["clean"], be) for name, be in facts["corruptions"].items()}
        for flag, facts in json.loads(text).items()
    }


def baseline(relation: str) -> Baseline | None:
    """Return that of "medmnistc/<flag>/<corruption>"; None for any other relation."""
    family, _, rest = relation.partition("/")
    flag, _, corruption = rest.partition("/")
    return alexnet().get(flag, {}).get(corruption) if family == "medmnistc" else None


@dataclass(frozen=True)
class _Known:
    """What is certified of which space."""

    space: "SpaceFacts"
    rates: Rates

    @cached_property
    def counts(self) -> Floats:
        """C x 2: questions per concept and truth."""
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
        """Relations to look figures up by (None: any), and what they are called: original images
        first. Figures of a mixture have its name."""
        if len(self.levels) == 1:
            return [(None, None)]
        one_each = [(r, r) for r in sorted(self.levels, key=lambda r: r != IDENTITY)]
        return [*one_each, (None, ALL)]

    @property
    def one_class_each(self) -> bool:
        """Whether the concepts are classes and every image has one."""
        return self.space.concepts_are == "classes" and len(self.space.concepts) > 1

    @cached_property
    def _others(self) -> dict[str, Bounds]:
        """Rates by the further names of their targets, which stand for equal questions."""
        return {name: bounds for target, bounds in self.rates.items() for name in target.also}

    def rate(self, target: TargetId) -> Bounds | None:
        """Return the rate of a target, or of one about the same questions."""
        one = isinstance(target, OfRelationConcept)  # whose handle names no side
        return self.rates.get(target) or self._others.get(target.name if one else target.handle)

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
            relation = next(iter(self.levels))  # the only one, asked of all questions
        return self.rate(OfRelationConcept(relation, concept, side, rate))

    def every(self, rate: str, relation: str | None) -> Bounds | None:
        """Return this rate of all concepts (C,), if all are certified."""
        return _whole([self.side(concept, rate, relation) for concept in self.space.concepts])


def _whole(rates: list[Bounds | None]) -> Bounds | None:
    """Return rates as one with arrays; None where any is unknown, or there is none."""
    there = [rate for rate in rates if rate is not None]
    return stack(there) if there and len(there) == len(rates) else None


# -- balanced accuracy, and figures of all classes together ------------------------------------


def _balanced(known: _Known, relation: str | None, called: str | None) -> Iterator[Figure]:
    for concept in known.space.concepts:
        both = _whole([known.side(concept, side, relation) for side in SIDES])
        if both is not None:
            bounds = falling(recall, both).within(0, 1)
            yield Figure("concept", "balanced accuracy", bounds, called, concept)


def _classes(known: _Known, relation: str | None, called: str | None) -> Iterator[Figure]:
    """Accuracy and macro recall need the miss rates; the others the false-alarm rates, too."""
    sizes, miss, alarm, wrong = _class_rates(known, relation)
    found: dict[str, Bounds] = {}
    if wrong is not None:
        found["accuracy"] = falling(lambda rate: 1 - rate, wrong)
    elif miss is not None:
        found["accuracy"] = falling(lambda m: accuracy(sizes, m), miss)
    if miss is not None:
        found["macro recall"] = falling(recall, miss)
    if miss is not None and alarm is not None:
        found["macro precision"] = falling(lambda m, a: precision(sizes, m, a), miss, alarm)
        found["macro F1"] = falling(lambda m, a: f1(sizes, m, a), miss, alarm)
        found["Cohen's kappa"] = kappa(sizes, miss, alarm)
    for name, bounds in found.items():
        least = -1 if name == "Cohen's kappa" else 0
        yield Figure("classes", name, bounds.within(least, 1), called)


def _class_rates(
    known: _Known, relation: str | None
) -> tuple[Floats, Bounds | None, Bounds | None, Bounds | None]:
    """Return, of classes of which every image has one, sizes (C,), miss and false-alarm rates (C,)
    as far as known, and the rate of images misclassified.

    Every relation is asked of the same images, so sizes are those of all. One binary concept is two
    classes, where missing one is saying the other.
    """
    absent, present = known.counts.T
    if known.one_class_each:
        # an alarm is one of all other images, so all classes must be known of all images
        asked_whole = bool((absent + present == present.sum()).all())
        alarm = known.every(ALARM, relation) if asked_whole else None
        return present, known.every(MISS, relation), alarm, known.wrong(relation)
    if known.space.concepts_are == "labels" and len(known.space.concepts) == 1:
        sides = [known.side(known.space.concepts[0], side, relation) for side in (MISS, ALARM)]
        wrong = known.wrong(relation) if None not in sides else None
        return known.counts[0, ::-1], _whole(sides), _whole(sides[::-1]), wrong
    return present, None, None, None


# -- against unchanged images, and against AlexNet ---------------------------------------------


def _differences(known: _Known) -> Iterator[Figure]:
    """Yield how much more goes wrong under a relation than on original images, each as the box of
    two intervals: of all questions, and of every concept and side."""
    ids = [target for target in known.rates if isinstance(target, OfRelationConcept)]
    sides = dict.fromkeys((target.rate, target.side) for target in ids)
    error = next((t.rate for t in known.rates if isinstance(t, Overall | OfRelation)), ERROR)
    for relation in known.levels:
        both = (relation, IDENTITY)
        pairs: dict[tuple[str, str | None], list[Bounds | None]]
        pairs = {(error, None): [known.wrong(one) for one in both]}
        for concept in known.space.concepts:
            for rate, side in sides:
                targets = [OfRelationConcept(one, concept, side, rate) for one in both]
                pairs[rate, concept] = [known.rate(target) for target in targets]
        for (rate, about), (after, before) in pairs.items():
            if relation != IDENTITY and after is not None and before is not None:
                beyond = after.minus(before).within(-1, 1)
                yield Figure("difference", rate, beyond, relation, about)


def _errors(known: _Known) -> list[Figure]:
    """BE of every relation, in itself and against AlexNet, and the means over relations."""
    found = {r: be for r in known.levels if (be := _balanced_error(known, r)) is not None}
    plain = [Figure("BE", "BE", be.within(0, 1), r) for r, be in found.items()]
    normalised, relative = [], []
    clean = found.pop(IDENTITY, None)
    bases = {r: base for r in found if (base := baseline(r)) is not None}
    for relation, base in bases.items():
        be = found[relation]
        notes = _partial(known.levels[relation])
        bounds = be.over(base.corrupted).within(0, 1 / base.corrupted)
        normalised.append(Figure("normalised", "BE / AlexNet", bounds, relation, note=notes))
        if clean is not None:
            most = 1 / abs(base.rise)
            bounds = be.minus(clean).over(base.rise).within(-most, most)
            notes = "; ".join(note for note in (_conditioned(base), notes) if note)
            relative.append(Figure("relative", "rBE", bounds, relation, note=notes))
    missing = _missing(list(bases))
    changed = _mean([figure for figure in plain if figure.relation != IDENTITY])
    against = [*_mean(normalised, missing), *normalised, *_mean(relative, missing), *relative]
    return [*changed, *plain, *against]


def _balanced_error(known: _Known, relation: str) -> Bounds | None:
    """Mean over concepts of the mean of a concept's rates; None where one is not certified.

    The rates are the misses of classes of which every image has one, and both sides of
    concepts that are apart. A side without questions is left out.
    """
    wanted = (MISS,) if known.one_class_each else tuple(SIDES)
    means = []
    for concept, counts in zip(known.space.concepts, known.counts, strict=True):
        sides = [side for side in wanted if counts[SIDES[side]] > 0]
        if sides:
            rates = _whole([known.side(concept, side, relation) for side in sides])
            means.append(None if rates is None else rising(np.mean, rates))
    every = _whole(means)
    return None if every is None else rising(np.mean, every)


def _mean(parts: list[Figure], missing: str = "") -> list[Figure]:
    """The mean of several figures of a kind; what is noted of them is noted of it."""
    if len(parts) < 2:
        return []
    noted = sum(bool(part.note) for part in parts)
    notes = [missing, f"{noted} of {len(parts)} relations come with a note" if noted else ""]
    bounds = rising(np.mean, stack([part.bounds for part in parts]))
    plain = Bounds(float(bounds.estimate), float(bounds.lower), float(bounds.upper))
    note = "; ".join(note for note in notes if note)
    return [Figure(parts[0].kind, parts[0].quantity, plain, ALL, note=note)]


def _partial(levels: set[int]) -> str:
    """What to mind where a relation has not all the severities of its baseline."""
    if levels == LEVELS:
        return ""
    listed = ", ".join(map(str, sorted(levels)))
    return f"over severities {listed} alone, AlexNet's over all five"


def _missing(relations: list[str]) -> str:
    """What to mind where these are not all corruptions of their data sets."""
    flags = {relation.split("/")[1] for relation in relations}
    whole = sum(len(alexnet()[flag]) for flag in flags)
    return "" if len(relations) == whole else f"{len(relations)} of {whole} corruptions"


def _conditioned(base: Baseline) -> str:
    """What to mind where AlexNet's rise, which relative BE divides by, is no measure."""
    if base.rise < 0:
        return f"AlexNet errs less here than on clean images ({base.rise:.4f}): the sign is turned"
    if base.rise < TINY:
        return f"AlexNet's error rises by {base.rise:.4f} only, which magnifies everything"
    return ""
