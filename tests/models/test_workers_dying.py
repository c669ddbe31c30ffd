"""Workers without processes, which die when a test wants it."""

import threading
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptive_vtt.certify.verify import verify
from adaptive_vtt.errors import ModelError, OrderError
from adaptive_vtt.models import Answer, Unanswered
from adaptive_vtt.models.base import PriceGuess
from adaptive_vtt.models.workers import MAX_ASKED, MAX_STARTS
from adaptive_vtt.testing import ScriptedModel
from tests.helpers.worked import DEADLY, Mortal, audit, mortal, poisoned, prompts, space


def test_a_question_that_workers_die_of_is_unanswered_and_no_other():
    model = mortal([Mortal(poisoned) for _ in range(2)])
    model.trusted = True  # else the audit ends where all workers die of their first question
    made = audit(model, budget=80)
    table = [(a.question, a.unanswered) for c in made.journal.calls() for a in c.answers]
    dead = {space().question(q).sample_id for q, why in table if why == "3 workers died of it"}
    assert dead == {DEADLY}
    assert {why for q, why in table if space().question(q).sample_id != DEADLY} == {None}
    deadly = [c for c in made.journal.calls() if c.answers[0].unanswered]
    assert deadly
    assert model.statistics() == {"workers": 2, "workers_died": MAX_ASKED * len(deadly)}
    assert made.interrupted == 0  # what was lost stands in the answers' costs
    model.close()


def test_what_was_lost_counts_at_its_worst_price():
    """Each attempt at a question may have been paid for."""
    worker = Mortal(poisoned)
    model = mortal([worker])
    assert (model.most_cost, model.most_attempts) == (3.0, 3)
    model.trusted = True
    answers = model.ask(prompts(8))
    assert answers[3] == Unanswered("3 workers died of it", cost=3.0, unconfirmed=3.0)
    assert all(isinstance(a, Answer) and a.cost == 1.0 for k, a in enumerate(answers) if k != 3)
    assert worker.asked == ["s0", "s1", "s2", *["s3"] * 3, "s4", "s5", "s6", "s7"]
    once = iter([True, *[False] * 8])
    model = mortal([Mortal(lambda prompt: next(once))])
    first, second = model.ask(prompts(2))
    assert (first.cost, first.unconfirmed) == (2.0, 1.0)
    assert (second.cost, second.unconfirmed) == (1.0, 0.0)


@pytest.fixture(scope="module")
def known():
    """All answers of an audit in which nobody died."""
    with mortal([Mortal(lambda prompt: False)], in_flight=4) as model:
        whole = audit(model, budget=60, seed=0)
    return {c.call: c.answers for c in whole.journal.calls()}


@pytest.mark.slow
@settings(max_examples=6, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), cap=st.sampled_from([12.0, 20.0, 45.0]))
def test_lost_calls_are_asked_again_and_the_cap_holds(known, seed, cap):
    """A worker dies of every seventh call, twice at most of the same; each answer costs 1, and so
    may what was lost."""
    rng, lock = np.random.default_rng(seed), threading.Lock()
    asked, deaths = 0, Counter[tuple[object, ...]]()

    def unlucky(prompt):
        nonlocal asked
        key = prompt.sample_id, prompt.relation, prompt.severity
        with lock:
            asked += 1
            dies = bool(rng.random() < 0.15) and deaths[key] < MAX_ASKED - 1
            deaths[key] += dies
            return dies

    model = mortal([Mortal(unlucky) for _ in range(3)], in_flight=4)
    model.trusted = True
    made = audit(model, max_cost=cap, budget=None, seed=0)
    verify(made.journal)
    assert asked == made.cost <= cap + 1e-9
    assert all(known[c.call] == c.answers for c in made.journal.calls())
    model.close()


def test_a_model_that_no_worker_survives_ends_the_audit():
    model = mortal([Mortal(lambda prompt: True) for _ in range(2)])
    with pytest.raises(ModelError, match=r"3 died before any gave an answer; .* SIGKILL \(asked"):
        audit(model)
    model.close()


def test_workers_that_die_while_the_model_is_made_are_started_again():
    worker = Mortal(poisoned)
    worker.stillborn = MAX_STARTS - 1
    mortal([worker]).close()  # it came up in the end
    worker.stillborn = MAX_STARTS
    with pytest.raises(ModelError, match=r"3 in a row died while the model was made.*with code 1"):
        mortal([worker])


class Raising(ScriptedModel):
    def ask(self, prompts):
        raise RuntimeError("no such layer")


def test_errors_of_the_model_are_shown_unchanged():
    model = mortal([Mortal(poisoned, Raising)])
    with pytest.raises(ModelError, match=r"'scripted' raised RuntimeError: no such layer"):
        audit(model)
    model.close()
    with pytest.raises(OrderError, match="workers: were closed"):
        model.submit(prompts(1)[0])


class Priced(ScriptedModel):
    takes_words, price_guess = True, PriceGuess(2.0, 1e-6)

    def protocol(self):
        return {"template": "zero-shot", "temperature": 0}


def test_facts_of_a_held_model_are_known():
    model = mortal([Mortal(poisoned, Priced)])
    assert (model.takes_words, model.price_guess) == (True, PriceGuess(2.0, 1e-6))
    assert model.protocol() == {"template": "zero-shot", "temperature": 0}
    model.close()
