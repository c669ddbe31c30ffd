"""The rehearsal: an estimate that asks nothing and spends nothing."""

import pytest

from adaptive_vtt import QuestionSpace
from adaptive_vtt.benchmark.rehearsal import rehearse
from adaptive_vtt.errors import InputError
from adaptive_vtt.models import PythonModel
from adaptive_vtt.oracles import Consistency, Correctness
from adaptive_vtt.testing import ScriptedModel, tiny_dataset


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


def test_a_rehearsal_counts_source_calls_and_looks_beyond_the_cap() -> None:
    space = QuestionSpace(tiny_dataset(40, 2), ["rotation"], oracle=Consistency())
    options = {"half_width": 0.05, "targets": ["overall"], "max_cost": 30, "budget": 71}
    (found,) = rehearse(space, ScriptedModel(), options, (0.3,))
    assert found.calls in (70, 71)
    assert not found.certified
    assert found.likely == found.cost == found.calls


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
