"""Plans: bounds and a rehearsal, which ask nothing and spend nothing."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptive_vtt import Audit, Certify, QuestionSpace
from adaptive_vtt.benchmark.rehearsal import rehearse
from adaptive_vtt.certify import Certifier
from adaptive_vtt.certify.forecast import calls_of, forecasts
from adaptive_vtt.cli import main
from adaptive_vtt.cli.dry_run import paid_for, planned
from adaptive_vtt.cli.init import write_start
from adaptive_vtt.config import read_spec
from adaptive_vtt.config.building import build_space
from adaptive_vtt.errors import InputError
from adaptive_vtt.models import PythonModel
from adaptive_vtt.oracles import Consistency, Correctness, Outcome
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from adaptive_vtt.types import CallMode
from tests.helpers.command_line import run
from tests.helpers.twins import slowly


def test_a_rehearsal_asks_nothing_and_says_what_it_would_cost() -> None:
    space, model = QuestionSpace(tiny_dataset(40, 2), ["identity", "rotation"]), ScriptedModel()
    oracle = space.oracle
    told: list[int] = []
    options = {"half_width": 0.2, "targets": ["overall"], "budget": 100}
    rare, half = rehearse(space, model, options, (0.05, 0.5), told.append)
    assert model.asked == []
    assert space.oracle is oracle
    assert rare.certified
    assert half.certified
    assert rare.calls < half.calls <= 100  # rare failures are settled sooner
    assert (rare.cost, half.cost) == (rare.calls, half.calls)  # a scripted call costs 1
    assert max(told) == half.calls


@pytest.mark.slow
def test_a_rehearsal_without_a_price_counts_source_calls_and_looks_beyond_the_cap() -> None:
    space = QuestionSpace(tiny_dataset(40, 2), ["rotation"], oracle=Consistency())
    options = {"half_width": 0.05, "targets": ["overall"], "max_cost": 30, "budget": 71}
    (found,) = rehearse(space, ScriptedModel(), options, (0.3,))
    assert found.calls in (70, 71)
    assert not found.certified
    assert found.likely == found.cost == found.calls


def test_a_rehearsal_by_a_price_ends_where_the_cap_does() -> None:
    space = QuestionSpace(tiny_dataset(40, 2), ["identity", "rotation"])
    options = {"half_width": 0.05, "targets": ["overall"], "max_cost": 3.0}
    (found,) = rehearse(space, ScriptedModel(), options, (0.3,), price=0.1)
    assert (found.calls, found.capped, found.certified) == (30, True, False)
    (enough,) = rehearse(space, ScriptedModel(), {**options, "half_width": 0.4}, (0.3,), price=0.1)
    assert (enough.capped, enough.certified) == (False, True)


def test_a_cap_that_cannot_be_kept_is_refused_before_the_audit_is() -> None:
    space = QuestionSpace(tiny_dataset(), ["identity"])
    with pytest.raises(InputError, match="max_cost: expected the prices of model 'f'"):
        rehearse(space, PythonModel(lambda images: [], name="f"), {"budget": 5, "max_cost": 1})


def test_without_prices_there_is_no_cost() -> None:
    space = QuestionSpace(tiny_dataset(), ["identity"], oracle=Correctness())
    (found,) = rehearse(space, PythonModel(lambda images: []), {"budget": 5}, (0.3,))
    assert (found.calls, found.cost, found.certified) == (5, None, False)


def test_a_rehearsal_that_would_ask_everything_is_refused() -> None:
    with pytest.raises(InputError, match="dry run: expected a half_width, an at_most or a budget"):
        rehearse(QuestionSpace(tiny_dataset()), ScriptedModel(), {})


# -- bounds without playing anything ---------------------------------------------------------


def certifier(half_width: float, targets: list[str], answers: CallMode = "all") -> Certifier:
    space = QuestionSpace(tiny_dataset(60, 2), ["identity", "rotation", "gaussian_noise"])
    found = Certify(half_width=half_width, targets=targets).certifier(space, answers)
    assert found is not None
    return found


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
    found = Certify(**options).certifier(space, "all")
    assert found is not None
    _, together = forecasts(found, 0.2, False, (0.1,))
    calls = Audit(space, ScriptedModel(), seed=0, surrogate=False, **options).run().calls
    assert together.at_least <= calls <= 3 * together.at_least < together.at_most


@pytest.mark.parametrize("answers", ["all", "one"])
def test_the_calls_of_a_space_are_counted_by_what_they_bring(answers: CallMode) -> None:
    found = certifier(0.2, ["overall", "relations", "concepts"], answers)
    calls = calls_of(found.space, found.targets, answers)
    assert calls.total == (found.space.size if answers == "one" else found.space.images)
    assert np.array_equal(calls.questions @ calls.number, found.sizes)
    touched = (calls.questions > 0) @ calls.number
    assert np.array_equal(touched, found.calls)
    assert np.array_equal(calls.questions.max(axis=1), found.largest)


@given(
    half_width=st.floats(0.02, 0.4),
    exploration=st.floats(0.05, 1),
    targets=st.sampled_from([["overall"], ["relations"], ["overall", "concepts", "relations"]]),
    answers=st.sampled_from(["all", "one"]),
)
@settings(max_examples=30, deadline=None)
def test_least_likely_and_most_come_in_this_order(
    half_width: float, exploration: float, targets: list[str], answers: CallMode
) -> None:
    found = certifier(half_width, targets, answers)
    rows, together = forecasts(found, exploration, False, (0.1, 0.3))
    for row in [*rows, together]:
        assert 1 <= row.at_least <= row.likely[0.1] <= row.likely[0.3] <= row.at_most
        assert row.at_most <= calls_of(found.space, found.targets, answers).total
    assert together.at_most == max(row.at_most for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize("loss", [0.1, *slowly(0.3)])
def test_what_is_likely_is_what_a_rehearsal_takes_within_a_third(loss: float) -> None:
    space = QuestionSpace(tiny_dataset(400, 2), ["identity", "rotation", "gaussian_noise"])
    options: dict[str, Any] = {"half_width": 0.12, "targets": ["overall", "relations"]}
    found = Certify(**options).certifier(space, "all")
    assert found is not None
    _, together = forecasts(found, 0.2, False, (loss,))
    (played,) = rehearse(space, ScriptedModel(), {**options, "surrogate": False, "seed": 0}, [loss])
    assert together.likely[loss] == pytest.approx(played.calls, rel=1 / 3)


@pytest.mark.slow
def test_a_dry_run_answers_without_pytorch_and_asks_nothing(tmp_path: Path) -> None:
    write_start(tmp_path)
    code = (
        "import sys\nfrom adaptive_vtt.cli import main\n"
        "try:\n    main(['audit', sys.argv[1], '--dry-run', '--json'])\n"
        "except SystemExit as end:\n    assert not end.code\n"
        "assert 'torch' not in sys.modules\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "SPEC.toml")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    plan = json.loads(done.stdout)
    assert plan["together"]["at_least"] < plan["together"]["likely"]["0.1"] < plan["total"] == 960
    assert len(plan["targets"]) == 5


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--budget", "20"], "the budget of 20 calls ends it before anything so narrow can be"),
        (
            ["--budget", "80"],
            "the budget of 80 calls is likely to end it before all is certified: 'avtt plan' says",
        ),
        (["--budget", "130"], "the budget of 130 calls is enough where few fail, not where 30%"),
        (["--budget", "500"], "the budget of 500 calls is likely to be enough"),
        (["--explore"], "explores, and certifies nothing: the budget of 200 calls ends it"),
    ],
)
def test_a_dry_run_says_which_limit_will_end_the_audit(
    options: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_start(tmp_path)
    with pytest.raises(SystemExit):
        main(["audit", str(tmp_path / "SPEC.toml"), "--dry-run", *options])
    assert told in " ".join(capsys.readouterr().out.split())


def test_rounding_takes_no_call_from_a_cap() -> None:
    assert 0.3 / 0.1 < 3
    assert paid_for(0.3, 0.1) == 3


PRICED = """
[dataset]
kind = "phantom"
count = 30
size = 64
[model]
kind = "openai"
url = "http://127.0.0.1:9/v1"
model = "m"
max_input_tokens = 600
max_tokens = 64
price_input = 2.5
price_output = 10.0
[certify]
half_width = 0.1
targets = ["overall"]
[audit]
max_cost = 0.05
"""


def test_dry_run_and_rehearsal_tell_the_same_cap_and_the_same_calls(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = tmp_path / "SPEC.toml"
    spec.write_text(PRICED)
    assert run("audit", str(spec), "--dry-run") == 0
    plan = " ".join(capsys.readouterr().out.split())
    told = re.search(r"the cap of \$0.05 on cost \(about (\d+) calls, .* is likely to end it", plan)
    assert told is not None
    assert run("audit", str(spec), "--rehearse") == 0
    said = capsys.readouterr().out
    expected = (
        rf"if 30% of questions fail: {told[1]} calls \(about \S+, at most the cap of "
        r"\$0.05\), not all certified: the cap of \$0.05 on cost ends it; 'avtt resume' can raise"
    )
    assert re.search(expected, said)


def test_a_rehearsal_says_that_it_cannot_count_a_cap_on_unknown_prices(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec, model = tmp_path / "SPEC.toml", '[model]\nkind = "model.py:m"\n[certify]'
    head, _, rest = PRICED.partition("[model]")
    spec.write_text(head + model + rest.partition("[certify]")[2] + "budget = 5\n")
    assert run("audit", str(spec), "--rehearse") == 0
    expected = "the cap of $0.05 on cost was not counted: no price is known before the model is"
    assert expected in capsys.readouterr().out


def test_a_dry_run_counts_sources_repeat_probes_and_money(tmp_path: Path) -> None:
    write_start(tmp_path)
    text = (tmp_path / "SPEC.toml").read_text()
    text += '\n[oracle]\nkind = "consistency"\n'
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
