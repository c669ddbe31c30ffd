"""On a GPU an audit is the same: skipped where there is none.

Sums are taken in another order there, in 64 bits where a factor is made and in 32 where losses are
predicted, so figures agree to rounding and draws are the same.
"""

from typing import Any

import numpy as np
import pytest
import torch

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.engine.belief import Belief, Observation
from adaptive_vtt.engine.candidates import CandidatePool
from adaptive_vtt.engine.options import Certify
from adaptive_vtt.engine.predictors import fresh_belief
from adaptive_vtt.engine.proxies import Proxies
from adaptive_vtt.surrogates import AnswerGP, AnswerPoints
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from adaptive_vtt.types import CallMode

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
BOTH = ("cpu", "cuda")


def space() -> QuestionSpace:
    return QuestionSpace(tiny_dataset(40, 3), ["identity", "gaussian_noise", "rotation"])


@pytest.mark.parametrize("form", ["std", "variance"])
def test_the_answer_gp_comes_to_the_same(form: Any) -> None:
    rng, said = np.random.default_rng(0), []
    concept, coordinate = rng.integers(0, 5, 300), rng.random(300)
    for device in BOTH:
        gp = AnswerGP(5, form=form, device=device)
        gp.observe(AnswerPoints(torch.from_numpy(concept), torch.from_numpy(coordinate)))
        parts = (gp.uncertainty(), gp.mean(), gp.variance(), gp.reductions())
        assert {part.device.type for part in parts} == {device}
        said.append([part.cpu() for part in parts])
    for one, other in zip(*said, strict=True):
        torch.testing.assert_close(one, other, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("answers", ["all", "one"])
def test_predicted_losses_and_needs_come_to_the_same(answers: CallMode) -> None:
    certify = Certify(half_width=0.1, targets=("overall", "concepts"))
    found = []
    for device in BOTH:
        belief = fresh_belief(
            certify, space(), answers, seed=0, device=device, proxies=Proxies(space(), {})
        )
        _learn(belief, 60)
        candidates = CandidatePool(space(), seed=0, limit=400, answers=answers).candidates(0)
        belief.look_at(candidates)
        assert belief.predictions is not None
        assert belief.predictions.device.type == "cpu"  # where candidates are
        found.append((belief.predictions, torch.from_numpy(belief.needs_by_target(candidates))))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, atol=1e-3, rtol=1e-2)


@pytest.mark.parametrize(
    "options",
    [{}, {"half_width": 0.12, "targets": ["overall", "relations"]}],
    ids=["explores", "certifies"],
)
def test_a_whole_audit_comes_to_the_same(options: dict[str, Any]) -> None:
    audits = []
    for device in BOTH:
        audit = Audit(space(), ScriptedModel(), budget=60, seed=3, device=device, **options)
        audit.run()
        audits.append(audit)
    one, other = audits
    drawn = [[row.call for row in audit.journal.draws()] for audit in audits]
    assert drawn[0] == drawn[1]
    one_table, other_table = one.result().targets, other.result().targets
    for column in ("estimate", "lower", "upper"):
        np.testing.assert_allclose(one_table[column], other_table[column], atol=1e-3)


def test_auto_is_the_gpu() -> None:
    audit = Audit(space(), ScriptedModel(), budget=2)
    assert audit.belief.answers.device.type == "cuda"


def _learn(belief: Belief, count: int) -> None:
    rng = np.random.default_rng(1)
    every = belief.space.nth(np.arange(belief.space.size))
    asked = rng.choice(every, count, replace=False)
    truths = belief.space.truth(asked)
    history = []
    for question, truth in zip(asked.tolist(), truths.tolist(), strict=True):
        said = float(rng.random())
        history.append(Observation(question, truth, abs(said - truth), said, (said + truth) / 2))
    belief.learn(history)
