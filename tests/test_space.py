"""The question space and the pool: numbers, counts, and uniform candidates, at any size."""

import time
import tracemalloc
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chi2

from adaptive_vtt import QuestionSpace, relations
from adaptive_vtt.datasets import from_table
from adaptive_vtt.engine.candidates import CandidatePool, _Unseen
from adaptive_vtt.errors import InputError
from adaptive_vtt.experiments.engine.tiled import TiledDataset
from adaptive_vtt.relations import LabelPreserving
from adaptive_vtt.testing import tiny_dataset
from adaptive_vtt.types import Candidates, Image
from tests.helpers.audits import counted

RNG = np.random.default_rng


class Mirror(LabelPreserving):
    """Makes no sense for concept c0."""

    name = "mirror"
    severities = (1, 3)

    def transform(self, image: Image, severity: int, rng: np.random.Generator) -> Image:
        return image[:, ::-1].copy()

    def applies(self, concept: str) -> bool:
        return concept != "c0"


def table(truths: list[list[float]]) -> pd.DataFrame:
    """A table of labels with concepts c0, c1 ..."""
    return pd.DataFrame(truths, columns=[f"c{i}" for i in range(len(truths[0]))], dtype=float)


@st.composite
def spaces(draw: st.DrawFn) -> QuestionSpace:
    """Up to 5 samples x 5 variants x 3 concepts, with unknown truths and a picky relation."""
    shape = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    cells = st.sampled_from([0.0, 1.0, np.nan])
    row = st.lists(cells, min_size=shape[1], max_size=shape[1])
    truths = draw(st.lists(row, min_size=shape[0], max_size=shape[0]))
    chosen = draw(st.sampled_from([["identity"], [Mirror()], [Mirror(), "identity"]]))
    applies = [c > 0 or "identity" in chosen for c in range(shape[1])]
    assume(np.isfinite(np.array(truths)[:, applies]).any())
    return QuestionSpace(from_table(None, table(truths)), chosen)


def eligible_by_hand(space: QuestionSpace) -> list[tuple[int, int, int, int, int]]:
    """(number, sample, variant, concept, truth) of every question that can be asked."""
    rows = []
    shape = len(space.dataset), len(space.variants), len(space.concepts)
    for number, (sample, variant, concept) in enumerate(product(*map(range, shape))):
        truth = space.dataset.sample(sample).truth.get(space.concepts[concept])
        if truth is not None and space.variants[variant].relation.applies(space.concepts[concept]):
            rows.append((number, sample, variant, concept, truth))
    return rows


# -- numbering and counting ----------------------------------------------------------------


@settings(max_examples=30)
@given(space=spaces())
def test_number_and_parts_undo_each_other(space: QuestionSpace) -> None:
    everything = np.arange(space.total)
    assert np.array_equal(space.number(*space.parts(everything)), everything)
    samples, variants, concepts = space.parts(everything)
    assert set(zip(samples.tolist(), variants.tolist(), concepts.tolist(), strict=True)) == set(
        product(range(len(space.dataset)), range(len(space.variants)), range(len(space.concepts)))
    )


@settings(max_examples=30)
@given(space=spaces())
def test_nth_reaches_every_eligible_question_once(space: QuestionSpace) -> None:
    expected = [row[0] for row in eligible_by_hand(space)]
    assert space.size == len(expected)
    assert sorted(space.nth(np.arange(space.size)).tolist()) == expected
    assert np.flatnonzero(space.eligible(np.arange(space.total))).tolist() == expected


@settings(max_examples=30)
@given(space=spaces())
def test_counts_agree_with_counting(space: QuestionSpace) -> None:
    rows = eligible_by_hand(space)
    names = [None, *space.concepts]
    levels = {(v.relation.name, v.severity) for v in space.variants}
    wanted = [None, *{r for r, _ in levels}], [None, *{s for _, s in levels}]
    for concept, side, relation, severity in product(names, (None, 0, 1), *wanted):
        expected = [
            number
            for number, _, variant, c, truth in rows
            if concept in (None, space.concepts[c])
            and side in (None, truth)
            and relation in (None, space.variants[variant].relation.name)
            and severity in (None, space.variants[variant].severity)
        ]
        asked = counted(space, concept=concept, truth=side, relation=relation, severity=severity)
        assert asked == len(expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"relations": ["rotatoin"]}, r"unknown relation 'rotatoin'.*did you mean 'rotation'"),
        ({"relations": ["rotation", "rotation"]}, r"'rotation' stands twice"),
        ({"relations": ["rotation"], "severities": [2, 9]}, r"some of \[1, 2, 3, 4, 5\].*\[2, 9\]"),
        ({"relations": ["rotation"], "severities": []}, r"expected some of .* got \[\]"),
        ({"relations": []}, r"expected some of"),
    ],
)
def test_relations_and_severities_that_do_not_exist_are_refused(options: Any, message: str):
    with pytest.raises(InputError, match=message):
        QuestionSpace(tiny_dataset(), **options)


