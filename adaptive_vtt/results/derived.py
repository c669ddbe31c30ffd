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
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..families import (
    Filtered,
    OfConcept,
    OfRelation,
    OfRelationConcept,
    OfSlice,
    Overall,
    TargetId,
)
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
"""The subject of means over relations."""

Kind = Literal["concept", "classes", "difference", "BE", "normalised", "relative"]
Rates = Mapping[TargetId, Bounds]


@dataclass(frozen=True)
class Figure:
    """A derived figure, the ``quantity`` of its ``subject``: a concept, a relation, ALL, or ""
    for all classes together; ``note`` says what to mind, or is empty."""

    kind: Kind
    subject: str
    quantity: str
    bounds: Bounds
    note: str = ""

    @property
    def name(self) -> str:
        """What it is called, for people."""
        if self.kind == "classes":
            return self.quantity
        if self.kind == "concept" or self.subject == ALL:
            return f"{self.subject}: {self.quantity}"
        beyond = f" minus {IDENTITY}" if self.kind == "difference" else ""
        return f"relation {self.subject}{beyond}: {self.quantity}"


@dataclass(frozen=True)
class Baseline:
    """AlexNet's BE on a data set: clean, and the mean over severities of one corruption."""

    clean: float
    corrupted: float

    @property
    def rise(self) -> float:
        return self.corrupted - self.clean


def figures(space: "SpaceFacts", rates: Rates) -> list[Figure]:
    """All that follows from the targets there are.

    ``space`` is what a journal says of it, ``rates`` are the intervals of its targets.
    """
    known = _Known.of(space, rates)
    return [*_balanced(known), *_classes(known), *_differences(known), *_errors(known)]


@cache
def alexnet() -> dict[str, dict[str, Baseline]]:
    """Data set -> corruption -> baseline, for the 131 pairs of MedMNIST-C."""
    text = (files(__package__) / "data" / "alexnet.json").read_text(encoding="utf-8")
    return {
        flag: {name: Baseline(facts["clean"], be) for name, be in facts["corruptions"].items()}
        for flag, facts in json.loads(text).items()
    }


def baseline(relation: str) -> Baseline | None:
    """That of "medmnistc/<flag>/<corruption>"; None for any other relation."""
    family, _, rest = relation.partition("/")
    flag, _, corruption = rest.partition("/")
    return alexnet().get(flag, {}).get(corruption) if family == "medmnistc" else None


@dataclass(frozen=True)
class _Known:
    """What is certified of which space. ``counts`` C x 2: questions per concept and truth;
    ``levels``: the severities of each relation; ``concepts_are``: see ``OracleDefaults``;
    ``rates``: by any name of their targets, as one may be about what another is asked for by;
    ``error``: what the mean loss of a relation is called."""

    concepts: tuple[str, ...]
    counts: Floats
    levels: dict[str, set[int]]
    concepts_are: str
    rates: Mapping[str, Bounds]
    error: str

    @classmethod
    def of(cls, space: "SpaceFacts", rates: Rates) -> "_Known":
        levels: dict[str, set[int]] = {}
        for relation, severity in space.variants:
            levels.setdefault(relation, set()).add(severity)
        counts = np.array(space.cell_counts, float)
        named = {}
        for target, bounds in rates.items():
            chosen_by_users = isinstance(target, Filtered | OfSlice)
            names = target.also if chosen_by_users else target.names
            named.update(dict.fromkeys(names, bounds))
        error = next((t.rate for t in rates if isinstance(t, Overall | OfRelation)), ERROR)
        return cls(space.concepts, counts, levels, space.concepts_are, named, error)

    @property
    def relations(self) -> list[str]:
        """All but identity."""
        return [name for name in self.levels if name != IDENTITY]

    @property
    def one_class_each(self) -> bool:
        """Whether the concepts are classes and every image has one."""
        return self.concepts_are == "classes" and len(self.concepts) > 1

    def side(self, concept: str, rate: str, relation: str | None = None) -> Bounds | None:
        side = SIDES[rate]
        if relation is None:
            return self.rates.get(OfConcept(concept, side, rate).name)
        return self.rates.get(OfRelationConcept(relation, concept, side, rate).name)

    def under(self, relation: str) -> Bounds | None:
        """The mean loss under a relation."""
        return self.rates.get(OfRelation(relation).handle)

    def every(self, side: str) -> Bounds | None:
        """This rate of all concepts (C,), if all are certified."""
        found = [self.side(concept, side) for concept in self.concepts]
        there = [rate for rate in found if rate is not None]
        return stack(there) if len(there) == len(found) else None


# -- balanced accuracy, and figures of all classes together ------------------------------------


def _balanced(known: _Known) -> list[Figure]:
    found = []
    for concept in known.concepts:
        sides = [known.side(concept, side) for side in SIDES]
        there = [rate for rate in sides if rate is not None]
        if len(there) == len(SIDES):
            bounds = falling(recall, stack(there)).within(0, 1)
            found.append(Figure("concept", concept, "balanced accuracy", bounds))
    return found


