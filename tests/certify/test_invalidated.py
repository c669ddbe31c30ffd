"""When draws disagree with an interval: models that drift are noticed, steady ones do not stall."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

import adaptive_vtt as avtt
from adaptive_vtt import Audit
from adaptive_vtt.certify import Certifier, named_targets
from adaptive_vtt.certify.certifier import LACKING
from adaptive_vtt.certify.sequences import Sequences
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.types import Answer
from tests.helpers.twins import slowly

Wrong = Callable[[int, int, np.random.Generator], float]
"""The chance that the answer to call t about concept c is wrong."""


class Model:
    """Wrong by a chance that depends on the call's number and the concept."""

    answers, needs_image, name = "one", False, "drifting"

    def __init__(self, wrong: Wrong, seed: int) -> None:
        self.wrong, self.calls, self.rng = wrong, 0, np.random.default_rng(seed)

    def ask(self, prompts):
        said = []
        for prompt in prompts:
            chance = self.wrong(self.calls, int(prompt.concepts[0] == "b"), self.rng)
            said.append(Answer((float(self.rng.random() >= chance),)))
            self.calls += 1
        return said


def audit_of(wrong: Wrong, seed: int, **options: object) -> Audit:
    names = [f"s{number:04d}" for number in range(300)]
    labels = pd.DataFrame({"a": 1, "b": 1}, index=names)
    space = avtt.QuestionSpace(avtt.datasets.from_table(None, labels))
    given = {"half_width": 0.04, "targets": ["overall", "concepts"]}
    given |= {"seed": seed, "surrogate": False}
    return Audit(space, Model(wrong, seed), **(given | options))


DRIFTS: dict[str, Wrong] = {
    "early": lambda t, c, _: float(t >= 60),
    "late": lambda t, c, _: 0.1 if t < 150 else 0.9,
    "in one concept": lambda t, c, _: 0.1 if c or t < 120 else 0.95,
}


@pytest.mark.parametrize("kind", ["late", *slowly("early", "in one concept")])
def test_a_model_that_turns_round_is_not_certified(kind: str) -> None:
    audit = audit_of(DRIFTS[kind], 0, half_width=0.02, budget=450)
    result = audit.run()
    found = {i.name: i for i in verify(audit.journal)}  # which has its own copy of the rule
    for row in result.targets.itertuples():
        assert (row.emptied, row.invalidated) == (
            found[row.target].emptied,
            found[row.target].invalidated,
        )
    assert result.targets["invalidated"].any()
    assert not result.targets["certified"].all()


def test_a_mean_outside_is_no_doubt_while_the_bets_agree_among_themselves() -> None:
    """Draws of which much was foreseen weigh little in the bets and much in the mean."""
    one, none = np.ones(1), np.zeros(1)
    sequences = Sequences(0.1 * one, 0.05 * one)
    sequences._bet_lower, sequences._bet_upper = 0.4 * one, 0.5 * one
    sequences._sums, sequences._counted = np.array([[1.0], [0.39]]), one
    sequences._precision, sequences._strayed = 1e3 * one, 8 * one  # standard error .03
    sequences.centre = 0.45 * one
    assert not sequences.disagreeing(none, one)[0]
    sequences.centre = 0.38 * one  # outside, too
    assert sequences.disagreeing(none, one)[0]
    sequences.centre, sequences._sums[1] = 0.45 * one, 0.33  # outside by more than an error
    assert sequences.disagreeing(none, one)[0]
    sequences._sums[1] = 0.45
    assert not sequences.disagreeing(none, one)[0]


def test_what_is_narrow_but_doubtful_gets_its_share_of_the_draws() -> None:
    """It had none, so that only luck ended the audit."""
    names = [f"s{number}" for number in range(40)]
    labels = pd.DataFrame({"a": 1, "b": 1}, index=names)
    space = avtt.QuestionSpace(avtt.datasets.from_table(None, labels))
    certifier = Certifier(space, named_targets(space, ["concepts"]), answers="one", half_width=0.6)
    first = np.arange(len(certifier.sizes)) == 0
    certifier.invalidated = first
    assert certifier.settled.tolist() == (~first).tolist()
    assert certifier.lacking[first] == pytest.approx(LACKING)
    inside = certifier.members(np.arange(space.total))
    needs = certifier.needs(inside, np.arange(space.total), space.total, np.full(80, 0.2))
    assert needs[inside[0]].min() > 0
    assert needs[~inside[0]].max() == 0
