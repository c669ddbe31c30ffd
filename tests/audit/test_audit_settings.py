"""The settings of an audit: what each of them changes, and which are refused."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.engine.belief import Belief
from adaptive_vtt.engine.selector import Proposal
from adaptive_vtt.errors import AvttError, InputError
from adaptive_vtt.experiments.engine.tiled import TiledDataset
from adaptive_vtt.models import PythonModel
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from adaptive_vtt.types import Candidates
from tests.helpers.audits import Content, content, finished

# -- determinism ---------------------------------------------------------------------------


@pytest.mark.parametrize("candidates", [4096, 10])
def test_same_seed_same_journal_other_seed_other_draws(
    space: QuestionSpace, candidates: int, tmp_path: Path
) -> None:
    def journal(seed: int, where: Path | None = None) -> Content:
        options: Any = {"budget": 12, "batch": 2, "candidates": candidates, "journal": where}
        return content(finished(space, seed=seed, **options).journal)

    first = journal(1)
    assert first == journal(1, tmp_path / "journal.db")
    assert [d["question"] for d in first[0]] != [d["question"] for d in journal(2)[0]]


def test_batch_size_does_not_change_what_random_asks(space: QuestionSpace) -> None:
    asked = [
        finished(space, strategy="random", batch=batch, budget=20).journal.draws()
        for batch in (1, 5, 100)
    ]
    assert len({tuple(row.question for row in draws) for draws in asked}) == 1


def test_every_proposal_sums_to_one_and_holds_the_draw(space: QuestionSpace) -> None:
    journal = finished(space, exploration=0.1, candidates=30, budget=15).journal
    for row in journal.draws():
        proposal = Proposal.unpack(row.proposal)
        assert proposal.probabilities.sum() == pytest.approx(1, abs=1e-12)
        assert proposal.probabilities.min() >= 0.1 / len(proposal.calls) * (1 - 1e-9)
        drawn = proposal.probabilities[proposal.calls == row.call]
        assert drawn.tolist() == [row.probability]


def test_beliefs_are_frozen_within_a_batch(space: QuestionSpace) -> None:
    audit = finished(space, budget=8, batch=3)
    assert [row.learned for row in audit.journal.draws()] == [0, 0, 0, 3, 3, 3, 6, 6]


def test_both_readings_of_the_paper_can_be_chosen_and_change_the_audit() -> None:
    space = QuestionSpace(tiny_dataset(30, images=False), ["identity"])
    levels, draws = [], []
    for form in ("std", "variance"):
        audit = Audit(space, ScriptedModel(answers="one"), form=form, budget=12, seed=2)
        audit.run()
        levels.append(audit.state().mean)
    for history in ("truth", "answer"):
        model, strategy = ScriptedModel(answers="one"), "unpredictability"
        audit = Audit(space, model, history=history, strategy=strategy, budget=40, seed=2)
        audit.run()
        draws.append([row.question for row in audit.journal.draws()])
    assert levels[1] < levels[0]  # a variance below 1 is below its root
    assert draws[0] != draws[1]
    with pytest.raises(InputError, match="unknown form 'area'"):
        Audit(space, ScriptedModel(answers="one"), form="area", budget=12)


# -- what is refused -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"exploration": -0.1}, r"exploration: expected .* least 0 and at most 1, got -0\.1"),
        ({"exploration": 1.5}, r"exploration: expected .* least 0 and at most 1, got 1\.5"),
        ({"exploration": float("nan")}, r"exploration: expected .* least 0 and at most 1, got nan"),
        ({"candidates": 0}, r"candidates: expected a whole number of at least 1, got 0"),
        ({"batch": 0}, r"batch: expected a whole number of at least 1, got 0"),
        ({"budget": 0}, r"budget: expected a whole number of at least 1, got 0"),
        ({"strategy": "randon"}, r"unknown strategy 'randon'.*did you mean 'random'"),
        ({"device": "abacus"}, r"device 'abacus' cannot be used: expected auto, cpu"),
        ({"device": "meta"}, r"device 'meta' cannot be used: .*; 'auto' is CUDA where there is"),
    ],
)
def test_settings_out_of_range_are_refused(
    space: QuestionSpace, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        Audit(space, ScriptedModel(), **options)


def test_model_that_needs_images_is_refused_where_there_are_none() -> None:
    space = QuestionSpace(TiledDataset([[0, 1]], 10))
    with pytest.raises(InputError, match=r"'len' looks at images, but dataset 'tiled' has none"):
        Audit(space, PythonModel(len))


def test_strategy_without_weights_is_refused_and_nothing_is_journaled(space: QuestionSpace) -> None:
    class Nothing:
        def weights(self, candidates: Candidates, belief: Belief) -> Tensor:
            return torch.zeros(len(candidates))

    audit = Audit(space, ScriptedModel(), strategy=Nothing())
    with pytest.raises(AvttError, match=r"strategy: expected a weight above 0 for some of 36"):
        audit.run()
    assert audit.journal.draws() == []