def test_space_without_a_question_is_refused() -> None:
    with pytest.raises(InputError, match=r"no question can be asked.*1 samples x 1 variants x 1"):
        QuestionSpace(from_table(None, table([[np.nan]])))
    with pytest.raises(InputError, match=r"no question can be asked"):
        QuestionSpace(from_table(None, table([[0], [1]])), [Mirror()])


def test_space_too_large_to_number_is_refused() -> None:
    with pytest.raises(InputError, match=r"space: \d+ questions, over the limit"):
        QuestionSpace(TiledDataset([[0, 1]], 2**61), relations.names())


# -- follow-ups and fingerprint ------------------------------------------------------------


def test_follow_up_is_a_function_of_seed_and_image_number() -> None:
    dataset = tiny_dataset(4, 2)
    spaces = [QuestionSpace(dataset, ["identity", "gaussian_noise"], seed=s) for s in (1, 1, 2)]
    forward = [spaces[0].follow_up(i).image for i in range(24)]
    backward = [spaces[1].follow_up(i).image for i in reversed(range(24))][::-1]
    assert all(np.array_equal(a, b) for a, b in zip(forward, backward, strict=True))
    assert not np.array_equal(forward[3], spaces[2].follow_up(3).image)
    assert np.array_equal(forward[6], dataset.sample(1).image)


def test_fingerprint_tells_spaces_apart_and_same_ones_not() -> None:
    truths = [[0.0, 1.0], [1.0, 0.0]]
    other = [[0.0, 1.0], [1.0, np.nan]]
    renamed = table(truths).rename({0: "x"})
    made = [
        QuestionSpace(from_table(None, table(truths))),
        QuestionSpace(from_table(None, table(other))),
        QuestionSpace(from_table(None, renamed)),
        QuestionSpace(from_table(None, table(truths)), [Mirror()]),
        QuestionSpace(from_table(None, table(truths)), ["identity", "rotation"]),
        QuestionSpace(from_table(None, table(truths)), ["rotation", "identity"]),
        QuestionSpace(from_table(None, table(truths)[["c1", "c0"]])),
    ]
    assert len({space.fingerprint for space in made}) == len(made)
    again = QuestionSpace(from_table(None, table(truths)))
    assert again.fingerprint == made[0].fingerprint


# -- a million million questions -----------------------------------------------------------


def use_huge_space() -> Candidates:
    """Makes, counts and samples a space of more than 10^12 questions."""
    tile = RNG(0).integers(-1, 2, (100, 10))
    space = QuestionSpace(TiledDataset(tile, 4_000_000_000), relations.names())
    assert space.size > 10**12 / 2
    assert space.total > 10**12
    assert counted(space, concept="c3", truth=1, relation="rotation") == 5 * 40_000_000 * int(
        (tile[:, 3] == 1).sum()
    )
    pool = CandidatePool(space, seed=0, limit=1000)
    first = pool.candidates(0)
    pool.remove(first.question[:10].numpy())
    assert len(pool) == space.size - 10
    return pool.candidates(1)


def test_huge_space_takes_milliseconds() -> None:
    durations = []
    for _ in range(5):
        start = time.process_time()
        use_huge_space()
        durations.append(time.process_time() - start)
    assert min(durations) < 0.1


def test_huge_space_takes_little_memory() -> None:
    tracemalloc.start()
    try:
        candidates = use_huge_space()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(set(candidates.question.tolist())) == 1000
    assert peak < 50e6


# -- the pool ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("removed", "limit"),
    [
        pytest.param(0, 12, id="fresh", marks=pytest.mark.slow),
        pytest.param(10, 12, id="few seen", marks=pytest.mark.slow),
        pytest.param(40, 12, id="most seen"),
    ],
)
def test_candidates_are_a_uniform_subset_of_the_unseen(removed: int, limit: int) -> None:
    # 72 questions. Over 1,000 draws each unseen one should be among the candidates equally
    # often. The statistic is chi-squared with n - 1 degrees of freedom, shrunk by 1 - limit/n
    # for drawing without replacement. A uniform pool fails here for one seed in 1,000.
    space = QuestionSpace(tiny_dataset(12, 1), ["identity", "rotation"])
    pool = CandidatePool(space, seed=5, limit=limit)
    everything = space.nth(np.arange(space.size))
    pool.remove(everything[:removed])
    draws = [pool.candidates(draw).question.numpy() for draw in range(1000)]
    assert all(len(set(d.tolist())) == limit for d in draws)
    counts = np.bincount(np.concatenate(draws), minlength=space.total)
    assert counts[everything[:removed]].sum() == 0
    unseen = counts[everything[removed:]]
    n, expected = len(unseen), 1000 * limit / len(unseen)
    spread = ((unseen - expected) ** 2).sum() / (expected * (1 - limit / n)) * (n - 1) / n
    assert spread < chi2.isf(1e-3, n - 1)


