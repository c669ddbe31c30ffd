"""Exchanges with a provider that cost nothing, repeated while they fail."""

import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from ...errors import ModelError, one_line
from ...utils.random_streams import generator
from .attempts import Trouble, reading
from .paid import Paid

T = TypeVar("T")
_ID = re.compile(r"[A-Za-z0-9][\w.:-]{0,199}", re.ASCII)


class Exchanging(Paid):
    """What is paid for, and looked after by exchanges that are free: submitted, looked at, read."""

    def __init__(self, **paid: Any) -> None:
        super().__init__(**paid)
        self._reached = False  # until the server replied to anything

    async def _again(
        self, what: str, doing: Callable[[], Awaitable[T]], final: tuple[str, ...] = ()
    ) -> T:
        """What an exchange gives, repeated while it fails; raises Trouble of a kind that is
        ``final``, and ModelError where it keeps failing."""
        attempt = 0
        while True:
            try:
                with reading():
                    return await self._in_time(doing())
            except Trouble as trouble:
                if trouble.kind in final:
                    raise
                await self._pause(what, trouble, attempt)
                attempt += 1

    async def _pause(self, what: str, trouble: Trouble, attempt: int) -> None:
        """Waits before an exchange is tried again; raises ModelError where that is of no use."""
        asked, retries = trouble.asked or 0.0, self.retries
        away = trouble.kind == "unreachable" and not self._reached
        if (
            trouble.then == "again"
            and not away
            and attempt < retries.give_up_after
            and asked <= retries.patience
        ):
            rng = generator(self._seed, f"backoff/{what}", attempt)
            wait = retries.wait(attempt, trouble.asked, rng)
            self._counts.seconds_backing_off += wait
            await self._sleep(wait)
            return
        trouble.detail = self._shown(trouble.detail)
        raise ModelError(
            f"{self._who}: {what} failed: {one_line(trouble)}; resume once that is mended, what "
            "was submitted is kept"
        ) from None

    def _awaited(self, doing: Awaitable[T]) -> T:
        """The result of what runs on the loop; an interruption here ends it there."""

        async def run() -> T:
            return await doing

        future = self._background.submit(run())
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise


def checked_id(found: object) -> str:
    """What a provider calls a batch or file; raises ValueError for what may not stand in a URL."""
    if not (isinstance(found, str) and _ID.fullmatch(found)):
        raise ValueError(f"expected an id, got {str(found)[:60]!r}")
    return found
