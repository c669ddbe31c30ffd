"""Audits in processes of their own that are killed at random moments and resumed to their end."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import Process, get_context
from pathlib import Path
from typing import Any, NoReturn

from adaptive_vtt.audit import Audit
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.results.result import Result
from adaptive_vtt.utils.files import write_text

from ..program import Row


def run_and_end(audit: Audit, journal: str, tell: Callable[[Result], Row]) -> NoReturn:
    """Runs an audit, goes on with it where ``journal`` holds one, and ends the process; what it
    came to, with what ``tell`` makes of its result, is left beside the journal."""
    with audit:
        Path(journal + ".begun").touch()
        result = audit.run()
        verify(audit.journal)
        found = {"lost": audit.interrupted, "cost": result.cost, **tell(result)}
    audit.model.close()
    write_text(Path(journal + ".json"), json.dumps(found))
    os._exit(0)


def ended(
    context: Any, audit: Callable[[str, str], None], url: str, path: str, waits: list[float]
) -> Row:
    """What ``audit``, which calls ``run_and_end``, came to: killed ``waits`` seconds after it began
    to ask, each time, then left to end."""
    count = 0
    for wait in waits:
        process: Process = context.Process(target=audit, args=(url, path))
        begun = Path(path + ".begun")
        begun.unlink(missing_ok=True)
        process.start()
        while process.is_alive() and not begun.exists():
            time.sleep(0.005)
        process.join(wait)
        if process.is_alive():
            os.kill(process.pid or 0, signal.SIGKILL)
            count += 1
        process.join()
    process = context.Process(target=audit, args=(url, path))
    process.start()
    process.join()
    return {**json.loads(Path(path + ".json").read_text()), "kills": count}


@contextmanager
def served(serve: Callable[..., None], *arguments: Any) -> Iterator[str]:
    """The address of ``serve(pipe, *arguments)`` in a process of its own; it sends its port."""
    here, there = get_context("spawn").Pipe()
    process = get_context("spawn").Process(target=serve, args=(there, *arguments), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{here.recv()}"
    finally:
        process.terminate()
        process.join()
