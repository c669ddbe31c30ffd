"""Follow-up images made ahead of the model, by processes beside it where that saves time."""

import pickle
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache, partial
from itertools import chain, islice
from multiprocessing import cpu_count, get_context

from ..space import QuestionSpace
from ..types import FollowUp, Sample

Pair = tuple[Sample, FollowUp]
WORTH = 6.0
"""Seconds that images would still take in one process before others are begun for them: each needs
a second or two to begin."""
AHEAD = 2
"""Batches on their way, per process."""
_SPACE: QuestionSpace | None = None


def made(space: QuestionSpace, images: Sequence[int]) -> dict[int, Pair]:
    """Return the source and the follow-up of every image; a source of images in a row is read
    once."""
    read = lru_cache(maxsize=1)(space.dataset.sample)
    sources = ((image, read(space.numbering.image_parts(image)[0])) for image in images)
    return {image: (source, space.made_of(source, image)) for image, source in sources}


class Making:
    """Makes the images of one batch after another, in order.

    ``processes``: how many beside this one; None: one per spare processor, once the first batch has
    shown that it is worth it; 0: none. A space that cannot be sent to other processes (data or
    relations of one's own that cannot be pickled) is made here. ``here``: what makes a batch in
    this process, where sources that are needed again are to be kept.
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
        first, rest = batches[:1], batches[1:]
        start = time.perf_counter()
        for images in first:
            ready = self.here(images)
            seconds = (time.perf_counter() - start) * len(rest)
            yield ready
        if rest:
            yield from self._rest(rest, seconds)

    def _rest(self, batches: Sequence[list[int]], seconds: float) -> Iterator[dict[int, Pair]]:
        count = self.processes
        if count is None:
            count = cpu_count() - 1 if seconds > WORTH else 0
        if count and _can_be_sent(self.space):
            return _elsewhere(self.space, batches, count)
        return map(self.here, batches)


def _can_be_sent(space: QuestionSpace) -> bool:
    try:
        pickle.dumps(space)
    except Exception:
        return False
    return True


def _elsewhere(
    space: QuestionSpace, batches: Sequence[list[int]], processes: int
) -> Iterator[dict[int, Pair]]:
    """Some batches ahead; where processes cannot be begun, or die, the rest is made here."""
    left, waiting = iter(batches), deque[tuple[list[int], Future[dict[int, Pair]]]]()
    with ProcessPoolExecutor(processes, get_context("spawn"), _begin, (space,)) as pool:
        try:
            for images in islice(left, AHEAD * processes):
                waiting.append((images, pool.submit(_make, images)))
            while waiting:
                yield waiting[0][1].result()
                waiting.popleft()
                for images in islice(left, 1):
                    waiting.append((images, pool.submit(_make, images)))
        except BrokenProcessPool:
            yield from (made(space, images) for images in chain((i for i, _ in waiting), left))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _begin(space: QuestionSpace) -> None:
    global _SPACE
    _SPACE = space


def _make(images: list[int]) -> dict[int, Pair]:
    if _SPACE is None:
        raise RuntimeError("no space was sent")
    return made(_SPACE, images)
