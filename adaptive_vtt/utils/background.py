"""An event loop in a separate thread, for calls and servers while the program computes."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from ..errors import OrderError

T = TypeVar("T")
DROPPED = 5.0
"""Maximum number of seconds to wait for the connections of a model that is finalised."""


class Background:
    """An event loop whose thread starts with the first coroutine, and ends with the program.

    It has no reference to a model, so that a model which is no longer referenced can be finalised
    by ``drop``.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._closed = False
        self._closers: list[Callable[[], Awaitable[None]]] = []

    def at_the_end(self, closer: Callable[[], Awaitable[None]]) -> None:
        """Await ``closer`` in the loop before it ends; connections belong to their loop."""
        self._closers.append(closer)

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> "Future[T]":
        """Run a coroutine and return its future; raise OrderError after ``close``."""
        with self._starting:
            if self._closed:
                coroutine.close()
                raise OrderError(f"{self._name}: was closed; it cannot be called any more")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=_run, args=(self._loop,), name=self._name, daemon=True
                )
                self._thread.start()
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def close(self, patience: float | None = None) -> None:
        """Cancel all coroutines, close connections and end the thread. May be called repeatedly.

        An exception of a closer is raised. In the loop's thread nothing is waited for.

        Args:
            patience: Maximum number of seconds to wait. Default None: any.
        """
        with self._starting:
            loop, thread, self._closed = self._loop, self._thread, True
            self._loop = self._thread = None
        if loop is None or thread is None:
            return
        ended = asyncio.run_coroutine_threadsafe(_wind_up(self._closers), loop)
        ended.add_done_callback(lambda _: loop.call_soon_threadsafe(loop.stop))
        if thread is threading.current_thread():
            return
        try:
            ended.result(patience)
        finally:
            thread.join(patience)

    def drop(self) -> None:
        """Close without raising, for a model that is finalised."""
        with suppress(Exception):
            self.close(DROPPED)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


async def _wind_up(closers: list[Callable[[], Awaitable[None]]]) -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    try:
        for closer in closers:
            await closer()
    finally:
        loop = asyncio.get_running_loop()
        await loop.shutdown_asyncgens()  # of replies that were not read to the end
        await loop.shutdown_default_executor()
