"""What a worker process gets of a thing that is sent to it."""

from multiprocessing import Pipe
from threading import Thread
from typing import TypeVar, cast

T = TypeVar("T")


def received(thing: T) -> T:
    """The copy that comes out of ``multiprocessing``'s own pipe."""
    there, here = Pipe()
    with there, here:
        sender = Thread(target=there.send, args=(thing,))  # a pipe holds little: read meanwhile
        sender.start()
        found = here.recv()
        sender.join()
    return cast(T, found)
