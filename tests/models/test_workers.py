"""Models held by worker processes: the same answers and rows, whichever dies."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptive_vtt.certify.verify import verify
from adaptive_vtt.config import parse_spec
from adaptive_vtt.config.building import build_model, model_of
from adaptive_vtt.errors import InputError, ModelError, OrderError
from adaptive_vtt.models import Answer, Unanswered, Workers, load
from adaptive_vtt.models.base import PriceGuess
from adaptive_vtt.models.checking import checked
from adaptive_vtt.models.workers import MAX_ASKED, MAX_STARTS, STATED, Died, LocalProcess
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from adaptive_vtt.testing.contracts import ModelContract
from tests.helpers.worked import DEADLY, Mortal, audit, mortal, poisoned, prompts, rows, space

MODEL = '''
"""Models that processes hold: quick, slow, deadly and hopeless ones."""

import os
import signal
import time

from adaptive_vtt.testing import ScriptedModel


def brightness(images):
    return [[image.mean() / 255, image.max() / 255, 0.5] for image in images]


def uneven(images):
    """Takes longer the brighter an image is, so that answers overtake each other."""
    time.sleep(sum(image.mean() for image in images) / 10000)
    return brightness(images)


def forever(images):
    time.sleep(600)


class Euros(ScriptedModel):
    """Dies of the first prompt it is ever asked about, in whatever process."""

    currency, gives_losses = "EUR", True

    def ask(self, prompts):
        try:
            open(os.environ["ONCE"], "x").close()
        except FileExistsError:
            return super().ask(prompts)
        os.kill(os.getpid(), signal.SIGSEGV)


class Wrong:
    answers = "all"
    in_flight = 4

    def ask(self, prompts):
        return []

    submit = ask


wrong, euros = Wrong(), Euros()
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("workers")
    (made / "model.py").write_text(MODEL)
    return made


class Shared(Workers):
    """Outlives the tests that share it."""

    def close(self):
        pass

    def end(self):
        super().close()


@pytest.fixture(scope="module")
def two(folder):
    """Two processes that hold ``uneven``."""
    model = Shared(f"{folder}/model.py:uneven", 2, in_flight=8)
    yield model
    model.end()


# -- processes --------------------------------------------------------------------------------


class TestProcesses(ModelContract):
    @pytest.fixture(autouse=True)
    def chosen(self, two):
        self._two = two

    def make(self):
        return self._two


def test_workers_answer_as_the_model_does(two, folder):
    here = load(f"{folder}/model.py:uneven")
    assert checked(two, prompts(9)) == checked(here, prompts(9))
    assert (two.name, two.answers) == (f"{folder}/model.py:uneven", "all")


def test_a_call_that_a_process_died_of_is_asked_again_and_may_cost_as_often(
    folder, tmp_path, monkeypatch
):
    monkeypatch.setenv("ONCE", str(tmp_path / "once"))
    model, here = Workers(f"{folder}/model.py:euros", 1), ScriptedModel()
    assert (model.currency, model.gives_losses) == ("EUR", True)
    assert (model.most_cost, model.most_attempts) == (3 * here.most_cost, 3)  # asked three times
    same = STATED - {"currency", "gives_losses", "most_cost", "most_attempts"}
    assert {n: getattr(model, n) for n in same} == {n: getattr(here, n) for n in same}
    answers, expected = checked(model, prompts(3)), checked(here, prompts(3))
    assert [a.cost for a in answers] == [2.0, 1.0, 1.0]
    assert [replace(a, cost=1.0, unconfirmed=0.0) for a in answers] == expected
    assert model.statistics() == {"workers": 1, "workers_died": 1}
    model.close()


@pytest.mark.slow
def test_a_process_that_died_reports_how(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("ONCE", str(tmp_path / "once"))
    process = LocalProcess(partial(load, f"{folder}/model.py:euros"))
    process.start()
    with pytest.raises(Died, match="was ended by SIGSEGV"):
        process.ask(prompts(1))
    process.close()


@pytest.mark.slow
@pytest.mark.shares  # workers are started again
def test_killed_workers_leave_no_trace_in_what_was_answered(two):
    whole, doomed = audit(two), [(12, 1), (3, 0)]

    def strike(step):
        """Kills one worker after the third answer that comes, the other after the twelfth."""
        if doomed and step.state.calls >= doomed[-1][0]:
            os.kill(two.workers[doomed.pop()[1]].pid, signal.SIGKILL)

    disturbed = audit(two, strike)
    assert rows(disturbed) == rows(whole)
    assert {a.unanswered for c in disturbed.journal.calls() for a in c.answers} == {None}
    assert disturbed.interrupted == 0
    two.ask(prompts(4))  # one that was killed between two calls is missed at its next
    assert two.statistics() == {"workers": 2, "workers_died": 2}


SLOW = [pytest.param(how, marks=pytest.mark.slow) for how in (signal.SIGINT, signal.SIGTERM)]


@pytest.mark.parametrize("how", [signal.SIGKILL, *SLOW])
def test_no_worker_outlives_its_driver(folder, how):
    script = f"""
