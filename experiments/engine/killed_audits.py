"""Audits in separate processes that are killed at random moments and resumed to their end."""

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


def run_and_end(audit: Audit, journal: str, summarise: Callable[[Result], Row]) -> NoReturn:
    """Run or resume an audit, write its outcome and ``summarise(result)``, and end the process.

    The outcome is written to the path of the journal with ".json".
    """
    with audit:
        Path(journal + ".begun").touch()
        result = audit.run()
        verify(audit.journal)
        outcome = {"lost": audit.interrupted, "cost": result.cost, **summarise(result)}
    audit.model.close()
    write_text(Path(journal + ".json"), json.dumps(outcome))
    os._exit(0)


def ended(
    context: Any, audit: Callable[[str, str], None], url: str, path: str, waits: list[float]
) -> Row:
    """Run ``audit`` once per wait, then to its end; return its outcome and the number of kills.

    Args:
        context: Context of multiprocessing that starts processes.
        audit: Function of ``url`` and ``path`` that calls ``run_and_end``.
        url: The endpoint's address.
        path: Path of the journal.
        waits: Seconds from the first call of each run to its kill.
    """
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
    """Yield the address of ``serve(pipe, *arguments)``, which sends its port from its process."""
    receiver, sender = get_context("spawn").Pipe()
    process = get_context("spawn").Process(target=serve, args=(sender, *arguments), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{receiver.recv()}"
    finally:
        process.terminate()
        process.join()