def check_candidates(candidates: Candidates, space: QuestionSpace, unseen: set[int]) -> None:
    """Distinct, unseen, and described as the space describes them."""
    questions: NDArray[np.int64] = candidates.question.numpy()
    assert len(set(questions.tolist())) == len(questions) == len(candidates)
    assert set(questions.tolist()) <= unseen
    sample, variant, concept = space.parts(questions)
    assert candidates.sample.tolist() == sample.tolist()
    assert candidates.variant.tolist() == variant.tolist()
    assert candidates.concept.tolist() == concept.tolist()
    assert candidates.image.tolist() == space.image_of(questions).tolist()
    assert candidates.truth.tolist() == space.truth(questions).tolist()
    assert candidates.cell.tolist() == (concept * 2 + space.truth(questions)).tolist()


@pytest.mark.slow
@settings(max_examples=30)
@given(space=spaces(), data=st.data())
def test_listed_and_sampled_pools_agree_on_the_unseen(space: QuestionSpace, data: st.DataObject):
    unseen = {row[0] for row in eligible_by_hand(space)}
    limit = data.draw(st.integers(1, max(1, space.size - 1)))
    pools = CandidatePool(space, seed=0), CandidatePool(space, seed=0, limit=limit)
    for draw in range(data.draw(st.integers(0, 4))):
        if not unseen:
            break
        gone = data.draw(st.lists(st.sampled_from(sorted(unseen)), max_size=4, unique=True))
        unseen -= set(gone)
        for pool in pools:
            pool.remove(np.array(gone, np.int64))
            pool.remove(np.array(gone, np.int64))  # once more changes nothing
            assert len(pool) == len(unseen)
            words = [space.question(q) for q in unseen]
            sides = [(space.concepts.index(w.concept), w.truth) for w in words]
            expected = [[sides.count((c, s)) for s in (0, 1)] for c in range(len(space.concepts))]
            assert pool.remaining.tolist() == expected
        listed, sampled = (pool.candidates(draw) for pool in pools)
        check_candidates(listed, space, unseen)
        check_candidates(sampled, space, unseen)
        assert set(listed.question.tolist()) == unseen
        assert len(sampled) == min(limit, len(unseen))


def test_candidates_follow_from_seed_and_draw_number() -> None:
    space = QuestionSpace(tiny_dataset(12, 1), ["identity", "rotation"])

    def drawn(seed: int, draw: int) -> list[int]:
        return CandidatePool(space, seed=seed, limit=10).candidates(draw).question.tolist()

    pool = CandidatePool(space, seed=1, limit=10)
    pool.candidates(7)  # looking at other draws before changes nothing
    assert pool.candidates(0).question.tolist() == drawn(1, 0)
    assert drawn(1, 0) != drawn(1, 1)
    assert drawn(1, 0) != drawn(2, 0)


@pytest.mark.parametrize("answers", ["one", "all"])
@pytest.mark.parametrize("concepts", [1, 3])
@pytest.mark.parametrize("limit", [20, 4096])
def test_every_candidate_stands_with_its_call(answers: Any, concepts: int, limit: int):
    made = QuestionSpace(tiny_dataset(12, concepts), ["identity", "rotation"])
    pool = CandidatePool(made, seed=1, limit=limit, answers=answers)
    for draw in range(12):
        found = pool.candidates(draw)
        number = found.question if answers == "one" else found.image
        assert torch.equal(found.call[found.unit], number)
        assert torch.equal(found.unit, found.unit.sort().values)
        drawn = int(found.call[draw % len(found.call)])  # holes in a list are filled from its end
        pool.remove(found.question[number == drawn].numpy())


def test_near_the_end_what_is_left_is_not_worked_out_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """A draw costs no more where most was asked, and is from exactly what was not."""
    space = QuestionSpace(tiny_dataset(60, 2), ["identity", "gaussian_noise"])
    pool = CandidatePool(space, seed=1, limit=50)
    every = np.sort(space.nth(np.arange(space.size)))
    order = np.random.default_rng(0).permutation(every)
    cut = int(0.7 * len(order))
    pool.remove(order[:cut])
    made = []
    whole = _Unseen.__init__
    monkeypatch.setattr(_Unseen, "__init__", lambda *given: made.append(1) or whole(*given))
    for draw, question in enumerate(order[cut:-1].tolist()):
        found = np.asarray(pool.candidates(draw).question)
        left = set(order[cut + draw :].tolist())
        assert len(found) == min(50, len(left))
        assert set(found.tolist()) <= left
        pool.remove(np.array([question]))
    assert made == [1]
