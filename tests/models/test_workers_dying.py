"""Workers without processes, of which a test says who dies, and when."""

import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptive_vtt.certify.verify import verify
from adaptive_vtt.errors import ModelError, OrderError
from adaptive_vtt.models import Answer, Prompt, Unanswered
from adaptive_vtt.models.base import PriceGuess
from adaptive_vtt.models.workers.pool import MAX_DEATHS, MAX_STARTS
from adaptive_vtt.testing import ScriptedModel
from tests.helpers.worked import DEADLY, Mortal, audit, mortal, poisoned, prompts, space


@pytest.mark.parametrize("batch", [1, 4])
def test_a_question_that_workers_die_of_is_unanswered_and_no_other(batch: int) -> None:
    places = [Mortal(ScriptedModel, poisoned) for _ in range(2)]
    model = mortal(places, worker_batch=batch)
    made = audit(model, budget=80)
    table = [(a.question, a.unanswered) for c in made.journal.calls() for a in c.answers]
    dead = {space().question(q).sample_id for q, why in table if why == "5 workers died of it"}
    assert dead == {DEADLY}
    assert {why for q, why in table if space().question(q).sample_id != DEADLY} == {None}
    deadly = [c for c in made.journal.calls() if c.answers[0].unanswered]
    assert model._pool.deaths >= MAX_DEATHS * len(deadly) > 0
    assert model._pool.deaths <= MAX_DEATHS * len(deadly) + batch
    assert made.interrupted == model._pool.lost - len(deadly)
    model.close()


def test_a_question_that_a_worker_died_of_is_asked_alone() -> None:
    place = Mortal(ScriptedModel, poisoned)
    model = mortal([place], worker_batch=4)
    model.trusted = True
    answers = model.ask(prompts(8))
    assert answers[3] == Unanswered("5 workers died of it", cost=5.0)  # each may have been paid
    assert all(isinstance(a, Answer) for k, a in enumerate(answers) if k != 3)
    assert [len(asked) for asked in place.asked if DEADLY in asked] in ([4, 1, 1, 1, 1], [1] * 5)


@pytest.fixture(scope="module")
def known() -> dict[int, Any]:
    """All answers of an audit in which nobody died."""
    with mortal([Mortal(ScriptedModel, lambda p: False)], in_flight=4) as model:
        whole = audit(model, budget=60, seed=0)
    return {c.call: c.answers for c in whole.journal.calls()}


@pytest.mark.slow
@settings(max_examples=6, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), cap=st.sampled_from([12.0, 20.0, 45.0]))
def test_lost_calls_are_asked_again_and_the_cap_holds(
    known: dict[int, Any], seed: int, cap: float
) -> None:
    """A worker dies of every seventh call; each answer costs 1, and so may what was lost."""
    rng, lock = np.random.default_rng(seed), threading.Lock()
    deaths = 0

    def unlucky(prompts: Sequence[Prompt]) -> bool:
        nonlocal deaths
        with lock:
            died = bool(rng.random() < 0.15)
            deaths += died * len(prompts)
        return died

    model = mortal([Mortal(ScriptedModel, unlucky) for _ in range(3)], in_flight=4)
    model.trusted = True
    made = audit(model, max_cost=cap, budget=None, seed=0)
    verify(made.journal)
    assert made.cost + made.interrupted <= cap + 1e-9
    assert made.interrupted == deaths
    assert all(known[c.call] == c.answers for c in made.journal.calls())
    model.close()


def test_a_model_that_no_worker_survives_ends_the_audit() -> None:
    model = mortal([Mortal(ScriptedModel, lambda prompts: True) for _ in range(2)])
    with pytest.raises(ModelError, match=r"5 died before any gave an answer; .* SIGKILL \(asked"):
        audit(model)
    assert model._pool.deaths <= MAX_DEATHS + 1
    model.close()


def test_workers_that_die_while_the_model_is_made_are_given_up() -> None:
    place = Mortal(ScriptedModel, poisoned)
    place.stillborn = MAX_STARTS - 1
    mortal([place]).close()  # it came up in the end
    place.stillborn = MAX_STARTS
    other = Mortal(ScriptedModel, poisoned)
    model = mortal([place, other])
    assert all(isinstance(answer, Answer) for answer in model.ask(prompts(3)))
    while model.doing:
        time.sleep(0.001)
    assert model.statistics() == {
        "workers": 2,
        "workers_died": 0,
        "calls_lost": 0,
        "workers_given_up": 1,
    }
    model.close()
    place.stillborn = MAX_STARTS
    with pytest.raises(ModelError, match=r"5 in a row died while the model was made.*with code 1"):
        mortal([place])


def test_errors_of_the_model_are_told_as_they_are() -> None:
    class Raising(ScriptedModel):
        def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
            raise RuntimeError("no such layer")

    model = mortal([Mortal(Raising, poisoned)])
    with pytest.raises(ModelError, match=r"'scripted' raised RuntimeError: no such layer"):
        audit(model)
    model.close()
    with pytest.raises(OrderError, match="workers: were closed"):
        model.submit(prompts(1)[0])


def test_an_answer_that_cannot_be_read_here_is_told_and_nobody_waits() -> None:
    class Garbled(Mortal):
        def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
            raise AttributeError("no such class")  # as unpickling may

    model = mortal([Garbled(ScriptedModel, poisoned)])
    with pytest.raises(ModelError, match="worker: AttributeError: no such class"):
        model.submit(prompts(1)[0]).result(timeout=10)
    model.close()


def test_an_unforeseen_error_while_a_worker_is_mourned_leaves_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unforeseen() -> None:
        raise ValueError("no such price")

    model = mortal([Mortal(ScriptedModel, poisoned)])
    monkeypatch.setattr(model._pool, "begun", unforeseen)
    model.trusted = True
    (deadly,) = [p for p in prompts(8) if p.sample_id == DEADLY]
    with pytest.raises(ModelError, match="worker: ValueError: no such price"):
        model.submit(deadly).result(timeout=10)
    model.close()


def test_what_a_held_model_says_of_prompts_is_known() -> None:
    class Told(ScriptedModel):
        takes_words, price_guess = True, PriceGuess(2.0, 1e-6)

        def protocol(self) -> dict[str, Any]:
            return {"template": "zero-shot", "temperature": 0}

    model = mortal([Mortal(Told, poisoned)])
    assert (model.takes_words, model.price_guess) == (True, PriceGuess(2.0, 1e-6))
    assert model.protocol() == {"template": "zero-shot", "temperature": 0}
    model.close()
