"""A worker process: it is told how to make the model, then asked until its pipe ends.

It ends with the process that began it, however that ends, even while the model computes: the
only other end of its pipe goes with that, and a thread of its own notices.
"""

import os
import signal
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

from .holding import Failure, Holding, unforeseen

END = "end"
"""What is sent instead of prompts when no more will come."""


def main(descriptor: int) -> None:
    """Serves the pipe with this file descriptor."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the driver, which ends this
    pipe, told = Connection(descriptor), SimpleQueue[Any]()
    threading.Thread(target=_listen, args=(pipe, told), daemon=True).start()
    make = told.get()
    if isinstance(make, Failure):
        _say(pipe, make)
        return
    holding = Holding(make)
    _say(pipe, holding.about())
    while (prompts := told.get()) != END:
        _say(pipe, prompts if isinstance(prompts, Failure) else holding.ask(prompts))
    holding.close()


def _listen(pipe: Connection, told: "SimpleQueue[Any]") -> None:
    """Puts what comes through the pipe into the queue; at the pipe's end it ends the process."""
    while True:
        try:
            told.put(pipe.recv())
        except (EOFError, OSError):
            os._exit(0)  # nobody waits for the answer that may be computed just now
        except Exception as error:  # how to make the model was told by what is not found here
            told.put(unforeseen(error))


def _say(pipe: Connection, thing: Any) -> None:
    with suppress(BrokenPipeError):
        pipe.send(thing)
