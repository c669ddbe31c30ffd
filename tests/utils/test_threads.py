"""The audit's own computing takes one thread; models keep the threads that the user has set."""

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
import torch

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.surrogates import Posterior
from adaptive_vtt.types import Answer, Candidates, Prompt
from adaptive_vtt.utils.threads import one_thread, users_threads


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


class Model:
    """Answers no to everything, and notes how many threads it computes with."""

    answers = "all"

    def __init__(self) -> None:
        self.threads: set[int] = set()

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer]:
        self.threads.add(torch.get_num_threads())
        return [Answer((0.0,) * len(prompt.concepts)) for prompt in prompts]


class Surrogate:
    """Expects every loss to be a half, and notes how many threads it computes with."""

    threads: set[int]

    def __init__(self, **_: object) -> None:
        type(self).threads = set()

    def observe(self, losses: object) -> None:
        self.threads.add(torch.get_num_threads())

    def posterior(self, candidates: Candidates) -> Posterior:
        self.threads.add(torch.get_num_threads())
        half = torch.full((len(candidates.concept),), 0.5, dtype=torch.float64)
        return Posterior(half, half / 2)


def test_surrogates_take_one_thread(space: QuestionSpace) -> None:
    with Audit(space, Model(), budget=12, half_width=0.4, surrogate=f"{__name__}:Surrogate") as a:
        a.run()
    assert Surrogate.threads == {1}
    assert torch.get_num_threads() == 2


def test_models_and_proxies_keep_the_users_threads(space: QuestionSpace) -> None:
    model, proxy = Model(), Model()
    with Audit(space, model, budget=12, half_width=0.4, proxies={"other": proxy}) as audit:
        audit.run()
    assert model.threads == proxy.threads == {2}


def test_threads_are_restored_when_nested_and_after_an_error() -> None:
    with one_thread():
        with users_threads(), one_thread():
            assert torch.get_num_threads() == 1
        with users_threads():
            assert torch.get_num_threads() == 2
        assert torch.get_num_threads() == 1
    with one_thread(models=True), users_threads():  # audits next to each other
        assert torch.get_num_threads() == 1
    with pytest.raises(ZeroDivisionError), one_thread(), users_threads(), one_thread():
        _ = 1 / 0
    assert torch.get_num_threads() == 2


def test_blas_of_numpy_takes_one_thread_too() -> None:
    from threadpoolctl import threadpool_info

    def blas() -> set[int]:
        np.ones((2, 2)) @ np.ones((2, 2))
        return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}

    with one_thread():
        assert blas() == {1}
