"""Figures that follow from certified targets: right where rates are known, valid where not."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    cohen_kappa_score,
    f1_score,
    precision_score,
)

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.certify import named_targets
from adaptive_vtt.certify.targets import size
from adaptive_vtt.datasets import from_table
from adaptive_vtt.errors import InputError
from adaptive_vtt.families import (
    Filtered,
    OfConcept,
    OfRelation,
    OfRelationConcept,
    OfSeverity,
    Overall,
    TargetId,
)
from adaptive_vtt.journal import MemoryJournal
from adaptive_vtt.journal.facts import SpaceFacts
from adaptive_vtt.oracles import Consistency, MaskDrop, Oracle, Ordinal, TopClass
from adaptive_vtt.oracles.base import MISCLASSIFICATION
from adaptive_vtt.results.derived import Bounds, alexnet
from adaptive_vtt.results.outcomes import outcomes
from adaptive_vtt.results.report import render
from adaptive_vtt.results.report.evidence import Evidence
from adaptive_vtt.results.result import derive
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from adaptive_vtt.types import ERROR, SIDES

CLASSES = ("a", "b", "c")
Floats = npt.NDArray[np.float64]


def class_space(samples: int = 9, relations: tuple[str, ...] = ("identity",)) -> QuestionSpace:
    labels = pd.DataFrame(np.eye(3, dtype=int)[np.arange(samples) ** 2 % 3], columns=CLASSES)
    labels.iloc[:3] = np.eye(3, dtype=int)  # every class is there
    severities = [1, 2] if len(relations) > 1 else None
    return QuestionSpace(
        from_table(None, labels), relations, severities=severities, oracle=TopClass()
    )


def facts(
    counts: Any, variants: Any = (("identity", 0),), concepts_are: str = "classes"
) -> SpaceFacts:
    """What a journal would say of a space with these questions per concept and truth."""
    about = {"concepts": [chr(97 + k) for k in range(len(counts))], "concepts_are": concepts_are}
    about |= {"variants": [list(v) for v in variants], "cell_counts": np.asarray(counts).tolist()}
    nothing: dict[str, Any] = {"fingerprint": "", "dataset": "", "shown": {}, "seed": 0}
    return SpaceFacts(samples=1, size=1, **nothing, **about)


def exact(rates: Mapping[str, float]) -> dict[str, Bounds]:
    return {name: Bounds(rate, rate, rate) for name, rate in rates.items()}


def targets_of(space: SpaceFacts) -> Iterator[TargetId]:
    """Every target about concepts, relations and severities of a space."""
    yield Overall(MISCLASSIFICATION)
    for relation, severity in space.variants:
        yield OfRelation(relation, MISCLASSIFICATION)
        yield OfSeverity(relation, severity, MISCLASSIFICATION)
    for concept in space.concepts:
        for rate, side in SIDES.items():
            yield OfConcept(concept, side, rate)
        for relation in space.relations:
            for rate, about in {ERROR: None, **SIDES}.items():
                yield OfRelationConcept(relation, concept, about, rate)


def found(space: SpaceFacts, rates: Mapping[str, Bounds]) -> pd.DataFrame:
    """``rates`` by the names of their targets."""
    ids = {target.name: target for target in targets_of(space)}
    known = {ids.get(name, Filtered(name)): b for name, b in rates.items()}
    return derive(space, known).set_index("quantity")


# -- targets -------------------------------------------------------------------------------------


def test_each_relation_for_each_concept_and_side() -> None:
    space = QuestionSpace(tiny_dataset(7, 2), ("identity", "rotation"), severities=[1, 2])
    sizes = {
        name: {t.name: size(space, t) for t in named_targets(space, [name])}
        for name in ("relations", "relation-concepts", "relation-sides")
    }
    whole, concepts, sides = sizes.values()
    assert list(concepts) == [
        f"relation {r}, {c}: label error" for r in ("identity", "rotation") for c in ("c0", "c1")
    ]
    for name, count in concepts.items():
        stem = name.removesuffix("label error")
        assert (
            count
            == sides[f"{stem}miss rate"] + sides[f"{stem}false-alarm rate"]
            == (7 if "identity" in name else 14)
        )
    assert sum(concepts.values()) == sum(whole.values()) == sum(sides.values())


@pytest.mark.parametrize(
    ("oracle", "rate"),
    [(MaskDrop(), "EFR"), (Consistency(), "violation rate"), (Ordinal(), "mean distance")],
)
def test_sides_are_those_of_the_oracle(oracle: Oracle, rate: str) -> None:
    space = QuestionSpace(tiny_dataset(6, 2), ("rotation",), severities=[1], oracle=oracle)
    names = [t.name for t in named_targets(space, ["relation-sides"])]
    assert names == [f"relation rotation, {c}: {rate}" for c in space.concepts]


def test_misclassified_holds_one_question_per_image() -> None:
    (target,) = named_targets(class_space(), ["misclassified"])
    assert (target.name, size(class_space(), target)) == ("overall misclassification rate", 9)
    with pytest.raises(InputError, match=r"'misclassified': needs .* classes, as .* 'labels'"):
        named_targets(QuestionSpace(tiny_dataset()), ["misclassified"])


# -- an audit that asks everything knows every figure ----------------------------------------------


def whole_audit(space: QuestionSpace, *targets: str) -> tuple[MemoryJournal, pd.DataFrame]:
    journal = MemoryJournal()
    result = Audit(space, ScriptedModel(), half_width=0.001, targets=targets, journal=journal).run()
    assert result.reason == "every question was asked"
    assert result.to_dict()["derived"] == result.derived.to_dict(orient="records")
    return journal, result.derived.set_index("quantity")


@pytest.fixture(scope="module")
def classes() -> tuple[MemoryJournal, pd.DataFrame]:
    space = class_space(9, ("identity", "rotation"))
    return whole_audit(space, "overall", "concepts", "relations", "relation-sides")


def test_figures_of_classes_are_those_of_scikit_learn(
    classes: tuple[MemoryJournal, pd.DataFrame],
) -> None:
    journal, derived = classes
    table = outcomes(journal)
    images = table.pivot(
        index=["relation", "severity", "sample"], columns="concept", values=["truth", "answer"]
    )
    true = images["truth"].to_numpy(float).argmax(axis=1)
    predicted = images["answer"].to_numpy(float).argmax(axis=1)
    here = images.index.get_level_values("relation") == "rotation"
    wanted = {}
    scopes = {"relation identity": ~here, "relation rotation": here, "all relations": here | ~here}
    for about, rows in scopes.items():
        t, s = true[rows], predicted[rows]
        wanted |= {
            f"{about}: accuracy": accuracy_score(t, s),
            f"{about}: macro recall": balanced_accuracy_score(t, s),
            f"{about}: macro precision": precision_score(t, s, average="macro", zero_division=0),
            f"{about}: macro F1": f1_score(t, s, average="macro"),
            f"{about}: Cohen's kappa": cohen_kappa_score(t, s),
            f"{about}, b: balanced accuracy": balanced_accuracy_score(t == 1, s == 1),
            f"{about}: BE": 1 - balanced_accuracy_score(t, s),
        }
    del wanted["all relations: BE"]  # rotation is the only one
    losses = table[table["truth"] == 1].groupby("relation")["loss"].mean()
    wanted["relation rotation minus identity: misclassification rate"] = (
        losses["rotation"] - losses["identity"]
    )
    b = table[(table["concept"] == "b") & (table["truth"] == 1)].groupby("relation")["loss"].mean()
    wanted["relation rotation minus identity, b: miss rate"] = b["rotation"] - b["identity"]
    assert derived.index[0] == "relation identity: accuracy", "original images come first"
    for name, value in wanted.items():
        assert derived.loc[name, ["lower", "estimate", "upper"]].tolist() == pytest.approx(
            [value] * 3, abs=1e-9
        )
    assert len(derived) == len(wanted) + 6 + 5  # of other classes, and of false alarms
    assert (derived["note"] == "").all()


@pytest.mark.slow
def test_the_report_shows_them_with_the_audits_own_names(
    classes: tuple[MemoryJournal, pd.DataFrame],
) -> None:
    journal, derived = classes
    page = render(journal)
    assert page.index('id="certified"') < page.index('id="derived"') < page.index('id="widths"')
    for heading in ("All classes", "Balanced error (BE)", "Difference to original images"):
        assert heading in page
    kappa = derived.loc["all relations: Cohen's kappa", "estimate"]
    assert f'data-value="{kappa}"' in page
    standings = Evidence(journal).standings
    kinds = {s.name: (s.kind, s.label) for s in standings}
    assert kinds["overall misclassification rate"][0] == "overall"
    assert kinds["relation rotation, b: miss rate"] == ("relation, miss rate", "rotation, b")


@pytest.mark.parametrize("name", ["overall", "relation:identity", "c0: miss rate"])
def test_a_filter_has_no_targets_name(name: str) -> None:
    space, where = QuestionSpace(tiny_dataset()), {name: {"concept": ["c1"]}}
    options: dict[str, Any] = {"half_width": 0.1, "targets": ["concepts", name], "where": where}
    with pytest.raises(InputError, match=f"a filter that no target has, got '{name}'"):
        Audit(space, ScriptedModel(), **options)


def test_nothing_follows_from_uncertified_or_single_figures() -> None:
    lone: dict[str, Any] = {"half_width": 0.1, "targets": ["overall"], "surrogate": False}
    for space, options in ((class_space(), {}), (QuestionSpace(tiny_dataset()), lone)):
        result = Audit(space, ScriptedModel(), budget=2, **options).run()
        assert result.derived.empty
        assert result.to_dict()["derived"] == []


# -- class figures: exact for points, valid for boxes ----------------------------------------------


def rates_of(confusion: Floats) -> tuple[Floats, Floats, Floats]:
    """Sizes, miss and false-alarm rates of a confusion matrix, true classes by row."""
    sizes, right = confusion.sum(axis=1), np.diag(confusion)
    alarm = (confusion.sum(axis=0) - right) / (sizes.sum() - sizes)
    return sizes, 1 - right / sizes, alarm


def scores(confusion: Floats) -> dict[str, float]:
    true, predicted = (k.ravel() for k in np.indices(confusion.shape))
    weight = confusion.ravel()
    known: dict[str, Any] = {"sample_weight": weight}
    macro: dict[str, Any] = {"average": "macro", "zero_division": 0, **known}
    return {
        "accuracy": accuracy_score(true, predicted, **known),
        "macro recall": balanced_accuracy_score(true, predicted, **known),
        "macro precision": precision_score(true, predicted, **macro),
        "macro F1": f1_score(true, predicted, **macro),
        "Cohen's kappa": cohen_kappa_score(true, predicted, **known),
    }


def figures(sizes: Floats, miss: Bounds, alarm: Bounds) -> pd.DataFrame:
    rates = {}
    for k in range(len(sizes)):
        for side, rate in (("miss rate", miss), ("false-alarm rate", alarm)):
            ends = (rate.estimate[k], rate.lower[k], rate.upper[k])
            rates[f"{chr(97 + k)}: {side}"] = Bounds(*ends)
    return found(facts(np.stack([sizes.sum() - sizes, sizes], 1)), rates)


confusions = st.integers(2, 5).flatmap(
    lambda c: st.lists(st.integers(0, 30), min_size=c * c, max_size=c * c).map(
        lambda cells: np.array(cells, float).reshape(c, c)
    )
)


def point(values: Floats) -> Bounds:
    return Bounds(values, values, values)


@settings(max_examples=10, deadline=None)
@given(confusions)
def test_known_rates_give_scikit_learns_figures(confusion: Floats) -> None:
    assume((confusion.sum(axis=1) > 0).all())
    sizes, miss, alarm = rates_of(confusion)
    table = figures(sizes, point(miss), point(alarm))
    for name, value in scores(confusion).items():
        row = table.loc[name]
        assert [row["lower"], row["estimate"], row["upper"]] == pytest.approx([value] * 3, abs=1e-9)


def around(values: Floats, rng: np.random.Generator, width: float) -> Bounds:
    """Intervals that hold the values, anywhere within them; some are no wider than a point."""
    spread = width * rng.random((2, len(values))) * (rng.random((2, len(values))) < 0.8)
    lower, upper = np.clip(values - spread[0], 0, 1), np.clip(values + spread[1], 0, 1)
    return Bounds(rng.uniform(lower, upper), lower, upper)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(confusions, st.integers(0, 2**32 - 1), st.sampled_from([0.05, 0.3, 1.0]))
def test_intervals_hold_the_figures_of_all_true_rates(
    confusion: Floats, seed: int, width: float
) -> None:
    assume((confusion.sum(axis=1) > 0).all())
    sizes, miss, alarm = rates_of(confusion)
    rng = np.random.default_rng(seed)
    table = figures(sizes, around(miss, rng, width), around(alarm, rng, width))
    for name, value in scores(confusion).items():
        assert table.loc[name, "lower"] - 1e-9 <= value <= table.loc[name, "upper"] + 1e-9
        assert table.loc[name, "lower"] <= table.loc[name, "estimate"] <= table.loc[name, "upper"]


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.integers(2, 5), st.integers(0, 2**32 - 1))
def test_kappa_is_exact_over_the_corners_of_a_box(classes: int, seed: int) -> None:
    from adaptive_vtt.results.derived import kappa

    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 100, classes).astype(float)
    miss, alarm = (around(rng.random(classes), rng, 1.0) for _ in range(2))
    values = []
    for corner in np.ndindex(*(2,) * (2 * classes)):
        ends = [
            np.where(c, b.upper, b.lower)
            for c, b in zip(np.reshape(corner, (2, classes)), (miss, alarm), strict=True)
        ]
        values.append(kappa(sizes, *map(point, ends)).estimate)
    bounds = kappa(sizes, miss, alarm)
    assert (bounds.lower, bounds.upper) == pytest.approx((min(values), max(values)), abs=1e-9)


def test_the_certified_misclassification_rate_beats_the_sum_over_classes() -> None:
    wide = Bounds(0.3, 0.0, 0.9)
    rates = {f"{c}: miss rate": wide for c in CLASSES}
    known = facts([[2, 1]] * 3)
    assert found(known, rates).loc["accuracy", "lower"] == pytest.approx(0.1)
    rates["overall misclassification rate"] = Bounds(0.3, 0.25, 0.35)
    row = found(known, rates).loc["accuracy"]
    assert [row["lower"], row["estimate"], row["upper"]] == pytest.approx([0.65, 0.7, 0.75])


def test_classes_known_of_some_images_only_have_no_precision() -> None:
    rates = exact({f"{c}: {s}": 0.1 for c in CLASSES for s in ("miss rate", "false-alarm rate")})
    own = found(facts([[0, 1]] * 3), {k: v for k, v in rates.items() if "miss" in k})
    assert list(own.index) == ["accuracy", "macro recall"]
    assert "macro F1" not in found(facts([[2, 1], [2, 1], [1, 1]]), rates).index
    assert "macro F1" in found(facts([[2, 1]] * 3), rates).index


# -- BE, and AlexNet -------------------------------------------------------------------------------


def test_balanced_error_of_labels_is_the_mean_over_both_sides() -> None:
    sides = {"a: miss": 0.2, "a: false-alarm": 0.4, "b: miss": 0.6, "b: false-alarm": 0.0}
    rates = exact({f"relation identity, {side} rate": rate for side, rate in sides.items()})
    both = found(facts([[5, 5], [5, 5]], concepts_are="labels"), rates)
    assert both.loc["relation identity: BE", "estimate"] == pytest.approx(0.3)
    classes = found(facts([[5, 5], [5, 5]]), rates)
    assert classes.loc["relation identity: BE", "estimate"] == pytest.approx(0.4)
    del rates["relation identity, b: miss rate"]
    one_side = found(facts([[5, 5], [5, 5]], concepts_are="labels"), rates)
    assert one_side.index.tolist() == ["a: balanced accuracy"]  # and no BE
    absent = found(facts([[5, 5], [5, 0]], concepts_are="labels"), rates)
    assert absent.loc["relation identity: BE", "estimate"] == pytest.approx((0.3 + 0.0) / 2)


def audited(flag: str, **other: float) -> tuple[SpaceFacts, dict[str, float]]:
    """AlexNet under every corruption of a set; ``other`` rates by corruption."""
    levels, rates = [("identity", 0)], {}
    for corruption, base in alexnet()[flag].items():
        relation = f"medmnistc/{flag}/{corruption}"
        levels += [(relation, k) for k in range(1, 6)]
        for c in CLASSES:
            rates[f"relation {relation}, {c}: miss rate"] = other.get(corruption, base.corrupted)
            rates[f"relation identity, {c}: miss rate"] = other.get("clean", base.clean)
    return facts([[200, 100]] * 3, levels), rates


@pytest.mark.parametrize("flag", sorted(alexnet()))
def test_alexnet_measured_by_itself_is_1(flag: str) -> None:
    known, rates = audited(flag)
    table = found(known, exact(rates))
    against = table[table.index.str.contains("AlexNet|rBE")]
    assert len(against) == 2 * (len(alexnet()[flag]) + 1)
    assert np.allclose(against[["estimate", "lower", "upper"]], 1)


def test_divisors_that_are_negative_or_tiny_are_flagged() -> None:
    flagged = {}
    for flag in alexnet():
        known, rates = audited(flag)
        notes = found(known, exact(rates))["note"]
        flagged.update(
            {name: note for name, note in notes.items() if "medmnistc/" in str(name) and note}
        )
        some = any(flag in str(name) for name in flagged)
        assert bool(notes["all relations: rBE"]) == some
    turned = {name for name, note in flagged.items() if "turns the sign" in note}
    relations = "contrast_up", "gamma_corr_up"
    assert turned == {f"relation medmnistc/pneumoniamnist/{c}: rBE" for c in relations}
    pairs = ["pathmnist/bubble", "bloodmnist/saturate", "breastmnist/contrast_down"]
    changes = ("brightness", "contrast", "gamma_corr")
    pairs += [f"chestmnist/{c}_{end}" for c in changes for end in ("up", "down")]
    assert {*flagged} - turned == {f"relation medmnistc/{pair}: rBE" for pair in pairs}


def test_a_negative_divisor_turns_the_interval_round_and_a_clean_error_of_0_is_a_number() -> None:
    known, rates = audited("pneumoniamnist", clean=0.0)
    bounds = exact(rates)
    name = "relation medmnistc/pneumoniamnist/contrast_up"
    for c in CLASSES:
        bounds[f"{name}, {c}: miss rate"] = Bounds(0.2, 0.1, 0.4)
    row, base = found(known, bounds).loc[f"{name}: rBE"], alexnet()["pneumoniamnist"]["contrast_up"]
    assert base.rise < 0
    ends = [share / base.rise for share in (0.4, 0.2, 0.1)]
    assert row[["lower", "estimate", "upper"]].tolist() == pytest.approx(ends)
