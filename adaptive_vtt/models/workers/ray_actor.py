"""A worker that is an actor of a Ray cluster."""

import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from ...errors import one_line
from ...types import Answer, Prompt, Unanswered
from ...utils.ray_cluster import joined
from .holding import About, Holding, Make, opened
from .place import Died


class RayActor:
    """An actor that holds the model. ``ray``: the module, which has joined a cluster; ``cpus`` and
    ``gpus``: how many of these it needs, parts of one too."""

    def __init__(self, ray: Any, make: Make, *, cpus: float, gpus: float) -> None:
        self._ray, self._make = ray, make
        self._class = ray.remote(Holding).options(num_cpus=cpus, num_gpus=gpus, max_restarts=0)
        self._actor: Any = None
        self._closed = False
        self._lock = threading.Lock()  # held while an actor is begun or ended

    def start(self) -> About:
        with self._lock:
            if self._closed:
                raise Died("was closed")
            self._end()
            self._actor = actor = self._class.remote(self._make)
        return self._result(actor, "about")

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        return self._result(self._actor, "ask", list(prompts))

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._end()

    def _result(self, actor: Any, method: str, *arguments: Any) -> Any:
        if actor is None:
            raise Died("was closed")
        try:
            told = self._ray.get(getattr(actor, method).remote(*arguments))
        except self._ray.exceptions.RayError as error:
            raise Died(f"was lost: {one_line(error)[:200]}") from None
        return opened(told)

    def _end(self) -> None:
        if self._actor is not None and self._ray.is_initialized():
            with suppress(Exception):  # the cluster may be gone, with the actor
                self._ray.kill(self._actor)
        self._actor = None


def ray_actors(make: Make, address: str | None, count: int | None) -> list[RayActor]:
    """``count`` actors of the cluster at ``address`` (None: see ``joined``), which share its GPUs
    and CPUs. Default: one for each GPU, or, where there is none, for each CPU.

    Raises InputError where Ray is not installed, or the cluster cannot be joined.
    """
    ray = joined(address)
    resources = ray.cluster_resources()
    gpus, cpus = resources.get("GPU", 0.0), resources.get("CPU", 1.0)
    count = count or max(1, int(gpus or cpus))
    shares = {"cpus": min(1.0, cpus / count), "gpus": min(1.0, gpus / count)}
    return [RayActor(ray, make, **shares) for _ in range(count)]