from adaptive_vtt.models import Prompt, Workers
import numpy as np, time
if __name__ == "__main__":
    with Workers({str(folder / "model.py:forever")!r}, 2) as model:
        while model.doing:
            time.sleep(0.01)
        for k in range(2):
            model.submit(Prompt(np.zeros((4, 4, 3), np.uint8), ("a",), "s", "identity", k))
        print(*[worker.pid for worker in model.workers], flush=True)
        time.sleep(600)
"""
    env = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}  # else torch is imported, to count devices
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    driver = subprocess.Popen([sys.executable, "-c", script], env=env, **pipes)
    workers = [int(pid) for pid in driver.stdout.readline().split()]
    assert len(workers) == 2
    assert all(map(alive, workers))
    driver.send_signal(how)
    driver.wait(20)
    driver.stdout.close()
    deadline = time.monotonic() + 20
    while any(map(alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(map(alive, workers))


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"  # whoever adopts it may be slow to notice that it ended


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing", r"model.py: unknown name 'nothing'"),
        ("wrong", r"a model that computes where it runs, got 'Wrong'.*remove workers"),
    ],
)
def test_what_is_no_model_for_workers_is_refused(folder, name, message):
    with pytest.raises(InputError, match=message):
        mortal([Mortal(poisoned, partial(load, f"{folder}/model.py:{name}"))])


@pytest.mark.parametrize(
    ("make", "workers", "options", "message"),
    [
        (partial(lambda: None), 1, {}, r"a model by name .* got functools.partial\(<function"),
        ("m.py:f", 0, {}, "workers: expected a number of processes of at least 1, .* got 0"),
        ("m.py:f", "rays", {}, "'ray' or 'ray://HOST:PORT', got 'rays'"),
        ("m.py:f", 2, {"actors": 2}, "expected actors only on Ray, got 2 workers"),
        ("m.py:f", 2, {"in_flight": 0}, "workers: in_flight: expected a whole number"),
    ],
)
def test_options_out_of_range_are_refused(make, workers, options, message):
    with pytest.raises(InputError, match=message):
        Workers(make, workers, **options)


# -- in a SPEC.toml ---------------------------------------------------------------------------


def spec(**model):
    return parse_spec({"dataset": {"kind": "fashion"}, "model": model}, "SPEC.toml")


@pytest.mark.slow
def test_a_spec_names_workers(folder):
    made = spec(target="model.py:brightness", workers=1, in_flight=3)
    plain = spec(target="model.py:brightness")
    dataset: Any = tiny_dataset()
    model, other = (build_model(each, folder, dataset) for each in (made, plain))
    assert isinstance(model, Workers)
    assert model.in_flight == 3
    assert (model.name, model.version) == (other.name, other.version)
    model.close()
    assert not isinstance(model_of(made, folder, space(), code=False), Workers)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"kind": "openai", "model": "m", "workers": 2}, "model.workers: is no field .*in_flight"),
        ({"target": "m.py:f", "in_flight": 4}, "in_flight: expected it with model.workers"),
    ],
)
def test_workers_where_there_are_none_are_refused(model, message):
    with pytest.raises(InputError, match=message):
        spec(**model).model.worked(Path())


# -- on Ray -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_actors_of_ray_are_workers_like_others(folder, two):
    ray = pytest.importorskip("ray")
    model = Workers(f"{folder}/model.py:uneven", "ray", actors=2, in_flight=8)
    assert rows(audit(model)) == rows(audit(two))
    before = audit(model)
    ray.kill(model.workers[0]._actor)
    assert rows(audit(model)) == rows(before)
    assert model.statistics() == {"workers": 2, "workers_died": 1}
    model.close()
    with pytest.raises(InputError, match=r"unknown name 'nothing'"):
        Workers(f"{folder}/model.py:nothing", "ray", actors=1)
    ray.shutdown()
    with pytest.raises(InputError, match=r"cannot join Ray at ray://127.0.0.1:1"):
        Workers(partial(load, "m.py:f"), "ray://127.0.0.1:1")


# -- workers without processes, which die when a test wants it ----------------------------------


def test_a_question_that_workers_die_of_is_unanswered_and_no_other():
    model = mortal([Mortal(poisoned) for _ in range(2)])
    model.trusted = True  # else the audit ends where all workers die of their first question
    made = audit(model, budget=40)
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
