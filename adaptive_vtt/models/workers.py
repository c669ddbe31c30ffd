"""Several copies of one model, each in a worker: a process of this machine, or a Ray actor.

A worker that dies is restarted and asked again, so that a call is tried at most ``MAX_ASKED``
times. Each attempt that was lost may have been charged, and counts at its highest price.
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
"""A function, which other processes can import, that returns a model or the source of one."""
STATED = ModelDefaults.__annotations__.keys() - {"doing", "adapts", "trusted"}
"""Attributes that are copied from the model in a worker; `Workers` has the others itself."""
IN_FLIGHT = 8
"""Minimum number of calls in flight: with few workers it is that of one, and so are the draws."""
MAX_ASKED = 3
"""Maximum number of workers that may die of one call."""
MAX_STARTS = 3
"""Maximum number of times in a row that a worker may die while it makes the model."""
PATIENCE = 1.0
"""Seconds that an idle worker may take to end."""
CLOSED = "workers: were closed; they cannot be asked any more"


# -- inside a worker -------------------------------------------------------------------------------


@dataclass(frozen=True)
class About:
    """Description, for the audit's process, of a model that a worker holds.

    Attributes:
        stated: The attributes in STATED, by name.
        content: As all that follow, a member of ``ModelDefaults``.
        protocol: See there.
        prices_known: See there.
        costs_money: See there.
    """

    stated: JsonObject
    content: str | None
    protocol: JsonObject
    prices_known: bool
    costs_money: bool


class Holding:
    """Holder of the model in a worker.

    Args:
        make: The function that makes the model.
    """

    def __init__(self, make: Make) -> None:
        self._make = make

    def about(self) -> About:
        """Make the model and describe it.

        Raises:
            InputError: The model cannot be made, or has several calls in flight by itself.
        """
        try:
            self._model = model = adapted_model(model_of(self._make()))
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


def _begin(make: Make, device: str | None) -> None:
    """Prepare a new process to hold the model.

    Args:
        make: The function that makes the model.
        device: The CUDA device that the process sees; None: all.
    """

    def end_with_parent() -> None:
        parent = multiprocessing.parent_process()
        assert parent is not None
        parent.join()
        os._exit(1)  # even while the model computes

    global _holding
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the audit, which ends workers
    os.dup2(2, 1)  # the model prints to stderr: stdout is the command's own
    threading.Thread(target=end_with_parent, daemon=True).start()
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # PyTorch in many workers: one thread each
    if device is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = device  # before CUDA is used for the first time
    _holding = Holding(make)


def _call(method: str, *arguments: Any) -> Any:
    """Call a method of the model's holder in this process."""
    return getattr(_holding, method)(*arguments)


# -- workers, from outside -------------------------------------------------------------------------


class Died(Exception):
    """The worker died. The message says how it ended."""


class Worker(ABC):
    """A process or actor that holds the model. One thread at a time uses it; any may close it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # held while the worker is started or ended
        self._closed = False

    def start(self) -> About:
        """Start the worker, or restart it after it died, and make the model.

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
        """Return one answer per prompt. Raise Died, or the ModelError of the model."""
        return self._result("ask", list(prompts))

    @abstractmethod
    def close(self) -> None:
        """End the worker, even while it computes. May be called repeatedly, from any thread."""

    @abstractmethod
    def _begin(self) -> None:
        """Start the process or actor."""

    @abstractmethod
    def _result(self, method: str, *arguments: Any) -> Any:
        """Call a method of the worker's `Holding` and return its result."""


class LocalProcess(Worker):
    """A process that holds the model, in a pool of one, so that the call that killed it is known.

    Args:
        make: The function that makes the model.
        device: The CUDA device that the process sees; None: all.
    """

    def __init__(self, make: Make, device: str | None = None) -> None:
        super().__init__()
        self._make_and_device = make, device
        self._pool: ProcessPoolExecutor | None = None

    def _begin(self) -> None:
        self._context = _Context()
        self._pool = ProcessPoolExecutor(1, self._context, _begin, self._make_and_device)

    def close(self) -> None:
        with self._lock:
            self._closed, pool, self._pool = True, self._pool, None
        if pool is None:
            return
        pool.shutdown(wait=False, cancel_futures=True)
        if (process := self._context.process) is not None:
            process.join(PATIENCE if self._last.done() else 0.0)  # an idle one closes its model
            process.kill()
        pool.shutdown()
        self._context = _Context()  # drops the process, which then closes its pipes

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
            pool.shutdown()  # waits until the exit code is known
        code = (self._context.process and self._context.process.exitcode) or 0
        killed = f"was ended by {signal.Signals(abs(code)).name}" if code < 0 else ""
        raise Died(killed or f"ended with code {code}")


