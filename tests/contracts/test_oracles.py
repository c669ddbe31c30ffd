"""What every oracle promises; add yours to `ORACLES`."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptive_vtt.models import Unanswered
from adaptive_vtt.oracles import Correctness, Oracle
from adaptive_vtt.space import Question

ORACLES: dict[str, Oracle] = {
    "correctness": Correctness(),
    "correctness, strict": Correctness(threshold=0.9),
    "correctness, lenient": Correctness(unanswered_loss=0.25),
}
QUESTION = Question(0, "s", "identity", 0, "c", 1)
every_oracle = pytest.mark.parametrize("oracle", ORACLES.values(), ids=ORACLES)
truths = st.sampled_from([0, 1])


@every_oracle
@given(answer=st.floats(0, 1), expected=truths)
def test_outcomes_lie_in_their_ranges(oracle: Oracle, answer: float, expected: int) -> None:
    outcome = oracle.judge(QUESTION, answer, expected, answer)
    assert 0 <= outcome.loss <= 1
    assert outcome.coordinate is not None
    assert 0 <= outcome.coordinate <= 1


@every_oracle
@given(expected=truths, reason=st.sampled_from(["", "refused", "timeout"]))
def test_unanswered_has_a_loss_and_no_coordinate(
    oracle: Oracle, expected: int, reason: str
) -> None:
    outcome = oracle.judge(QUESTION, Unanswered(reason), expected, 0.5)
    assert 0 < outcome.loss <= 1
    assert outcome.coordinate is None


@every_oracle
@given(answer=st.floats(0, 1), expected=truths)
def test_judging_again_comes_to_the_same(oracle: Oracle, answer: float, expected: int) -> None:
    first = oracle.judge(QUESTION, answer, expected, answer)
    assert oracle.judge(QUESTION, answer, expected, answer) == first


@pytest.mark.parametrize("expected", [0, 1])
def test_a_surer_right_answer_is_never_worse(expected: int) -> None:
    answers = np.linspace(0, 1, 21) if expected else np.linspace(1, 0, 21)
    losses = [Correctness().judge(QUESTION, f, expected).loss for f in answers.tolist()]
    assert losses == sorted(losses, reverse=True)
    assert (losses[0], losses[-1]) == (1, 0)


# The paper's quarters of a = (f + truth) / 2: TN [0, .25), FP [.25, .5], FN [.5, .75), TP [.75, 1]
@pytest.mark.parametrize(
    ("answer", "expected", "loss", "coordinate"),
    [
        (0.0, 0, 0, 0.0),
        (0.49, 0, 0, 0.245),
        (0.5, 0, 1, 0.25),
        (1.0, 0, 1, 0.5),
        (0.0, 1, 1, 0.5),
        (0.49, 1, 1, 0.745),
        (0.5, 1, 0, 0.75),
        (1.0, 1, 0, 1.0),
    ],
)
def test_correctness_puts_each_outcome_into_its_quarter(
    answer: float, expected: int, loss: float, coordinate: float
) -> None:
    outcome = Correctness().judge(QUESTION, answer, expected)
    assert outcome.loss == loss
    assert outcome.coordinate == pytest.approx(coordinate)


def test_correctness_counts_an_unanswered_question_as_wrong() -> None:
    assert Correctness().judge(QUESTION, Unanswered("refused"), 1).loss == 1
    assert Correctness(unanswered_loss=0.25).judge(QUESTION, Unanswered("refused"), 1).loss == 0.25
