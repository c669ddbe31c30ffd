"""An event loop beside the program: calls are awaited there while the audit computes here."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from ...errors import OrderError

T = TypeVar("T")


class Background:
    """The loop's thread starts with the first coroutine, and never outlives the program."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._closed = False

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> "Future[T]":
        """The coroutine's result, later; raises OrderError after ``close``."""
        with self._starting:
            if self._closed:
                coroutine.close()
                raise OrderError(f"{self._name}: was closed; it cannot be called any more")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._loop.run_forever, name=self._name, daemon=True
                )
                self._thread.start()
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def close(self, last: Coroutine[Any, Any, None]) -> None:
        """Cancels what is under way, awaits ``last`` (once) and ends the thread."""
        with self._starting:
            loop, thread, self._closed = self._loop, self._thread, True
            self._loop = self._thread = None
        if loop is None or thread is None:
            last.close()
            return
        try:
            asyncio.run_coroutine_threadsafe(_wind_up(last), loop).result()
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()


async def _wind_up(last: Coroutine[Any, Any, None]) -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    try:
        await last
    finally:
        loop = asyncio.get_running_loop()
        await loop.shutdown_asyncgens()  # bodies that were cut while they were read
        await loop.shutdown_default_executor()
