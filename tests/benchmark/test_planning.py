"""Plans: bounds on calls, worked out without asking anything."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptive_vtt import Audit, Certify, QuestionSpace
from adaptive_vtt.audit.forecast import calls_of, forecasts
from adaptive_vtt.certify import Certifier
from adaptive_vtt.cli import main
from adaptive_vtt.cli.init import write_start
from adaptive_vtt.cli.plan import paid_for, planned
from adaptive_vtt.config import read_spec
from adaptive_vtt.config.building import build_space
from adaptive_vtt.oracles import Outcome
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from adaptive_vtt.types import CallMode, Question
from adaptive_vtt.utils.random_streams import generator


def certifier(half_width: float, targets: list[str], answers: CallMode = "all") -> Certifier:
    space = QuestionSpace(tiny_dataset(60, 2), ["identity", "rotation", "gaussian_noise"])
    result = Certify(half_width=half_width, targets=targets).certifier(space, answers)
    assert result is not None
    return result


def test_bets_that_are_never_wrong_take_what_is_said_at_least() -> None:
    """Pseudo-outcomes that never vary, bet on at the cap: the formula of the module."""
    (row,), _ = forecasts(certifier(0.2, ["overall"]), 0.2, False, (0.3,))
    growth = np.log(1 + 0.98 * 0.4 / 0.6)
    assert row.at_least == np.ceil(np.log(2 / 0.05) / growth)


class Never:
    """Nothing is ever wrong, which is as easy to foresee as can be."""

    needs_source = False

    def judge(self, *_: Any) -> Outcome:
        return Outcome(0.0)


@pytest.mark.parametrize("width", [0.1, 0.2])
def test_no_audit_takes_fewer_calls_than_are_said_at_least(width: float) -> None:
    space = QuestionSpace(tiny_dataset(60, 2), ["identity", "rotation"], oracle=Never())
    options: dict[str, Any] = {"half_width": width, "targets": ["overall", "relations"]}
    result = Certify(**options).certifier(space, "all")
    assert result is not None
    _, together = forecasts(result, 0.2, False, (0.1,))
    calls = Audit(space, ScriptedModel(), seed=0, surrogate=False, **options).run().calls
    assert together.at_least <= calls <= 3 * together.at_least < together.at_most


@pytest.mark.parametrize("answers", ["all", "one"])
def test_the_calls_of_a_space_are_counted_by_what_they_bring(answers: CallMode) -> None:
    result = certifier(0.2, ["overall", "relations", "concepts"], answers)
    calls = calls_of(result.space, result.targets, answers)
    assert calls.total == (result.space.size if answers == "one" else result.space.images)
    assert np.array_equal(calls.questions @ calls.number, result.sizes)
    touched = (calls.questions > 0) @ calls.number
    assert np.array_equal(touched, result.calls)
    assert np.array_equal(calls.questions.max(axis=1), result.largest)


@given(
    half_width=st.floats(0.02, 0.4),
    exploration=st.floats(0.05, 1),
    targets=st.sampled_from([["overall"], ["relations"], ["overall", "concepts", "relations"]]),
    answers=st.sampled_from(["all", "one"]),
)
@settings(max_examples=10, deadline=None)
def test_least_likely_and_most_come_in_this_order(
    half_width: float, exploration: float, targets: list[str], answers: CallMode
) -> None:
    result = certifier(half_width, targets, answers)
    rows, together = forecasts(result, exploration, False, (0.1, 0.3))
    for row in [*rows, together]:
        assert 1 <= row.at_least <= row.likely[0.1] <= row.likely[0.3] <= row.at_most
        assert row.at_most <= calls_of(result.space, result.targets, answers).total
    assert together.at_most == max(row.at_most for row in rows)


class Coins:
    """Fails with probability 0.3 whatever was answered, which nobody can foresee."""

    needs_source = False

    def judge(self, question: Question, *_: Any) -> Outcome:
        return Outcome(float(generator(0, "coins", question.number).random() < 0.3))


@pytest.mark.slow
def test_what_is_likely_is_what_an_audit_of_coins_takes_within_a_third() -> None:
    names = ["identity", "rotation", "gaussian_noise"]
    space = QuestionSpace(tiny_dataset(400, 2), names, oracle=Coins())
    options: dict[str, Any] = {"half_width": 0.12, "targets": ["overall", "relations"]}
    result = Certify(**options).certifier(space, "all")
    assert result is not None
    _, together = forecasts(result, 0.2, False, (0.3,))
    calls = Audit(space, ScriptedModel(), seed=0, surrogate=False, **options).run().calls
    assert together.likely[0.3] == pytest.approx(calls, rel=1 / 3)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--budget", "130"], "the budget of 130 calls: enough for +-15 points at a rate of 10 %"),
        (["--explore"], "explores, and certifies nothing: the budget of 200 calls ends it"),
    ],
)
def test_a_dry_run_says_which_limit_ends_it(options: Any, told: str, tmp_path: Path, capsys: Any):
    write_start(tmp_path)
    with pytest.raises(SystemExit):
        main(["audit", str(tmp_path / "SPEC.toml"), "--dry-run", *options])
    assert told in " ".join(capsys.readouterr().out.split())


def test_rounding_takes_no_call_from_a_cap() -> None:
    assert 0.3 / 0.1 < 3
    assert paid_for(0.3, 0.1) == 3


def test_a_dry_run_counts_sources_repeat_probes_and_money(tmp_path: Path) -> None:
    write_start(tmp_path)
    text = (tmp_path / "SPEC.toml").read_text()
    text = text.replace('kind = "correctness"', 'kind = "consistency"')
    (tmp_path / "SPEC.toml").write_text(text)
    spec = read_spec(tmp_path / "SPEC.toml")
    space = build_space(spec, tmp_path)
    bare = planned(spec, tmp_path, space, ScriptedModel())
    assert (bare.worst, bare.usual) == (1.0, 1.0)
    assert bare.total == space.images + 60
    spec.audit.repeat_probes = 7
    more = planned(spec, tmp_path, space, ScriptedModel())
    assert bare.together is not None
    assert more.together is not None
    assert more.together.at_least == bare.together.at_least + 7
    assert more.together.likely[0.1] == bare.together.likely[0.1] + 7
