"""Render follow-up images ahead of the model, in other processes if that saves time."""

import pickle
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache, partial
from itertools import islice
from multiprocessing import cpu_count, get_context

from ..space import QuestionSpace
from ..types import FollowUp, Sample

Pair = tuple[Sample, FollowUp]
WORTH = 6.0
"""Seconds of work above which other processes are started, which takes a second or two."""
AHEAD = 2
"""Number of batches in progress per process."""
_SPACE: QuestionSpace | None = None
"""The space of a worker process."""


def made(space: QuestionSpace, images: Sequence[int]) -> dict[int, Pair]:
    """Return the source and follow-up of each image, by its number.

    The source of successive images is read once.
    """
    read = lru_cache(maxsize=1)(space.dataset.sample)
    sources = ((image, read(space.numbering.image_parts(image)[0])) for image in images)
    return {image: (source, space.made_of(source, image)) for image, source in sources}


class Making:
    """Renderer of batches of images, in order.

    Args:
        space: The space. If it cannot be pickled, this process renders all images.
        processes: Number of other processes. None: one per spare processor, if the time of the
            first batch shows that they are worth it.
        here: Function that renders a batch in this process, such as one that caches sources.
            Default None: ``made``.
    """

    def __init__(
        self,
        space: QuestionSpace,
        processes: int | None,
        here: Callable[[list[int]], dict[int, Pair]] | None = None,
    ) -> None:
        self.space = space
        self.processes = processes
        self.here = here or partial(made, space)

    def __call__(self, batches: Sequence[list[int]]) -> Iterator[dict[int, Pair]]:
        if not batches:
            return
        start = time.perf_counter()
        first, others = self.here(batches[0]), batches[1:]
        seconds, count = (time.perf_counter() - start) * len(others), self.processes
        yield first
        if count is None:
            count = cpu_count() - 1 if seconds > WORTH else 0
        if count and others:
            try:
                pickle.dumps(self.space)
            except Exception:  # a user's relation or dataset may fail in any manner
                count = 0
        parallel = count and others
        yield from _in_processes(self.space, others, count) if parallel else map(self.here, others)


def _in_processes(
    space: QuestionSpace, batches: Sequence[list[int]], processes: int
) -> Iterator[dict[int, Pair]]:
    """Yield batches that processes render ahead; if a process dies, this one renders the rest."""
    left, futures = deque(batches), deque[Future[dict[int, Pair]]]()
    with ProcessPoolExecutor(processes, get_context("spawn"), _begin, (space,)) as pool:
        try:
            while left:
                for images in islice(left, len(futures), AHEAD * processes):
                    futures.append(pool.submit(_make, images))
                yield futures[0].result()
                futures.popleft()
                left.popleft()
        except BrokenProcessPool:
            yield from (made(space, images) for images in left)
        finally:
            pool.shutdown(wait=not left, cancel_futures=True)  # no waiting if closed early


def _begin(space: QuestionSpace) -> None:
    global _SPACE
    _SPACE = space


def _make(images: list[int]) -> dict[int, Pair]:
    if _SPACE is None:
        raise RuntimeError("no space was sent")
    return made(_SPACE, images)
