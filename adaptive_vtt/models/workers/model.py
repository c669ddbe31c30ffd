"""One model, held by many workers."""

import pickle
import weakref
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Annotated

from ...errors import InputError, one_line
from ...types import Answer, JsonObject, Prompt, Unanswered
from ...utils.devices import cuda_devices
from ...utils.options import Option, check_options
from ..base import CallLost, ModelDefaults
from ..local.python import load
from .holding import Make
from .places import LocalProcess, Place
from .pool import WorkerPool

IN_FLIGHT = 8
"""Calls on their way, at least: the same for few workers as for one, so that the same is drawn."""
RAY = "ray"


class Workers(ModelDefaults):
    """The model that ``make`` makes, in each of ``workers``.

    What options say is told beside them, in the words of SPEC.toml. ``make``: a name
    (``file.py:name``, ``package.module:name``), or a function of a module that takes nothing. What
    is drawn follows from ``in_flight``, not from the number of workers. Of several local workers
    each sees one CUDA device, in turn.

    A worker that dies is begun again, and its calls raise CallLost, to be asked again; see
    `WorkerPool`.
    Raises InputError for options out of range and for a model that cannot be made, or has several
    calls on their way by itself.
    """

    def __init__(
        self,
        make: str | Make,
        workers: Annotated[
            int | str,
            Option(
                "how many processes hold the model; or 'ray', or 'ray://HOST:PORT', for actors of "
                "a Ray cluster (none: the model is held by the audit itself)"
            ),
        ],
        *,
        actors: Annotated[
            int | None,
            Option(
                "on Ray: how many (one per GPU of the cluster, or per CPU where it has none)", ge=1
            ),
        ] = None,
        in_flight: Annotated[
            int | None,
            Option(
                f"with workers: calls that are on their way or wait for a worker ({IN_FLIGHT}, or "
                "two batches per worker, if that is more)",
                ge=1,
            ),
        ] = None,
        worker_batch: Annotated[
            int, Option("with workers: prompts that a worker takes at a time (1)", ge=1)
        ] = 1,
    ) -> None:
        given = {"actors": actors, "in_flight": in_flight, "worker_batch": worker_batch}
        check_options(Workers, given, "workers")
        made = partial(load, make) if isinstance(make, str) else make
        _check_made(made)
        places = _places(made, workers, actors)
        self.in_flight = in_flight or max(IN_FLIGHT, 2 * worker_batch * len(places))
        self.places = tuple(places)
        self._pool = WorkerPool(places, worker_batch)
        self._closing = weakref.finalize(self, self._pool.close)
        try:
            about = self._pool.begun()
        except BaseException:
            self.close()
            raise
        self._about = about
        vars(self).update(about.stated)

    def submit(self, prompt: Prompt) -> "Future[Answer | Unanswered]":
        return self._pool.submit(prompt)

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        """Answers in the order of the prompts. What was lost is asked again, and paid for again."""
        futures = [self.submit(prompt) for prompt in prompts]
        return [self._received(*pair) for pair in zip(prompts, futures, strict=True)]

    def _received(
        self, prompt: Prompt, future: "Future[Answer | Unanswered]"
    ) -> Answer | Unanswered:
        lost = 0.0
        while True:
            try:
                said = future.result()
            except CallLost:
                lost += self.most_cost or 0.0
                future = self.submit(prompt)
            else:
                unconfirmed = said.unconfirmed + lost
                return replace(said, cost=said.cost + lost, unconfirmed=unconfirmed)

    @property
    def prices_known(self) -> bool:
        return self._about.prices_known

    @property
    def costs_money(self) -> bool:
        return self._about.costs_money

    @property
    def trusted(self) -> bool:
        return self._pool.trusted

    @trusted.setter
    def trusted(self, trusted: bool) -> None:
        self._pool.trusted = trusted

    @property
    def doing(self) -> str:  # type: ignore[override]  # changes
        """How many workers are being begun."""
        starting = self._pool.starting
        return f"{starting} of {len(self.places)} workers starting" if starting else ""

    def content(self) -> str | None:
        return self._about.content

    def protocol(self) -> JsonObject:
        return dict(self._about.protocol)

    def statistics(self) -> JsonObject | None:
        """How many workers died, with how many calls, and were given up; None where none did."""
        pool, count = self._pool, len(self.places)
        if not (pool.deaths or pool.given_up):
            return None
        told = {"workers": count, "workers_died": pool.deaths, "calls_lost": pool.lost}
        return told | ({"workers_given_up": pool.given_up} if pool.given_up else {})

    def close(self) -> None:
        self._closing()

    def __repr__(self) -> str:
        return f"Workers({self.name!r}, {len(self.places)})"


def _check_made(make: Make) -> None:
    """Raises InputError for what another process could not be told."""
    try:
        pickle.dumps(make)
    except Exception as error:  # each type has its own way of saying that it cannot be sent
        raise InputError(
            "workers: expected a model by name ('file.py:name') or a function of a module that "
            f"makes one, got {make!r:.80}, which cannot be sent to another process "
            f"({one_line(error)[:100]})"
        ) from None


def _places(make: Make, workers: int | str, actors: int | None) -> list[Place]:
    if isinstance(workers, str):
        if workers != RAY and not workers.startswith(f"{RAY}://"):
            raise InputError(
                f"workers: expected a number of processes, 'ray' or 'ray://HOST:PORT', got "
                f"{workers!r}"
            )
        from .places import ray_actors

        return [*ray_actors(make, None if workers == RAY else workers, actors)]
    if workers < 1:
        raise InputError(f"workers: expected at least 1, got {workers}")
    if actors is not None:
        raise InputError(
            f"workers: expected actors beside workers = 'ray' alone, got workers = {workers}; "
            "leave actors out"
        )
    devices = cuda_devices() if workers > 1 else []
    return [
        LocalProcess(make, devices[k % len(devices)] if devices else None) for k in range(workers)
    ]
