"""Algorithm 1 of Concept-centric VTT, step by step, against cases worked out by hand.

u- and u+ are the golden numbers of test_answer_gp.py (std form): 2 and 2 before any answer;
1.5257 and 1.9999 after an answer at a = .25, mirrored after one at .75; 1.5256 and 1.5256 after
both. An answer f to a question of truth t lies at a = (f + t) / 2, so f = .5 gives .25 or .75.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from adaptive_vtt import Audit, QuestionSpace, strategies
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.datasets import from_table
from adaptive_vtt.engine.belief import Observation
from adaptive_vtt.engine.proposals import Proposal
from adaptive_vtt.engine.selector import Selector
from adaptive_vtt.journal import MemoryJournal
from adaptive_vtt.testing import ScriptedModel, tiny_dataset

PAPER = "uncertainty+unpredictability"


class Game:
    """A selector whose draws are made by hand; questions are called "s0 A" and so on."""

    def __init__(self, labels: Sequence[Sequence[float]], strategy: str, **options: Any) -> None:
        names = [f"s{i}" for i in range(len(labels))]
        table = pd.DataFrame(labels, index=names, columns=["A", "B"], dtype=float)
        self.space = QuestionSpace(from_table(None, table))
        self.selector = Selector(self.space, strategies.get(strategy), **options)

    def proposal(self) -> dict[str, float]:
        """The probability of every question that may be drawn now; {} when all were asked."""
        draw = self.selector.draw()
        if draw is None:
            return {}
        assert draw.probability > 0
        proposal = zip(
            draw.proposal.calls.tolist(), draw.proposal.probabilities.tolist(), strict=True
        )
        return {self.name(question): p for question, p in proposal if p > 0}

    def name(self, question: int) -> str:
        words = self.space.question(question)
        return f"{words.sample_id} {words.concept}"

    def answer(self, name: str, f: float | None) -> None:
        """Draws the question called ``name`` and answers it with ``f`` (None: unanswered)."""
        question = next(q for q in range(self.space.total) if self.name(q) == name)
        truth = self.space.question(question).truth
        coordinate = None if f is None else (f + truth) / 2
        self.selector.take(np.array([question]))
        self.selector.learn([Observation(question, truth, 0.0, f, coordinate)])


def equal(names: str) -> Any:
    """The proposal under which these questions, as "s0 A, s1 B", have the same chance."""
    questions = names.split(", ")
    return pytest.approx({q: 1 / len(questions) for q in questions}, abs=1e-12)


LABELS = [
    # A  B
    [0, 0],  # s0
    [0, 1],  # s1
    [0, 1],  # s2
    [1, 1],  # s3
]


def test_uncertainty_alone_step_by_step() -> None:
    game = Game(LABELS, "uncertainty")
    # All four sides stand at 2: every question.
    assert game.proposal() == equal("s0 A, s1 A, s2 A, s3 A, s0 B, s1 B, s2 B, s3 B")
    game.answer("s3 A", 0.5)
    # A: 1.9999, 1.5257. B: 2, 2: both sides of B.
    assert game.proposal() == equal("s0 B, s1 B, s2 B, s3 B")
    game.answer("s0 B", 0.5)
    # A: 1.9999, 1.5257. B: 1.5257, 1.9999: negatives of A tie with positives of B.
    assert game.proposal() == equal("s0 A, s1 A, s2 A, s1 B, s2 B, s3 B")
    game.answer("s0 A", 0.5)
    # A: 1.5256, 1.5256. B: 1.5257, 1.9999.
    assert game.proposal() == equal("s1 B, s2 B, s3 B")
    game.answer("s1 B", 0.5)
    # All sides at 1.5256. A+ (s3) and B- (s0) are exhausted.
    assert game.proposal() == equal("s1 A, s2 A, s2 B, s3 B")
    game.answer("s1 A", 0.0)
    # An answer at 0 lowers A-; B- stays the most uncertain and is exhausted; then comes B+.
    assert game.proposal() == equal("s2 B, s3 B")
    game.answer("s2 B", 0.5)
    # At .75 again: a bin seen before changes nothing.
    assert game.proposal() == equal("s3 B")
    game.answer("s3 B", 1.0)
    # Only A- is left, the least uncertain side of all.
    assert game.proposal() == equal("s2 A")
    game.answer("s2 A", 1.0)
    assert game.proposal() == {}


def test_uncertainty_and_unpredictability_step_by_step() -> None:
    # Prevalence: A 3/5, within .15 of 1/2; B 1/5, not within.
    game = Game([[1, 1], [1, 0], [1, 0], [0, 0], [0, 0]], PAPER)
    # All sides tie at 2; of all ten questions those about A are unpredictable.
    assert game.proposal() == equal("s0 A, s1 A, s2 A, s3 A, s4 A")
    game.answer("s0 A", 0.5)
    # B stands at 2, 2. s0 has A: like s1 and s2, neither of which has B, so p(s0 B) = 0.
    # The other p(B) = 1/5. Nobody is within .15: those nearest to 1/2.
    assert game.proposal() == equal("s1 B, s2 B, s3 B, s4 B")
    game.answer("s1 B", 0.5)
    # A: 1.9999, 1.5257. B: 1.5257, 1.9999. A-: s3, s4 with p = 3/5. B+: s0 with p = 0.
    assert game.proposal() == equal("s3 A, s4 A")
    game.answer("s3 A", 0.5)
    # A: 1.5256, 1.5256. B+ at 1.9999 has s0 alone, p = 0: the nearest there is.
    assert game.proposal() == equal("s0 B")
    game.answer("s0 B", 1.0)
    # B+ is exhausted. B- at 1.5257 is ahead of A at 1.5256: s2 and s4 with p = 1/5; s3 lacks
    # A, as s4 does, who lacks B: p(s3 B) = 0. Nobody within: the nearest.
    assert game.proposal() == equal("s2 B, s4 B")
    game.answer("s4 B", 0.0)
    # B- has fallen. A- and A+ tie at 1.5256. s4 lacks B, as s1, s2 and s3 do: p(s4 A) = 2/3.
    # s1 lacks B, as s2, s3 and s4 do: p(s1 A) = 1/3. p(s2 A) = 3/5 alone is within .15.
    assert game.proposal() == equal("s2 A")
    game.answer("s2 A", 1.0)
    # A+ has fallen. A- has s4 alone, p = 2/3.
    assert game.proposal() == equal("s4 A")


def test_unpredictability_alone_step_by_step() -> None:
    # Prevalence: A 2/4 and B 2/4; answers say nothing of uncertainty here.
    game = Game([[0, 0], [0, 0], [1, 1], [1, 1]], "unpredictability")
    assert game.proposal() == equal("s0 A, s1 A, s2 A, s3 A, s0 B, s1 B, s2 B, s3 B")
    game.answer("s0 A", 0.9)
    # s0 lacks A, as s1 does, who lacks B: p(s0 B) = 0. The rest are at 1/2.
    assert game.proposal() == equal("s1 A, s2 A, s3 A, s1 B, s2 B, s3 B")
    game.answer("s2 B", 0.9)
    # s2 has B, as s3 does, who has A: p(s2 A) = 1.
    assert game.proposal() == equal("s1 A, s3 A, s1 B, s3 B")
    game.answer("s1 A", 0.9)
    game.answer("s1 B", 0.9)
    game.answer("s3 A", 0.9)
    # Left: s0 B at 0, s2 A at 1, s3 B at 1 (s3 has A, as s2 does, who has B). All 1/2 away.
    assert game.proposal() == equal("s0 B, s2 A, s3 B")


def test_exploration_gives_every_question_left_its_share() -> None:
    game = Game(LABELS, "uncertainty", exploration=0.2)
    game.answer("s3 A", 0.5)
    # 7 left, .2 / 7 each; the 4 of concept B share the other .8.
    exploration = 0.2 / 7
    expected = {f"s{i} B": 0.2 + exploration for i in range(4)} | {
        f"s{i} A": exploration for i in range(3)
    }
    assert game.proposal() == pytest.approx(expected, abs=1e-12)


# -- a whole audit against a second implementation -----------------------------------------


def half_areas(coordinates: list[float]) -> tuple[float, float]:
    """u- and u+ (std form) after answers at these coordinates, by dense linear algebra."""
    grid = np.linspace(0, 1, 101)
    seen = np.unique(np.round(np.array(coordinates) * 100)) / 100
    variance = np.ones(101)
    if len(seen):
        cross = np.exp(-((grid[:, None] - seen[None, :]) ** 2) / 0.02)
        inner = np.exp(-((seen[:, None] - seen[None, :]) ** 2) / 0.02) + 0.025 * np.eye(len(seen))
        variance = 1 - np.einsum("ij,ji->i", cross, np.linalg.solve(inner, cross.T))
    height = np.sqrt(np.maximum(variance, 0))
    return 4 * np.trapezoid(height[:51], dx=0.01), 4 * np.trapezoid(height[50:], dx=0.01)


def share(space: QuestionSpace, labels: np.ndarray, question: int, history: list[int]) -> float:
    """p(yes | history): among other samples with the same answers about the same image."""
    sample, _, concept = (int(part) for part in space.parts(question))
    image = int(space.image_of([question])[0])
    same = [q for q in history if int(space.image_of([q])[0]) == image]
    asked = [int(space.parts(q)[2]) for q in same]
    others = [s for s in range(len(labels)) if s != sample]
    alike = [s for s in others if all(labels[s, c] == labels[sample, c] for c in asked)]
    return float(labels[alike if asked and alike else slice(None), concept].mean())


def allowed(
    strategy: str,
    space: QuestionSpace,
    labels: np.ndarray,
    history: list[int],
    received: list[float],
) -> set[int]:
    """The questions Algorithm 1 chooses from, after ``history`` was answered with ``received``."""
    left = [q for q in range(space.total) if q not in history]
    concept_of = {q: int(space.parts(q)[2]) for q in range(space.total)}
    truth_of = {q: int(space.truth([q])[0]) for q in range(space.total)}
    if strategy.startswith("uncertainty"):
        places: dict[int, list[float]] = {c: [] for c in range(len(space.concepts))}
        for q, f in zip(history, received, strict=True):
            places[concept_of[q]].append((f + truth_of[q]) / 2)
        areas = {c: half_areas(places[c]) for c in places}
        height = {q: areas[concept_of[q]][truth_of[q]] for q in left}
        left = [q for q in left if height[q] > max(height.values()) - 1e-7]
    if strategy.endswith("unpredictability"):
        distance = {q: abs(share(space, labels, q, history) - 0.5) for q in left}
        close = [q for q in left if distance[q] < 0.15]
        left = close or [q for q in left if distance[q] < min(distance.values()) + 1e-7]
    return set(left)


@pytest.mark.parametrize(
    ("strategy", "options"),
    [
        ("random", {}),
        ("unpredictability", {}),
        ("uncertainty", {}),
        (PAPER, {}),
        (PAPER, {"half_width": 0.05, "targets": ["overall"], "budget": 25}),  # with exploration
    ],
)
def test_every_proposal_of_an_audit_is_that_of_algorithm_1(
    strategy: str, options: dict[str, Any]
) -> None:
    dataset = tiny_dataset(8, 3)
    labels = dataset.truth(np.arange(8)[:, None], np.arange(3)[None, :])
    space = QuestionSpace(dataset, ["identity", "rotation"], severities=[1])
    journal, model = MemoryJournal(), ScriptedModel(answers="one")
    Audit(space, model, strategy=strategy, journal=journal, seed=2, **options).run()
    answers = {c.call: a.answer for c in journal.calls() for a in c.answers if a.answer is not None}
    history: list[int] = []
    received: list[float] = []
    for row in journal.draws():
        proposal = Proposal.unpack(row.proposal)
        calls, least = proposal.calls.tolist(), proposal.probabilities.min()
        high = proposal.calls[proposal.probabilities > least + 1e-9].tolist()
        assert set(high or calls) == allowed(strategy, space, labels, history, received)
        assert least >= (0.2 if options else 1) / len(calls) * (1 - 1e-9)
        assert row.probability == pytest.approx(proposal.probabilities[calls.index(row.call)])
        history.append(row.question)
        received.append(answers[row.call])
    assert len(history) == (25 if options else space.size)
    if options:
        verify(journal)
