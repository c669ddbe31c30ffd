"""One model, held by many workers.

A worker that dies is started again and asked again, at most ``MAX_ASKED`` times in all. Each
attempt that was lost may have been charged for, and counts at the worst price.
"""

import pickle
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import replace
from functools import partial
from queue import SimpleQueue
from typing import Annotated

from ...errors import InputError, ModelError, OrderError, one_line
from ...types import Answer, JsonObject, Prompt, Unanswered
from ...utils.devices import cuda_devices
from ...utils.options import Option, check_options
from ..base import ModelDefaults
from ..local.python import load
from .holding import About, Make
from .places import CLOSED, Died, LocalProcess, Worker, ray_actors

IN_FLIGHT = 8
"""The least calls in flight: the same for few workers as for one, so that the same is drawn."""
MAX_ASKED = 3
"""Workers that may die of one question."""
MAX_STARTS = 3
"""Times in a row that a worker may die while it makes the model."""
RAY = "ray"


class Workers(ModelDefaults):
    """The model that ``make`` makes, in each of ``workers``.

    What is drawn follows from ``in_flight``, not from the number of workers. Of several local
    workers each sees one CUDA device, in turn. No key is checked beforehand, as workers hold no
    model that calls a server.

    Args:
        make: A name (``file.py:name``, ``package.module:name``), or a function of a module that
            takes no arguments.
        workers: As in SPEC.toml, like all that follow.

    Raises:
        InputError: An option is out of range, or the model cannot be made or has several calls in
            flight by itself.
    """

    def __init__(
        self,
        make: str | Make,
        workers: Annotated[
            int | str,
            Option(
                "processes that hold the model (none: the audit's own); or 'ray', 'ray://HOST:PORT'"
            ),
        ],
        *,
        actors: Annotated[
            int | None, Option("on Ray: how many (one per GPU of the cluster, else per CPU)", ge=1)
        ] = None,
        in_flight: Annotated[
            int | None,
            Option(f"with workers: calls that run or wait ({IN_FLIGHT}, or two per worker)", ge=1),
        ] = None,
    ) -> None:
        check_options(Workers, {"actors": actors, "in_flight": in_flight}, "workers")
        pickled = _pickled(partial(load, make) if isinstance(make, str) else make)
        self.workers = tuple(_workers(pickled, workers, actors))
        self.in_flight = in_flight or max(IN_FLIGHT, 2 * len(self.workers))
        self._ready: dict[Worker, About] = {}
        self._free: SimpleQueue[Worker] = SimpleQueue()
        self._deaths, self._answered = 0, False
        # as many threads as workers: one is free for each call that a thread takes
        self._threads = ThreadPoolExecutor(len(self.workers), "workers")
        starts = [self._threads.submit(self._start, worker) for worker in self.workers]
        try:
            self._about = next(as_completed(starts)).result()
        except BaseException:
            self.close()
            raise
        vars(self).update(self._about.stated)
        self._price = self.most_cost or 0.0
        self.most_attempts *= MAX_ASKED
        if self.most_cost is not None:
            self.most_cost *= MAX_ASKED

    def submit(self, prompt: Prompt) -> "Future[Answer | Unanswered]":
        """Ask, and return the answer to come. Raise OrderError after ``close``."""
        try:
            return self._threads.submit(self._answer, prompt)
        except RuntimeError:
            raise OrderError(CLOSED) from None

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        return [future.result() for future in [self.submit(prompt) for prompt in prompts]]

    @property
    def prices_known(self) -> bool:
        return self._about.prices_known

    @property
    def costs_money(self) -> bool:
        return self._about.costs_money

    @property
    def doing(self) -> str:  # type: ignore[override]  # changes
        """How many workers are being started."""
        starting = len(self.workers) - len(self._ready)
        return f"{starting} of {len(self.workers)} workers starting" if starting else ""

    def content(self) -> str | None:
        return self._about.content

    def protocol(self) -> JsonObject:
        return dict(self._about.protocol)

    def statistics(self) -> JsonObject | None:
        """Count the workers that died; None where none did."""
        deaths = {"workers": len(self.workers), "workers_died": self._deaths}
        return deaths if self._deaths else None

    def close(self) -> None:
        """End all workers. Calls that wait for one are cancelled."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for worker in self.workers:
            worker.close()
        self._threads.shutdown()

    def __repr__(self) -> str:
        return f"Workers({self.name!r}, {len(self.workers)})"

    # -- in the threads ------------------------------------------------------------------------

    def _start(self, worker: Worker) -> About:
        try:
            return self._started(worker)
        finally:
            self._free.put(worker)

    def _started(self, worker: Worker) -> About:
        """Describe the worker's model; start the worker first where it does not run."""
        for _ in range(MAX_STARTS):
            try:
                self._ready[worker] = self._ready.get(worker) or worker.start()
            except Died as died:
                last = died
            else:
                return self._ready[worker]
        raise ModelError(
            f"worker: {MAX_STARTS} in a row died while the model was made, the last {last}; check "
            "that memory is enough for so many workers, and that a script which you run begins "
            "below if __name__ == '__main__', as each worker imports it"
        )

    def _answer(self, prompt: Prompt) -> Answer | Unanswered:
        """Have a free worker answer, or the one that is started in its place."""
        worker = self._free.get()
        try:
            for lost in range(MAX_ASKED):
                self._started(worker)
                try:
                    (answer,) = worker.ask([prompt])
                except Died as died:
                    del self._ready[worker]
                    self._deaths, last = self._deaths + 1, died
                    continue
                self._answered = True
                more = lost * self._price
                unconfirmed = answer.unconfirmed + more
                return replace(answer, cost=answer.cost + more, unconfirmed=unconfirmed)
        finally:
            self._free.put(worker)
        if not (self._answered or self.trusted):
            raise ModelError(
                f"worker: {MAX_ASKED} died before any gave an answer; the last {last} (asked about "
                f"sample {prompt.sample_id!r}, {prompt.relation} severity {prompt.severity})"
            )
        cost = MAX_ASKED * self._price
        return Unanswered(f"{MAX_ASKED} workers died of it", cost, cost)


def _pickled(make: Make) -> bytes:
    """Return ``make`` as another process gets it. Raise InputError where that cannot be."""
    try:
        return pickle.dumps(make)
    except Exception as error:  # each type has its own way of saying that it cannot be sent
        raise InputError(
            "workers: expected a model by name ('file.py:name') or a function of a module, got "
            f"{make!r:.80}, which cannot be sent to another process ({one_line(error)[:100]})"
        ) from None


def _workers(make: bytes, workers: int | str, actors: int | None) -> Sequence[Worker]:
    if isinstance(workers, str) and (workers == RAY or workers.startswith(f"{RAY}://")):
        return ray_actors(make, None if workers == RAY else workers, actors)
    if isinstance(workers, str) or workers < 1:
        raise InputError(
            "workers: expected a number of processes of at least 1, 'ray' or 'ray://HOST:PORT', "
            f"got {workers!r}"
        )
    if actors is not None:
        raise InputError(
            f"workers: expected actors only on Ray, got {workers} workers; leave it out"
        )
    devices: list[str | None] = [*(cuda_devices() if workers > 1 else [])] or [None]
    return [LocalProcess(make, devices[k % len(devices)]) for k in range(workers)]
