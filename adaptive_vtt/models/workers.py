"""One model held by many workers: processes of this machine, or actors of a Ray cluster.

A worker that dies is started again and asked again, at most ``MAX_ASKED`` times in all. Each
attempt that was lost may have been charged for, and counts at the worst price.
"""

import atexit
import multiprocessing
import os
import pickle
import signal
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent import futures
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.context import SpawnContext, SpawnProcess
from queue import SimpleQueue
from typing import Annotated, Any

from ..errors import AvttError, InputError, ModelError, OrderError, one_line
from ..types import Answer, JsonObject, Prompt, Unanswered
from ..utils.devices import cuda_devices, joined
from ..utils.options import Option, check_options
from ..utils.other_code import place_of
from .base import BatchModel, ConcurrentModel, ModelDefaults, ModelSource, adapted_model
from .checking import checked, name_of
from .local.python import load, model_of

Make = Callable[[], ModelSource]
"""Makes the model, or what one is made of; another process can import it."""
STATED = ModelDefaults.__annotations__.keys() - {"doing", "adapts", "trusted"}
"""Attributes by which a model describes itself; workers have their own of the others."""
IN_FLIGHT = 8
"""The least calls in flight: the same for few workers as for one, so that the same is drawn."""
MAX_ASKED = 3
"""Workers that may die of one question."""
MAX_STARTS = 3
"""Times in a row that a worker may die while it makes the model."""
PATIENCE = 1.0
"""Seconds that a worker without a call may take to end."""
CLOSED = "workers: were closed; they cannot be asked any more"
RAY = "ray"


# -- where the model is ----------------------------------------------------------------------------


@dataclass(frozen=True)
class About:
    """A description of a model that the audit does not hold: see ``ModelDefaults``.

    ``stated``: its attributes, by name.
    """

    stated: JsonObject
    content: str | None
    protocol: JsonObject
    prices_known: bool
    costs_money: bool


class Holding:
    """The model that a pickled ``Make`` makes."""

    def __init__(self, make: bytes) -> None:
        self._make = make

    def about(self) -> About:
        """Make the model and describe it.

        Raises:
            InputError: The model cannot be made, or has several calls in flight by itself.
        """
        try:
            # Bytes that the audit itself pickled: unpickled here, an import that fails is named.
            made = pickle.loads(self._make)()  # noqa: S301
            self._model = model = adapted_model(model_of(made))
        except AvttError:
            raise
        except (Exception, SystemExit) as error:  # a user's code may fail in any manner
            why = f"{type(error).__name__}: {one_line(error)}{place_of(error)}"
            raise InputError(f"worker: cannot make the model: {why}") from None
        if isinstance(model, ConcurrentModel | BatchModel):
            raise InputError(
                f"workers: expected a model that computes where it runs, got {name_of(model)!r}, "
                "which has several calls in flight; remove workers, and set in_flight there"
            )
        atexit.register(model.close)
        stated = {name: getattr(model, name) for name in STATED} | {"name": name_of(model)}
        priced, paid = model.prices_known, model.costs_money
        return About(stated, model.content(), model.protocol(), priced, paid)

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        """Return one checked answer per prompt. Raise ModelError if the model fails."""
        return checked(self._model, prompts)


_holding: Holding


def _begin(make: bytes, device: str | None) -> None:
    """Prepare a process that holds the model."""

    def end_with_parent() -> None:
        parent = multiprocessing.parent_process()
        assert parent is not None
        parent.join()
        os._exit(1)  # even while the model computes

    global _holding
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the audit, which ends this
    os.dup2(2, 1)  # what a model prints is not part of the command's output
    threading.Thread(target=end_with_parent, daemon=True).start()
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # workers are many; PyTorch reads it
    if device is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = device  # read when CUDA is first used
    _holding = Holding(make)


def _call(method: str, *arguments: Any) -> Any:
    return getattr(_holding, method)(*arguments)


# -- workers ---------------------------------------------------------------------------------------


class Died(Exception):
    """The worker is gone; the message states how it ended."""


