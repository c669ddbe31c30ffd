"""Audits in parallel: in processes of this machine, or as tasks on a Ray cluster."""

import signal
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import closing
from functools import partial
from multiprocessing import active_children, get_context
from typing import Any, TypeVar

from ..errors import AvttError, InputError, one_line
from ..utils.devices import joined
from ..utils.other_code import place_of

Job = TypeVar("Job")
Done = TypeVar("Done")
PROCESSES, RAY = "processes", "ray"


def run_all(
    work: Callable[[Job], Done],
    jobs: Sequence[Job],
    ended: Callable[[Done], object] = lambda _: None,
    *,
    executor: str = PROCESSES,
    workers: int | None = None,
) -> list[Done]:
    """Do ``work`` on every job and return the results in the order of the jobs.

    The first job that fails ends the others.

    Args:
        work: A function of a module; jobs and results can be pickled.
        jobs: Its arguments.
        ended: Called with each result as it comes.
        executor: "processes", "ray" or a cluster's "ray://HOST:PORT".
        workers: Most processes at a time (None: one per CPU); Ray uses the CPUs of its cluster.

    Raises:
        InputError: There is no such executor, or Ray cannot be joined.
    """
    check_executor(executor)
    if executor == PROCESSES:
        arriving = _in_processes(work, jobs, workers)
    else:
        arriving = _on_ray(work, jobs, None if executor == RAY else executor)
    results: dict[int, Done] = {}
    with closing(arriving):
        for number, result in arriving:
            results[number] = result
            ended(result)
    return [results[number] for number in range(len(jobs))]


def _done(work: Callable[[Job], Done], job: Job) -> Done:
    """Do the work; an error of the user's code names its line, which only this process knows."""
    try:
        return work(job)
    except AvttError:
        raise
    except Exception as error:
        if not (place := place_of(error)):
            raise
        message = f"your code raised {type(error).__name__}: {one_line(error)}{place}"
        raise InputError(message) from None


def check_executor(executor: str) -> None:
    """Raise InputError if there is no such executor."""
    if executor not in (PROCESSES, RAY) and not executor.startswith(f"{RAY}://"):
        raise InputError(f"executor: expected processes, ray or ray://HOST:PORT, got {executor!r}")


def _in_processes(
    work: Callable[[Job], Done], jobs: Sequence[Job], workers: int | None
) -> Generator[tuple[int, Done], None, None]:
    others = active_children()
    # Ctrl-C goes to every process of a terminal; this one alone decides what follows
    ignore_ctrl_c = partial(signal.signal, signal.SIGINT, signal.SIG_IGN)
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=ignore_ctrl_c)
    try:
        numbers = {pool.submit(_done, work, job): number for number, job in enumerate(jobs)}
        for future in as_completed(numbers):
            yield numbers[future], future.result()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in active_children():  # else what runs there would be waited for
            if worker not in others:
                worker.kill()
        raise
    pool.shutdown()


def _on_ray(
    work: Callable[[Job], Done], jobs: Sequence[Job], address: str | None
) -> Generator[tuple[int, Done], None, None]:
    ray = joined(address)
    task = ray.remote(_done)
    numbers: dict[Any, int] = {task.remote(work, job): number for number, job in enumerate(jobs)}
    waiting = list(numbers)
    try:
        while waiting:
            (ended,), waiting = ray.wait(waiting)
            yield numbers[ended], ray.get(ended)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None  # as a process would have raised it
    finally:
        for task_left in waiting:
            ray.cancel(task_left, force=True)