class _Context(SpawnContext):
    """Multiprocessing context that keeps the process of a pool, for its exit code."""

    process: SpawnProcess | None = None

    def Process(self, *args: Any, **options: Any) -> SpawnProcess:  # type: ignore[override]
        self.process = SpawnProcess(*args, **options)
        return self.process


class RayActor(Worker):
    """A Ray actor that holds the model.

    Args:
        ray: The module ray, which has joined a cluster.
        make: The function that makes the model.
        cpus: CPUs that the actor reserves, above 0; may be a fraction.
        gpus: GPUs that it reserves, at least 0; may be a fraction.
    """

    def __init__(self, ray: Any, make: Make, *, cpus: float, gpus: float) -> None:
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
            raise error.cause from None  # the model's own error, as a process raises it
        except self._ray.exceptions.RayError as error:
            raise Died(f"was lost: {one_line(error)[:200]}") from None

    def _kill(self) -> None:
        if self._actor is not None and self._ray.is_initialized():
            with suppress(Exception):  # the cluster may be down
                self._ray.kill(self._actor)


def _workers(make: Make, workers: int | str, actors: int | None) -> Sequence[Worker]:
    """Return processes, or actors that share the GPUs and CPUs of a cluster; none is started yet.

    Args:
        make: The function that makes the model.
        workers: Number of processes, "ray", or "ray://HOST:PORT".
        actors: Number of actors. None: one per GPU of the cluster, else one per CPU.

    Raises:
        InputError: A number or address is invalid.
    """
    if isinstance(workers, str) and (workers == "ray" or workers.startswith("ray://")):
        ray = joined(None if workers == "ray" else workers)
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
    """A model whose copies in several workers answer calls in parallel.

    The draws of an audit depend on ``in_flight``, not on the number of workers. Local workers share
    the CUDA devices evenly; each sees one of them.

    Args:
        make: Name of the model (``file.py:name``, ``package.module:name``), or a function of a
            module, without arguments, that returns it.
        workers: Number of processes, at least 1; or "ray", or "ray://HOST:PORT", for actors.
        actors: Number of Ray actors. Default None: one per GPU of the cluster, else one per CPU.
        in_flight: Number of calls that run or wait. Default None: two per worker, at least 8.

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
        factory = partial(load, make) if isinstance(make, str) else make
        try:
            pickle.dumps(factory)  # as multiprocessing or Ray does, which fail without our sentence
        except Exception as error:  # each type fails to be pickled in its own manner
            raise InputError(
                "workers: expected a model by name ('file.py:name') or a function of a module, got "
                f"{make!r:.80}, which cannot be sent to another process ({one_line(error)[:100]})"
            ) from None
        self.workers = tuple(_workers(factory, workers, actors))
        self.in_flight = in_flight or max(IN_FLIGHT, 2 * len(self.workers))
        self._ready: dict[Worker, About] = {}
        self._free: SimpleQueue[Worker] = SimpleQueue()
        self._deaths, self._answered = 0, False
        # as many threads as workers, so that a thread which takes a call finds a free worker
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
        """Ask a free worker, and return the answer's future. Raise OrderError after ``close``."""
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
        """Text with the number of workers that are starting."""
        starting = len(self.workers) - len(self._ready)
        return f"{starting} of {len(self.workers)} workers starting" if starting else ""

    def content(self) -> str | None:
        return self._about.content

    def protocol(self) -> JsonObject:
        return dict(self._about.protocol)

    def statistics(self) -> JsonObject | None:
        """Return the numbers of workers, and of those that died; None if none died."""
        deaths = {"workers": len(self.workers), "workers_died": self._deaths}
        return deaths if self._deaths else None

    def close(self) -> None:
        """End all workers. Calls that wait for a worker are cancelled."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for worker in self.workers:
            worker.close()
        self._threads.shutdown()

    def __repr__(self) -> str:
        return f"Workers({self.name!r}, {len(self.workers)})"

    # -- in the threads ------------------------------------------------------------------------

    def _start(self, worker: Worker) -> About:
        """Start a worker, and offer it for calls."""
        try:
            return self._started(worker)
        finally:
            self._free.put(worker)

    def _started(self, worker: Worker) -> About:
        """Start a worker unless it runs, and return the description of its model."""
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
        """Return the answer of a free worker, which is restarted and asked again if it dies."""
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
                price = lost * self._price  # of the attempts that were lost
                unconfirmed = answer.unconfirmed + price
                return replace(answer, cost=answer.cost + price, unconfirmed=unconfirmed)
        finally:
            self._free.put(worker)
        if not (self._answered or self.trusted):
            raise ModelError(
                f"worker: {MAX_ASKED} died before any gave an answer; the last {last} (asked about "
                f"sample {prompt.sample_id!r}, {prompt.relation} severity {prompt.severity})"
            )
        cost = MAX_ASKED * self._price
        return Unanswered(f"{MAX_ASKED} workers died of it", cost, cost)