class Worker(ABC):
    """A model held elsewhere. Used by one thread at a time, except for ``close``."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # held while the worker is started or ended
        self._closed = False

    def start(self) -> About:
        """Start a worker, in place of one that died, and make the model.

        Raises:
            Died: The worker ended before the model was made.
            AvttError: The model cannot be made.
        """
        with self._lock:
            if self._closed:
                raise OrderError(CLOSED)
            self._begin()
        return self._result("about")

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        """Return one answer per prompt. Raise Died, or ModelError as the model did."""
        return self._result("ask", list(prompts))

    @abstractmethod
    def close(self) -> None:
        """End the worker, even while it computes. May be called from any thread, and again."""

    @abstractmethod
    def _begin(self) -> None:
        """Start what holds the model."""

    @abstractmethod
    def _result(self, method: str, *arguments: Any) -> Any:
        """Return the result of a method of `Holding`."""


class LocalProcess(Worker):
    """A process that holds the model: a pool of one, so that it is known which call it died of.

    Args:
        make: The pickled function that makes the model.
        device: The CUDA device that the process sees; None: all.
    """

    def __init__(self, make: bytes, device: str | None = None) -> None:
        super().__init__()
        self._initial = make, device
        self._pool: ProcessPoolExecutor | None = None

    def _begin(self) -> None:
        self._context = _Context()
        self._pool = ProcessPoolExecutor(1, self._context, _begin, self._initial)

    def close(self) -> None:
        with self._lock:
            self._closed, pool, self._pool = True, self._pool, None
        if pool is None:
            return
        pool.shutdown(wait=False, cancel_futures=True)
        if (process := self._context.process) is not None:
            process.join(PATIENCE if self._last.done() else 0.0)  # idle: it closes the model
            process.kill()
        pool.shutdown()
        self._context = _Context()  # the process, once nobody has it, lets go of its pipes

    @property
    def pid(self) -> int | None:
        """The number of the process; None before it was started."""
        process = self._context.process if self._pool else None
        return None if process is None else process.pid

    def _result(self, method: str, *arguments: Any) -> Any:
        if (pool := self._pool) is None:
            raise OrderError(CLOSED)
        try:
            self._last = pool.submit(_call, method, *arguments)
            return self._last.result()
        except (BrokenProcessPool, CancelledError):
            pool.shutdown()  # until it is known how the process ended
        code = (self._context.process and self._context.process.exitcode) or 0
        killed = f"was ended by {signal.Signals(abs(code)).name}" if code < 0 else ""
        raise Died(killed or f"ended with code {code}")


class _Context(SpawnContext):
    """Keeps the process that a pool starts, as pools do not report how theirs ended."""

    process: SpawnProcess | None = None

    def Process(self, *args: Any, **options: Any) -> SpawnProcess:  # type: ignore[override]
        self.process = SpawnProcess(*args, **options)
        return self.process


class RayActor(Worker):
    """An actor that holds the model.

    Args:
        ray: The module, which has joined a cluster.
        make: The pickled function that makes the model.
        cpus: How many CPUs it needs; may be a fraction.
        gpus: How many GPUs it needs; may be a fraction.
    """

    def __init__(self, ray: Any, make: bytes, *, cpus: float, gpus: float) -> None:
        super().__init__()
        self._ray, self._make = ray, make
        self._class = ray.remote(Holding).options(num_cpus=cpus, num_gpus=gpus, max_restarts=0)
        self._actor: Any = None

    def _begin(self) -> None:
        self._kill()
        self._actor = self._class.remote(self._make)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._kill()

    def _result(self, method: str, *arguments: Any) -> Any:
        try:
            return self._ray.get(getattr(self._actor, method).remote(*arguments))
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from None  # as a process would have raised it
        except self._ray.exceptions.RayError as error:
            raise Died(f"was lost: {one_line(error)[:200]}") from None

    def _kill(self) -> None:
        if self._actor is not None and self._ray.is_initialized():
            with suppress(Exception):  # the cluster may be gone, with the actor
                self._ray.kill(self._actor)


def _workers(make: bytes, workers: int | str, actors: int | None) -> Sequence[Worker]:
    """Return processes, or actors that share a cluster's GPUs and CPUs."""
    if isinstance(workers, str) and (workers == RAY or workers.startswith(f"{RAY}://")):
        ray = joined(None if workers == RAY else workers)
        resources = ray.cluster_resources()
        gpus, cpus = resources.get("GPU", 0.0), resources.get("CPU", 1.0)
        number = actors or max(1, int(gpus or cpus))
        shares = {"cpus": min(1.0, cpus / number), "gpus": min(1.0, gpus / number)}
        return [RayActor(ray, make, **shares) for _ in range(number)]
    if isinstance(workers, str) or workers < 1:
        expected = "a number of processes of at least 1, 'ray' or 'ray://HOST:PORT'"
        raise InputError(f"workers: expected {expected}, got {workers!r}")
    if actors is not None:
        expected = "workers: expected actors only on Ray"
        raise InputError(f"{expected}, got {workers} workers; leave it out")
    devices: list[str | None] = [*(cuda_devices() if workers > 1 else [])] or [None]
    return [LocalProcess(make, devices[k % len(devices)]) for k in range(workers)]


# -- the model of an audit -------------------------------------------------------------------------


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
            Option("processes that hold the model (none: the audit's); 'ray', 'ray://HOST:PORT'"),
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
        try:
            pickled = pickle.dumps(partial(load, make) if isinstance(make, str) else make)
        except Exception as error:  # each type fails to be pickled in its own manner
            raise InputError(
                "workers: expected a model by name ('file.py:name') or a function of a module, got "
                f"{make!r:.80}, which cannot be sent to another process ({one_line(error)[:100]})"
            ) from None
        self.workers = tuple(_workers(pickled, workers, actors))
        self.in_flight = in_flight or max(IN_FLIGHT, 2 * len(self.workers))
        self._ready: dict[Worker, About] = {}
        self._free: SimpleQueue[Worker] = SimpleQueue()
        self._deaths, self._answered = 0, False
        # as many threads as workers: one is free for each call that a thread takes
        self._threads = ThreadPoolExecutor(len(self.workers), "workers")
        starts = [self._threads.submit(self._start, worker) for worker in self.workers]
        try:
            self._about = next(futures.as_completed(starts)).result()
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
        """Count the workers that died; None if none did."""
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
                return self._ready[worker]
            except Died as died:
                last = died
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