def _classes(known: _Known) -> list[Figure]:
    """Accuracy and macro recall need the miss rates; the others the false-alarm rates, too."""
    sizes, miss, alarm, wrong = _class_rates(known)
    found: dict[str, Bounds] = {}
    if wrong is not None:
        found["accuracy"] = falling(lambda rate: 1 - rate, wrong).within(0, 1)
    elif miss is not None:
        found["accuracy"] = falling(lambda m: accuracy(sizes, m), miss).within(0, 1)
    if miss is not None:
        found["macro recall"] = falling(recall, miss).within(0, 1)
    if miss is not None and alarm is not None:
        for name, function in (("precision", precision), ("F1", f1)):
            bounds = falling(lambda m, a, f=function: f(sizes, m, a), miss, alarm)
            found[f"macro {name}"] = bounds.within(0, 1)
        found["Cohen's kappa"] = kappa(sizes, miss, alarm).within(-1, 1)
    return [Figure("classes", "", name, bounds) for name, bounds in found.items()]


def _class_rates(
    known: _Known,
) -> tuple[Floats, Bounds | None, Bounds | None, Bounds | None]:
    """Of classes of which every image has one: sizes (C,), miss and false-alarm rates (C,)
    as far as known, and the rate of images misclassified.

    One binary concept is two classes, where missing one is saying the other.
    """
    absent, present = known.counts.T
    if known.one_class_each:
        # an alarm is one of all other images, so all classes must be known of all images
        whole = bool((absent + present == present.sum()).all())
        alarm = known.every(ALARM) if whole else None
        return present, known.every(MISS), alarm, known.rates.get(Overall.kind)
    if known.concepts_are == "labels" and len(known.concepts) == 1:
        miss, false = (known.side(known.concepts[0], side) for side in SIDES)
        if miss is not None and false is not None:
            both, turned = stack([miss, false]), stack([false, miss])
            return known.counts[0, ::-1], both, turned, known.rates.get(Overall.kind)
    return present, None, None, None


# -- against unchanged images, and against AlexNet ---------------------------------------------


def _differences(known: _Known) -> list[Figure]:
    clean = known.under(IDENTITY)
    if clean is None:
        return []
    found = []
    for relation in known.relations:
        rate = known.under(relation)
        if rate is not None:
            beyond = rate.minus(clean).within(-1, 1)
            found.append(Figure("difference", relation, known.error, beyond))
    return found


def _errors(known: _Known) -> list[Figure]:
    """BE of every relation, in itself and against AlexNet, and the means over relations."""
    found = {r: be for r in known.levels if (be := _balanced_error(known, r)) is not None}
    plain = [Figure("BE", r, "BE", be.within(0, 1)) for r, be in found.items()]
    normalised, relative = [], []
    clean = found.pop(IDENTITY, None)
    bases = {r: base for r in found if (base := baseline(r)) is not None}
    for relation, base in bases.items():
        be = found[relation]
        notes = _partial(known.levels[relation])
        bounds = be.over(base.corrupted).within(0, 1 / base.corrupted)
        normalised.append(Figure("normalised", relation, "BE / AlexNet", bounds, notes))
        if clean is not None:
            most = 1 / abs(base.rise)
            bounds = be.minus(clean).over(base.rise).within(-most, most)
            notes = "; ".join(note for note in (_conditioned(base), notes) if note)
            relative.append(Figure("relative", relation, "rBE", bounds, notes))
    corrupted = [figure for figure in plain if figure.subject != IDENTITY]
    return [
        *_mean(corrupted),
        *plain,
        *_mean(normalised, _missing(list(bases))),
        *normalised,
        *_mean(relative, _missing(list(bases))),
        *relative,
    ]


def _balanced_error(known: _Known, relation: str) -> Bounds | None:
    """Mean over concepts of the mean of a concept's rates; None where one is not certified.

    The rates are the misses of classes of which every image has one, and both sides of
    concepts that are apart. A side without questions is left out.
    """
    wanted = (MISS,) if known.one_class_each else tuple(SIDES)
    means = []
    for concept, counts in zip(known.concepts, known.counts, strict=True):
        sides = [side for side in wanted if counts[SIDES[side]] > 0]
        found = [known.side(concept, side, relation) for side in sides]
        there = [rate for rate in found if rate is not None]
        if len(there) < len(found):
            return None
        if there:
            means.append(rising(np.mean, stack(there)))
    return rising(np.mean, stack(means)) if means else None


def _mean(parts: list[Figure], missing: str = "") -> list[Figure]:
    """The mean of several figures of a kind; what is noted of them is noted of it."""
    if len(parts) < 2:
        return []
    noted = sum(bool(part.note) for part in parts)
    notes = [missing, f"{noted} of {len(parts)} relations come with a note" if noted else ""]
    bounds = rising(np.mean, stack([part.bounds for part in parts]))
    plain = Bounds(float(bounds.estimate), float(bounds.lower), float(bounds.upper))
    note = "; ".join(note for note in notes if note)
    return [Figure(parts[0].kind, ALL, parts[0].quantity, plain, note)]


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
